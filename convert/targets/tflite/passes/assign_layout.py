"""TFLite: assign NCHW or NHWC to every rank-4 tensor, by a plan over the whole graph."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tmconvert.errors import UsageError
from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, Node, QParams, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.extract import by_matching_name, unknown
from tmconvert.ir.node import Layout
from tmconvert.ir.subgraphs import nested
from tmconvert.ir.tree import map_leaves, replaced
from tmconvert.passes.image_edges import images_of
from tmconvert.passes.patterns.matching import is_linear, is_view, rule_of
from tmconvert.passes.rewriting import PassRecord
from tmconvert.symbolics.layouts import NCHW_TO_NHWC
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.ops.shapes.view import KEPT
from tmconvert.targets.options import IoLayout
from tmconvert.targets.tflite.passes.check_layout import check_layout
from tmconvert.targets.tflite.passes.layout_plan import LayoutPlan, is_image, operand_orders, plan_layout


class AssignLayout:
    """Assign a layout to each rank-4 tensor, with as few transposes (``tm::relayout``) as possible.

    ``io_layout`` "nhwc" makes the rank-4 inputs and outputs of a model with spatial ops channels-last, unless
    the model itself permutes them; without spatial ops, or with "source", they keep the layout of the source.
    ``named`` has the layouts of single inputs and outputs, by name.
    """

    name = "assign_layout"
    after = ("align_ranks", "fuse_views")

    def __init__(
        self, catalogue: Mapping[str, Op], io_layout: IoLayout, named: Mapping[str, IoLayout] | None = None
    ) -> None:
        self.catalogue = catalogue
        self.io_layout: IoLayout = io_layout
        self.named: Mapping[str, IoLayout] = named or {}

    @property
    def inside(self) -> AssignLayout:
        """Subgraphs receive and return tensors in the source's layout."""
        return AssignLayout(self.catalogue, "source")

    def run(self, graph: InternalGraph) -> PassRecord:
        self._check_names(graph)
        is_spatial = any(self._is_spatial(expr) for expr in graph)
        if not is_spatial and "nhwc" not in self.named.values():
            return PassRecord(self.name)
        default: IoLayout = self.io_layout if is_spatial else "source"
        inputs = self._nhwc(graph, [(node.name, node) for node in graph.inputs], default)
        outputs = self._nhwc(graph, self._named_outputs(graph), default)
        plan = plan_layout(
            graph,
            self.catalogue,
            nhwc_inputs=inputs,
            nhwc_outputs=outputs,
            absorbs_flatten=lambda expr: absorbs_flatten(graph, expr),
        )
        return self._apply(graph, plan, inputs, outputs)

    def _named_outputs(self, graph: InternalGraph) -> list[tuple[str, Node]]:
        names = graph.output_names or [node.name for node in graph.outputs]
        return list(zip(names, graph.outputs, strict=True))

    def _check_names(self, graph: InternalGraph) -> None:
        """Raises UsageError TM6014 where a layout was requested for a tensor that cannot have one."""
        edges = {node.name: node for node in graph.inputs} | dict(self._named_outputs(graph))
        self.named = by_matching_name(self.named, list(edges))
        for name in self.named:
            if name not in edges:
                unknown(name, list(edges), f"the model has no input or output {name!r} to set a layout for")
            if not is_image(edges[name]):
                raise UsageError(
                    "TM6014", (f"{name!r} has no channel axis: layouts apply to tensors of rank 4")
                )

    def _nhwc(self, graph: InternalGraph, edges: Sequence[tuple[str, Node]], default: IoLayout) -> set[Node]:
        """Returns the nodes to store channels-last; for a node returned twice the first name counts."""
        orders: dict[Node, IoLayout] = {}
        # What the model permutes to channels-first by itself is channels-last already.
        last = {name for name, layout in images_of(graph).items() if layout == "NHWC"}
        for name, node in edges:
            orders.setdefault(node, "source" if node.name in last else self.named.get(name, default))
        return {node for node, order in orders.items() if is_image(node) and order == "nhwc"}

    def ensures(self, graph: InternalGraph) -> None:
        """Raises GraphError TM3019 when an op reads or returns a tensor in an unsupported layout."""
        for each in nested(graph):
            check_layout(each, self.catalogue)

    def _is_spatial(self, expr: Expr) -> bool:
        return isinstance(expr, CallFunction) and rule_of(expr, self.catalogue).kind == "nhwc"

    def _apply(
        self, graph: InternalGraph, plan: LayoutPlan, inputs: set[Node], outputs: set[Node]
    ) -> PassRecord:
        record = PassRecord(self.name)
        for node in graph.inputs:
            if is_image(node):
                assert isinstance(node, TensorNode) and node.expr is not None
                node.layout = "nhwc" if node in inputs else None
                if node in inputs:
                    record.did(node.expr, "is channels-last now")
        converted: dict[tuple[Node, Layout | None], TensorNode] = {}
        for expr in graph:
            if isinstance(expr, Constant) or expr not in plan.takes_nhwc or _is_made_here(expr):
                continue
            order: Layout | None = "nhwc" if plan.takes_nhwc[expr] else None
            self._align(graph, expr, order, converted)
            if plan.takes_nhwc[expr] and absorbs_flatten(graph, expr):
                self._absorb_flatten(graph, expr)
                record.did(expr, "flattens a channels-last tensor, whose weights are permuted")
            for node in expr.outputs:
                if is_image(node) and plan.gives_nhwc[expr]:
                    node.layout = "nhwc"  # type: ignore[attr-defined]
                    record.did(expr, "is channels-last now")
        self._align_outputs(graph, outputs, converted)
        for (node, order), counterpart in converted.items():
            assert counterpart.expr is not None
            what = "channels-last" if order else "channels-first"
            record.did(counterpart.expr, f"is a {what} copy of `{node.name}`")
        return record

    def _align(
        self,
        graph: InternalGraph,
        expr: Expr,
        order: Layout | None,
        converted: dict[tuple[Node, Layout | None], TensorNode],
    ) -> None:
        """Converts the rank-4 operands of an expression to the layout ``order``."""
        orders = iter(operand_orders(expr, self.catalogue, order))

        def aligned(leaf: object) -> object:
            if not isinstance(leaf, TensorNode):
                return leaf
            wanted = next(orders)
            if not is_image(leaf) or leaf.layout == wanted:
                return leaf
            return self._converted(graph, leaf, wanted, converted, expr)

        args = map_leaves(aligned, expr.args)
        if args != expr.args:
            graph.set_arguments(expr, args, expr.kwargs)

    def _converted(
        self,
        graph: InternalGraph,
        node: TensorNode,
        order: Layout | None,
        converted: dict[tuple[Node, Layout | None], TensorNode],
        before: Expr | None,
    ) -> TensorNode:
        if (node, order) not in converted:
            assert node.expr is not None
            if isinstance(node.expr, Constant):
                counterpart = TensorNode(graph.free_name(f"{node.name}_{order}"), node.shape, node.dtype)
                constant = Constant(
                    node.expr.stored,
                    node.expr.name,
                    result=counterpart,
                    source=node.expr.source,
                    made_by=self.name,
                )
                graph.insert(constant, before=before)
            else:
                emitter = GraphEmitter(
                    graph,
                    self.catalogue,
                    source=node.expr.source,
                    made_by=self.name,
                    name=node.name,
                    before=before,
                )
                counterpart = emitter.call("tm::relayout", node, order or "source")
            counterpart.layout, counterpart.qparams = order, node.qparams
            converted[node, order] = counterpart
        return converted[node, order]

    def _align_outputs(
        self, graph: InternalGraph, nhwc: set[Node], converted: dict[tuple[Node, Layout | None], TensorNode]
    ) -> None:
        for node in dict.fromkeys(graph.outputs):
            order: Layout | None = "nhwc" if node in nhwc else None
            if is_image(node) and isinstance(node, TensorNode) and node.layout != order:
                counterpart = self._converted(graph, node, order, converted, None)
                name = node.name
                graph.set_result(replaced(graph.result, node, counterpart))
                if not any(node is given for given in graph.inputs):
                    graph.rename(node, graph.free_name(f"{name}_source"))
                    graph.rename(counterpart, name)

    def _absorb_flatten(self, graph: InternalGraph, flatten: Expr) -> None:
        """Flattens in channels-last layout, and permutes the columns of the following weights instead."""
        batch, channels, height, width = flatten.args[0].type.shape
        for user in flatten.outputs[0].users:
            x, weight, bias = user.args
            emitter = GraphEmitter(
                graph,
                self.catalogue,
                source=user.source,
                made_by=self.name,
                name=f"{weight.name}_hwc",
                before=user,
            )
            split = [weight.shape[0], channels, height, width]
            columns = emitter.call(
                "tm::view", weight, split, [KEPT] * 4, list(NCHW_TO_NHWC), list(weight.shape)
            )
            columns.qparams = _of_rows(weight)
            graph.set_arguments(user, (x, columns, bias), user.kwargs)
        attributes = {
            "split": [batch, channels, height, width],
            "index": [KEPT] * 4,
            "order": list(NCHW_TO_NHWC),
            "shape": list(flatten.outputs[0].type.shape),  # type: ignore[attr-defined]
        }
        graph.set_arguments(flatten, flatten.args, attributes)
        rows = flatten.outputs[0]  # no tensor of the model: its elements have another order
        graph.rename(rows, graph.free_name(f"{rows.name}_nhwc"))


def _of_rows(weight: TensorNode) -> QParams | None:
    """Returns the QParams of a matrix whose columns are permuted."""
    qparams = weight.qparams
    return qparams if qparams is None or qparams.channel_axis in (None, 0) else None


def absorbs_flatten(graph: InternalGraph, expr: Expr) -> bool:
    """Whether ``expr`` flattens [N, C, H, W] to [N, C H W] for linear layers with constant weights only."""
    if not is_view(expr) or not is_image(expr.args[0]):
        return False
    shape, result = expr.args[0].type.shape, expr.output
    attributes = expr.kwargs
    if result.shape != (shape[0], math.prod(shape[1:])) or graph.is_output(result):
        return False
    if any(index != KEPT for index in attributes["index"]):
        return False
    if attributes["order"] != sorted(attributes["order"]):
        return False
    return bool(result.users) and all(_is_linear_over(user, result) for user in result.users)


def _is_linear_over(user: Expr, node: TensorNode) -> bool:
    return is_linear(user) and user.args[0] is node and isinstance(user.args[1].expr, Constant)


def _is_made_here(expr: Expr) -> bool:
    return isinstance(expr, CallFunction) and expr.function == "tm::relayout"
