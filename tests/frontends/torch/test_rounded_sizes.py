"""Sizes that Python computes in float64, where rounding errors make another size than exact fractions."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F

import tmconvert
from tmconvert.errors import UnsupportedError
from tmconvert.ir.symbolic.dims import dim, substituted
from tmconvert.ir.symbolic.rounded import Steps, differing_sizes, rounded
from tmconvert.ir.symbolic.text import parse_size
from tmconvert.targets.registry import runtime_for

from .harness import run_onnx

Function = Callable[[torch.Tensor], torch.Tensor]


def _smaller_side(x: torch.Tensor) -> torch.Tensor:
    rows, columns = x.shape
    scale = 32 / min(rows, columns)
    return x.new_ones(int(rows * scale), int(columns * scale)) * x.sum()


def _within(x: torch.Tensor) -> torch.Tensor:
    rows, columns = x.shape
    scale = min(24 / rows, 30 / columns, 1.5)
    return x.new_ones(round(rows * scale) + 1, math.ceil(columns * scale)) * x.sum()


# a size at which the exact fraction gives another result, and the function
FUNCTIONS: dict[str, tuple[int, Function]] = {
    "int of a product": (100, lambda x: x[:, : int(x.shape[1] * 0.29)]),
    "ceil": (50, lambda x: F.pad(x, (0, math.ceil(x.shape[1] * 1.1) - x.shape[1]))),
    "a quotient that is nearly 32": (49, lambda x: F.pad(x, (0, int(x.shape[1] * (32 / x.shape[1]))))),
    "a difference": (60, lambda x: x[:, : int(x.shape[1] * (1 - 0.55))]),
    "resizing by a factor": (50, lambda x: F.interpolate(x[:, None], scale_factor=2.3)[:, 0]),
    "a factor that is recomputed": (
        50,
        lambda x: F.interpolate(
            x[:, None], scale_factor=2.3, mode="linear", recompute_scale_factor=True
        )[:, 0],
    ),
    "round": (15, lambda x: x[:, : round(x.shape[1] * 0.7)]),
    "a scale for the smaller side": (49, _smaller_side),
    "a scale within a box": (49, _within),
    "a scale and a half": (343, lambda x: x.new_ones(int(x.shape[0] * (128 / max(x.shape)) + 0.5)) * x.sum()),
    "float32 of NumPy": (30, lambda x: x[:, : int((x.shape[1] + 1) * np.float32(0.29))]),
    "a float32 tensor": (100, lambda x: x[:, : int(torch.tensor(x.shape[1]).float() * 0.29)]),
    "a quotient of rounded products": (
        100,
        lambda x: x[:, : int(x.shape[1] * 0.25) // int(x.shape[1] * 0.01 + 1)],
    ),
    "toward zero": (9, lambda x: x[:, : 9 + int(x.shape[1] * 0.5 - 7.3)]),
    "a rounded product of NumPy": (10, lambda x: x[:, : int(np.round(x.shape[1] * 0.35))]),
    "a square root": (49, lambda x: x[:, : math.isqrt(x.shape[1]) + int(x.shape[0] ** 0.5)]),
    "a power of two": (
        64,
        lambda x: F.pad(x, (0, 2 ** int(np.ceil(np.log2(x.shape[1]))) + x.shape[1].bit_length())),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_file_rounds_sizes_like_python(name: str, tmp_path: Path) -> None:
    size, function = FUNCTIONS[name]
    tmconvert.to_onnx(
        function,
        tmp_path / "m.onnx",
        example_inputs=(torch.randn(12, 20),),
        dynamic_shapes={"x": {0: "rows", 1: "columns"}},
        accept_range=True,
    )
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for rows, columns in ((12, 20), (size, size), (2 * size, size), (3, 98), (49, 103), (7, 196)):
        x = torch.randn(rows, columns)
        (made,) = session.run(None, {"x": x.numpy()})
        np.testing.assert_allclose(made, function(x).numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["int of a product", "ceil", "a difference"])
def test_tflite_has_the_range_in_which_integers_are_right(name: str, tmp_path: Path) -> None:
    size, function = FUNCTIONS[name]
    options: dict[str, Any] = {
        "example_inputs": (torch.randn(2, 20),),
        "dynamic_shapes": {"x": {1: "n"}},
    }
    path = tmp_path / "m.tflite"
    with pytest.raises(UnsupportedError, match=r"valid for n <= \d+ only") as caught:
        tmconvert.to_tflite(function, path, **options)
    assert caught.value.code == "TM2030"
    report = tmconvert.to_tflite(function, path, accept_range=True, **options)
    (limit,) = (int(each.removeprefix("n <= ")) for each in report.ranges if each.startswith("n <= "))
    assert limit < size
    runtime = runtime_for("tflite", path)
    assert runtime is not None
    for count in (7, limit - 1, limit):
        x = torch.randn(2, count)
        (made,) = runtime.run([path], {"x": x.numpy()}, [report.outputs[0]["name"]])
        np.testing.assert_allclose(made, function(x).numpy(), rtol=1e-5)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:, : int(x.shape[1] * 0.75)],
        lambda x: x[:, : math.ceil(x.shape[1] / 3)],
        lambda x: x[:, : math.floor(x.shape[1] / 7 + 1.5)],
        lambda x: x[:, : round(x.shape[1] / 2)],
        lambda x: x[:, : round(math.ceil(x.shape[1]) / 3)],
        lambda x: F.interpolate(x[:, None], scale_factor=1.5)[:, 0],
    ],
)
def test_what_needs_no_float64_has_no_range(function: Function, target: str, tmp_path: Path) -> None:
    path = tmp_path / f"m.{target}"
    report = getattr(tmconvert, f"to_{target}")(
        function, path, example_inputs=(torch.randn(2, 20),), dynamic_shapes={"x": {1: "n"}}
    )
    assert not report.ranges
    runtime = runtime_for(target, path)
    assert runtime is not None
    for count in (2, 3, 5, 6, 9, 31):
        x = torch.randn(2, count)
        (made,) = runtime.run([path], {"x": x.numpy()}, [report.outputs[0]["name"]])
        np.testing.assert_allclose(made, function(x).numpy(), rtol=1e-5)


@pytest.mark.parametrize("kind", ["floor", "ceil", "round"])
def test_two_sizes_are_rounded_like_python_at_all_sizes(kind: str) -> None:
    """Integers are taken only where they are proven to be right; 343 and 12544 are beyond any trial."""
    of_python = {"floor": math.floor, "ceil": math.ceil, "round": round}[kind]
    height, width = dim("h", 60), dim("w", 80)
    steps = Steps("mul", height, Steps("truediv", 128, Steps("max", height, width)))
    size = rounded(kind, Steps("add", steps, 0.5))
    random = np.random.default_rng(0)
    for h, w in ((343, 12544), *random.integers(1, 20000, (3000, 2)).tolist()):
        made = substituted(size, {"h": h, "w": w})
        assert made == of_python(h * (128 / max(h, w)) + 0.5)
    assert str(parse_size(str(size), size.symbols)) == str(size)


@pytest.mark.parametrize("name", ["floor", "ceil", "round"])
@pytest.mark.parametrize("factor", [0.29, 1.1, 0.7, 2.3, 1 / 3, 0.5, 1.25, 0.3])
def test_rounded_sizes_are_those_of_python(name: str, factor: float) -> None:
    of_python = {"floor": math.floor, "ceil": math.ceil, "round": round}[name]
    steps = Steps("mul", dim("n", 20), factor)
    size = rounded(name, steps)
    for number in (*range(1, 300), *(each["n"] for each in differing_sizes(name, steps))):
        assert size.at(lambda _, number=number: number) == of_python(number * factor)
    (symbol,) = size.symbols.values()
    assert str(parse_size(str(size), {"n": symbol})) == str(size)


DIAGONALS: dict[str, Function] = {
    "fill": lambda x: x.clone().fill_diagonal_(0.5),
    "fill, wrapped": lambda x: x.clone().fill_diagonal_(0.5, wrap=True),
    "trace": lambda x: x.trace(),
    "diagonal": lambda x: x.diagonal(1) * 2,
    "below": lambda x: x.diagonal(-2).sum(),
    "triangle": lambda x: x.tril(-2) + x.triu(1),
}


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("name", DIAGONALS)
def test_diagonals_of_tall_and_wide_matrices(name: str, target: str, tmp_path: Path) -> None:
    function, path = DIAGONALS[name], tmp_path / f"m.{target}"
    axes = {0: "rows", 1: "columns"}
    report = getattr(tmconvert, f"to_{target}")(
        function, path, example_inputs=(torch.rand(4, 5),), dynamic_shapes={"x": axes}, accept_range=True
    )
    runtime = runtime_for(target, path)
    assert runtime is not None
    for sizes in ((7, 5), (5, 4), (8, 3), (3, 8), (6, 6), (12, 13)):
        x = torch.rand(sizes)
        (made,) = runtime.run([path], {"x": x.numpy()}, [report.outputs[0]["name"]])
        np.testing.assert_allclose(made, function(x).numpy(), rtol=1e-5, atol=1e-6)


def test_a_refused_range_is_shown_as_code_with_the_strictest_first(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape
        y = x * 2 if int(rows * (32 / columns)) != 7 else x * 3
        return y + 1 if rows != 5 else y - 1

    with pytest.raises(UnsupportedError) as caught:
        tmconvert.to_onnx(
            function,
            tmp_path / "m.onnx",
            example_inputs=(torch.randn(12, 20),),
            dynamic_shapes={"x": {0: "rows", 1: "columns"}},
        )
    also = [text for label, text in caught.value.notes if label == "also"]
    shown = [caught.value.message, *also]
    assert caught.value.code == "TM2030" and any(
        "floor(rows * (32 / columns)) != 7" in text for text in shown
    )
    assert also and all("test_rounded_sizes.py:" in text for text in also)


def resized_positions(x: torch.Tensor) -> torch.Tensor:
    """As vision transformers fit their table of positions: 0.1 keeps the rounding from losing a row."""
    rows, columns = x.shape[2] // 4 + 0.1, x.shape[3] // 4 + 0.1
    table = torch.linspace(0, 1, 16).reshape(1, 1, 4, 4)
    found = F.interpolate(table, scale_factor=(rows / 4, columns / 4), mode="bicubic")
    assert int(rows) == found.shape[2] and int(columns) == found.shape[3]
    return F.avg_pool2d(x, 4) + found


def unless_square(x: torch.Tensor) -> torch.Tensor:
    """The second comparison is made where the first one is true."""
    if (x.shape[2] // 4) * (x.shape[3] // 4) == 16 and x.shape[2] == x.shape[3]:
        return F.avg_pool2d(x, 4)
    return F.max_pool2d(x, 4)


def test_a_size_plus_a_fraction_is_rounded_to_that_size(tmp_path: Path) -> None:
    path, sizes = tmp_path / "model.onnx", {"x": {2: "h", 3: "w"}}
    example = torch.randn(1, 2, 24, 20)
    tmconvert.to_onnx(resized_positions, path, example_inputs=(example,), dynamic_shapes=sizes)
    for h, w in ((24, 20), (9, 31), (16, 16), (64, 4)):
        x = torch.randn(1, 2, h, w)
        (made,) = run_onnx(path, [x.numpy()])
        np.testing.assert_allclose(made, resized_positions(x), rtol=1e-4, atol=1e-5)


def test_a_product_of_sizes_is_also_compared_where_they_are_equal(tmp_path: Path) -> None:
    sizes = {"x": {2: "h", 3: "w"}}
    traced = tmconvert.trace(unless_square, torch.randn(1, 2, 24, 20), dynamic_shapes=sizes)
    with pytest.raises(
        UnsupportedError, match=r"TM2030.*floor\(h/4\)\*floor\(w/4\) != 16 only.* h = 16, w = 16"
    ):
        tmconvert.to_onnx(traced, tmp_path / "model.onnx")
