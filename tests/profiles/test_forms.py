"""Forms of operators that a profile lacks compute what the usual ones compute."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import tmconvert

Function = Callable[[torch.Tensor], torch.Tensor]
FUNCTIONS: dict[str, Function] = {
    "halved": lambda x: F.interpolate(x, size=(3, 5), mode="bilinear"),
    "wider": lambda x: F.interpolate(x, size=(19, 8), mode="bilinear", align_corners=True),
    "nearest": lambda x: F.interpolate(x, size=(11, 5)),
    "largest": lambda x: torch.topk(x.flatten(2), 4)[0],
    "places": lambda x: torch.topk(x.flatten(2), 4, largest=False)[1],
    "sorted": lambda x: torch.sort(x[..., 0])[0],
    "turned": lambda x: x.flip(3),
    "logarithms": lambda x: F.log_softmax(x, 1),
    "shuffled": lambda x: F.pixel_unshuffle(F.pixel_shuffle(F.pad(x, (0, 0, 1, 0)), 2), 4),
    "attention": lambda x: F.scaled_dot_product_attention(x, x * 0.5, x + 1),
    "normalized": lambda x: F.local_response_norm(x[:1, :, :2, :3], 3, alpha=0.5, beta=0.6),
    "product": lambda x: x[:, :4].prod(1) + x.prod(3, keepdim=True)[:, 0],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_form_for_an_npu_computes_the_same(name: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    # halves, of which many are equal
    samples = [(np.round(2 * random.standard_normal((2, 8, 7, 8))).astype(np.float32) / 2,) for _ in range(4)]
    traced = tmconvert.trace(FUNCTIONS[name], torch.from_numpy(samples[0][0]))
    options = {"quantized": True, "calibration": samples, "io_type": "float32", "io_layout": "source"}
    plain, made = tmp_path / "plain.tflite", tmp_path / "made.tflite"
    tmconvert.to_tflite(traced, plain, **options)
    report = tmconvert.to_tflite(traced, made, profile="ethos-u55", **options)
    assert report.verified
    ends = {"QUANTIZE", "DEQUANTIZE"}  # of inputs and outputs in float
    left = [each for each in tmconvert.lint(made, profile="ethos-u55") if not ends & {*each.message.split()}]
    assert left == []
    expected = np.asarray(traced(samples[0][0]))
    for one, other in zip(
        *(tmconvert.run(path, samples[0][0]).values() for path in (plain, made)), strict=True
    ):
        one, other = one.astype(np.float64), other.astype(np.float64)
        step = np.diff(np.unique(one)).min(initial=np.inf)
        assert np.mean(np.abs(one - other) > 1.01 * step) <= 1e-3
        assert np.abs(other - expected).max() <= 0.03 * max(np.abs(expected).max(), 1e-6)


MANY_AXES: dict[str, Function] = {
    "windows": lambda x: x.permute(0, 3, 1, 4, 2, 5),
    "all axes": lambda x: x.permute(4, 1, 5, 0, 3, 2),
    "sum": lambda x: x.sum((1, 2)),
    "mean": lambda x: x.mean((0, 5), keepdim=True),
    "maximum": lambda x: x.amax((3, 4, 5)),
}


@pytest.mark.parametrize("name", MANY_AXES)
def test_operators_on_six_axes_are_some_on_four(name: str, tmp_path: Path) -> None:
    def swap(x: torch.Tensor) -> torch.Tensor:
        return MANY_AXES[name](x.view(2, 3, 4, 3, 2, 5)).reshape(6, -1)

    x, path = torch.randn(8, 90), tmp_path / "net.tflite"
    assert tmconvert.to_tflite(swap, path, example_inputs=[x], profile="litert-gpu").verified
    assert tmconvert.lint(path, profile="litert-gpu") == []
    np.testing.assert_allclose(next(iter(tmconvert.run(path, x.numpy()).values())), swap(x), atol=1e-5)
