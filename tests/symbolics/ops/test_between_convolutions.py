"""Ops between two convolutions, where runtimes fuse layers: in OpenCV and ONNX Runtime."""

from __future__ import annotations

from typing import Any

import pytest

from tests.symbolics.ops.harness import NEWEST_OPSET, normal, run_lowered
from tmconvert.ir import InternalGraph, TensorNode
from tmconvert.ir.emitter import EagerEmitter, Emitter, GraphEmitter
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.registry import lower

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "max_pool": ("max_pool2d", {"kernel_size": [2, 3], "stride": [2, 2]}),
    "avg_pool": ("avg_pool2d", {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1]}),
    "avg_pool_without_padding": (
        "avg_pool2d",
        {"kernel_size": [3, 3], "stride": [2, 2], "padding": [1, 1], "count_include_pad": False},
    ),
    "avg_pool_divisor": ("avg_pool2d", {"kernel_size": [2, 3], "stride": [1, 1], "divisor_override": 5}),
    "mean": ("mean", {"dim": [2, 3], "keepdim": True}),
    "mean_of_channels": ("mean", {"dim": [1], "keepdim": True}),
    "sum_of_rows": ("sum", {"dim": [2], "keepdim": True}),
    "amin": ("amin", {"dim": [1, 3], "keepdim": True}),
    "softmax": ("softmax", {"dim": 1}),
    "pad": ("pad", {"pad": [0, 0, 0, 0, 1, 1, 2, 2]}),
    "pad_with_a_value": ("pad", {"pad": [0, 0, 0, 0, 1, 1, 2, 2], "value": 1.5}),
    "pad_channels": ("pad", {"pad": [0, 0, 1, 0, 0, 1, 0, 0], "value": -1.0}),
    "reflect": ("pad", {"pad": [0, 0, 0, 0, 1, 0, 2, 1], "mode": "reflect"}),
    "slice": ("slice", {"dim": 1, "start": 1, "end": 3}),
    "slice_with_steps": ("slice", {"dim": 3, "start": 1, "end": 7, "step": 2}),
    "permute": ("permute", {"dims": [0, 2, 3, 1]}),
    "nearest": ("upsample_nearest2d", {"output_size": [10, 21]}),
    "nearest_smaller": ("upsample_nearest2d", {"output_size": [3, 4]}),
    "bilinear": ("upsample_bilinear2d", {"output_size": [10, 21]}),
    "bilinear_smaller": ("upsample_bilinear2d", {"output_size": [3, 4]}),
    "bilinear_align_corners": ("upsample_bilinear2d", {"output_size": [10, 7], "align_corners": True}),
    "clamp": ("clamp", {"min": -0.5, "max": 0.75}),
    "clamp_above": ("clamp", {"max": 0.5}),
    "clamp_at_zero": ("clamp", {"min": 0, "max": 1}),
}


def net(g: Emitter, x: Any, op: str, attributes: dict[str, Any]) -> Any:
    first = g.constant(normal(1, 4, 3, 3, 3)), g.constant(normal(2, 4))
    y = g.call(f"aten::{op}", g.call("aten::conv2d", x, *first, padding=1), **attributes)
    second = g.constant(normal(3, 2, y.shape[1], 1, 1)), g.constant(normal(4, 2))
    return g.call("aten::relu", g.call("aten::conv2d", y, *second))


@pytest.mark.parametrize(("target", "version"), [("caffe", 0), ("onnx", NEWEST_OPSET)])
@pytest.mark.parametrize("case", CASES)
def test_matches(case: str, target: str, version: int) -> None:
    x = normal(0, 2, 3, 5, 7)
    graph = InternalGraph("net")
    node = graph.add_input(TensorNode("x", x.shape, x.dtype))
    graph.set_result((net(GraphEmitter(graph, catalogue(), name="y"), node, *CASES[case]),))
    lowering = lower(graph, catalogue(), target, version)
    assert not lowering.unsupported
    (actual,) = run_lowered(lowering, {"x": x})
    expected = net(EagerEmitter(catalogue()), x, *CASES[case])
    assert actual.shape == expected.shape
    assert abs(actual - expected).max() < 1e-4 * abs(expected).max()
