"""The methods of InternalGraph that edit it for users; each raises before anything has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, cast

from tmconvert.errors import GraphError
from tmconvert.ir.node import Node

if TYPE_CHECKING:
    from tmconvert.ir.expr import Expr
    from tmconvert.ir.graph import InternalGraph


class Surgery:
    """Edits of a graph."""

    __slots__ = ()

    def replace_node(self, replacements: Mapping[Node, Node]) -> None:
        """Makes the users of each key use its value, the graph's result too.

        Expressions that the new node is computed from keep the old one, so a new call may take the node
        that it stands for, whether it is inserted before or after. What the new node is computed from is
        moved before its first user where necessary. Of several pairs the last is done first. Types that
        follow are inferred again.

        Raises GraphError TM3002 for a node of another graph, TM3014 for a tensor and a module, TM3015 where
        a call cannot take the new tensor; the graph is as before then.

        >>> relu = graph.get_function_by_type("nn.relu").as_unique()  # doctest: +SKIP
        >>> graph.replace_node({relu.outputs[0]: relu.inputs[0]})  # doctest: +SKIP
        """
        from tmconvert.ir.editing.replacing import replace_nodes

        replace_nodes(_graph(self), replacements)

    def compile(self) -> bool:
        """Removes all expressions that no result is computed from; returns whether there were any.

        Calls without results stay, as their effects are not known; so do graphs of submodules.
        """
        from tmconvert.ir.editing.dead_code import remove_dead_code

        return remove_dead_code(_graph(self)) > 0

    def eliminate_dead_code(self, is_impure_node: Callable[[Expr], bool] | None = None) -> bool:
        """Removes what is not used, as torch.fx calls it; see ``compile``.

        ``is_impure_node`` returns whether an expression stays, even if it is unused.
        """
        from tmconvert.ir.editing.dead_code import remove_dead_code

        return remove_dead_code(_graph(self), is_impure=is_impure_node) > 0

    def erase_node(self, node: Node | Expr) -> None:
        """Removes the expression of a node, or a formal input. Raises GraphError TM3002 while it is used."""
        graph = _graph(self)
        expr = node.expr if isinstance(node, Node) else node
        if expr is None or expr.graph is not graph:
            raise GraphError("TM3002", f"{node} is not in graph {graph.name!r}")
        if expr.outputs and expr.outputs[0] in graph.inputs:
            from tmconvert.ir.editing.ends import erase_input

            erase_input(graph, expr.outputs[0])
        else:
            graph.remove(expr)


def _graph(self: Surgery) -> InternalGraph:
    return cast("InternalGraph", self)
