"""Operators of later opsets: used from their opset on, where they compute the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch

import tmconvert
from tests.opsets import newest_runnable

Tensor = torch.Tensor


class Called(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def operators(
    function: Callable[..., Any], inputs: tuple[Tensor, ...], opset: int, folder: Path, **options: Any
) -> list[str]:
    """Converts and verifies a function; returns the operators of the file."""
    if opset > newest_runnable():
        pytest.skip(f"the runtime does not take opset {opset}")
    path = folder / "model.onnx"
    module = Called(function).eval()
    tmconvert.to_onnx(module, path, opset=opset, example_inputs=inputs, **options)
    return [node.op_type for node in onnx.load(path).graph.node]


def rms_norm(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def weighted(x: Tensor) -> Tensor:
    return torch.linspace(0.5, 2, 8) * rms_norm(x)


def grid(corners: bool) -> Callable[[Tensor], Tensor]:
    return lambda theta: torch.nn.functional.affine_grid(theta, [2, 3, 4, 5], align_corners=corners)


X, THETA = torch.randn(2, 3, 8), torch.randn(2, 2, 3)


@pytest.mark.parametrize(
    ("function", "x", "since", "expected"),
    [
        (rms_norm, X, 23, ["RMSNormalization"]),
        (weighted, X, 23, ["RMSNormalization"]),
        (grid(True), THETA, 20, ["AffineGrid"]),
        (grid(False), THETA, 20, ["AffineGrid"]),
        (lambda x: torch.cumprod(x, 1), X, 26, ["CumProd"]),
        (lambda x: (x > 0).any(-1), X, 20, ["Greater", "ReduceMax"]),
        (lambda x: (x < 2).all(), X, 20, ["Less", "ReduceMin"]),
        (lambda x: x.any(1, keepdim=True), X.round(), 20, ["Cast", "ReduceMax"]),
    ],
    ids=[
        "rms_norm",
        "weighted",
        "grid_of_corners",
        "grid_of_centres",
        "cumprod",
        "any",
        "all",
        "any_number",
    ],
)
def test_one_operator_from_its_opset_on(
    function: Callable[..., Any], x: Tensor, since: int, expected: list[str], tmp_path: Path
) -> None:
    assert operators(function, (x,), since, tmp_path) == expected
    assert expected != operators(function, (x,), since - 1, tmp_path)


@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid:UserWarning")
def test_a_grid_of_one_row_is_computed_in_steps(tmp_path: Path) -> None:
    """PyTorch samples its centre, AffineGrid its first corner."""

    def row(theta: Tensor) -> Tensor:
        return torch.nn.functional.affine_grid(theta, [2, 3, 1, 5], align_corners=True)

    assert "AffineGrid" not in operators(row, (THETA,), 20, tmp_path)


# ---- TensorScatter


CACHE, STEP = torch.randn(3, 2, 6, 4), torch.randn(3, 2, 1, 4)


def stepped(cache: Tensor, step: Tensor, position: Tensor) -> Tensor:
    return cache.index_copy(2, position, step)


def test_a_step_of_decoding_is_written_to_its_cache(tmp_path: Path) -> None:
    inputs = CACHE, STEP, torch.tensor([4])
    assert operators(stepped, inputs, 24, tmp_path) == ["Mod", "Expand", "TensorScatter"]
    assert operators(stepped, inputs, 23, tmp_path).count("Transpose") == 3


def test_a_cache_of_open_sizes(tmp_path: Path) -> None:
    if newest_runnable() < 24:
        pytest.skip("the runtime does not take opset 24")
    sizes = {"inputs.0": {0: "batch", 2: "past"}, "inputs.1": {0: "batch"}}
    path = tmp_path / "model.onnx"
    traced = tmconvert.trace(Called(stepped), CACHE, STEP, torch.tensor([4]), dynamic_shapes=sizes)
    report = tmconvert.to_onnx(traced, path, opset=24)
    found = [node.op_type for node in onnx.load(path).graph.node]
    assert "TensorScatter" in found and "Transpose" not in found
    assert not [note for note in report.notes if "specialized" in note]


@pytest.mark.parametrize(("places", "is_row"), [([2, 3], True), ([3, 2], False), ([1, 3], False)])
def test_constant_positions(places: list[int], is_row: bool, tmp_path: Path) -> None:
    def written(cache: Tensor, part: Tensor) -> Tensor:
        return cache.index_copy(2, torch.tensor(places), part)

    found = operators(written, (CACHE, torch.cat((STEP, STEP + 1), 2)), 24, tmp_path)
    assert (found == ["TensorScatter"]) == is_row


def test_two_positions_that_only_the_data_tells_may_lie_apart(tmp_path: Path) -> None:
    inputs = CACHE, torch.cat((STEP, STEP + 1), 2), torch.tensor([4, 1])
    assert "TensorScatter" not in operators(stepped, inputs, 24, tmp_path)


# ---- RotaryEmbedding


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return (x * cos) + torch.cat((-second, first), -1) * sin


def angles(positions: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """Of positions [batch, sequence], as transformers computes them for heads of 8."""
    steps = positions[..., None].float() * torch.tensor([1.0, 0.3, 0.1, 0.03])
    both = torch.cat((steps, steps), -1)
    return (both.cos() * scale)[:, None], (both.sin() * scale)[:, None]


def at_positions(x: Tensor, positions: Tensor) -> Tensor:
    return rotated(x, *angles(positions, 0.5))


HEADS, POSITIONS = torch.randn(2, 3, 5, 8), torch.arange(10).reshape(2, 5)


class InOrder(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return rotated(x, *angles(torch.arange(x.shape[2])[None]))


@pytest.mark.parametrize("is_open", [False, True])
def test_a_rotary_embedding_from_opset_23_on(is_open: bool, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    if newest_runnable() < 23:
        pytest.skip("the runtime does not take opset 23")
    sizes = {"dynamic_shapes": {"x": {0: "batch", 2: "sequence"}}} if is_open else {}
    traced = tmconvert.trace(InOrder(), HEADS, **sizes)
    for opset, count in ((22, 0), (23, 1)):
        report = tmconvert.to_onnx(traced, path, opset=opset)
        found = [node.op_type for node in onnx.load(path).graph.node]
        assert found.count("RotaryEmbedding") == count
        assert {"Neg", "Split"} <= set(found) if not count else not {"Neg", "Split"} & set(found)
        assert not [note for note in report.notes if "specialized" in note]


def test_the_angles_of_each_sample_stay_apart(tmp_path: Path) -> None:
    found = operators(at_positions, (HEADS, POSITIONS), 23, tmp_path)
    assert found.count("RotaryEmbedding") == 1
    assert "Expand" not in found


def test_two_heads_share_their_angles(tmp_path: Path) -> None:
    def both(x: Tensor, y: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = angles(positions)
        return rotated(x, cos, sin), rotated(y, cos, sin)

    found = operators(both, (HEADS, HEADS[:, :1], POSITIONS), 23, tmp_path)
    assert (found.count("RotaryEmbedding"), found.count("Cos"), found.count("Sin")) == (2, 1, 1)


def interleaved(x: Tensor, positions: Tensor) -> Tensor:
    steps = positions[..., None].float() * torch.tensor([1.0, 0.3, 0.1, 0.03])
    both = steps.repeat_interleave(2, -1)[:, None]
    return rotated(x, both.cos(), both.sin())


@pytest.mark.parametrize(
    ("function", "inputs", "reason"),
    [
        (interleaved, (HEADS, POSITIONS), "are not known to be equal"),
        (lambda x, c, s: rotated(x, c, s), (HEADS, *angles(POSITIONS)), "are not known to be equal"),
        (lambda x, p: rotated(x, *angles(p)), (HEADS.double(), POSITIONS), "four axes of float32"),
        (lambda x, p: rotated(x, *angles(p)), (HEADS, POSITIONS[:, :1]), "one row for each position"),
    ],
    ids=["interleaved", "inputs", "float64", "one_position"],
)
def test_other_rotations_stay(
    function: Callable[..., Any], inputs: tuple[Tensor, ...], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    if newest_runnable() < 23:
        pytest.skip("the runtime does not take opset 23")
    report = tmconvert.to_onnx(Called(function), path, opset=23, example_inputs=inputs)
    assert "RotaryEmbedding" not in [node.op_type for node in onnx.load(path).graph.node]
    (record,) = (each for each in report.passes if each.name == "fuse_rotary")
    assert any(reason in event.text for event in record.refused)
