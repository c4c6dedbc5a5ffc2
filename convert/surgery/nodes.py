"""Nodes with the names of MegEngine's and torch.fx's, and with operators that insert calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tmconvert import ir
from tmconvert.surgery.operators import ModuleOperators, TensorOperators
from tmconvert.surgery.torch_fx import FxNode

if TYPE_CHECKING:
    from tmconvert.surgery.exprs import Expr
    from tmconvert.surgery.graph import InternalGraph
    from tmconvert.surgery.module import TracedModule


class Node(FxNode):
    """A value with exactly one producer; see ``tmconvert.ir.Node``."""

    __slots__ = ()

    if TYPE_CHECKING:
        expr: Expr | None

        @property
        def users(self) -> tuple[Expr, ...]: ...

    @property
    def top_graph(self) -> InternalGraph | None:
        """Returns the graph that the node is in; None after its removal."""
        return cast("InternalGraph | None", self.graph)

    @property
    def qualname(self) -> str:
        """Returns the qualified name of the node in the model.

        It is ``Net.block.conv`` for a module, ``Net.block.conv.[out]`` for its result, and
        ``Net.block.[func_relu]`` for the result of a function.
        """
        return self.name if self.expr is None else self.expr.qualified_name(self)


class TensorNode(TensorOperators, Node, ir.TensorNode, extends=ir.TensorNode):
    """A tensor; see ``tmconvert.ir.TensorNode``."""

    __slots__ = ()


class ModuleNode(ModuleOperators, Node, ir.ModuleNode, extends=ir.ModuleNode):
    """A module; see ``tmconvert.ir.ModuleNode``."""

    __slots__ = ()

    if TYPE_CHECKING:
        owner: TracedModule | None
