"""Argument trees as a TreeDef and its leaves, the inverse of ``megengine/arguments.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tmconvert.errors import WriteError
from tmconvert.frontends.megengine.writing.pickle_writer import CANNOT_SAVE
from tmconvert.frontends.megengine.writing.records import ELLIPSIS_TYPE, MODULE, NONE_TYPE, Record
from tmconvert.ir import ModuleNode, TensorNode
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.tree import Tree

_PYTREE = "megengine.traced_module.pytree"
_NODES = "megengine.traced_module.node"
_INDEX = GlobalRef(_PYTREE, "ArgsIndex")
_TENSOR_TYPES = (GlobalRef("megengine.tensor", "Tensor"), GlobalRef(_NODES, "TensorNode"), _INDEX)
_MODULE_TYPES = (MODULE, GlobalRef(_NODES, "ModuleNode"), GlobalRef(_NODES, "NodeMixin"), _INDEX)
_TREE = GlobalRef(_PYTREE, "TreeDef")
_LEAF = GlobalRef(_PYTREE, "LeafDef")
_DICT = GlobalRef("builtins", "dict")
_ORDERED_DICT = GlobalRef("collections", "OrderedDict")
_TYPES: dict[type, GlobalRef] = {
    **{kind: GlobalRef("builtins", kind.__name__) for kind in (bool, bytes, float, int, str)},
    type(None): NONE_TYPE,
    type(Ellipsis): ELLIPSIS_TYPE,
    GlobalRef: GlobalRef("abc", "ABCMeta"),  # a class of tensors
    np.ndarray: GlobalRef("numpy", "ndarray"),
}

# Converts a constant of a call to the value that the file has.
Constants = Callable[[Any], Any]


def flattened(tree: Tree, constant: Constants) -> tuple[list[Any], Record]:
    """Returns the leaves of a tree, in MegEngine's order, and its definition.

    A dict whose keys are not sorted becomes an OrderedDict, since MegEngine sorts those of a dict.
    """
    if isinstance(tree, (tuple, list)):
        return _branch(GlobalRef("builtins", type(tree).__name__), None, tree, constant)
    if isinstance(tree, dict):
        kind = _DICT if list(tree) == sorted(tree, key=str) else _ORDERED_DICT
        return _branch(kind, tuple(tree), tree.values(), constant)
    if isinstance(tree, slice):
        return _branch(GlobalRef("builtins", "slice"), None, (tree.start, tree.stop, tree.step), constant)
    if isinstance(tree, TensorNode):
        return [tree], _leaf(_TENSOR_TYPES, None)
    if isinstance(tree, ModuleNode):
        return [tree], _leaf(_MODULE_TYPES, None)
    value = constant(tree)
    return [value], _leaf((_type_of(value), _INDEX), value)


def call_tree(args: tuple[Tree, ...], kwargs: dict[str, Tree]) -> Tree:
    """Returns the tree of a call, whose keyword arguments are sorted."""
    return (args, {name: kwargs[name] for name in sorted(kwargs)})


def _branch(
    kind: GlobalRef, keys: tuple[Any, ...] | None, children: Iterable[Tree], constant: Constants
) -> tuple[list[Any], Record]:
    leaves: list[Any] = []
    definitions = []
    for child in children:
        below, definition = flattened(child, constant)
        leaves += below
        definitions.append(definition)
    state = {"type": kind, "aux_data": keys, "children_defs": definitions, "num_leaves": len(leaves)}
    return leaves, Record(_TREE, state=state)


def _leaf(types: tuple[GlobalRef, ...], value: object) -> Record:
    state = {"type": types, "aux_data": None, "children_defs": [], "num_leaves": 1, "const_val": value}
    return Record(_LEAF, state=state)


def _type_of(value: object) -> GlobalRef:
    if isinstance(value, np.dtype):
        return GlobalRef("numpy", "dtype")  # MegEngine takes the type of the value itself
    if isinstance(value, np.generic):
        return GlobalRef("numpy", type(value).__name__)
    kind = _TYPES.get(type(value))
    if kind is None:
        raise WriteError(CANNOT_SAVE, f"an argument is a {type(value).__name__}, which MegEngine cannot hold")
    return kind
