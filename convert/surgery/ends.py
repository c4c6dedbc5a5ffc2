"""Inputs and outputs of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.errors import GraphError, UsageError
from tmconvert.ir.call_structure import call_structure
from tmconvert.ir.ids import ids_of
from tmconvert.ir.node import Node, TensorNode
from tmconvert.ir.tree import Tree, leaves
from tmconvert.ir.types import TensorType
from tmconvert.surgery.order import check_nodes
from tmconvert.surgery.replacing import replace_in
from tmconvert.surgery.transaction import Transaction
from tmconvert.surgery.type_inference import infer_changed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tmconvert.ir.graph import InternalGraph
    from tmconvert.ir.traced_module import TracedModule


def add_input(graph: InternalGraph, shape: Sequence[int], dtype: object, name: str) -> TensorNode:
    """``graph.add_input_node``."""
    type_ = _type(shape, dtype)
    node = _new_input(graph, type_, graph.free_name(name or "args"))
    _rekey(graph, _with_tensor)
    return node


def erase_input(graph: InternalGraph, node: Node) -> None:
    """Removes a formal input that nothing uses, but not ``self``."""
    if graph.is_source() and node is graph.inputs[0]:
        raise GraphError("TM3002", f"cannot remove the module of graph {graph.name!r}")
    graph.remove_input(node)
    _rekey(graph, lambda key: _flat_key(graph))


def reset_inputs(graph: InternalGraph, args: tuple[object, ...], kwargs: dict[str, Any]) -> list[TensorNode]:
    """``graph.reset_inputs``."""
    types = [_type_of(leaf) for leaf in leaves((args, kwargs))]
    old = graph.inputs[1:]
    surplus = [node for node in old[len(types) :] if graph.is_used(node)]
    if surplus:
        raise GraphError("TM3002", f"{surplus[0]} is used, and there are {len(types)} new inputs")
    names = [node.name for node in old] + _keywords(args, kwargs)[len(old) :]
    with Transaction(graph) as edit:
        made = [_new_input(graph, type_, graph.free_name("input")) for type_ in types]
        edit.on_error(lambda: _remove_inputs(graph, made))
        for before, after in zip(old, made, strict=False):
            replace_in(edit, before, after)
        infer_changed(edit)
    _remove_inputs(graph, old)
    for node, name in zip(made, names, strict=False):
        _rename_input(graph, node, graph.free_name(name))
    arrays = call_structure((graph.inputs[0], *args), kwargs)
    _rekey(graph, lambda key: arrays)
    return made


def reset_outputs(graph: InternalGraph, result: Tree) -> None:
    """``graph.reset_outputs``."""
    check_nodes(graph, result)
    if not any(isinstance(leaf, Node) for leaf in leaves(result)):
        raise GraphError("TM3014", f"graph {graph.name!r} would have no output")
    if any(isinstance(leaf, Node) and not isinstance(leaf, TensorNode) for leaf in leaves(result)):
        raise GraphError("TM3014", "a module cannot be an output")
    graph.output_names = ()
    graph.set_result(result)


# ---- helpers


def _new_input(graph: InternalGraph, type_: TensorType, name: str) -> TensorNode:
    node = TensorNode(name, type_.shape, type_.dtype)
    graph.add_input(node, name)
    assert node.expr is not None
    ids_of(graph).number(node.expr)
    return node


def _remove_inputs(graph: InternalGraph, nodes: Sequence[Node]) -> None:
    for node in nodes:
        graph.remove_input(node)


def _rename_input(graph: InternalGraph, node: TensorNode, name: str) -> None:
    graph.rename(node, name)
    node.expr.name = name  # type: ignore[union-attr]


def _type(shape: Sequence[int], dtype: object) -> TensorType:
    """Returns a type of user's arguments. Raises UsageError TM6063."""
    try:
        extents = tuple(int(extent) for extent in shape)
        type_ = TensorType(
            np.dtype(getattr(dtype, "name", None) or str(dtype).removeprefix("torch.")), extents
        )
    except (TypeError, ValueError) as error:
        raise UsageError("TM6063", f"an input cannot have shape {shape!r} and dtype {dtype!r}") from error
    if any(extent < 0 for extent in extents) or type_.dtype.kind not in "fiubc":
        raise UsageError("TM6063", f"an input cannot have shape {shape!r} and dtype {dtype!r}")
    return type_


def _type_of(leaf: Any) -> TensorType:
    if isinstance(leaf, TensorType):
        return leaf
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        raise UsageError("TM6063", f"an input must be given as a tensor, got {type(leaf).__name__}")
    return _type(leaf.shape, leaf.dtype)


def _keywords(args: tuple[object, ...], kwargs: dict[str, Any]) -> list[str]:
    names = ["args"] * len(leaves(args))
    for key, value in kwargs.items():
        names += [key] * len(leaves(value))
    return names


def _rekey(graph: InternalGraph, change: Any) -> None:
    """Keeps a graph under the structure of the arguments that its module takes now."""
    owner: TracedModule | None = getattr(graph.inputs[0], "owner", None) if graph.inputs else None
    if owner is None or not any(each is graph for each in owner.graphs.values()):
        return
    keys = {(change(key) if each is graph else key): each for key, each in owner.graphs.items()}
    if len(keys) == len(owner.graphs):
        owner.graphs = keys


def _flat_key(graph: InternalGraph) -> str:
    return call_structure(tuple(graph.inputs), {})


def _with_tensor(key: str) -> str:
    """Returns the structure of arguments with one more tensor after the positional ones.

    >>> _with_tensor("((M,T,),{'y':T,})")
    "((M,T,T,),{'y':T,})"
    """
    depth, quote = 0, ""
    for place, letter in enumerate(key):
        if quote:
            quote = "" if letter == quote and key[place - 1] != "\\" else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
            if depth == 1:
                return f"{key[:place]}T,{key[place:]}"
    return key
