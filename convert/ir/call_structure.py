"""The structure of the arguments of a call, by which a module finds its graph."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.node import ModuleNode, Node
from tmconvert.ir.tree import Tree


def call_structure(args: tuple[Tree, ...], kwargs: dict[str, Tree]) -> str:
    """Returns a key for the structure of arguments: modules M, tensors T, constants by type and value.

    >>> call_structure(((1, "a"),), {})
    "(((int 1,str 'a',),),{})"
    """
    return f"({_structure(args)},{_structure(kwargs)})"


def _structure(tree: Tree) -> str:
    if isinstance(tree, ModuleNode) or hasattr(tree, "graph_for"):  # a TracedModule, whose file needs this
        return "M"
    if isinstance(tree, (Node, np.ndarray)):
        return "T"
    if isinstance(tree, tuple):
        return "(" + "".join(_structure(child) + "," for child in tree) + ")"
    if isinstance(tree, list):
        return "[" + "".join(_structure(child) + "," for child in tree) + "]"
    if isinstance(tree, dict):
        return "{" + "".join(f"{key!r}:{_structure(tree[key])}," for key in sorted(tree, key=str)) + "}"
    if isinstance(tree, slice):
        return f"slice{_structure((tree.start, tree.stop, tree.step))}"
    return f"{type(tree).__name__} {tree!r}"
