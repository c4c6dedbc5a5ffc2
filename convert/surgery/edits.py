"""The methods of graphs with which users edit them; a method that raises an error changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tmconvert.errors import GraphError
from tmconvert.ir.dead_code import remove_dead_code
from tmconvert.ir.expr import Expr
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import Node, TensorNode
from tmconvert.ir.tree import Tree
from tmconvert.surgery import calls, ends
from tmconvert.surgery.insertion import Insertion
from tmconvert.surgery.lint import lint
from tmconvert.surgery.replacing import replace_nodes


class Edits(InternalGraph):
    """Edits of a graph."""

    def replace_node(self, replacements: Mapping[Node, Node]) -> None:
        """Makes the users of each key use its value, the graph's result too.

        Expressions from which the new node is computed keep the old one, so that a new call may have the node
        that it replaces as an argument, whether it is inserted before or after. Expressions from which the
        new node is computed are moved before its first user where necessary. Several pairs are replaced in
        reverse order. Types of later results are inferred again. Raises GraphError TM3002 for a node of
        another graph, TM3014 for a tensor and a module, TM3015 if a call cannot have the new tensor as an
        argument; the graph is unchanged then.

        >>> relu = graph.get_function_by_type("nn.relu").as_unique()  # doctest: +SKIP
        >>> graph.replace_node({relu.outputs[0]: relu.inputs[0]})  # doctest: +SKIP
        """
        replace_nodes(self, replacements)

    def insert_exprs(self, expr: Expr | None = None) -> Insertion:
        """Returns a context manager whose ``g`` inserts calls; if its block raises an exception, the graph is
        unchanged.

        Calls are inserted after ``expr``, or after their last argument if that is computed later; by default
        after their arguments. Inside of the block Python's operators, methods of tensors and functions of
        torch on nodes are recorded as calls.

        >>> with graph.insert_exprs() as g:  # doctest: +SKIP
        ...     y = g.call("aten::relu", x) * 2
        >>> graph.replace_node({x: y})  # doctest: +SKIP
        """
        if expr is not None and expr.graph is not self:
            raise GraphError("TM3002", f"{expr!r} is not in graph {self.name!r}")
        return Insertion(self, after=expr)

    def compile(self) -> bool:
        """Removes all expressions on which no result depends; returns whether there were any.

        Calls without results stay, as their effects are not known; so do graphs of submodules.
        """
        return remove_dead_code(self) > 0

    def eliminate_dead_code(self, is_impure_node: Callable[[Expr], bool] | None = None) -> bool:
        """Removes unused expressions, under torch.fx's name; see ``compile``.

        ``is_impure_node`` returns whether an expression stays, even if it is unused.
        """
        return remove_dead_code(self, is_impure=is_impure_node) > 0

    def erase_node(self, node: Node | Expr) -> None:
        """Removes the expression of a node, or a formal input. Raises GraphError TM3002 while it is used."""
        expr = node.expr if isinstance(node, Node) else node
        if expr is None or expr.graph is not self:
            raise GraphError("TM3002", f"{node} is not in graph {self.name!r}")
        if expr.outputs and expr.outputs[0] in self.inputs:
            ends.erase_input(self, expr.outputs[0])
        else:
            self.remove(expr)

    def lint(self) -> None:
        """Checks the graph, and infers all types again.

        Raises GraphError: TM3008 for an attribute that does not exist, TM3011 for a node that is used before
        it is defined, TM3012 for wrong links, TM3013 for names that are used twice, TM3014 and TM3015 for
        arguments that do not fit a call. Conversions check an edited graph by themselves.
        """
        lint(self)

    def set_arguments(self, expr: Expr, args: tuple[Tree, ...], kwargs: dict[str, Tree]) -> None:
        """Replaces the arguments of ``expr``.

        In a source graph nodes have to be defined before, and types of later results are inferred again.
        Raises GraphError TM3002, TM3011, TM3014, TM3015, and leaves the graph unchanged.
        """
        if self.is_source():
            calls.set_arguments(self, expr, args, kwargs)
        else:
            self.relink(expr, args, kwargs)

    def set_target(self, expr: Expr, **attributes: str) -> None:
        """Sets what an expression calls or reads; see ``expr.function``."""
        if self.is_source():
            calls.set_target(self, expr, **attributes)
        else:
            super().set_target(expr, **attributes)

    # ---- inputs and outputs

    def add_input_node(
        self, shape: Sequence[int], dtype: object = "float32", name: str = "args"
    ) -> TensorNode:
        """Adds an input after the positional ones, and returns its node; the name gets a suffix if taken.

        Raises UsageError TM6063 for an invalid shape or element type.
        """
        return ends.add_input(self, shape, dtype, name)

    def add_output_node(self, node: TensorNode) -> None:
        """Adds a node to the results: ``(results, node)``. Raises GraphError TM3002."""
        self.reset_outputs((self.result, node))

    def reset_inputs(self, *args: object, **kwargs: object) -> list[TensorNode]:
        """Gives the model inputs of the types and the structure of these tensors, and returns their nodes.

        Each replaces the input at its position, whose name it gets; types of later results are inferred
        again. Raises GraphError TM3002 for fewer inputs than are used, TM3015 if a call cannot have one as an
        argument.

        >>> graph.reset_inputs(np.zeros((1, 3, 96, 96), np.float32))  # doctest: +SKIP
        """
        return ends.reset_inputs(self, args, kwargs)

    def reset_outputs(self, outputs: Tree) -> None:
        """Sets what the model returns: a node, or nested tuples, lists and dicts of nodes.

        Raises GraphError TM3002 for nodes of other graphs, TM3014 without any node.

        >>> graph.reset_outputs({"scores": y, "features": [x]})  # doctest: +SKIP
        """
        ends.reset_outputs(self, outputs)
