"""Complex numbers inside of a TFLite model: what tmconvert computes is what LiteRT computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.frontends.tflite import raw
from tests.frontends.tflite.models import assert_same, in_litert, listed
from tmconvert.errors import LoadError, UnsupportedError

pytest.importorskip("ai_edge_litert.interpreter")


def spectrum(
    path: Any, shape: tuple[int, ...], length: tuple[int, int], *results: str, moved: bool = False
) -> Any:
    """Writes a model of RFFT2D and the operators ``results`` on what it computes."""
    bins = (*shape[:-2], length[0], length[1] // 2 + 1)
    tensors = [
        raw.Tensor("x", "float32", shape),
        raw.Tensor("length", "int32", (2,), np.array(length, np.int32)),
        raw.Tensor("spectrum", "complex64", bins),
    ]
    operators = [raw.Operator("RFFT2D", [0, 1], [2])]
    if moved:
        flat = (int(np.prod(bins)), 1)
        tensors += [
            raw.Tensor("shape", "int32", (2,), np.array(flat, np.int32)),
            raw.Tensor("moved", "complex64", flat),
        ]
        operators.append(raw.Operator("RESHAPE", [2, 3], [4]))
        bins = flat
    last = len(tensors) - 1
    for number, name in enumerate(results, start=last + 1):
        tensors.append(raw.Tensor(f"y{number}", "float32", bins))
        operators.append(raw.Operator(name, [last], [number]))
    ends = [0], list(range(last + 1, last + 1 + len(results))) or [last]
    return raw.saved(path, tensors, operators, ends)


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize(
    ("shape", "length"),
    [((2, 1, 16), (1, 16)), ((1, 1, 20), (1, 16)), ((3, 4, 8), (4, 8)), ((2, 3, 5), (4, 8))],
)
def test_the_parts_of_a_spectrum(
    shape: tuple[int, ...], length: tuple[int, int], moved: bool, tmp_path: Any
) -> None:
    path = spectrum(tmp_path / "net.tflite", shape, length, "REAL", "IMAG", "COMPLEX_ABS", moved=moved)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    expected = in_litert(path, x)
    assert_same(listed(tmconvert.load(path)(x)), expected)
    report = tmconvert.to_onnx(path, tmp_path / "net.onnx")
    assert report.verification is not None
    tmconvert.to_tflite(path, tmp_path / "made.tflite")
    assert_same(in_litert(tmp_path / "made.tflite", x), expected)


def test_a_cast_keeps_the_real_part(tmp_path: Any) -> None:
    path = spectrum(tmp_path / "net.tflite", (1, 1, 8), (1, 8), "CAST", "REAL")
    x = np.random.default_rng(0).standard_normal((1, 1, 8)).astype(np.float32)
    cast, real = listed(tmconvert.load(path)(x))
    np.testing.assert_array_equal(cast, real)
    assert_same([cast, real], in_litert(path, x))


def test_complex_outputs_and_inputs_are_refused(tmp_path: Any) -> None:
    with pytest.raises(LoadError, match=r"(?s)TM1042.*complex numbers at its ends"):
        tmconvert.load(spectrum(tmp_path / "net.tflite", (1, 1, 8), (1, 8)))
    tensors = [raw.Tensor("x", "complex64", (1, 8)), raw.Tensor("y", "float32", (1, 8))]
    path = raw.saved(tmp_path / "net.tflite", tensors, [raw.Operator("REAL", [0], [1])], ([0], [1]))
    with pytest.raises(LoadError, match=r"(?s)TM1042.*complex numbers at its ends"):
        tmconvert.load(path)


def test_arithmetic_of_complex_numbers_is_refused(tmp_path: Any) -> None:
    path = spectrum(tmp_path / "net.tflite", (1, 1, 8), (1, 8), "NEG")
    with pytest.raises(UnsupportedError, match=r"tflite\.NEG of complex numbers is not supported"):
        tmconvert.to_onnx(path, tmp_path / "net.onnx")


def test_a_model_with_complex_numbers_is_saved_and_loaded(tmp_path: Any) -> None:
    module = tmconvert.load(spectrum(tmp_path / "net.tflite", (2, 1, 16), (1, 16), "COMPLEX_ABS"))
    x = np.random.default_rng(0).standard_normal((2, 1, 16)).astype(np.float32)
    module.save(tmp_path / "net.tmc")
    np.testing.assert_array_equal(tmconvert.load(tmp_path / "net.tmc")(x), module(x))
