"""Arrays that Python and NumPy compute from sizes are open: indices, positions, zeros."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

import tmconvert
from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.sizes.recovered_arrays import IndexList, series_of


class Of(nn.Module):
    """A function of ``x``, and a module that it may call."""

    def __init__(self, function: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.function, self.part = function, Shifted()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, self.part)


class Shifted(nn.Module):
    """Adds positions, which are a constant of the caller."""

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        return x + positions[:, None]


def _positions(x: torch.Tensor, part: nn.Module) -> torch.Tensor:
    positions = torch.from_numpy(np.arange(x.shape[1]))
    return part(part(x, positions), positions).relu() + positions[:, None]


FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "a list of indices": lambda x, _: x[:, list(range(x.shape[1]))] * 2,
    "indices from the end": lambda x, _: x[:, list(reversed(range(x.shape[1])))] * 2,
    "every other index": lambda x, _: x[:, list(range(0, x.shape[1], 2))] * 2,
    "a tensor of a list": lambda x, _: x + torch.tensor([3 * i + 1 for i in range(x.shape[1])])[:, None],
    "floats": lambda x, _: x + torch.tensor([float(i) for i in range(x.shape[1])])[:, None],
    "a range of NumPy": lambda x, _: x + torch.from_numpy(np.arange(x.shape[1])).float()[:, None],
    "a range of a half": lambda x, _: x[:, torch.from_numpy(np.arange(x.shape[1] // 2))] * 2,
    "zeros of NumPy": lambda x, _: x + torch.from_numpy(np.zeros((x.shape[1], 4), np.float32)),
    "a grid": lambda x, _: x + torch.from_numpy(np.meshgrid(np.arange(4), np.arange(x.shape[1]))[1]),
    "even floats": lambda x, _: x + torch.from_numpy(np.linspace(-1, 1, x.shape[1])).float()[:, None],
    "an argument of a module": _positions,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arrays_of_sizes_are_open(name: str, tmp_path: Path):
    model = Of(FUNCTIONS[name]).eval()
    example = torch.randn(2, 6, 4)
    report = tmconvert.to_onnx(
        model, tmp_path / "m.onnx", example_inputs=(example,), dynamic_shapes={"x": {0: "b", 1: "n"}}
    )
    assert report.inputs[0]["shape"] == ["b", "n", 4]
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for shape in ((1, 9, 4), (3, 2, 4), (2, 17, 4)):
        x = torch.randn(shape)
        (actual,) = session.run(None, {"x": x.numpy()})
        np.testing.assert_allclose(actual, model(x).numpy(), rtol=1e-5, atol=1e-5)


def test_an_array_that_does_not_rise_evenly_is_a_constant(tmp_path: Path):
    model = Of(lambda x, _: x + torch.tensor([i * i for i in range(x.shape[1])])[:, None])
    options = {"example_inputs": (torch.randn(2, 6, 4),), "dynamic_shapes": {"x": {1: "n"}}}
    with pytest.raises(UnsupportedError, match="the size n cannot stay dynamic"):
        tmconvert.to_onnx(model, tmp_path / "m.onnx", **options)
    report = tmconvert.to_onnx(model, tmp_path / "m.onnx", fix={"n": 7}, **options)
    assert report.inputs[0]["shape"] == [2, 7, 4]


def test_series_of_lists():
    (rising,) = series_of(IndexList([7, 5, 3]))
    assert (rising.kind, rising.numbers) == ("rising", (3, 7, -2))
    (equal,) = series_of(IndexList([4, 4]))
    assert (equal.kind, equal.numbers) == ("equal", (2, 4))
    assert not list(series_of(IndexList([1, 2, 4])))
    assert {each.kind for each in series_of(IndexList([3]))} == {"rising", "spaced", "equal"}


def test_an_array_is_computed_of_sizes_that_are_known_before_its_call() -> None:
    """Lengths are made before the call of the module in which a tensor of this size is made, too."""

    class Rows(torch.nn.Module):
        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            rows = [x[i : i + 1] * lengths[i] for i in range(x.shape[0])]
            return torch.cat(rows) * lengths.max()

    class Inner(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows, self.linear = Rows(), torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
            return self.rows(self.linear(x), lengths)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x, torch.LongTensor([x.size(1)] * x.size(0)))

    x = torch.randn(2, 3, 4)
    options = {"dynamic_shapes": {"x": {0: "batch"}}}
    net = Net().eval()
    traced = tmconvert.trace(net, x, **options)
    for batch in (1, 2, 5):
        other = torch.randn(batch, 3, 4)
        np.testing.assert_allclose(traced(other.numpy()), net(other).detach().numpy(), rtol=1e-5)
    fixed = tmconvert.trace(net, x, fix={"batch": 2}, **options)
    np.testing.assert_allclose(fixed(x.numpy()), fixed.to_torch()(x).detach().numpy(), rtol=1e-5)
