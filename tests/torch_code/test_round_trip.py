"""Recorded models become modules of PyTorch, compute the same, and trace back to the same graph."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.models import corpus
from tests.torch_code.canonical import canonical
from tmconvert.ir.tree import leaves

torch = pytest.importorskip("torch")

TOLERANCE = 1e-5
# Of these models an output is a small difference of large sums: in float32 its error depends on the order of
# the sums, and so on the processor. The module is compared in float64.
EXACT = {"det_fpn_scale_stride"}
# Fake quantization rounds sums. Where a sum is half a step, the order of its terms, which depends on the
# processor, decides between two neighbouring numbers.
TIES = 1 / 1000
OWN = "custom_user_function"  # calls a function of the user
ALL = sorted(
    path.stem for path in corpus.DATA.glob("*.tm") if not path.stem.startswith("hostile") and path.stem != OWN
)
QUANTIZED = [name for name in ALL if "qat" in name or name.startswith("quantized")]


def in_float64(net: Any, inputs: list[Any]) -> list[np.ndarray]:
    """The outputs of the module in float64."""
    with torch.no_grad():
        results = leaves(copy.deepcopy(net).double()(*(each.double() for each in inputs)))
    return [np.asarray(each) for each in results]


def moved_by_a_step(output: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Which elements are neighbours, on the grid of quantized numbers, of what they are to be."""
    levels = np.unique(right.astype(np.float64))
    if levels.size < 2:
        return np.zeros(right.shape, bool)
    distance = np.abs(output.astype(np.float64) - right)
    return np.isclose(distance, np.diff(levels).min(), rtol=1e-3)


@pytest.mark.parametrize("name", ALL)
def test_there_and_back(name: str) -> None:
    module = tmconvert.load(corpus.model(name))
    net = module.to_torch()
    inputs, expected = corpus.golden(name)
    given = [torch.from_numpy(np.array(each)) for each in inputs]
    with torch.no_grad():
        results = leaves(net(*given))
    assert [result.numpy().dtype for result in results] == [right.dtype for right in expected]
    outputs = in_float64(net, given) if name in EXACT else [result.numpy() for result in results]
    for output, right in zip(outputs, expected, strict=True):
        moved = moved_by_a_step(output, right) if name in QUANTIZED else np.zeros(right.shape, bool)
        assert moved.sum() <= right.size * TIES
        assert corpus.relative_error(np.where(moved, right, output), right) < TOLERANCE
    again = tmconvert.trace(net, *given)
    if name not in QUANTIZED:
        assert canonical(again) == canonical(module)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "vit_tiny", "mobilenet_v2"])
def test_gradients_are_finite(name: str) -> None:
    net = tmconvert.load(corpus.model(name)).to_torch().train()
    inputs = [torch.from_numpy(np.concatenate([each, each * 0.5])) for each in corpus.golden(name)[0]]
    sum(result.square().sum() for result in leaves(net(*inputs))).backward()
    gradients = [parameter.grad for parameter in net.parameters()]
    assert gradients
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)


def test_a_quantized_model_trains_and_keeps_its_scales(tmp_path: Path) -> None:
    """Weights that MegEngine fuses for quantization are trained; the trained module becomes integers."""
    net = tmconvert.load(corpus.model("qat_resnet_ema")).to_torch()
    (x,) = (torch.from_numpy(np.array(each)) for each in corpus.golden("qat_resnet_ema")[0])
    net(x).square().sum().backward()
    for name in ("c.weight", "l.0.cb.weight", "l.0.cbr.bias", "fc.weight"):
        gradient = net.get_parameter(name).grad
        assert gradient is not None and gradient.isfinite().all() and gradient.any()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.mul_(0.999)
    report = tmconvert.to_tflite(tmconvert.trace(net, x), tmp_path / "net.tflite", quantized=True)
    assert "operators in int8" in str(report)
