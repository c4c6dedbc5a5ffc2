"""Plain numbers made of sizes, and branches on sizes whose two ways compute the same: sizes stay dynamic."""

from __future__ import annotations

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

Function = Callable[[torch.Tensor], Any]
OTHERS = ((1, 9), (3, 24), (2, 31), (4, 8), (1, 1))


def _chunks(x: torch.Tensor) -> torch.Tensor:
    """A cumulative sum in each chunk of 8 rows, padded to whole chunks where that is needed."""
    rows = x.shape[1]
    padding = (8 - rows % 8) % 8
    if padding > 0:
        x = F.pad(x, (0, 0, 0, padding))
    y = x.reshape(x.shape[0], -1, 8, 4).cumsum(2).flatten(1, 2)
    if padding > 0:
        y = y[:, :rows]
    return y


def _window(x: torch.Tensor) -> torch.Tensor:
    """Attention whose mask is left out where the window covers all rows."""
    rows, scores = x.shape[1], x @ x.mT
    if rows > 8:
        places = torch.arange(rows)
        scores = scores.masked_fill((places[:, None] - places).abs() > 8, -1e9)
    return scores.softmax(-1) @ x


def _table(x: torch.Tensor) -> torch.Tensor:
    """Adds a table of 6 rows, interpolated unless that is the number of rows."""
    table = torch.arange(24.0).reshape(1, 6, 4)
    if x.shape[1] != 6:
        table = F.interpolate(table.mT, x.shape[1], mode="linear").mT
    return x + table


def _smaller(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if min((x.shape[0], x.shape[1])) > 100 else x * 3


NUMBERS: dict[str, Function] = {
    "int": lambda x: x.reshape(int(x.shape[0]), int(x.shape[1] * 2), 2),
    "int of a quotient": lambda x: F.interpolate(x.mT, int(x.shape[1] / 2) + 1),
    "a multiple of int": lambda x: F.interpolate(x.mT, 2 * int(x.shape[1]) + 1),
    "a quotient of int": lambda x: x[:, : int(x.shape[1]) // 3 + 1],
    "a product of int": lambda x: x.reshape(int(x.shape[0]) * int(x.shape[1]), 4),
    "float": lambda x: x / float(x.shape[1]),
    "arange": lambda x: x + torch.arange(int(x.shape[1]))[:, None],
    "tensor": lambda x: x * torch.tensor([x.shape[1] * 1.0]),
    "NumPy's ceil": lambda x: F.pad(x, (0, 0, 0, int(np.ceil(x.shape[1] / 4) * 4 - x.shape[1]))),
    "NumPy's ceil as an integer": lambda x: F.pad(x, (0, (np.ceil(x.shape[1] / 4) * 2).astype(int))),
    "NumPy's floor": lambda x: x * np.floor(x.shape[1] / 3) + np.sqrt(x.shape[2] / 2),
    "in a submodule's size": lambda x: F.pad(x, (0, int(x.mean(0).shape[0]))),
}
BRANCHES: dict[str, tuple[Function, tuple[int, ...]]] = {
    "chunks": (_chunks, (13, 16)),
    "a window": (_window, (5, 20)),
    "a table": (_table, (6, 7)),
    "min of a tuple": (_smaller, (5,)),
}


def check(function: Function, rows: int, path: Path) -> None:
    """Converts with both sizes dynamic, and compares the file with PyTorch at other sizes."""
    x = torch.rand(2, rows, 4)
    axes = {"x": {0: "batch", 1: "rows"}}
    report = tmconvert.to_onnx(
        function, path, example_inputs=(x,), dynamic_shapes=axes, accept_range=function is _smaller
    )
    assert report.inputs[0]["shape"] == ["batch", "rows", 4], report.notes
    session = onnxruntime.InferenceSession(path)
    for sizes in ((2, rows), *OTHERS):
        x = torch.rand(*sizes, 4)
        (made,) = session.run(None, {"x": x.numpy()})
        np.testing.assert_allclose(made, function(x).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NUMBERS)
def test_plain_numbers_of_sizes(name: str, tmp_path: Path) -> None:
    check(NUMBERS[name], 6, tmp_path / "m.onnx")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows"), [(name, rows) for name, (_, sizes) in BRANCHES.items() for rows in sizes]
)
def test_branches_that_compute_the_same(name: str, rows: int, tmp_path: Path) -> None:
    check(BRANCHES[name][0], rows, tmp_path / "m.onnx")


@pytest.mark.parametrize("rows", [5, 20])
def test_branches_that_compute_something_else(rows: int, tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[1] > 8 else x * 3

    inputs = {"example_inputs": (torch.rand(2, rows, 4),), "dynamic_shapes": {"x": {1: "n"}}}
    inputs["freeze_control_flow"] = True
    with pytest.raises(UnsupportedError, match="n <= 8 only" if rows == 5 else "n >= 9 only") as caught:
        tmconvert.to_onnx(function, tmp_path / "m.onnx", **inputs)
    assert caught.value.code == "TM2030"


# branches on remainders and equal sizes that hold for the example: the rows, and the condition
CONDITIONS: dict[str, tuple[Function, int, str]] = {
    "even": (lambda x: x[:, ::2] if x.shape[1] % 2 == 0 else x, 6, "rows % 2 == 0"),
    "odd": (lambda x: x * 2 if x.shape[1] % 2 else x, 7, "rows % 2 != 0"),
    "a multiple": (lambda x: x if x.shape[1] % 8 == 0 else F.pad(x, (0, 0, 0, 1)), 8, "rows % 8 == 0"),
    "a multiple, by division": (
        lambda x: x * 2 if x.shape[1] // 4 * 4 == x.shape[1] else x,
        8,
        "rows % 4 == 0",
    ),
    "several": (lambda x: x * 2 if x.shape[1] % 2 == 0 and x.shape[1] % 3 == 0 else x, 6, "rows % 6 == 0"),
    "a large remainder": (lambda x: x * 2 if x.shape[1] % 4 >= 2 else x, 6, "rows % 4 >= 2"),
    "a multiple of a size": (lambda x: x * 2 if x.shape[1] % x.shape[0] == 0 else x, 6, "rows % batch == 0"),
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_that_hold_for_the_example_are_ranges(name: str, tmp_path: Path) -> None:
    function, rows, condition = CONDITIONS[name]
    options = {"example_inputs": (torch.rand(2, rows, 4),), "dynamic_shapes": {"x": {0: "batch", 1: "rows"}}}
    options["freeze_control_flow"], path = True, tmp_path / "m.onnx"
    with pytest.raises(UnsupportedError, match=f"valid for {condition} only") as caught:
        tmconvert.to_onnx(function, path, **options)
    assert caught.value.code == "TM2030"
    report = tmconvert.to_onnx(function, path, accept_range=True, **options)
    assert condition in report.ranges
    for factor in (1, 3, 5):
        x = torch.rand(2, factor * rows, 4)
        (made,) = onnxruntime.InferenceSession(path).run(None, {"x": x.numpy()})
        np.testing.assert_allclose(made, function(x).numpy(), rtol=1e-4, atol=1e-5)


def test_a_branch_that_fails_at_the_sizes_of_the_example(tmp_path: Path) -> None:
    """Only its own way is valid at each of the sizes: a guard, or the number of the example."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return x[:, :40].mean(1) if x.shape[1] >= 40 else x.sum(1)

    with pytest.raises(UnsupportedError, match="rows < 40") as caught:
        tmconvert.to_onnx(
            function,
            tmp_path / "m.onnx",
            example_inputs=(torch.rand(2, 5, 4),),
            dynamic_shapes={"x": {1: "rows"}},
            freeze_control_flow=True,
        )
    assert caught.value.code == "TM2030"


def test_int_of_an_integer_tensor_keeps_its_type(tmp_path: Path) -> None:
    x = torch.arange(12).reshape(1, 3, 4)
    tmconvert.to_onnx(
        lambda x: x * float(x.shape[1]),
        tmp_path / "m.onnx",
        example_inputs=(x,),
        dynamic_shapes={"x": {1: "n"}},
        fix={"n": 3},
    )
    (made,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": x.numpy()})
    assert made.dtype == np.float32


TABLE = torch.arange(50.0).reshape(1, 2, 5, 5).sin()
RESIZED: dict[str, Function] = {
    "bicubic": lambda x: F.interpolate(x, size=(x.shape[2] * 2 + 1, x.shape[3] // 2 + 3), mode="bicubic"),
    "bicubic, a table": lambda x: x + F.interpolate(TABLE, size=x.shape[2:], mode="bicubic"),
    "antialiased bicubic": lambda x: (
        x + F.interpolate(TABLE, size=x.shape[2:], mode="bicubic", antialias=True)
    ),
    "antialiased bilinear": lambda x: (
        x + F.interpolate(TABLE, size=x.shape[2:], mode="bilinear", antialias=True)
    ),
    "antialiased images": lambda x: F.interpolate(
        x, size=(5, x.shape[3] // 2), mode="bilinear", antialias=True
    ),
    "antialiased by a factor": lambda x: F.interpolate(x, scale_factor=0.7, mode="bicubic", antialias=True),
    "bicubic by a factor": lambda x: F.interpolate(x, scale_factor=1.3, mode="bicubic"),
    "bicubic with corners": lambda x: F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=True),
    "bilinear, a factor that changes few sizes": lambda x: F.interpolate(
        x, scale_factor=1.2, mode="bilinear"
    ),
    "bicubic by a quotient of sizes": lambda x: (
        x
        + F.interpolate(TABLE, scale_factor=((x.shape[2] + 0.1) / 5, (x.shape[3] + 0.1) / 5), mode="bicubic")
    ),
    "nearest by a quotient of sizes": lambda x: F.interpolate(x, scale_factor=32 / x.shape[2]),
    "edges": lambda x: F.pad(x, (1, 2, 3, 0), mode="replicate"),
    "Fourier transform": lambda x: torch.fft.irfft2(torch.fft.rfft2(x) * 0.5, s=x.shape[2:]),
    "Fourier transform, padded": lambda x: torch.fft.rfft(x, 2 * x.shape[3], norm="ortho").abs(),
    "inverse transform": lambda x: torch.fft.ifft(torch.fft.fft(x, 5, dim=2), norm="forward").real,
    "frequencies": lambda x: torch.fft.fftshift(x * torch.fft.fftfreq(x.shape[3], 0.5), dim=3),
    "pooling beyond the end": lambda x: F.avg_pool2d(x, 2, 2, ceil_mode=True),
    "padded pooling beyond the end": lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "pooling that counts elements": lambda x: F.avg_pool2d(
        x, 3, 2, 1, ceil_mode=True, count_include_pad=False
    ),
    "adaptive pooling": lambda x: F.adaptive_avg_pool2d(F.avg_pool2d(F.interpolate(x, scale_factor=6), 3), 2),
}


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("name", RESIZED)
def test_resizing_at_dynamic_sizes(name: str, target: str, tmp_path: Path) -> None:
    function, path = RESIZED[name], tmp_path / f"m.{target}"
    axes = {0: "b", 2: "h", 3: "w"}
    options: dict[str, Any] = {"io_layout": "source"} if target == "tflite" else {}
    report = getattr(tmconvert, f"to_{target}")(
        function,
        path,
        example_inputs=(torch.rand(2, 2, 6, 8),),
        dynamic_shapes={"x": axes},
        # PyTorch's own result is wrong at a width of 1; LiteRT has no float64, in which 49 * (32 / 49) is 31
        accept_range=name.startswith("antialiased") or "nearest" in name,
        **options,
    )
    assert report.inputs[0]["shape"] == ["b", 2, "h", "w"], report.notes
    runtime = runtime_for(target, path)
    assert runtime is not None
    for sizes in ((1, 2, 9, 7), (3, 2, 4, 21), (2, 2, 13, 4)):
        x = torch.rand(sizes)
        (made,) = runtime.run([path], {"x": x.numpy()}, [report.outputs[0]["name"]])
        np.testing.assert_allclose(made, function(x).numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_sampling_of_dynamic_images_in_tflite(mode: str, tmp_path: Path) -> None:
    grid = torch.rand(1, 3, 4, 2) * 1.8 - 0.9
    path = tmp_path / "m.tflite"
    report = tmconvert.to_tflite(
        lambda x: F.grid_sample(x, grid, mode=mode, padding_mode="border", align_corners=False),
        path,
        example_inputs=(torch.rand(1, 2, 6, 8),),
        dynamic_shapes={"x": {2: "h", 3: "w"}},
        io_layout="source",
    )
    assert report.inputs[0]["shape"] == [1, 2, "h", "w"], report.notes
    x, runtime = torch.rand(1, 2, 9, 5), runtime_for("tflite", path)
    assert runtime is not None
    (made,) = runtime.run([path], {"x": x.numpy()}, [report.outputs[0]["name"]])
    wanted = F.grid_sample(x, grid, mode=mode, padding_mode="border", align_corners=False)
    np.testing.assert_allclose(made, wanted.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_loop_over_chunks_is_valid_for_one_chunk(tmp_path: Path) -> None:
    """All small sizes make the same calls: the bound of the loop is what tells them from larger ones."""

    def chunks(x: torch.Tensor) -> torch.Tensor:
        padded = F.pad(x, (0, -x.shape[1] % 64))
        total = padded[:, :1] * 0
        for number in range(padded.shape[1] // 64):
            total = total + padded[:, number * 64 : number * 64 + 64].sum(1, keepdim=True) * (number + 1)
        assert isinstance(range(2), range)
        return total

    given = {"example_inputs": [torch.randn(2, 5)], "dynamic_shapes": {"x": {0: "batch", 1: "length"}}}
    with pytest.raises(UnsupportedError, match="valid for length <= 64 only") as caught:
        tmconvert.to_onnx(chunks, tmp_path / "model.onnx", **given)
    assert caught.value.code == "TM2030"
    report = tmconvert.to_onnx(chunks, tmp_path / "model.onnx", **given, accept_range=True)
    assert report.ranges == ["length <= 64"]


@pytest.mark.parametrize("threshold", [1e-7, 0.5])
def test_a_branch_on_a_quotient_of_sizes_is_refused(threshold: float, tmp_path: Path) -> None:
    """Quotients are kept with small denominators, for which 1e-7 is zero: no guard can be made of them."""
    with pytest.raises(UnsupportedError, match="a quotient of sizes decides which branch"):
        tmconvert.to_onnx(
            lambda x: x * 2 if x.shape[0] * x.shape[1] / 1e9 > threshold else x * 3,
            tmp_path / "m.onnx",
            example_inputs=(torch.rand(20, 30, 4),),
            dynamic_shapes={"x": {0: "b", 1: "n"}},
        )
    assert not (tmp_path / "m.onnx").exists()
