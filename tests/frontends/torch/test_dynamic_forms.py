"""Calls that keep dynamic sizes: resizing, ranges of fractions, complex tensors, numbers made of sizes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import tmconvert

from .harness import assert_close, check, run_onnx

OTHERS = ((9, 6), (7, 13), (3, 4), (16, 5))
IMAGES: dict[str, Callable[..., Any]] = {
    **{
        f"size, {mode}": lambda x, mode=mode: torch.cat(
            [x, F.interpolate(F.max_pool2d(x, 2), size=x.shape[-2:], mode=mode)], 1
        )
        for mode in ("nearest", "nearest-exact", "bilinear", "area")
    },
    **{
        f"factor, {mode}": lambda x, mode=mode: F.interpolate(x, scale_factor=1.5, mode=mode)
        for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area")
    },
    "smaller, nearest": lambda x: F.interpolate(x, scale_factor=(0.6, 0.7), mode="nearest"),
    "range of halves": lambda x: x + torch.arange(0.5, x.shape[3]) / x.shape[3],
    "range to a half": lambda x: x + torch.arange(0, x.shape[3] * 0.5, 0.5, dtype=torch.float32),
    "downwards": lambda x: x + torch.arange(x.shape[3] - 0.5, -0.5, -1.0),
    "number": lambda x: x / torch.tensor([x.shape[3] * 1.0, x.shape[2] * 0.5]).sum(),
    "complex": lambda x: (lambda f: f.abs().reshape(f.size(2), -1))(
        torch.view_as_complex(torch.stack([x, x * 2], -1))
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", IMAGES)
def test_dynamic_sizes_stay_dynamic(name: str, tmp_path: Path) -> None:
    model, x = IMAGES[name], torch.randn(1, 2, 8, 6)
    traced = tmconvert.trace(model, x, dynamic_shapes={"x": {2: "h", 3: "w"}})
    report = tmconvert.to_onnx(traced, tmp_path / "model.onnx")
    assert [*traced.notes, *report.notes] == []
    for height, width in OTHERS:
        x = torch.randn(1, 2, height, width)
        assert_close(
            "ONNX Runtime", run_onnx(tmp_path / "model.onnx", [x.numpy()]), [model(x).numpy()], [], None
        )


def test_complex_zeros_are_written_to():
    def spectral(x: torch.Tensor) -> torch.Tensor:
        found = torch.fft.rfft2(x)
        kept = torch.zeros(found.shape, dtype=torch.cfloat)
        kept[..., :3, :3] = found[..., :3, :3] * 2
        kept[..., -3:, :3] = found[..., -3:, :3] * (1 + 1j)
        return torch.fft.irfft2(kept + torch.full_like(kept, 0.5j), s=x.shape[-2:])

    check(spectral, torch.randn(1, 2, 8, 8))
    check(
        lambda x: torch.view_as_real(torch.fft.fft(x).new_zeros(2, 3) + torch.fft.fft(x)), torch.randn(2, 3)
    )


class Nested(torch.nn.Module):
    def forward(self, x: Any, pair: Any, *rest: Any, **more: Any) -> Any:
        return x + pair[0] + pair[1]["k"] + sum(rest) + more["m"]


def _nested(rows: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    a, b, c, d, e, f = (torch.randn(rows, 4) for _ in range(6))
    return (a, (b, {"k": c}), d, e), {"m": f}


def _collection(args: Any, kwargs: Any) -> Any:
    found = torch.export.ShapesCollection()
    for each in (args[0], args[1][0], args[1][1]["k"], *args[2:], kwargs["m"]):
        found[each] = {0: torch.export.Dim("n")}
    return found


def _more_inputs(args: Any, kwargs: Any) -> Any:
    found = torch.export.AdditionalInputs()
    found.add(*_nested(5))
    return found


N, AUTO, DYNAMIC = {0: torch.export.Dim("n")}, torch.export.Dim.AUTO, {0: torch.export.Dim.DYNAMIC}
FORMS: dict[str, Callable[[Any, Any], Any]] = {
    "by name": lambda *_: {"x": N, "pair": (N, {"k": N}), "rest": (N, N), "more": {"m": N}},
    "by argument": lambda *_: (N, [N, {"k": N}], (N, N), {"m": N}),
    "automatic": lambda *_: ([AUTO, None], (DYNAMIC, {"k": DYNAMIC}), (DYNAMIC, {0: AUTO}), {"m": DYNAMIC}),
    "a collection": _collection,
    "additional inputs": _more_inputs,
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_dynamic_shapes(form: str) -> None:
    args, kwargs = _nested(3)
    sizes = FORMS[form](args, kwargs)
    report = tmconvert.to_onnx(Nested(), example_inputs=args, example_kwargs=kwargs, dynamic_shapes=sizes)
    (name,) = {each["shape"][0] for each in report.inputs}
    assert isinstance(name, str)
    assert report.verified


def test_an_automatic_size_is_static_where_the_module_needs_it() -> None:
    layer, sizes = torch.nn.Linear(4, 2), {"input": {0: AUTO, 1: AUTO}}
    report = tmconvert.to_onnx(layer, example_inputs=(torch.randn(3, 4),), dynamic_shapes=sizes)
    assert report.inputs[0]["shape"] == ["input_0", 4]
    with pytest.raises(tmconvert.errors.UsageError, match="by argument applies to models that are traced"):
        tmconvert.to_onnx(tmconvert.trace(layer, torch.randn(3, 4)), dynamic_shapes=({0: "n"},))
