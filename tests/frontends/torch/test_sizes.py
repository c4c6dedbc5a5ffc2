"""Sizes that stay open, and those that the module fixes."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tmconvert
from tmconvert.api import check
from tmconvert.errors import UnsupportedError, UsageError

from .harness import agrees


def exported(function: Any, inputs: tuple[torch.Tensor, ...], shapes: Any, path: Path) -> Any:
    """The report, after the file has been compared with torch at the sizes of three more inputs."""
    traced = tmconvert.trace(function, *inputs, dynamic_shapes=shapes)
    return tmconvert.to_onnx(traced, path / "model.onnx")


OPEN = [
    (lambda x: x.reshape(x.shape[0] * x.shape[1], -1) * x.shape[1], (2, 3, 4), {0: "b", 1: "t"}),
    (lambda x: x.view(x.size(0), -1).sum(1, keepdim=True).expand(-1, x.size(1)), (2, 3, 4), {0: "b"}),
    (lambda x: x + torch.arange(x.shape[1])[:, None], (2, 3, 4), {0: "b", 1: "t"}),
    (lambda x: x + torch.linspace(0.5, x.shape[1] - 0.5, x.shape[1])[:, None], (2, 3, 4), {1: "t"}),
    (lambda x: x + torch.linspace(x.shape[0] / 3, -x.shape[1], x.shape[1])[:, None], (2, 3, 4), {0: "b"}),
    (lambda x: x[:, : x.shape[1] // 2], (2, 6), {0: "b", 1: "t"}),
    (lambda x: F.pad(x, (0, x.shape[1] - 1)), (2, 6), {1: "t"}),
    (lambda x: F.pad(x, (1, -(-x.shape[1] // 4) * 4 - x.shape[1]), mode="replicate"), (2, 8), {1: "t"}),
    (lambda x: F.pad(x, (7 - x.shape[1], -1), value=0.5), (2, 6), {1: "t"}),
    (lambda x: F.interpolate(x, scale_factor=2), (1, 2, 4, 6), {0: "b", 2: "h", 3: "w"}),
    (lambda x: x * F.adaptive_max_pool2d(x, 1), (1, 2, 4, 6), {2: "h", 3: "w"}),
    (lambda x: x * F.adaptive_avg_pool2d(x, (None, 1)), (1, 2, 4, 6), {0: "b", 2: "h", 3: "w"}),
    (
        lambda x: F.interpolate(x, size=(x.shape[2] * 2, math.ceil(x.shape[3] / 2)), mode="bilinear"),
        (1, 2, 4, 6),
        {2: "h", 3: "w"},
    ),
    (lambda x: torch.cat([x, x.new_zeros(x.shape[0], 2)], 1), (2, 3), {0: "b", 1: "t"}),
    (lambda x: torch.triu(torch.ones(x.shape[1], x.shape[1]), 1) * x.sum(), (2, 4), {1: "t"}),
    (lambda x: x.unflatten(1, (-1, 2)).mean(1) / math.sqrt(4), (2, 6), {0: "b"}),
    (lambda x: F.softmax(x @ x.transpose(1, 2) / x.shape[-1], -1), (2, 3, 4), {0: "b", 1: "t"}),
    (lambda x: torch.stack([x, torch.full_like(x, 2.0)]).flatten(0, 1), (1, 3), {0: "b"}),
    (lambda x: torch.linalg.inv(x @ x.mT / 9 + torch.eye(5)), (2, 5, 3), {0: "b"}),
    (lambda x: torch.linalg.slogdet(x.mT @ x / 9 + torch.eye(5)), (3, 5), {0: "n"}),
    (
        lambda x: torch.linalg.solve(x[:, None] * x / 99 + torch.eye(x.shape[0]), x),
        (6,),
        {0: "rows"},
    ),
]


@pytest.mark.parametrize(("function", "shape", "axes"), OPEN)
def test_sizes_that_stay_open(function: Any, shape: tuple[int, ...], axes: Any, tmp_path: Path) -> None:
    inputs = (torch.randn(shape),)
    report = exported(function, inputs, {"x": axes}, tmp_path)
    assert not [note for note in report.notes if "fixed" in note], report.notes
    for factor, more in ((1, 0), (2, 0), (3, 2)):
        sizes = [extent * factor + more * 2 if axis in axes else extent for axis, extent in enumerate(shape)]
        agrees(function, tmp_path, torch.randn(sizes))


def test_a_size_of_one_in_the_example_stays_open(tmp_path: Path) -> None:
    inputs = (torch.randn(1, 3), torch.randn(1, 3))
    report = exported(lambda x, y: x * y, inputs, {"x": {0: "batch"}, "y": {0: "batch"}}, tmp_path)
    assert report.outputs[0]["shape"] == ["batch", 3]
    for size in (1, 2, 5):
        agrees(lambda x, y: x * y, tmp_path, torch.randn(size, 3), torch.randn(size, 3))


def test_a_size_of_one_as_a_fraction_stays_open(tmp_path: Path) -> None:
    report = exported(lambda x: x / float(x.shape[0]), (torch.randn(1, 4),), {"x": {0: "n"}}, tmp_path)
    assert report.inputs[0]["shape"] == ["n", 4], report.notes
    for size in (1, 2, 5):
        agrees(lambda x: x / float(x.shape[0]), tmp_path, torch.randn(size, 4))


AT_ONE = [
    lambda x: x * 2 if x.shape[0] == 1 else x * 3,
    lambda x: x.squeeze(),
    lambda x: x.squeeze(0),
    lambda x: x.clone().squeeze_(),
    lambda x: torch.split(x, 1, 0)[-1],
]


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("function", AT_ONE)
def test_what_is_done_at_the_examples_size_of_one_fixes_it(
    function: Any, target: str, tmp_path: Path
) -> None:
    """A size at which the model does something else is never left open, and never fixed at another number."""
    convert = functools.partial(
        getattr(tmconvert, f"to_{target}"),
        function,
        tmp_path / f"model.{target}",
        example_inputs=(torch.randn(1, 4),),
        dynamic_shapes={"x": {0: "n"}},
    )
    with pytest.raises(UnsupportedError, match="the size n cannot stay dynamic") as caught:
        convert()
    assert "--fix n=1 " in caught.value.notes[-1][1]
    report = convert(fix={"n": 1})
    assert report.verified
    assert report.inputs[0]["shape"] == [1, 4]


@pytest.mark.parametrize(
    "function", [lambda x: x / float(x.shape[0]), lambda x: x * int(x.shape[0])], ids=["float", "int"]
)
def test_numbers_made_of_a_size_of_one_stay_open(function: Any, tmp_path: Path) -> None:
    report = exported(function, (torch.randn(1, 4),), {"x": {0: "n"}}, tmp_path)
    assert report.inputs[0]["shape"] == ["n", 4]
    for size in (1, 2, 5):
        agrees(function, tmp_path, torch.randn(size, 4))


@pytest.mark.parametrize("function", [lambda x: x[[-1], None, -1:], lambda x: x[[0], -1]])
def test_an_index_of_a_list_keeps_the_size_open(function: Any, tmp_path: Path) -> None:
    report = exported(function, (torch.randn(1, 4),), {"x": {0: "n"}}, tmp_path)
    assert report.inputs[0]["shape"] == ["n", 4], report.notes
    for size in (1, 2, 5):
        agrees(function, tmp_path, torch.randn(size, 4))


def test_a_check_of_what_is_made_of_parameters_keeps_sizes_open() -> None:
    class Factored(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(4))

        def forward(self, x: torch.Tensor) -> Any:
            scale = self.scale.exp()
            factor, info = torch.linalg.cholesky_ex(
                torch.eye(4) * self.scale[:1].exp().expand(scale.shape[0])
            )
            return x.sum() * (scale if torch.any(info) else factor)

    sizes = {"x": {0: "n"}}
    traced = tmconvert.trace(Factored().eval(), torch.randn(5), dynamic_shapes=sizes)
    assert traced.dynamic_shapes == sizes


def test_comparisons_without_effect_are_no_guards(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x * {True: 2.0}.get(x.shape[0] == 1, 2.0)

    report = exported(function, (torch.randn(1, 3),), {"x": {0: "n"}}, tmp_path)
    assert report.inputs[0]["shape"] == ["n", 3] and report.notes == []
    for size in (1, 2, 5):
        agrees(function, tmp_path, torch.randn(size, 3))


def test_verification_at_other_sizes_asks_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference interpreter, which is slow for large models, runs at the example's sizes alone."""
    from tmconvert.verification.reference import Reference

    traced = tmconvert.trace(nn.Linear(4, 2), torch.randn(1, 4), dynamic_shapes={"input": {0: "n"}})

    whole = Reference.run

    def guarded(self: Reference, inputs: Any, *rest: Any, **options: Any) -> Any:
        assert inputs[0].shape == (1, 4), "NumPy was asked"
        return whole(self, inputs, *rest, **options)

    monkeypatch.setattr(Reference, "run", guarded)
    assert tmconvert.to_onnx(traced, tmp_path / "model.onnx").verified


def test_a_module_that_changed_since_is_not_asked(tmp_path: Path) -> None:
    class Growing(nn.Module):
        scale = 1.0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale

    module = Growing()
    traced = tmconvert.trace(module, torch.randn(2, 4), dynamic_shapes={"x": {0: "n"}})
    module.scale = 2.0
    assert tmconvert.to_onnx(traced, tmp_path / "model.onnx").inputs[0]["shape"] == ["n", 4]


# ---- sizes that were not left open


class Steps(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(x.shape[2] // 16):
            x = x + 1
        return x.mean((2, 3))


@pytest.mark.parametrize("is_saved", [False, True])
def test_an_axis_that_was_not_left_open_keeps_its_size(is_saved: bool, tmp_path: Path) -> None:
    traced = tmconvert.trace(Steps(), torch.zeros(1, 3, 32, 32), dynamic_shapes={"x": {0: "batch"}})
    if is_saved:
        traced.save(tmp_path / "m.tm")
        traced = tmconvert.load(tmp_path / "m.tm")
    wrong = {"input_shapes": {"x": (1, 3, 64, 64)}}
    written = tmconvert.to_onnx(traced, tmp_path / "m.onnx").paths[0]
    calls: list[Any] = [
        lambda: tmconvert.to_onnx(traced, tmp_path / "n.onnx", **wrong),
        lambda: tmconvert.to_tflite(traced, tmp_path / "n.tflite", **wrong),
        lambda: tmconvert.verify(traced, written, **wrong),
        lambda: check(traced, "onnx", **wrong),
        lambda: traced(np.zeros((1, 3, 64, 64), np.float32)),
    ]
    for call in calls:
        with pytest.raises(UsageError, match=r"axis 2 of x is 32 in the trace") as caught:
            call()
        assert caught.value.code == "TM6014"
    assert traced(np.zeros((5, 3, 32, 32), np.float32)).shape == (5, 3)
    report = tmconvert.to_onnx(traced, tmp_path / "n.onnx", input_shapes={"x": (4, 3, 32, 32)})
    assert report.inputs[0]["shape"] == [4, 3, 32, 32]


def test_a_size_by_input_shape_is_that_of_all_inputs_with_its_name(tmp_path: Path) -> None:
    shapes = {"x": {0: "n"}, "y": {0: "n"}}
    traced = tmconvert.trace(lambda x, y: x + y, torch.randn(2, 3), torch.randn(2, 3), dynamic_shapes=shapes)
    report = tmconvert.to_onnx(traced, tmp_path / "m.onnx", input_shapes={"x": (4, 3)})
    assert [each["shape"] for each in report.inputs] == [[4, 3], [4, 3]]
    with pytest.raises(UsageError, match="n is 4 as axis 0 of x, but 5 as axis 0 of y"):
        tmconvert.to_onnx(traced, tmp_path / "m.onnx", input_shapes={"x": (4, 3), "y": (5, 3)})
    with pytest.raises(UsageError, match="n is 4 as axis 0 of x, but 5"):
        traced(np.zeros((4, 3), np.float32), np.zeros((5, 3), np.float32))


def last_rows_written(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[-3:] = x.mean()
    return x


def all_but_the_last_written(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    x[:-3, :1] += 1
    return x


CLAMPED = [
    (lambda x: x[:10].sum(0), 5),
    (lambda x: x[-3:] * 2, 2),
    (lambda x: x[2:-1], 2),
    (lambda x: x[-2:], 1),
    (lambda x: x[:10:2], 5),
    (last_rows_written, 2),
    (all_but_the_last_written, 3),
]


@pytest.mark.parametrize(("function", "rows"), CLAMPED)
def test_slices_that_are_clamped_are_exact_at_every_size(function: Any, rows: int, tmp_path: Path) -> None:
    for opset in (11, 17):
        traced = tmconvert.trace(function, torch.randn(rows, 4), dynamic_shapes={"x": {0: "n"}})
        report = tmconvert.to_onnx(traced, tmp_path / "model.onnx", opset=opset)
        assert report.inputs[0]["shape"] == ["n", 4] and report.ranges == [], report.notes
        for size in (1, 2, 3, 4, 9, 12, 21):
            agrees(function, tmp_path, torch.rand(size, 4) + 1)


def lost(function: Any, shape: tuple[int, ...], axes: Any) -> str:
    """The message of the error for a size that cannot stay dynamic."""
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.trace(function, torch.randn(shape), dynamic_shapes={"x": axes})
    assert caught.value.code == "TM2031"
    return caught.value.message


def loops(x: torch.Tensor) -> torch.Tensor:
    for step in range(x.shape[1]):
        x = x + math.gamma(step + 1)
    return x


def picks(x: torch.Tensor) -> torch.Tensor:
    return x * {4: 2, 8: 3}.get(int(x.shape[1]), 5)


@pytest.mark.parametrize("function", [loops, picks])
def test_what_python_makes_a_number_of_is_fixed_with_the_line(function: Any) -> None:
    message = lost(function, (2, 4), {0: "b", 1: "t"})
    line = function.__code__.co_firstlineno
    assert "the size t cannot stay dynamic" in message
    assert any(f"{__file__}:{line + more}" in message for more in (1, 2)), message


def test_a_module_that_takes_one_size_only() -> None:
    linear = nn.Linear(4, 2)
    message = lost(lambda x: linear(x), (2, 4), {0: "b", 1: "t"})
    assert "the size t cannot stay dynamic: the module fails at other sizes" in message


def larger_ways(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] > 3 else x * 3


def test_ways_taken_by_size_are_errors_unless_the_range_is_accepted(tmp_path: Path) -> None:
    traced = tmconvert.trace(
        larger_ways, torch.randn(7, 2), dynamic_shapes={"x": {0: "b"}}, freeze_control_flow=True
    )
    with pytest.raises(UnsupportedError, match=r"valid for b >= 4 only: .* at b = 3") as caught:
        tmconvert.to_onnx(traced, tmp_path / "model.onnx")
    assert caught.value.code == "TM2030"
    line = larger_ways.__code__.co_firstlineno + 1
    assert caught.value.source is not None and caught.value.source.line == line
    assert "--accept-range" in str(caught.value)
    assert not (tmp_path / "model.onnx").exists()
    report = tmconvert.to_onnx(traced, tmp_path / "model.onnx", accept_range=True)
    assert report.notes == ["the file is valid for these sizes: b >= 4"]
    assert report.ranges == report.to_json()["ranges"] == ["b >= 4"]
    entries = {each.key: each.value for each in onnx.load(tmp_path / "model.onnx").metadata_props}
    assert json.loads(entries["tmconvert.size_ranges"]) == ["b >= 4"]
    assert tmconvert.verify(traced, tmp_path / "model.onnx").max_error < 1e-5


@pytest.mark.parametrize(
    ("is_special", "words"),
    [
        (lambda x: x.shape[0] == 7, "n != 7"),
        (lambda x: x.shape[0] == 7.0, "n != 7"),
        (lambda x: not 7 - x.shape[0], "n != 7"),
        (lambda x: x.shape == (7, 4), "n != 7"),
        (lambda x: x.shape[0] * x.shape[0] == 49, r"n\*n != 49"),
    ],
)
@pytest.mark.parametrize("rows", [3, 5])
def test_one_size_at_which_the_model_does_something_else_is_a_range(
    is_special: Callable[[torch.Tensor], bool], words: str, rows: int, tmp_path: Path
) -> None:
    traced = tmconvert.trace(
        lambda x: x * 2 if is_special(x) else x * 3, torch.randn(rows, 4), dynamic_shapes={"x": {0: "n"}}
    )
    with pytest.raises(UnsupportedError, match=f"valid for {words} only: .* at n = ") as caught:
        tmconvert.to_onnx(traced, tmp_path / "model.onnx")
    assert caught.value.code == "TM2030"


def test_equal_sizes_at_which_the_model_does_the_same_or_fails_are_no_range(tmp_path: Path) -> None:
    seen: list[int] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 9:
            raise ValueError("nine rows")
        if x.shape[0] == 7:
            seen.append(x.shape[0])
        return x + 1

    report = exported(function, (torch.randn(3, 4),), {"x": {0: "n"}}, tmp_path)
    assert report.inputs[0]["shape"] == ["n", 4]
    assert not report.ranges
    agrees(function, tmp_path, torch.randn(7, 4))


def test_ranges_whose_end_is_a_fraction_of_a_size_keep_it_open(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + torch.linspace(0, x.shape[0] / 2, 4)

    report = exported(function, (torch.randn(3, 4),), {"x": {0: "n"}}, tmp_path)
    assert report.inputs[0]["shape"] == ["n", 4] and not report.ranges
    for rows in (1, 2, 4, 7, 20):
        agrees(function, tmp_path, torch.randn(rows, 4))


def test_fractions_of_sizes_are_refused_by_name(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + torch.full((4,), x.shape[0] * 0.5 + 1)

    traced = tmconvert.trace(function, torch.randn(3, 4), dynamic_shapes={"x": {0: "n"}})
    with pytest.raises(UnsupportedError, match="a fraction of a size is used as a number"):
        tmconvert.to_onnx(traced, tmp_path / "model.onnx")


EMPTY_SLICES = [
    lambda x: x[2:].mean(),
    lambda x: x[2:].mean(0),
    lambda x: x[1:].mean(0, keepdim=True),
    lambda x: F.mse_loss(x[2:], x[:-2]),
    lambda x: (x[2:] > 0).any(),
    lambda x: (x[1:] > 0).any(0),
    lambda x: (x[2:] > 0).all(),
    lambda x: x[3:].roll(1, 0),
    lambda x: x[3:].roll(1),
    lambda x: x.var(0, correction=2),
    lambda x: x.std(correction=6),
]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom:UserWarning")
@pytest.mark.parametrize("function", EMPTY_SLICES)
@pytest.mark.parametrize("rows", [1, 3])
def test_slices_that_are_empty_at_some_sizes(function: Any, rows: int, tmp_path: Path) -> None:
    report = exported(function, (torch.randn(rows, 4),), {"x": {0: "n"}}, tmp_path)
    assert report.inputs[0]["shape"] == ["n", 4]
    for size in (1, 2, 3, 4, 5, 9):
        agrees(function, tmp_path, torch.randn(size, 4))


def test_a_transposed_matrix_times_a_vector(tmp_path: Path) -> None:
    for function in (
        lambda x: x.T.mv(x[:, 0]),
        lambda x: x[None].mT @ x[:, 1],
        lambda x: x.T @ torch.ones(5),
    ):
        exported(function, (torch.randn(5, 4),), None, tmp_path)
        agrees(function, tmp_path, torch.randn(5, 4))


def test_a_range_in_which_the_model_itself_fails_needs_no_consent(tmp_path: Path) -> None:
    table = nn.Embedding(9, 4)

    def function(ids: torch.Tensor) -> torch.Tensor:
        if ids.shape[1] > 9:
            raise ValueError("too long")
        return table(ids) + table.weight[: ids.shape[1]]

    report = exported(function, (torch.randint(0, 9, (2, 5)),), {"ids": {1: "seq"}}, tmp_path)
    assert report.inputs[0]["shape"] == [2, "seq"]
    assert report.ranges == ["seq <= 9"]
    for size in (1, 2, 9):
        agrees(function, tmp_path, torch.randint(0, 9, (2, size)))


def test_other_sizes_need_to_be_asked_for_when_tracing(tmp_path: Path) -> None:
    traced = tmconvert.trace(nn.Linear(4, 2), torch.randn(2, 4))
    with pytest.raises(UsageError, match="which did not make it dynamic"):
        tmconvert.to_onnx(traced, tmp_path / "m.onnx", dynamic_shapes={"input": {0: "b"}})


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"y": {0: "b"}}, "has no input 'y'"),
        ({"x": {2: "b"}}, "has no axis 2"),
        ({"x": {0: "s", 1: "s"}}, "s is 2 as axis 0 of x, but 3 as axis 1 of x"),
    ],
)
def test_sizes_that_do_not_fit(shapes: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        tmconvert.trace(lambda x: x, torch.randn(2, 3), dynamic_shapes=shapes)


def test_the_container_keeps_open_sizes(tmp_path: Path) -> None:
    traced = tmconvert.trace(lambda x: x * 2, torch.randn(2, 3), dynamic_shapes={"x": {0: "b"}})
    traced.save(tmp_path / "m.tm")
    loaded = tmconvert.load(tmp_path / "m.tm")
    assert loaded.dynamic_shapes == {"x": {0: "b"}}
    assert tmconvert.to_onnx(loaded, tmp_path / "m.onnx").outputs[0]["shape"] == ["b", 3]
    assert np.array_equal(loaded.example.inputs[0], traced.example.inputs[0])


@pytest.mark.slow
def test_padding_to_a_large_multiple_leaves_all_sizes_open(tmp_path: Path) -> None:
    """Reflected padding fails at most sizes that are tried, and the example itself is a multiple."""

    def function(x: torch.Tensor) -> torch.Tensor:
        height, width = x.shape[2:]
        below, right = (64 - height % 64) % 64, (64 - width % 64) % 64
        if below or right:
            x = F.pad(x, (0, right, 0, below), "reflect")
        tiles = x.reshape(1, 3, x.shape[2] // 64, 64, x.shape[3] // 64, 64)
        return (tiles * tiles.amax((3, 5), keepdim=True)).reshape(x.shape)[:, :, :height, :width]

    traced = tmconvert.trace(function, torch.randn(1, 3, 64, 64), dynamic_shapes={"x": {2: "h", 3: "w"}})
    report = tmconvert.to_onnx(traced, tmp_path / "model.onnx", accept_range=True)
    assert report.inputs[0]["shape"] == [1, 3, "h", "w"]
    assert not any("multiple" in note for note in report.notes)
    for sizes in ((64, 64), (65, 128), (100, 70), (63, 190)):
        agrees(function, tmp_path, torch.randn(1, 3, *sizes))


def test_a_branch_on_odd_sizes_keeps_multiples_open(tmp_path: Path) -> None:
    """A U-Net resizes to the size of its skip connection where halving does not give it back."""

    def resized(x: torch.Tensor) -> torch.Tensor:
        half = torch.nn.functional.avg_pool2d(x, 2)
        if x.shape[-1] % 2:
            return torch.nn.functional.interpolate(half, size=x.shape[-2:], mode="nearest") - x
        return torch.nn.functional.interpolate(half, scale_factor=2.0, mode="nearest") + x

    traced = tmconvert.trace(
        resized, torch.randn(1, 2, 4, 8), dynamic_shapes={"x": {3: "width"}}, freeze_control_flow=True
    )
    with pytest.raises(UnsupportedError, match="valid for width % 2 == 0 only"):
        tmconvert.to_onnx(traced, tmp_path / "model.onnx")
    report = tmconvert.to_onnx(traced, tmp_path / "model.onnx", accept_range=True)
    assert report.inputs[0]["shape"] == [1, 2, 4, "width"]
    (note,) = [note for note in report.notes if "multiple of 2" in note]
    place = r"\S*test_sizes\.py:\d+, in \S*resized \(tm\.assume\)"
    assert re.fullmatch(rf"width is a multiple of 2: {place} needs equal sizes", note)
    for width in (2, 6, 34):
        agrees(resized, tmp_path, torch.randn(1, 2, 4, width))


def test_global_pooling_of_what_may_be_one_element(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, 2, 1), torch.nn.AdaptiveAvgPool2d(1)).eval()
    axes = {2: "height", 3: "width"}
    report = exported(model, (torch.randn(1, 3, 32, 32),), {"input": axes}, tmp_path)
    assert report.inputs[0]["shape"] == [1, 3, "height", "width"], report.notes
    assert not report.notes
    for size in (1, 2, 33):
        agrees(model, tmp_path, torch.randn(1, 3, size, size + 1))


@pytest.mark.slow
def test_a_window_in_the_middle_of_a_table_keeps_both_sizes_open(tmp_path: Path) -> None:
    """Positions of Stable Diffusion 3: cut out of a table, and right where the image is not beyond it."""
    table = torch.randn(12, 12, 3)

    def positioned(x: torch.Tensor) -> torch.Tensor:
        height, width = x.shape[-2] // 2, x.shape[-1] // 2
        top, left = (12 - height) // 2, (12 - width) // 2
        window = table[top : top + height, left : left + width].reshape(1, -1, 3)
        return F.avg_pool2d(x, 2).flatten(2).transpose(1, 2) + window

    traced = tmconvert.trace(positioned, torch.randn(2, 3, 8, 10), dynamic_shapes={"x": {2: "h", 3: "w"}})
    report = tmconvert.to_onnx(traced, tmp_path / "model.onnx", accept_range=True)
    assert report.inputs[0]["shape"] == [2, 3, "h", "w"]
    assert any("h <= 25, w <= 25" in note for note in report.notes)
    for size in ((24, 6), (4, 24), (14, 18)):
        agrees(positioned, tmp_path, torch.randn(2, 3, *size))


@pytest.mark.parametrize("patch", [1, 2, 6])
def test_rows_of_tables_per_patch_keep_both_sizes_open(patch: int, tmp_path: Path) -> None:
    """Rotary positions of Wan: PyTorch, too, has no more positions than rows in the table."""
    tables = torch.randn(8, 7).split([4, 3], dim=1)

    def positioned(x: torch.Tensor) -> torch.Tensor:
        height, width = x.shape[2] // patch, x.shape[3] // patch
        rows = tables[0][:height].view(height, 1, -1).expand(height, width, -1)
        columns = tables[1][:width].view(1, width, -1).expand(height, width, -1)
        positions = torch.cat([rows, columns], dim=-1).reshape(1, height * width, -1)
        return F.avg_pool2d(x, patch).flatten(2).transpose(1, 2) * positions

    example = torch.randn(2, 7, 3 * patch, 4 * patch)
    report = exported(positioned, (example,), {"x": {2: "height", 3: "width"}}, tmp_path)
    assert report.inputs[0]["shape"] == [2, 7, "height", "width"], report.notes
    most = 9 * patch - 1
    assert any(f"height <= {most}" in each and f"width <= {most}" in each for each in report.notes)
    for size in ((8, 2), (2, 8), (5, 3)):
        agrees(positioned, tmp_path, torch.randn(2, 7, *(patch * each for each in size)))
