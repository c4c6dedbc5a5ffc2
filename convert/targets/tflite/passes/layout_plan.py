"""Chooses NCHW or NHWC for every rank-4 tensor so that the bytes moved by transposes are fewest.

Each expression has one of two layouts, "source" (NCHW) or "nhwc". A tensor whose producer and a consumer have
different layouts is transposed once, at the cost of its size. With two labels and such costs the best choice
is a minimum cut: nodes on the source's side keep the layout of the source, the others are NHWC.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field

from tmconvert.ir import Constant, Expr, InternalGraph, Node, TensorNode
from tmconvert.ir.node import Layout
from tmconvert.ir.symbolic.dims import example
from tmconvert.passes.patterns.matching import rule_of
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.ops.shapes.view import simplified, stored
from tmconvert.targets.tflite.passes.minimum_cut import INFINITE, CutGraph

# The fixed price of an extra operator, in bytes moved; it breaks ties against needless transposes.
OPERATOR_COST = 64


@dataclass
class LayoutPlan:
    """Whether the inputs and results of each expression are channels-last."""

    takes_nhwc: dict[Expr, bool] = field(default_factory=dict)
    gives_nhwc: dict[Expr, bool] = field(default_factory=dict)


def is_image(node: Node | None) -> bool:
    """Whether a node is a rank-4 tensor, the only kind that has a choice."""
    return isinstance(node, TensorNode) and node.shape is not None and len(node.shape) == 4


def transpose_cost(node: TensorNode) -> int:
    """Returns the bytes that a transpose moves; almost none where only axes of extent 1 move."""
    _, channels, height, width = node.type.shape
    if channels == 1 or height * width == 1:
        return 1
    return _bytes(node) + OPERATOR_COST


def _bytes(node: TensorNode) -> int:
    size: int = example(node.type.size)
    return size * node.type.dtype.itemsize


def operand_orders(expr: Expr, catalogue: Mapping[str, Op], order: Layout | None) -> list[Layout | None]:
    """Returns the layouts in which an expression of layout ``order`` reads its inputs.

    A spatial op has only its first operand channels-last: its symbolic converts weights, constant or
    computed, to the layout of the target.
    """
    count = len(expr.inputs)
    if rule_of(expr, catalogue).kind == "nhwc":
        return [order, *[None] * (count - 1)][:count]
    return [order] * count


def plan_layout(
    graph: InternalGraph,
    catalogue: Mapping[str, Op],
    *,
    nhwc_inputs: Container[Node],
    nhwc_outputs: Container[Node],
    absorbs_flatten: Callable[[Expr], bool],
) -> LayoutPlan:
    """Computes the cheapest plan. Inputs and outputs are fixed: ``nhwc`` ones channels-last, others as in the
    source.

    ``absorbs_flatten`` returns whether a channels-last operand of a view costs nothing, because the weights
    after it can be permuted.
    """
    return _Planner(graph, catalogue, nhwc_inputs, nhwc_outputs, absorbs_flatten).plan()


class _Planner:
    def __init__(
        self,
        graph: InternalGraph,
        catalogue: Mapping[str, Op],
        nhwc_inputs: Container[Node],
        nhwc_outputs: Container[Node],
        absorbs_flatten: Callable[[Expr], bool],
    ) -> None:
        self.graph = graph
        self.catalogue = catalogue
        self.nhwc_inputs = nhwc_inputs
        self.nhwc_outputs = nhwc_outputs
        self.absorbs_flatten = absorbs_flatten
        self.cut = CutGraph()
        self.takes: dict[Expr, int] = {}
        self.gives: dict[Expr, int] = {}

    def plan(self) -> LayoutPlan:
        for node in self.graph.inputs:
            assert node.expr is not None
            self.gives[node.expr] = CutGraph.SINK if node in self.nhwc_inputs else CutGraph.SOURCE
        for expr in self.graph:
            if not isinstance(expr, Constant):
                self._label(expr)
        for node in [*self.graph.inputs, *(node for expr in self.graph for node in expr.outputs)]:
            if isinstance(node, TensorNode) and is_image(node) and not isinstance(node.expr, Constant):
                self._price(node)
        source_side = self.cut.source_side()
        return LayoutPlan(
            {expr: label not in source_side for expr, label in self.takes.items()},
            {expr: label not in source_side for expr, label in self.gives.items()},
        )

    def _label(self, expr: Expr) -> None:
        kind = rule_of(expr, self.catalogue).kind
        if kind == "nhwc":
            self.takes[expr] = self.gives[expr] = CutGraph.SINK
        elif kind == "any":
            self.takes[expr] = self.gives[expr] = self.cut.add_node()
        elif kind == "view":
            self._label_view(expr)
        else:
            self.takes[expr] = self.gives[expr] = CutGraph.SOURCE

    def _label_view(self, expr: Expr) -> None:
        """Both sides of a view have a layout; the cost is that of its transpose."""
        operand, result = expr.args[0], expr.outputs[0]
        costs = {
            (x_nhwc, result_nhwc): self._view_cost(expr, x_nhwc, result_nhwc)
            for x_nhwc in ((False, True) if is_image(operand) else (False,))
            for result_nhwc in ((False, True) if is_image(result) else (False,))
        }
        has_both = len(costs) == 4
        if has_both and costs[False, False] + costs[True, True] > costs[False, True] + costs[True, False]:
            # such a pair of choices has no cut: the side that is NHWC at lower cost alone keeps its choice
            kept = 0 if costs[True, False] <= costs[False, True] else 1
            costs = {pair: cost for pair, cost in costs.items() if not pair[1 - kept]}
            has_both = False
        takes = self.cut.add_node() if (True, False) in costs else CutGraph.SOURCE
        gives = self.cut.add_node() if (False, True) in costs else CutGraph.SOURCE
        self.takes[expr], self.gives[expr] = takes, gives
        base = costs[False, False]
        if not has_both:
            self._unary(takes, base, costs.get((True, False), base))
            self._unary(gives, base, costs.get((False, True), base))
            return
        self._pairwise(takes, gives, costs)

    def _pairwise(self, takes: int, gives: int, costs: dict[tuple[bool, bool], int]) -> None:
        """The usual reduction of a submodular table to two unary terms and one edge."""
        a, b = costs[False, False], costs[False, True]
        c, d = costs[True, False], costs[True, True]
        self._unary(takes, a, c)
        self._unary(gives, c, d)
        self.cut.add_edge(takes, gives, b + c - a - d)

    def _unary(self, node: int, source_cost: int, nhwc_cost: int) -> None:
        if node != CutGraph.SOURCE and nhwc_cost > source_cost:
            self.cut.add_edge(CutGraph.SOURCE, node, nhwc_cost - source_cost)
        elif node != CutGraph.SOURCE and source_cost > nhwc_cost:
            self.cut.add_edge(node, CutGraph.SINK, source_cost - nhwc_cost)

    def _view_cost(self, expr: Expr, x_nhwc: bool, result_nhwc: bool) -> int:
        if x_nhwc and not result_nhwc and self.absorbs_flatten(expr):
            return 0
        result = expr.outputs[0]
        assert isinstance(result, TensorNode)
        try:
            attributes = stored(expr.kwargs, expr.args[0].type.shape, nhwc_x=x_nhwc, nhwc_result=result_nhwc)
        except ValueError:  # the factors cut across the axes of this side: no such order
            return INFINITE >> 8
        _, _, order = simplified(attributes["split"], attributes["index"], attributes["order"])
        if order == sorted(order):
            return 0
        return _bytes(result) + OPERATOR_COST

    def _price(self, node: TensorNode) -> None:
        """Adds the cost of one transpose where a user reads another layout than that of the producer."""
        assert node.expr is not None
        producer = self.gives[node.expr]
        users = list(dict.fromkeys(label for user in node.users for label in self._labels(user, node)))
        if self.graph.is_output(node):
            label = CutGraph.SINK if node in self.nhwc_outputs else CutGraph.SOURCE
            users += [] if label in users else [label]
        users = [label for label in users if label != producer]
        if not users:
            return
        cost = transpose_cost(node)
        if len(users) == 1:
            self.cut.add_edge(producer, users[0], cost)
            self.cut.add_edge(users[0], producer, cost)
            return
        away, back = self.cut.add_node(), self.cut.add_node()
        self.cut.add_edge(producer, away, cost)
        self.cut.add_edge(back, producer, cost)
        for user in users:
            self.cut.add_edge(away, user, INFINITE)
            self.cut.add_edge(user, back, INFINITE)

    def _labels(self, user: Expr, node: TensorNode) -> list[int]:
        """Returns the layouts in which ``user`` reads ``node``."""
        orders = operand_orders(user, self.catalogue, "nhwc")
        return [
            self.takes[user] if order else CutGraph.SOURCE
            for operand, order in zip(user.inputs, orders, strict=True)
            if operand is node
        ]
