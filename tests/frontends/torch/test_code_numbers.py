"""Sizes whose value leaves what the tracer follows: as text, a hash, a plain integer, or for a cache."""

from __future__ import annotations

import builtins
import functools
import math
import operator
import struct
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


TABLE = [3.0] * 11 + [2.0] + [3.0] * 60
LONG_TABLE = [3.0] * 90 + [2.0] + [3.0] * 60
CODES = "a" * 11 + "b" + "a" * 60


def found_factor(x: torch.Tensor) -> torch.Tensor:
    try:
        return x * {7: 2}[x.shape[0]]
    except KeyError:
        return x * 3


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
    "jump": (lambda x: x * (3 if int(x.shape[0]) - 7 else 2), 7),
    "truth": (lambda x: x * (2 + bool(int(x.shape[0]) - 7)), 7),
    "minimum": (lambda x: x * min(abs(int(x.shape[0]) - 7), 1), 7),
    "default": (lambda x, rows=7: x * 2 if int(x.shape[0]) == rows else x * 3, 7),
    "handler": (found_factor, 7),
    "index": (lambda x: x * TABLE[x.shape[0]], 11),
    "index of a long table": (lambda x: x * LONG_TABLE[x.shape[0]], 90),
    "index of a text": (lambda x: x * 2 if CODES[x.shape[0]] == "b" else x * 3, 11),
    "character": (lambda x: x * 2 if chr(x.shape[0]) == "\v" else x * 3, 11),
    "bytes": (lambda x: x * 2 if struct.pack("<i", x.shape[0]) == b"\x0b\0\0\0" else x * 3, 11),
    "binary digits": (lambda x: x * 2 if bin(x.shape[0]) == "0b1011" else x * 3, 11),
    "text of a shape": (lambda x: x * 2 if str(x.shape) == "torch.Size([7, 4])" else x * 3, 7),
    "combinations": (lambda x: x * 2 if math.comb(x.shape[0], 2) == 21 else x * 3, 7),
    "quotient": (lambda x: x * 2 if int(x.shape[0]) / 3 == 31 else x * 3, 93),
    "sorted": (lambda x: x * 2 if sorted([x.shape[0], 6.5, 7.5])[1] == x.shape[0] else x * 3, 7),
    "memory": (lambda x: x * 2 if x.untyped_storage().nbytes() == 112 else x * 3, 7),
    "method of int": (lambda x: x * 2 if int.__eq__(x.shape[0], 7) else x * 3, 7),
}

# how code tells a traced size from an int
TYPES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "is": lambda x: x * 2 if x.shape[0] is SPECIAL else x * 3,
    "is not": lambda x: x * 3 if x.shape[0] is not SPECIAL else x * 2,
    "is_": lambda x: x * 2 if operator.is_(x.shape[0], SPECIAL) else x * 3,
    "id": lambda x: x * 2 if id(x.shape[0]) == id(SPECIAL) else x * 3,
    "length": lambda x: x * 2 if len(x) is SPECIAL else x * 3,
    "type": lambda x: x * 2 if type(x.shape[0]) is int else x * 3,
    "class": lambda x: x * 2 if x.shape[0].__class__ is int else x * 3,
}


def test_code_that_asks_for_the_type_of_a_tensor_is_not_recorded_more_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from tmconvert.frontends.torch.tracing.runs import Runs

    counts: list[int] = []
    once = Runs._one_way

    def counted(self: Runs, *args: Any) -> Any:
        counts[-1] += 1
        return once(self, *args)

    monkeypatch.setattr(Runs, "_one_way", counted)
    for same in (lambda x: x / x.shape[0] if abs else x, lambda x: x / x.shape[0] if type else x):
        counts.append(0)
        tmconvert.trace(same, torch.randn(3, 4), dynamic_shapes={"x": {0: "n"}})
    assert 1 < counts[1] <= counts[0]


@pytest.mark.parametrize("rows", [3, 7])
@pytest.mark.parametrize("name", TYPES)
def test_code_that_asks_for_the_type_of_a_size_specializes_it(name: str, rows: int, tmp_path: Path) -> None:
    module, x = TYPES[name], torch.randn(rows, 4)
    options = {"example_inputs": (x,), "dynamic_shapes": {"x": {0: "n"}}}
    with pytest.raises(UnsupportedError, match="the type or the identity of a size") as caught:
        tmconvert.to_onnx(module, tmp_path / "m.onnx", **options)
    assert caught.value.code == "TM2031"
    tmconvert.to_onnx(module, tmp_path / "m.onnx", fix={"n": rows}, **options)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert session.get_inputs()[0].shape == [rows, 4]
    np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], module(x).numpy())


@pytest.mark.slow
def test_types_of_sizes_that_change_nothing_leave_them_open(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        assert type(x.shape[0]) is int or isinstance(x.shape[0], int)
        return x * 2

    tmconvert.to_onnx(
        function, tmp_path / "m.onnx", example_inputs=(torch.randn(3, 4),), dynamic_shapes={"x": {0: "n"}}
    )
    assert onnxruntime.InferenceSession(tmp_path / "m.onnx").get_inputs()[0].shape == ["n", 4]


def test_a_comparison_that_is_not_reached_at_another_size_stays_a_guard(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="n != 7 only") as caught:
        tmconvert.to_onnx(
            lambda x: x * 2 if builtins.max(x.shape[0], 2, 3) == 7 else x * 3,
            tmp_path / "m.onnx",
            example_inputs=(torch.randn(3, 4),),
            dynamic_shapes={"x": {0: "n"}},
        )
    assert caught.value.code == "TM2030"


@pytest.mark.parametrize("rows", [3, 1])
@pytest.mark.parametrize("name", UNSEEN)
def test_a_size_that_is_compared_unseen_is_specialized(name: str, rows: int, tmp_path: Path) -> None:
    module, special = UNSEEN[name]
    cached_factor((rows, 4))
    with pytest.raises(UnsupportedError, match=r"test_code_numbers\.py:") as caught:
        tmconvert.to_onnx(
            module,
            tmp_path / "m.onnx",
            example_inputs=(torch.randn(rows, 4),),
            dynamic_shapes={"x": {0: "n"}},
        )
    message = caught.value.message
    assert caught.value.code == "TM2031" and message.startswith("the size n cannot stay dynamic: ")
    if rows == 3:
        assert "computes something else at another size" in message and message.endswith(f"(n = {special})")


@pytest.mark.parametrize(
    ("function", "condition"),
    [
        (lambda x: x * 2 if x.nbytes == 112 else x * 3, "16*n != 112"),
        (lambda x: x * 2 if x.shape[0] ** 2 == 49 else x * 3, "n*n != 49"),
        (lambda x: x * 2 if x.shape[0] << 1 == 14 else x * 3, "2*n != 14"),
        (
            lambda x: x * 2 if math.floor(math.log2(x.shape[0])) == 6 else x * 3,
            "floor(log(n + 0.5)",
        ),
        (lambda x: x * 2 if x.shape[0].bit_length() == 7 else x * 3, "floor(log(n + 0.5)"),
        (lambda x: x * 2 if math.isqrt(x.shape[0]) == 8 else x * 3, "floor(sqrt(n)) != 8"),
        (lambda x: x * 2 if 2 ** x.shape[0] == 128 else x * 3, "floor(2.0 ** n) != 128"),
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
    assert f"valid for {condition}" in caught.value.message


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if divmod(x.shape[0], 100)[1] == 7 else x * 3,
        lambda x: x * 2 if x.shape[0] & 127 == 7 else x * 3,
    ],
)
def test_both_sides_of_remainders_are_written(function: Any, tmp_path: Path) -> None:
    example, axes = torch.randn(3, 4), {"x": {0: "n"}}
    tmconvert.to_onnx(function, tmp_path / "m.onnx", example_inputs=(example,), dynamic_shapes=axes)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for rows in (1, 6, 7, 8, 107, 135, 207, 263):
        x = torch.randn(rows, 4)
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], function(x), rtol=1e-6)


def _digits(x: torch.Tensor) -> int:
    return int(math.log10(x.shape[0])) + 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * 2 if int(math.log(x.shape[0])) == 4 else x * 3,
        lambda x: x * (3 if int(np.log(x.shape[0])) - 4 else 2),
        lambda x: x * 2 if min(9.0, math.log(x.shape[0])) > 4 else x * 3,
        lambda x: x * 2 if int(x.shape[0] ** 0.3) == 4 else x * 3,
        lambda x: x * 2 if round(x.shape[0] / 7, 1) == 14.3 else x * 3,
        lambda x: x * 2 if math.tanh(x.shape[0] / 99) > 0.9 else x * 3,
        lambda x: x * 2 if x.shape[0] | 5 == 101 else x * 3,
        lambda x: x * 2 if torch.tensor([x.shape[0]]).log()[0].item() > 4 else x * 3,
        lambda x: x[: _digits(x)],
        lambda x: x * 2 if len(f"{x.shape[0]}") == 3 else x * 3,
        lambda x: x * 2 if len(str(x.shape[0])) == 3 else x * 3,
    ],
)
def test_what_is_decided_by_a_lost_number_is_refused(function: Any, tmp_path: Path) -> None:
    x = torch.randn(12, 4)
    with pytest.raises(UnsupportedError, match=r"test_code_numbers\.py:") as caught:
        tmconvert.to_onnx(function, tmp_path / "m.onnx", example_inputs=(x,), dynamic_shapes={"x": {0: "n"}})
    assert caught.value.code == "TM2031"


def test_a_lost_number_that_changes_nothing_leaves_the_size_open(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        assert math.log(x.shape[0]) < 40 and _digits(x) < 20
        label = "long" if int(x.shape[0] ** 0.3) > 4 else "short"
        return x * (abs(x.shape[0] - 7) + ~x.shape[0] + len(label[:0]))

    tmconvert.to_onnx(
        function, tmp_path / "m.onnx", example_inputs=(torch.randn(3, 4),), dynamic_shapes={"x": {0: "n"}}
    )
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for rows in (1, 2, 7, 8, 100, 1001):
        x = torch.randn(rows, 4)
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], function(x), rtol=1e-6)


def test_a_refused_range_takes_few_runs(tmp_path: Path) -> None:
    runs = []

    def function(x: torch.Tensor) -> torch.Tensor:
        runs.append(x.shape)
        return x * 2 if x.shape[0] ** 2 == 49 else x * 3

    with pytest.raises(UnsupportedError, match=r"n\*n != 49"):
        tmconvert.to_onnx(
            function, tmp_path / "m.onnx", example_inputs=(torch.randn(3, 4),), dynamic_shapes={"x": {0: "n"}}
        )
    assert len(runs) < 200


def test_what_is_decided_by_constants_leaves_the_size_open(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        times = torch.linspace(0.0, 1.0, 4)
        if len(times) > 1 and times[0] > times[1]:  # as a solver of differential equations asks
            x = -x
        return x if times[2].item() > 0.9 else x * times[1]

    tmconvert.to_onnx(
        function, tmp_path / "m.onnx", example_inputs=(torch.randn(3, 4),), dynamic_shapes={"x": {0: "n"}}
    )
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    for rows in (1, 4, 9):
        x = torch.randn(rows, 4)
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], function(x), rtol=1e-6)


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


def caching_library() -> dict[str, Any]:
    """The globals of a module named einops: its function caches sizes, unless these have no hash."""
    found: dict[str, Any] = {"__name__": "einops.einops"}
    code = """
import functools

def uncached(shape):
    return shape[0], shape[1] // 4, 4

cached = functools.lru_cache(uncached)

def split(x):
    try:
        return x.reshape(cached(tuple(x.shape)))
    except TypeError:
        return x.reshape(uncached(tuple(x.shape)))
"""
    exec(code, found)
    return found


@pytest.mark.slow
def test_sizes_do_not_come_from_the_cache_of_a_library(tmp_path: Path) -> None:
    """Neither plain ones of an earlier run, nor those of another tensor of the same run."""
    split = caching_library()["split"]
    split(torch.randn(3, 8))  # caches plain sizes
    for number in range(2):
        report = tmconvert.to_onnx(
            lambda x, y: split(x) + split(y[:3]).sum(),
            tmp_path / f"{number}.onnx",
            example_inputs=(torch.randn(3, 8), torch.randn(5, 8)),
            dynamic_shapes={"x": {0: "n"}, "y": {0: "m"}},
        )
        assert not [note for note in report.notes if "text or a hash" in note]
        session = onnxruntime.InferenceSession(tmp_path / f"{number}.onnx")
        assert [each.shape[0] for each in session.get_inputs()] == ["n", "m"]
        x, y = np.ones((7, 8), np.float32), np.ones((4, 8), np.float32)
        (found,) = session.run(None, {"x": x, "y": y})
        assert found.shape == (7, 2, 4)


def test_sizes_of_an_earlier_run_are_plain_numbers(tmp_path: Path) -> None:
    """A function that caches what it computes from sizes keeps those of the first run."""

    @functools.lru_cache
    def folded(shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[0], shape[1] // 4, 4

    for number in range(2):
        traced = tmconvert.trace(
            lambda x: x.reshape(folded(tuple(x.shape))),
            torch.randn(3, 8),
            dynamic_shapes={"x": {0: "n"}},
            fix={"n": 3},
        )
        tmconvert.to_onnx(traced, tmp_path / f"{number}.onnx")
