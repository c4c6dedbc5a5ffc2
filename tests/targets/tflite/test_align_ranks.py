"""Operands of lower rank beside channels-last tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tmconvert.ir import InternalGraph
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.passes.rewriting import PassRecord
from tmconvert.symbolics.registry import catalogue
from tmconvert.transform.named_passes import temporary_passes

torch = pytest.importorskip("torch")


class ScaleRows:
    """Multiplies the output by operands of lower rank, one of them computed."""

    def run(self, graph: InternalGraph) -> PassRecord:
        g = GraphEmitter(graph, catalogue(), made_by="ScaleRows", name="rows")
        scaled = g.call("aten::mul", graph.outputs[0], g.constant(np.arange(1, 7, dtype=np.float32)))
        largest = g.call("aten::amax", graph.inputs[0], [0, 1, 2], False)
        graph.set_result(g.call("aten::mul", scaled, largest))
        return PassRecord("ScaleRows")


@pytest.mark.parametrize("after", ["FuseViews", "FoldScaleBias"])
def test_what_a_late_pass_puts_in_is_aligned(after: str, tmp_path: Path) -> None:
    conv, x = torch.nn.Conv2d(3, 4, 3, padding=1), torch.randn(1, 3, 6, 6)
    options: dict[str, Any] = {"verify": False, "io_layout": "source", "example_inputs": [x]}
    with temporary_passes():
        tmconvert.register_pass("ScaleRows", after=after)(ScaleRows())
        function = lambda x: conv(x).sigmoid()  # noqa: E731
        tmconvert.to_tflite(function, tmp_path / "o.tflite", passes=["ScaleRows"], **options)
    made = tmconvert.load(tmp_path / "o.tflite")(x.numpy())
    right = function(x) * torch.arange(1, 7) * x.amax((0, 1, 2))
    np.testing.assert_allclose(made, right.detach(), atol=1e-5)


def test_a_computed_slope_of_prelu(tmp_path: Path) -> None:
    conv = torch.nn.Conv2d(3, 4, 3)
    inputs = torch.randn(1, 3, 6, 6), torch.randn(1)
    report = tmconvert.to_tflite(
        lambda x, slope: torch.nn.functional.prelu(conv(x), slope.sigmoid()),
        tmp_path / "o.tflite",
        example_inputs=inputs,
    )
    assert report.verified
