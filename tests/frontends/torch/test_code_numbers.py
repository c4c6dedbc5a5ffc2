"""Sizes whose value leaves what the tracer follows: as text, a hash, a plain integer, or for a cache."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch

import tmconvert
from tmconvert.errors import UnsupportedError

SPECIAL = 7


@functools.lru_cache
def cached_factor(shape: tuple[int, ...]) -> int:
    return 2 if shape[0] == 7 else 3


def is_special(size: int) -> bool:
    return size in {4}


class Looks(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = 7

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if str(x.shape[0]) == str(self.rows) else x * 3


# what the tracer does not see, and the size at which it matters
UNSEEN: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], int]] = {
    "text": (lambda x: x * 2 if f"{x.shape[0]}" == "7" else x * 3, 7),
    "within a text": (lambda x: x * 2 if f"rows={x.shape[0]}" == "rows=7" else x * 3, 7),
    "another name": (lambda x: x * 2 if str(x.shape[0]) == str(SPECIAL) else x * 3, 7),
    "an attribute": (Looks(), 7),
    "array": (lambda x: x * 2 if np.array(x.shape)[0] == 7 else x * 3, 7),
    "float": (lambda x: x * 2 if math.isclose(x.shape[0], 7.0) else x * 3, 7),
    "int": (lambda x: x * 2 if int(x.shape[0]) == 7 else x * 3, 7),
    "hash": (lambda x: x * 2 if hash(x.shape) == hash((7, 4)) else x * 3, 7),
    "range": (lambda x: x * 2 if len(list(range(x.shape[0]))) == 7 else x * 3, 7),
    "numel": (lambda x: x * 2 if x.shape.numel() == 28 else x * 3, 7),
    "cache": (lambda x: x * cached_factor(x.shape), 7),
    "member": (lambda x: x * 2 if x.shape[0] in {4} else x * 3, 4),
    "member in a function": (lambda x: x * 2 if is_special(x.shape[0]) else x * 3, 4),
    "key": (lambda x: x * {7: 2}.get(x.shape[0], 3), 7),
    "equal sizes": (lambda x: x * 2 if len(set(x.shape)) == 1 else x * 3, 4),
}


@pytest.mark.parametrize("rows", [3, 1])
@pytest.mark.parametrize("name", UNSEEN)
def test_a_size_that_is_compared_unseen_is_specialized(name: str, rows: int, tmp_path: Path) -> None:
    module, special = UNSEEN[name]
    cached_factor((rows, 4))
    report = tmconvert.to_onnx(
        module,
        tmp_path / "m.onnx",
        example_inputs=(torch.randn(rows, 4),),
        dynamic_shapes={"x": {0: "n"}},
    )
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert session.get_inputs()[0].shape == [rows, 4]
    (note,) = [note for note in report.notes if note.startswith(f"n is specialized to {rows}: ")]
    assert "test_code_numbers.py:" in note
    if rows == 3:
        assert note.endswith(f"computes something else at another size (n = {special})")


@pytest.mark.parametrize(
    ("function", "condition"),
    [
        (lambda x: x * 2 if x.nbytes == 112 else x * 3, "16*n != 112"),
        (lambda x: x * 2 if x.shape[0] ** 2 == 49 else x * 3, "n*n != 49"),
        (lambda x: x * 2 if x.shape[0] << 1 == 14 else x * 3, "2*n != 14"),
        (lambda x: x * 2 if divmod(x.shape[0], 100)[1] == 7 else x * 3, "n-100*floor(n/100) != 7"),
        (lambda x: x * 2 if x.shape[0] & 127 == 7 else x * 3, "n-128*floor(n/128) != 7"),
    ],
)
def test_arithmetic_of_sizes_is_followed(function: Any, condition: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.to_onnx(
            function,
            tmp_path / "m.onnx",
            example_inputs=(torch.randn(3, 4),),
            dynamic_shapes={"x": {0: "n"}},
        )
    assert caught.value.code == "TM2030"
    assert f"valid for {condition} only" in caught.value.message


def test_a_saved_trace_has_no_comparisons_without_effect(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        described = "seven rows" if x.shape[0] == 7 else "others"
        return x * 2 if described else x

    traced = tmconvert.trace(function, torch.randn(3, 4), dynamic_shapes={"x": {0: "n"}})
    traced.save(tmp_path / "m.tmc")
    loaded = tmconvert.load(tmp_path / "m.tmc")
    report = tmconvert.to_onnx(loaded, tmp_path / "m.onnx", dynamic_shapes={"x": {0: "n"}})
    assert not any("n " in note for note in report.notes)
    assert onnxruntime.InferenceSession(tmp_path / "m.onnx").get_inputs()[0].shape == ["n", 4]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.squeeze(),
        lambda x: x.squeeze(0) + 1,
        lambda x: x * 2 if len(list(range(x.shape[0]))) == 1 else x * 3,
        lambda x: x * 2 if x.shape[0] == 1 else x * 3,
    ],
)
def test_the_line_that_computes_something_else_at_one_is_named(function: Any, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match=r"n >= 2 only: .* at n = 1") as caught:
        tmconvert.to_onnx(
            function,
            tmp_path / "m.onnx",
            example_inputs=(torch.randn(3, 4),),
            dynamic_shapes={"x": {0: "n"}},
        )
    assert caught.value.source is not None
    assert caught.value.source.line == function.__code__.co_firstlineno


def test_a_message_leaves_the_size_open_with_a_note(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        described = f"{x.shape[0]} rows"
        return x * 3 if described else x

    report = tmconvert.to_onnx(
        function, tmp_path / "m.onnx", example_inputs=(torch.randn(3, 4),), dynamic_shapes={"x": {0: "n"}}
    )
    assert onnxruntime.InferenceSession(tmp_path / "m.onnx").get_inputs()[0].shape == ["n", 4]
    (note,) = [note for note in report.notes if "becomes text or a hash" in note]
    line = function.__code__.co_firstlineno + 1
    assert f"test_code_numbers.py:{line}" in note
