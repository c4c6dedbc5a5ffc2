"""Slices that are empty at some sizes, where runtimes fail on extents of 0: files are right at all sizes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch.nn import functional as F

import tmconvert
from tmconvert.errors import UnsupportedError
from tmconvert.targets.registry import runtime_for

Function = Callable[[torch.Tensor], torch.Tensor]


def rolled(shift: int) -> Function:
    return lambda x: x[3:].roll(shift, 0)


def diagonal(offset: int) -> Function:
    return lambda x: x.diagonal(offset)


FUNCTIONS: dict[str, Function] = {
    **{f"roll {shift}": rolled(shift) for shift in (1, 2, 3, 5, -1, -2, -7)},
    "roll of all": lambda x: x.roll(5, 0),
    **{f"diagonal {offset}": diagonal(offset) for offset in (-1, 0, 2, 4)},
    "diagonal of columns": lambda x: x.T.diagonal(-1),
    "diagonal of products": lambda x: (x @ x.T).diagonal(-2),
    "window of all": lambda x: x.unfold(0, x.shape[0], 1),
    "window of all but one": lambda x: x.unfold(0, max(x.shape[0] - 1, 1), 1),
    "rows of a product": lambda x: x[2:] @ x.T,
    "sums of a product": lambda x: x[2:].T @ x[2:],
    "columns of a product": lambda x: x @ x[2:].T,
    "sum of losses": lambda x: F.cross_entropy(x[2:], x[2:].argmax(1), reduction="sum"),
    "mean of losses": lambda x: F.cross_entropy(x[2:], x[2:].argmax(1)),
    "gather": lambda x: x[2:].gather(1, x[2:].argmax(1, keepdim=True)),
    "instance norm": lambda x: F.instance_norm(torch.cat([x[2:], x[2:] * 2]).T[None]),
    "group norm": lambda x: F.group_norm(x[2:], 2),
    "attention": lambda x: F.scaled_dot_product_attention(x[None, 2:], x[None], x[None]),
}


@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_size_is_right(name: str, target: str, rows: int, tmp_path: Path) -> None:
    function, path = FUNCTIONS[name], tmp_path / f"m.{target}"
    convert = {"onnx": tmconvert.to_onnx, "tflite": tmconvert.to_tflite}[target]
    report = convert(function, path, example_inputs=(torch.randn(rows, 4),), dynamic_shapes={"x": {0: "n"}})
    assert not any("specialized" in note or "valid for" in note for note in report.notes)
    runtime = runtime_for(target)
    assert runtime is not None
    for size in (1, 2, 3, 4, 5, 7, 9):
        x = torch.randn(size, 4)
        expected = function(x).numpy()
        (made,) = runtime.run([path], {"x": x.numpy()}, [report.outputs[0]["name"]], shapes=[expected.shape])
        assert made.shape == expected.shape
        np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("mode", ["nearest-exact", "bicubic"])
def test_resizing_by_a_fraction_is_right_at_other_sizes(mode: str, target: str, tmp_path: Path) -> None:
    convert = {"onnx": tmconvert.to_onnx, "tflite": tmconvert.to_tflite}[target]
    path, resized = tmp_path / "m", functools.partial(F.interpolate, scale_factor=1.7, mode=mode)
    report = convert(
        lambda x: resized(x),
        path,
        example_inputs=(torch.randn(1, 2, 5, 5),),
        dynamic_shapes={"x": {2: "n"}},
        accept_range=target == "tflite",  # rounding errors of n * 1.7 matter, and LiteRT has no float64
    )
    assert report.inputs[0]["shape"][2] == "n"
    for rows in (2, 3, 5, 8, 13, *((30, 50, 70) if target == "onnx" else ())):
        x = torch.randn(1, 2, rows, 5)
        (made,) = runtime_for(target).run([path], {"x": x.numpy()}, [report.outputs[0]["name"]])
        np.testing.assert_allclose(made, resized(x).numpy(), atol=1e-5)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("part", [slice(0, 3), slice(1, 2), slice(None, None, 2)])
def test_slices_of_combinations(part: slice, count: int, target: str, tmp_path: Path) -> None:
    """Their number is that of the true elements of a mask, which is a constant."""
    convert = {"onnx": tmconvert.to_onnx, "tflite": tmconvert.to_tflite}[target]
    example = torch.randn(count)
    report = convert(lambda x: torch.combinations(x)[part], tmp_path / "m", example_inputs=(example,))
    assert report.outputs[0]["shape"] == list(torch.combinations(example)[part].shape)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_unpooling_of_an_empty_slice(rows: int, target: str, tmp_path: Path) -> None:
    def unpooled(x: torch.Tensor) -> torch.Tensor:
        y, places = F.max_pool1d(x, 2, return_indices=True)
        return F.max_unpool1d(y[2:], places[2:], 2)

    convert = {"onnx": tmconvert.to_onnx, "tflite": tmconvert.to_tflite}[target]
    example = torch.randn(rows, 3, 8)
    report = convert(unpooled, tmp_path / "m", example_inputs=(example,), dynamic_shapes={"x": {0: "n"}})
    assert report.verification is not None


@pytest.mark.parametrize(
    ("function", "size"),
    [
        (lambda x: x[2:].squeeze(), 3),
        (lambda x: x[1:].squeeze(0) * 2, 2),
        (lambda x: torch.cat([x, x[:1]])[2:9].squeeze().softmax(0), 2),
        (lambda x: x[::3].squeeze(0).exp(), 3),
        (lambda x: x[2:].squeeze().softmax(0).reshape(-1), 3),
    ],
)
def test_a_slice_that_may_have_one_row_and_is_squeezed_is_a_range(
    function: Any, size: int, tmp_path: Path
) -> None:
    def converted(**options: Any) -> Any:
        example = torch.randn(5, 4)
        path, sizes = tmp_path / "m.onnx", {"x": {0: "n"}}
        return tmconvert.to_onnx(function, path, example_inputs=(example,), dynamic_shapes=sizes, **options)

    with pytest.raises(UnsupportedError, match=r"valid for .* only") as caught:
        converted()
    assert caught.value.code == "TM2030"
    assert f"at n = {size}" in caught.value.message or " != 1" in str(caught.value)
    assert caught.value.source is not None
    assert any("!= " in text or ">= " in text for text in converted(accept_range=True).ranges)
    compare(tmp_path / "m.onnx", function, 7)


def compare(path: Path, function: Any, rows: int) -> None:
    x = torch.randn(rows, 4)
    session = onnxruntime.InferenceSession(path)
    np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], function(x).numpy(), atol=1e-5)


def test_equal_sizes_that_change_nothing_need_no_range(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x[2:] * torch.arange(4.0)[None] + x[:1]

    tmconvert.to_onnx(
        function, tmp_path / "m.onnx", example_inputs=(torch.randn(6, 4),), dynamic_shapes={"x": {0: "n"}}
    )
    for rows in (1, 2, 3, 4, 9):
        compare(tmp_path / "m.onnx", function, rows)
