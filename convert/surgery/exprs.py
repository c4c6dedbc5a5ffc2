"""Expressions with the names of MegEngine's and torch.fx's: qualified names, single runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tmconvert import ir
from tmconvert.errors import UsageError
from tmconvert.ir.function_names import FunctionName
from tmconvert.ir.interpreter import interpret_expr

if TYPE_CHECKING:
    from tmconvert.surgery.graph import InternalGraph
    from tmconvert.surgery.nodes import Node, TensorNode

# what an expression with a result answers for its first node, as torch.fx's users are nodes
OF_FIRST_RESULT = frozenset([
    *["name", "users", "meta", "all_input_nodes", "stack_trace", "shape", "dtype"],
    *["format_node", "is_impure", "replace_all_uses_with", "replace_input_with"],
    *["update_arg", "update_kwarg", "insert_arg", "append", "prepend"],
])  # fmt: skip


class Expr(ir.Expr):
    """One step of a graph; see ``tmconvert.ir.Expr``."""

    __slots__ = ()

    if TYPE_CHECKING:  # other names stay errors for type checkers

        @property
        def inputs(self) -> tuple[Node, ...]: ...
        @property
        def outputs(self) -> tuple[Node, ...]: ...
        @property
        def output(self) -> TensorNode: ...

    else:

        def __getattr__(self, name: str) -> Any:
            """Returns what the first result answers to a name of torch.fx: ``user.users``."""
            if name in OF_FIRST_RESULT and self.outputs:
                return getattr(self.outputs[0], name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def top_graph(self) -> InternalGraph | None:
        """Returns the graph that the expression is in; None after its removal."""
        return cast("InternalGraph | None", self.graph)

    def interpret(self, *inputs: Any) -> tuple[Any, ...]:
        """Computes the values of ``outputs`` from those of ``inputs``, both in order.

        Calls of submodules are computed, too. Raises UsageError TM6003 for a wrong number of inputs, and what
        the call raises.

        >>> values = dict(zip(graph.inputs, [tm, x]))  # doctest: +SKIP
        >>> for expr in graph:  # doctest: +SKIP
        ...     values |= zip(expr.outputs, expr.interpret(*[values[node] for node in expr.inputs]))
        """
        if self.graph is None:
            raise UsageError("TM6004", f"{self!r} is in no graph, whose module could evaluate it")
        return interpret_expr(self, inputs)

    def qualified_name(self, node: ir.Node) -> str:
        """Returns ``Node.qualname`` of one of the results."""
        return f"{self._scope()}.[{node.name}]"

    def _scope(self) -> str:
        """Returns the qualified name of the module that recorded the expression, before a flattening."""
        graph = self.top_graph
        owner = None if graph is None else graph.owning_module
        place = "" if graph is None else graph.qualname
        scope = self.source.scope if self.source is not None else ""
        is_flattened = scope and owner is not None and scope != owner.name and owner.is_model
        return f"{place}.{scope}" if is_flattened else place


class Input(Expr, ir.Input, extends=ir.Input):
    """A formal input of the graph; see ``tmconvert.ir.Input``."""

    __slots__ = ()

    def qualified_name(self, node: ir.Node) -> str:
        return self._scope() if isinstance(node, ir.ModuleNode) else f"{self._scope()}.[{self.name}]"


class Constant(Expr, ir.Constant, extends=ir.Constant):
    """A captured value; see ``tmconvert.ir.Constant``."""

    __slots__ = ()

    def qualified_name(self, node: ir.Node) -> str:
        owner: Any = node.owner if isinstance(node, ir.ModuleNode) else None
        qualname: str = f"{self._scope()}.[{self.name or node.name}]" if owner is None else owner.qualname
        return qualname


class GetAttr(Expr, ir.GetAttr, extends=ir.GetAttr):
    """The read of an attribute of a module; see ``tmconvert.ir.GetAttr``."""

    __slots__ = ()

    def qualified_name(self, node: ir.Node) -> str:
        return f"{self.args[0].qualname}.{self.name}"


class CallMethod(Expr, ir.CallMethod, extends=ir.CallMethod):
    """A call of a method or of a module; see ``tmconvert.ir.CallMethod``."""

    __slots__ = ()

    def qualified_name(self, node: ir.Node) -> str:
        if self.op == "call_module":
            return f"{self.args[0].qualname}.[out]"
        return f"{self._scope()}.[method_{self.method.strip('_')}]"


class CallFunction(Expr, ir.CallFunction, extends=ir.CallFunction):
    """A call of a function; see ``tmconvert.ir.CallFunction``."""

    __slots__ = ()

    def qualified_name(self, node: ir.Node) -> str:
        return f"{self._scope()}.[func_{FunctionName(self.function).__name__}]"
