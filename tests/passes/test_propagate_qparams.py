"""Which tensors get which quantization parameters, and which passes leave those alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.passes.graphs import apply, refusals
from tmconvert.errors import GraphError
from tmconvert.ir import CallFunction, InternalGraph, QParams, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.passes.fold_constants import FoldConstants
from tmconvert.passes.fuse_conv_bn import FuseConvBn
from tmconvert.passes.merge_reductions import MergeReductions
from tmconvert.passes.propagate_qparams import PropagateQparams
from tmconvert.symbolics.registry import catalogue

HALVES = QParams("int8", (0.5,), (0,), -128, 127, symmetric=True)
QUARTERS = QParams("int8", (0.25,), (0,), -128, 127)
CHANNELS = QParams("int8", (0.5, 0.25, 0.125), (0, 0, 0), -128, 127, 0)


def emitter(*shape: int) -> tuple[GraphEmitter, TensorNode]:
    graph = InternalGraph("net")
    x = graph.add_input(TensorNode("x", shape, np.dtype("float32")), made_by="test")
    return GraphEmitter(graph, catalogue(), made_by="test"), x


def functions(graph: InternalGraph) -> list[str]:
    return [expr.function for expr in graph if isinstance(expr, CallFunction)]


def settled(graph: InternalGraph, *results: TensorNode) -> None:
    graph.set_result(results)
    apply(PropagateQparams(), graph)


def test_a_result_is_annotated_and_a_repetition_changes_nothing() -> None:
    g, x = emitter(2, 3)
    y = g.call("aten::relu", x)
    assert g.quantized(y, HALVES) is y
    assert g.quantized(y, HALVES) is y
    assert (y.qparams, len(g.graph)) == (HALVES, 1)


def test_what_others_may_take_unquantized_gets_a_twin() -> None:
    g, x = emitter(2, 3)
    y = g.call("aten::relu", x)
    g.begin("next", None)
    q = g.quantized(y, HALVES)
    assert (q.expr.function, y.qparams, q.qparams) == ("tm::requantize", None, HALVES)
    settled(g.graph, q, g.call("aten::neg", y))
    assert functions(g.graph) == ["aten::relu", "tm::requantize", "aten::neg"]
    assert y.qparams is None


def test_a_float_tensor_that_is_returned_stays_one() -> None:
    g, x = emitter(2, 3)
    q = g.quantized(x, HALVES)
    settled(g.graph, x, g.call("aten::neg", q))
    assert (x.qparams, functions(g.graph)) == (None, ["tm::requantize", "aten::neg"])


def test_equal_users_share_and_others_keep_their_own() -> None:
    g, x = emitter(2, 3)
    first, second = (g.call("aten::neg", g.quantized(x, HALVES)) for _ in range(2))
    settled(g.graph, first, second)
    assert (x.qparams, functions(g.graph)) == (HALVES, ["aten::neg"] * 2)
    g, x = emitter(2, 3)
    settled(g.graph, *(g.call("aten::neg", g.quantized(x, each)) for each in (HALVES, QUARTERS)))
    assert x.qparams is None
    assert functions(g.graph).count("tm::requantize") == 2


def test_a_result_keeps_its_name_and_an_input_its_own() -> None:
    g, x = emitter(2, 3)
    y = g.call("aten::relu", x)
    g.begin("out", None)
    q = g.quantized(y, HALVES)
    g.graph.rename(q, "out")
    settled(g.graph, q)
    assert ([str(node) for node in g.graph.outputs], y.qparams) == (["out"], HALVES)
    g, x = emitter(2, 3)
    settled(g.graph, g.quantized(x, HALVES))
    assert ([str(node) for node in g.graph.outputs], x.qparams) == (["x"], HALVES)


def test_reshaped_parameters_keep_their_channels() -> None:
    g, _ = emitter(1)
    weight = g.parameter(np.ones((3, 1, 2, 2), np.float32), "weight")
    g.quantized(weight, CHANNELS)
    assert g.call("aten::reshape", weight, [3, 4]).qparams == CHANNELS
    assert g.call("aten::reshape", weight, [1, 3, 4]).qparams.channel_axis == 1
    assert g.call("aten::reshape", weight, [12]).qparams is None


def test_equal_parameters_of_one_name_are_one_constant() -> None:
    g, _ = emitter(1)
    first, second = (g.parameter(np.ones(3, np.float32), "a.weight") for _ in range(2))
    other = g.parameter(np.zeros(3, np.float32), "a.weight")
    assert first is second
    assert other is not first


@pytest.mark.parametrize(
    ("qparams", "message"),
    [
        (CHANNELS, "the tensor has 3 scales for 2 channels"),
        (QParams("int8", (0.0,), (0,), -128, 127), "a scale of the tensor is not positive and finite"),
        (QParams("int8", (-1.0,), (0,), -128, 127), "a scale of the tensor is not positive and finite"),
        (
            QParams("int8", (float("nan"),), (0,), -128, 127),
            "a scale of the tensor is not positive and finite",
        ),
        (
            QParams("uint8", (1.0,), (-1,), 0, 255),
            "a zero point of the tensor is outside of the integer range",
        ),
        (QParams("int8", (1.0,), (0,), -128, 127, 2), "the tensor has no axis 2"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(qparams: QParams, message: str) -> None:
    g, x = emitter(2, 3)
    with pytest.raises(GraphError) as caught:
        g.quantized(x, qparams)
    assert (caught.value.code, caught.value.message) == ("TM3004", message)


def test_a_convolution_that_was_quantized_keeps_its_batch_norm() -> None:
    def run(annotate: bool) -> list[str]:
        g, x = emitter(1, 3, 4, 4)
        weight = g.parameter(np.ones((3, 3, 1, 1), np.float32), "weight")
        if annotate:
            weight = g.quantized(weight, HALVES)
        y = g.call("aten::conv2d", x, weight, None)
        vector = g.parameter(np.ones(3, np.float32), "v")
        g.graph.set_result((g.call("aten::batch_norm", y, vector, vector, vector, vector, 1e-5),))
        apply(FuseConvBn(), g.graph)
        return functions(g.graph)

    assert run(annotate=False) == ["aten::conv2d"]
    assert run(annotate=True) == ["aten::conv2d", "aten::batch_norm"]


def test_merged_reductions_and_folded_constants_keep_the_result_s() -> None:
    g, x = emitter(2, 3, 4)
    inner = g.call("aten::mean", x, [2], False)
    outer = g.quantized(g.call("aten::mean", inner, [1], False), HALVES)
    weight = g.parameter(np.ones((80, 80), np.float32), "weight")
    scaled = g.quantized(g.call("aten::neg", weight), QUARTERS)
    g.graph.set_result((outer, scaled))
    apply(MergeReductions(catalogue()), g.graph)
    apply(FoldConstants(catalogue()), g.graph)
    assert functions(g.graph) == ["aten::mean"]
    assert [node.qparams for node in g.graph.outputs] == [HALVES, QUARTERS]


def test_a_view_is_rounded_before_it_where_nothing_else_takes_the_elements() -> None:
    g, x = emitter(2, 3, 4)
    y = g.call("aten::relu", x)
    q = g.quantized(g.call("aten::permute", y, [0, 2, 1]), HALVES)
    settled(g.graph, g.call("aten::neg", q))
    assert y.qparams == HALVES


def test_a_view_of_elements_that_others_take_unrounded_has_no_parameters() -> None:
    """In the layout of a target the view may be the same tensor."""
    g, x = emitter(2, 3, 4)
    y = g.call("aten::relu", x)
    view = g.call("aten::permute", y, [0, 2, 1])
    g.begin("next", None)
    q = g.quantized(view, HALVES)
    g.graph.set_result((g.call("aten::neg", q), g.call("aten::abs", y)))
    assert refusals(PropagateQparams(), g.graph) == [
        f"`{view.name}` has the elements of `{y.name}`, which is used without parameters"
    ]
    assert (y.qparams, view.qparams, q.expr.function) == (None, None, "tm::requantize")
