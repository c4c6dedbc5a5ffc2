"""Running results along an open size, in runtimes, compared with PyTorch at other sizes than the example."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import tmconvert
from tmconvert.errors import UnsupportedError
from tmconvert.targets.registry import runtime_for

from .harness import arrays

SIZES = (1, 2, 3, 5, 17, 64, 65)
NAN, INF = float("nan"), float("inf")
SPECIAL = torch.tensor([2.0, 2, -INF, 1, INF, 2, NAN, 5, NAN, 1, INF])


def agrees_at_all_sizes(
    function: Callable[..., Any],
    made: Callable[[int], torch.Tensor],
    target: str,
    folder: Path,
    sizes: tuple[int, ...] = SIZES,
) -> None:
    """The file leaves the first axis open, and is what PyTorch is at ``sizes``."""
    path = folder / f"model.{target}"
    traced = tmconvert.trace(lambda x: function(x), made(3), dynamic_shapes={"x": {0: "n"}})
    report = getattr(tmconvert, f"to_{target}")(traced, path)
    assert report.inputs[0]["shape"][0] == "n"
    runtime = runtime_for(target, path)
    assert runtime is not None
    names = [each["name"] for each in report.outputs]
    for size in sizes:
        x = made(size)
        found = runtime.run([path], {"x": x.numpy()}, names)
        for result, wanted in zip(found, arrays(function(x)), strict=True):
            assert result.shape == wanted.shape
            np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6, err_msg=f"at {size}")


def drawn(size: int) -> torch.Tensor:
    return torch.rand(size, 4, generator=torch.Generator().manual_seed(size)) + 0.5


def tied(size: int) -> torch.Tensor:
    return torch.randint(0, 3, (size, 4), generator=torch.Generator().manual_seed(size)).float()


def integers(size: int) -> torch.Tensor:
    return torch.randint(-5, 5, (size, 4), generator=torch.Generator().manual_seed(size))


def special(size: int) -> torch.Tensor:
    return torch.stack([SPECIAL.roll(turn).repeat(6)[:size] for turn in range(11)], 1)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("made", [drawn, tied, integers, special], ids=lambda made: made.__name__)
@pytest.mark.parametrize("name", ["cumprod", "cummax", "cummin", "logcumsumexp"])
def test_running_results(name: str, made: Callable[[int], torch.Tensor], target: str, tmp_path: Path) -> None:
    if name == "logcumsumexp" and made in (integers, special):
        return  # floats only; LiteRT's NaN and infinities differ within log and exp
    agrees_at_all_sizes(lambda x: arrays_of(getattr(torch, name)(x, 0)), made, target, tmp_path)


def arrays_of(result: Any) -> Any:
    return tuple(result) if isinstance(result, tuple) else result


def test_logcumsumexp_of_infinities(tmp_path: Path) -> None:
    agrees_at_all_sizes(lambda x: x.logcumsumexp(0), special, "onnx", tmp_path)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("name", ["cumprod", "cummax"])
def test_along_an_axis_between_others(name: str, target: str, tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> Any:
        return arrays_of(getattr(torch, name)(x.reshape(-1, 2, 2).permute(2, 0, 1), -2))

    agrees_at_all_sizes(function, drawn, target, tmp_path)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("bound", [1.0, 9.0])
@pytest.mark.parametrize("name", ["cumprod", "cummax", "cummin"])
def test_of_a_number_of_elements_that_the_data_gives(
    name: str, bound: float, target: str, tmp_path: Path
) -> None:
    """Also none: ONNX Runtime's Scan takes no fewer than one step."""
    agrees_at_all_sizes(lambda x: arrays_of(getattr(torch, name)(x[x > bound], 0)), drawn, target, tmp_path)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("name", ["cumprod", "cummax"])
def test_of_a_slice_that_may_be_empty(name: str, target: str, tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> Any:
        return arrays_of(getattr(torch, name)(torch.cat([x, x])[4:], 0))

    sizes = (2, 3, 5, 17) if target == "onnx" else (3, 5, 17)
    agrees_at_all_sizes(function, drawn, target, tmp_path, sizes)


OPEN: dict[str, Callable[[torch.Tensor], Any]] = {
    "padded by its size": lambda x: F.pad(x, (0, 0, 0, x.shape[0])),
    "padded to a multiple": lambda x: F.pad(x, (0, 0, 0, (4 - x.shape[0] % 4) % 4)),
    "padded by a negative size modulo 4": lambda x: F.pad(x, (0, 0, -x.shape[0] % 4, 0), value=2.0),
    "causal attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "causal attention of other keys": lambda x: F.scaled_dot_product_attention(
        x, torch.cat([x, x * 2]), torch.cat([x, x + 1]), is_causal=True
    ),
    "grid of centres": lambda x: F.affine_grid(x.mean() * torch.ones(1, 2, 3), [1, 1, x.shape[0], 4], False),
    "grid of corners": lambda x: F.affine_grid(x.mean() * torch.ones(1, 2, 3), [1, 1, x.shape[0], 4], True),
    "grid of volumes": lambda x: F.affine_grid(
        x.mean() * torch.ones(1, 3, 4), [1, 1, 2, x.shape[0], x.shape[0] + 1], False
    ),
}


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("name", OPEN)
def test_stays_open(name: str, target: str, tmp_path: Path) -> None:
    agrees_at_all_sizes(OPEN[name], drawn, target, tmp_path, (1, 2, 3, 4, 5, 8, 17))


def test_hooks_of_the_backward_pass_are_left_out(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        if y.requires_grad:  # as PyTorch itself asks for
            y.register_hook(lambda gradient: gradient * 3)
        return y

    class Hooked(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = super().forward(x)
            y.register_hook(lambda gradient: gradient * 3).remove()
            return function(y)

    agrees_at_all_sizes(Hooked(4, 3), drawn, "onnx", tmp_path)


def test_a_hook_on_what_a_gradient_is_taken_of_is_refused() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            y = x**2
            y.register_hook(lambda gradient: gradient * 3)
            return torch.autograd.grad(y.sum(), x)[0]

    with pytest.raises(UnsupportedError, match="register_hook") as caught:
        tmconvert.trace(function, drawn(3))
    assert caught.value.code == "TM2016"


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_tensor_split(count: int, target: str, tmp_path: Path) -> None:
    """The first parts have an element more where sizes are no multiples, as the example's is or is not."""
    parts = tuple(range(count))
    agrees_at_all_sizes(
        lambda x: tuple(x.tensor_split(count)[part].sum(0) for part in parts),
        drawn,
        target,
        tmp_path,
        (3, 4, 5, 6, 7, 8, 11, 23),
    )
    agrees_at_all_sizes(lambda x: x.tensor_split(count)[-1] * 2, drawn, target, tmp_path, (4, 5, 7, 23))


def test_other_sizes_are_compared_where_nothing_overflows(tmp_path: Path) -> None:
    """PyTorch's cumprod accumulates in float64: 0 after an infinity, where a file in float32 has NaN."""
    report = tmconvert.to_onnx(
        lambda x: torch.cat([x * 1e10, x[:1] * 0]).cumprod(0),
        tmp_path / "m.onnx",
        example_inputs=(torch.rand(2, 3) + 0.5,),
        dynamic_shapes={"x": {0: "n"}},
    )
    assert report.verified


def convolved_by_sample(x: torch.Tensor) -> Any:
    """Convolutions whose weights are computed for each sample: one group a sample."""
    n, (rows, taps) = x.shape[0], (torch.arange(1.0, 6.0), torch.arange(1.0, 7.0).view(2, 1, 3))
    images = (x[:, :, None] / rows).reshape(1, 4 * n, 5)
    weights = x[:, None, :, None] / taps  # [n, 2, 4, 3]
    lines = F.conv1d(images, weights.flatten(0, 1), x.mean(1).repeat_interleave(2), padding=1, groups=n)
    spread = weights.transpose(1, 2).flatten(0, 1).unsqueeze(2)
    return lines, F.conv_transpose2d(images.unsqueeze(2), spread, stride=(1, 2), groups=n).flatten()


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_an_open_number_of_groups(target: str, tmp_path: Path) -> None:
    agrees_at_all_sizes(convolved_by_sample, drawn, target, tmp_path, (1, 2, 5))
