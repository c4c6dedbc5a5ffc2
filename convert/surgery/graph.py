"""InternalGraph as users have it: search, edits, runs and printed forms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

from tmconvert import ir
from tmconvert.conveniences import NotebookForm, flat_graph
from tmconvert.errors import UsageError
from tmconvert.errors.source import printable
from tmconvert.ir.interpreter import interpret_graph
from tmconvert.ir.text import graph_to_text
from tmconvert.surgery.fx_editing import FxEditing
from tmconvert.surgery.search import ExprFilter, NodeFilter, dependencies, walk_exprs
from tmconvert.surgery.tables import format_table

if TYPE_CHECKING:
    from tmconvert.ir.traced_module import Evaluate
    from tmconvert.surgery.exprs import Expr
    from tmconvert.surgery.module import TracedModule
    from tmconvert.surgery.nodes import Node


class InternalGraph(FxEditing, NotebookForm, extends=ir.InternalGraph):
    """The graph of a module's ``forward``; see ``tmconvert.ir.InternalGraph``."""

    if TYPE_CHECKING:
        inputs: list[Node]  # type: ignore[assignment]

        @property
        def outputs(self) -> list[Node]: ...  # type: ignore[override]
        def __iter__(self) -> Iterator[Expr]: ...
        def copy(self) -> InternalGraph: ...

    def interpret(self, *inputs: Any, evaluate: Evaluate | None = None) -> Any:
        """Computes the result for values of ``inputs``, which match ``self.inputs``.

        ``evaluate`` computes calls. A source graph does not need it: its first input is the module, whose
        vocabulary computes them.
        """
        return interpret_graph(self, inputs, evaluate)

    # ---- searching

    def exprs(self, recursive: bool = True) -> ExprFilter:
        """Returns the expressions in execution order; with ``recursive`` also those of called modules, each
        once, after the first call. An iteration over the graph itself has its own expressions.

        >>> graph.exprs().call_function("nn.relu").as_count()  # doctest: +SKIP
        9
        """
        return ExprFilter(lambda: walk_exprs(self, recursive))

    def get_function_by_type(self, function: object = None, recursive: bool = True) -> ExprFilter:
        """Returns the calls of a function; see ``ExprFilter.call_function``."""
        return self.exprs(recursive).call_function(function)

    def get_method_by_type(self, method: object = None, recursive: bool = True) -> ExprFilter:
        """Returns the calls of a method; see ``ExprFilter.call_method``."""
        return self.exprs(recursive).call_method(method)

    def get_module_by_type(self, module_class: object, recursive: bool = True) -> NodeFilter:
        """Returns the nodes of modules of a class, which is the class or its name (``"Conv2d"``); of several
        nodes of a module, such as ``self`` in its own graph, the first.
        """
        return self.nodes(recursive).type(module_class).distinct_modules()

    def get_expr_by_id(self, expr_id: int | Sequence[int], recursive: bool = True) -> ExprFilter:
        """Returns the expressions with an id, which ``print`` shows after ``%``; inputs are included."""
        return ExprFilter(lambda: walk_exprs(self, recursive, with_inputs=True)).expr_id(expr_id)

    def get_node_by_id(self, node_id: int | Sequence[int], recursive: bool = True) -> NodeFilter:
        """Returns the nodes with an id, as ``"{:i}".format(graph)`` shows it."""
        return self.nodes(recursive).node_id(node_id)

    def get_node_by_name(self, name: str, ignorecase: bool = True, recursive: bool = True) -> NodeFilter:
        """Returns the nodes with a name, which may have ``*`` and ``?``; see ``NodeFilter.name``."""
        return self.nodes(recursive).name(name, ignorecase)

    def get_dep_exprs(self, nodes: ir.Node | Sequence[ir.Node]) -> list[Expr]:
        """Returns the expressions of this graph that nodes depend on, the last first."""
        return dependencies([nodes] if isinstance(nodes, ir.Node) else nodes)

    # ---- printing

    @property
    def qualname(self) -> str:
        """Returns the qualified name of the module in the model, such as ``Net.block``."""
        owner = self.owning_module
        return self.name if owner is None else owner.qualname

    def __format__(self, spec: str) -> str:
        """Returns ``Name.Graph (self, x) { ... }``, one expression a line, as ``print(graph)`` of MegEngine
        1.13; ``spec`` is for its nodes: ``i`` with ids, ``p`` with the name of the graph.
        """
        title = printable(f"{self.name}.Graph") if self.name else ""
        inputs = ", ".join(format(node, spec) for node in self.inputs)
        outputs = ", ".join(format(node, spec) for node in self.outputs)
        body = "".join(f"\t{format(expr, spec)}\n" for expr in self)
        # MegEngine joins the lines of the body, so an empty body leaves an empty line
        return f"{title} ({inputs}) {{\n{body or chr(9) + chr(10)}\treturn {outputs}\n}}"

    def __str__(self) -> str:
        return format(self)

    __repr__ = __str__

    def print_tabular(self) -> None:
        """Prints a table with a row for each node: id, kind, name, target, arguments and type."""
        print(format_table(self))

    def to_text(self) -> str:
        """Returns the typed text form, one expression a line; ``parse_graph`` reads it back.

        For graphs of ATen-style ops: see ``tmconvert.normalize``. Raises UsageError TM6005 for others.
        """
        return graph_to_text(flat_graph(self) or self)

    def python_code(self, root_module: str = "self") -> str:
        """Returns the source text of a ``torch.nn.Module`` that computes the graph of a module.

        ``root_module`` is its name in ``forward``, which is ``self``. Raises UnsupportedError for calls that
        PyTorch lacks, UsageError TM6004 for a graph of no module and for another name.
        """
        if root_module != "self":
            raise UsageError("TM6004", f"root_module must be 'self', got {root_module!r}")
        owner = self.owning_module
        if owner is None:
            raise UsageError("TM6004", f"graph {self.name!r} has no module whose code could be written")
        module = cast("TracedModule", ir.TracedModule("", owner.class_name, vocabulary=owner.vocabulary))
        module.children, module.tensors = owner.children, owner.tensors
        module.buffers, module.attributes = owner.buffers, owner.attributes
        module.graphs = {"": self}
        return module.code
