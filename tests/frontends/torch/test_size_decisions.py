"""Branches on open sizes: both sides are in the file, which computes the same as PyTorch on both."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import tmconvert
from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.control_flow.both_sides import BothSides
from tmconvert.frontends.torch.tracing.module_run import ModuleRun
from tmconvert.frontends.torch.tracing.recording.tape import Forced
from tmconvert.frontends.torch.tracing.sizes import validate_dynamic_shapes

ONE, TWO = (torch.nn.Linear(4, 4).requires_grad_(False) for _ in range(2))
TABLE = torch.randn(12, 4)


def sides(x: Tensor) -> Tensor:
    return (ONE(x) if x.shape[1] > 16 else TWO(x)).relu()


def early(x: Tensor) -> Tensor:
    if x.shape[1] < 5:
        return ONE(x)
    return TWO(x)[:, -5:]


def three_ways(x: Tensor) -> Tensor:
    n = x.shape[1]
    if n > 20:
        x = ONE(x)
    elif n > 10:
        x = TWO(x)
    else:
        x = x.cos()
    return x + 1


def nested(x: Tensor) -> Tensor:
    if x.shape[1] > 8:
        x = x[:, -8:]
        x = ONE(x) if x.shape[1] + x.shape[0] > 10 else x.sin()
    else:
        x = TWO(x)
    return x.softmax(1)


def even(x: Tensor) -> Tensor:
    n = x.shape[1]
    if n % 2:
        x, n = F.pad(x, (0, 0, 0, 1)), n + 1
    return x.reshape(x.shape[0], n // 2, 8) + torch.arange(n // 2)[None, :, None]


def halved(x: Tensor) -> Tensor:
    n = x.shape[1]
    if n > 4 and n % 2 == 0:
        x = x.reshape(x.shape[0], n // 2, 2, 4).mean(2)
    return ONE(x)


def short(x: Tensor) -> Tensor:
    n = x.shape[1]
    if n < 7:
        x = F.pad(x, (0, 0, 0, 7 - n))
    return ONE(x).unfold(1, 7, 1).sum(-1)


def positions(x: Tensor) -> Tensor:
    n = x.shape[1]
    if n > 12:
        table = F.interpolate(TABLE[None].transpose(1, 2), size=n, mode="linear").transpose(1, 2)
    else:
        table = TABLE[:n]
    return ONE(x + table)


def data_too(x: Tensor) -> Tensor:
    if x.shape[1] > 9:
        x = ONE(x)
    return x * 2 if x.sum() > 0 else TWO(x)


def middle(x: Tensor) -> Tensor:
    return x[:, :10].mean(1) if x.shape[1] >= 10 else x.sum(1)


def tall(x: Tensor) -> Tensor:
    if x.shape[1] > x.shape[2]:
        x = x.transpose(1, 2)
    return x.cumsum(2)


def ratio(x: Tensor) -> Tensor:
    return x * 2 if x.shape[1] / x.shape[2] > 1.5 else x.cos()


def landmarks(x: Tensor) -> Tensor:
    """A check that holds on each side, but not for both: as in Nystrom attention."""
    if x.shape[1] % 4 > 0:
        x = F.pad(x, (0, 0, 4 - x.shape[1] % 4, 0))
    length = math.ceil(x.shape[1] / 4)
    assert x.shape[1] % length == 0
    return x.reshape(x.shape[0], -1, length, 4).mean(2)


def square(x: Tensor) -> Tensor:
    return x.cos() if x.shape[1] == x.shape[2] else x * 2


def restored(x: Tensor) -> Tensor:
    """The padding of a U-Net's upsampled features to the size of what they join."""
    upper, padding = F.interpolate(F.max_pool1d(x.mT, 2), scale_factor=2.0), [0, 0]
    if x.shape[1] != upper.shape[2]:
        padding[1] = 1
    return x + F.pad(upper, padding, "replicate").mT


ROWS = [(n, 4) for n in (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 20, 21, 40)]
IMAGES = [(a, b) for a in (2, 6, 7, 11) for b in (2, 4, 5, 7)]
FUNCTIONS: list[tuple[Callable[[Tensor], Tensor], list[int]]] = [
    (sides, [6, 20]),
    (early, [6, 3]),
    (three_ways, [6, 15]),
    (nested, [6, 12]),
    (even, [6, 7]),
    (halved, [6, 7]),
    (short, [6, 9]),
    (positions, [6]),
    (data_too, [6]),
    (middle, [5]),
    (tall, [6]),
    (ratio, [6]),
    (restored, [6, 7]),
    (landmarks, [8]),
    (square, [6, 7]),
]


def compare(function: Callable[[Tensor], Tensor], path: Path, sizes: list[tuple[int, int]]) -> int:
    """Compares a file with PyTorch at sizes that the function takes, and returns at how many."""
    session, count = onnxruntime.InferenceSession(path), 0
    for number, size in enumerate(sizes):
        x = torch.randn(2, *size) + (-1) ** number
        try:
            wanted = function(x).numpy()
        except (RuntimeError, ValueError):
            continue
        (made,) = session.run(None, {"x": x.numpy()})
        np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5, err_msg=str(size))
        count += 1
    return count


@pytest.mark.parametrize(
    ("function", "rows"),
    [pytest.param(each, rows, id=f"{each.__name__}-{rows}") for each, all_ in FUNCTIONS for rows in all_],
)
def test_both_sides(function: Callable[[Tensor], Tensor], rows: int, tmp_path: Path) -> None:
    is_image = function in (tall, ratio, square)
    axes = {"x": {1: "h", 2: "w"} if is_image else {1: "t"}}
    path, x = tmp_path / "m.onnx", torch.randn(2, rows, 7 if is_image else 4)
    report = tmconvert.to_onnx(function, path, example_inputs=(x,), dynamic_shapes=axes)
    assert not report.ranges
    assert any(node.op_type == "If" for node in onnx.load(path).graph.node)
    sizes = IMAGES if is_image else ROWS
    assert compare(function, path, sizes) == len(sizes) - (function is restored)  # no pool of one row


def padded_three_times(x: Tensor) -> Tensor:
    for least in (3, 4, 5):
        if x.shape[1] < least:
            x = F.pad(x, (0, 0, 0, least - x.shape[1]))
        x = F.pad(x.mT, (least - 1, 0), "reflect").mT[:, : x.shape[1]]
    return x


def test_sizes_that_lead_elsewhere_are_not_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes of the batch do not lead to other sides, for one."""
    tried: list[tuple[tuple[int, ...], tuple[bool, ...]]] = []
    run = BothSides._run

    def counted(self: BothSides, inputs: Mapping[str, Tensor], forced: Forced) -> ModuleRun:
        tried.append((tuple(inputs["x"].shape), forced.first))
        return run(self, inputs, forced)

    monkeypatch.setattr(BothSides, "_run", counted)
    axes = {"x": {0: "b", 1: "t"}}
    path, example = tmp_path / "m.onnx", (torch.randn(2, 6, 4),)
    report = tmconvert.to_onnx(padded_three_times, path, example_inputs=example, dynamic_shapes=axes)
    assert not report.ranges
    assert compare(padded_three_times, path, ROWS) == len(ROWS)
    assert len(tried) < 1000  # 3,600 without


def test_a_side_that_raises_is_not_in_the_file(tmp_path: Path) -> None:
    def limited(x: Tensor) -> Tensor:
        if x.shape[1] > 9:
            raise ValueError("too long")
        return ONE(x)

    path = tmp_path / "m.onnx"
    axes = {"x": {1: "t"}}
    tmconvert.to_onnx(limited, path, example_inputs=(torch.randn(2, 6, 4),), dynamic_shapes=axes)
    assert all(node.op_type != "If" for node in onnx.load(path).graph.node)
    assert compare(limited, path, ROWS) == 8


def test_the_way_of_the_example_is_kept_on_request(tmp_path: Path) -> None:
    traced = tmconvert.trace(
        sides, torch.randn(2, 6, 4), dynamic_shapes={"x": {1: "t"}}, freeze_control_flow=True
    )
    with pytest.raises(UnsupportedError, match="valid for t <= 16 only") as caught:
        tmconvert.to_onnx(traced, tmp_path / "m.onnx")
    assert caught.value.code == "TM2030"


def other_structure(x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
    if x.shape[1] > 5:
        return x, x
    return x * 2


def other_type(x: Tensor) -> Tensor:
    y = x.sum(1)
    if x.shape[1] > 5:
        y = y.to(torch.int64)
    return y


REASONS = {
    other_structure: "the module returns another structure on each side",
    other_type: "the sides return different types: int64 [2, 4] and float32 [2, 4]",
}


@pytest.mark.parametrize("function", REASONS)
def test_a_range_has_the_reason_and_the_line_of_its_branch(
    function: Callable[[Tensor], Tensor], tmp_path: Path
) -> None:
    traced = tmconvert.trace(function, torch.randn(2, 6, 4), dynamic_shapes={"x": {1: "t"}})
    with pytest.raises(UnsupportedError, match=r"valid for t >= 6 only") as caught:
        tmconvert.to_onnx(traced, tmp_path / "m.onnx")
    assert f"the other side cannot be written: {__file__}:" in str(caught.value)
    assert REASONS[function] in str(caught.value)


def test_tensors_of_other_sizes_are_not_equal(tmp_path: Path) -> None:
    def forward(x: Tensor, y: Tensor) -> Tensor:
        return x.mean(-1) if torch.equal(x, y) else (x @ y.T).mean(-1)

    axes = {"x": {0: "n"}, "y": {0: "m"}}
    example = torch.randn(6, 4), torch.randn(5, 4)
    path = tmp_path / "m.onnx"
    tmconvert.to_onnx(tmconvert.trace(forward, *example, dynamic_shapes=axes), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = torch.randn(7, 4)
    for y in (x, torch.randn(7, 4), torch.randn(3, 4)):
        (made,) = session.run(None, {"x": x.numpy(), "y": y.numpy()})
        np.testing.assert_allclose(made, forward(x, y).numpy(), rtol=1e-4, atol=1e-5)


def test_a_branch_whose_gradient_is_computed_says_why_it_is_refused() -> None:
    def forward(x: Tensor) -> Tensor:
        x = x.requires_grad_()
        y = x**2 if (x > 0).all() else x**3
        return torch.autograd.grad(y.sum(), x)[0]

    with pytest.raises(UnsupportedError, match="gradients with respect to its inputs"):
        tmconvert.trace(forward, torch.randn(3, 4))


def test_a_size_at_which_the_module_cannot_be_traced_is_not_passed_over() -> None:
    def forward(x: Tensor, y: Tensor) -> Tensor:
        if x.shape == y.shape and torch.equal(x, y):
            return x * 2  # of another shape, so both sides cannot be in one file
        return x.sum(0) + y.sum(0)

    with pytest.raises(UnsupportedError, match=r"Python branches on it \(n = 5\)") as caught:
        tmconvert.trace(
            forward, torch.randn(4, 3), torch.randn(5, 3), dynamic_shapes={"x": {0: "n"}, "y": {0: "m"}}
        )
    assert caught.value.code == "TM2031"


def test_one_run_has_the_further_sizes_of_all_symbols() -> None:
    shapes = list[tuple[int, ...]]()

    def attention(x: Tensor) -> Tensor:
        shapes.append(tuple(map(int, x.shape)))
        scale = 1.0 if x.shape[2] == 4 else 2.0  # its numbers are tried
        return (x @ x.transpose(1, 2) * scale).softmax(-1) @ x

    example = torch.randn(2, 7, 4)
    tmconvert.trace(attention, example, dynamic_shapes={"x": {0: "batch", 1: "time"}})
    both = [each for each in shapes if each[0] != 2 and each[1] != 7]
    assert len(both) >= 6 and len({*shapes} - {*both}) <= 9


@pytest.mark.parametrize("axis", [0, 1])
def test_a_size_that_is_decided_without_a_comparison_is_found_beside_others(axis: int) -> None:
    names = {7: "seven"}

    def function(x: Tensor) -> Tensor:
        return x.cos() if names.get(hash(x.shape[axis])) else x.sin()

    sizes = {"x": {0: "rows", 1: "columns"}}
    with pytest.raises(UnsupportedError, match=r"something else|another branch"):
        tmconvert.to_onnx(tmconvert.trace(function, torch.randn(3, 4), dynamic_shapes=sizes), "unused.onnx")


def test_sizes_that_would_need_much_memory_are_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """The code names 10000, at which the product would have 10^8 elements."""
    tried = list[int]()
    run = validate_dynamic_shapes._at_other_sizes

    def note(symbol: Any, rerun: Any, sizes: Any, result: Any) -> str:
        tried.extend(sizes)
        return run(symbol, rerun, sizes, result)

    monkeypatch.setattr(validate_dynamic_shapes, "_at_other_sizes", note)
    tmconvert.trace(Scores(), torch.randn(8, 4), dynamic_shapes={"x": {0: "n"}})
    assert tried and max(tried) < 3000


class Scores(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = math.log(10000) if x.shape[0] > 1 else 1.0
        return (x @ x.T).softmax(1) @ x * scale


class Positions(torch.nn.Module):
    """A table of positions, which grows."""

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n > len(TABLE):
            return (torch.arange(n)[:, None] * torch.ones(4)).cos()
        return TABLE.index_select(0, torch.arange(n))


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.positions = Positions()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.positions(x)
        return F.scaled_dot_product_attention(x, x, x, is_causal=x.shape[1] > 1 and self.training)


def test_a_comparison_without_effect_after_a_decision(tmp_path: Path) -> None:
    """At a size of 1 the sides are joined after the comparison, and compute the same."""
    net, sizes = Attention().eval(), {"x": {0: "b", 1: "n"}}
    report = tmconvert.to_onnx(
        net, tmp_path / "net.onnx", example_inputs=[torch.randn(2, 5, 4)], dynamic_shapes=sizes
    )
    assert not report.notes
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"))
    for n in (1, 12, 13, 20):
        x = torch.randn(3, n, 4)
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], net(x).numpy(), atol=1e-5)


def unwritten(x: Tensor) -> Tensor:
    n = x.shape[1]
    return x.cos() * len(f"{int(str(n), 16):b}") if n > 16 else x.sin()


@pytest.mark.parametrize(("positions", "is_written"), [(None, False), (16, True), (17, False)])
def test_a_range_of_all_positions_that_a_model_has(
    positions: int | None, is_written: bool, tmp_path: Path
) -> None:
    traced = tmconvert.trace(unwritten, torch.randn(2, 5, 4), dynamic_shapes={"x": {0: "b", 1: "n"}})
    traced.positions = positions
    if is_written:
        report = tmconvert.to_onnx(traced, tmp_path / "net.onnx")
        assert report.notes == ["the file is valid for these sizes: n <= 16"]
        return
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.to_onnx(traced, tmp_path / "net.onnx")
    assert caught.value.code == "TM2030"
