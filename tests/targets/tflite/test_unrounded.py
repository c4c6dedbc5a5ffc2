"""Grids of results that the source does not round: which numbers they hold, and how fine they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.targets.tflite.test_integer_kernels import grid
from tmconvert.ir.types import QParams
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.registry import write
from tmconvert.targets.tflite.integer.infer_int16 import cover_range, ends_of, subdivide
from tmconvert.targets.tflite.integer.qparams import negate_qparams
from tmconvert.targets.tflite.integer.resolve import resolve
from tmconvert.targets.tflite.integer.stages import to_integers
from tmconvert.targets.tflite.verify import integers

FLOAT = np.dtype(np.float32)
SYMMETRIC = QParams("int8", (0.5,), (0,), -128, 127)
SHAPE = (1, 8, 8, 2)


def constant(name: str, data: object) -> Value:
    array = np.asarray(data)
    return Value(name, array.dtype, array.shape, array)


def graph(type: str, *operands: Value, shape: tuple[int, ...] = SHAPE, **options: object) -> TargetGraph:
    """One call whose result goes on into a sum that has a grid."""
    inputs = [value for value in operands if not value.is_constant]
    result, last = Value("y", FLOAT, shape), Value("z", FLOAT, shape)
    last.qparams = grid(-9.0, 9.0)
    operators = [
        Operator(type, list(operands), [result], dict(options), "/y"),  # type: ignore[arg-type]
        Operator("ADD", [result, result], [last], {}, "/z"),
    ]
    return TargetGraph("tflite", 3, "net", inputs, [last], operators, ["x"], ["z"])


def value(qparams: QParams, shape: tuple[int, ...] = SHAPE, name: str = "x") -> Value:
    return Value(name, FLOAT, shape, qparams=qparams)


def found(made: TargetGraph) -> QParams:
    result = resolve(made, "int8")[made.operators[0].outputs[0]]
    assert result.inferred
    return result


@pytest.mark.parametrize("count", [1, 4, 9, 25, 49, 64])
def test_means_of_so_many_steps_are_on_the_grid(count: int) -> None:
    made = subdivide(SYMMETRIC, count)
    parts = round(0.5 / made.scale[0])
    assert made.dtype == "int16" and parts % count == 0 and made.scale == (float(np.float32(0.5 / parts)),)
    assert ends_of(made) == pytest.approx((-64.0, 63.5)) and made.quant_min >= -32768
    assert subdivide(SYMMETRIC, is_positive=True).scale[0] <= made.scale[0]


def test_parts_are_such_that_they_come_back_right() -> None:
    for low in (-128, -127, -8, 0):
        parts = round(0.5 / subdivide(QParams("int8", (0.5,), (0,), low, 127)).scale[0])
        assert parts % 2 == 0 and parts & (parts - 1)


def test_averages_have_parts_of_their_windows() -> None:
    x = value(SYMMETRIC)
    options = {"filter_height": 3, "filter_width": 3, "stride_h": 1, "stride_w": 1, "padding": "SAME"}
    parts = round(0.5 / found(graph("AVERAGE_POOL_2D", x, **options)).scale[0])
    assert parts % 36 == 0  # 4 places in the corners, 6 along the sides, 9 elsewhere
    axes = constant("axes", np.array([1, 2], np.int32))
    made = found(graph("MEAN", value(SYMMETRIC), axes, shape=(1, 1, 1, 2), keep_dims=True))
    assert round(0.5 / made.scale[0]) % 64 == 0


ONE, OTHER = grid(-1.0, 3.0), grid(-2.0, 0.5)
RANGES = {
    "ADD": (-3.0, 3.5),
    "SUB": (-1.5, 5.0),
    "MUL": (-6.0, 2.0),
    "MAXIMUM": (-1.0, 3.0),
    "MINIMUM": (-2.0, 0.5),
    "CONCATENATION": (-2.0, 3.0),
}


@pytest.mark.parametrize("type", RANGES)
def test_ranges(type: str) -> None:
    made = found(graph(type, value(ONE), value(OTHER, name="w")))
    low, high = ends_of(made)
    assert made.dtype == "int16" and low <= RANGES[type][0] + 0.02 and high >= RANGES[type][1] - 0.02
    assert max(-low, high) <= 1.03 * max(map(abs, RANGES[type]))


def test_what_cannot_be_known_has_no_grid() -> None:
    made = graph("ADD", value(ONE), Value("w", FLOAT, SHAPE))
    assert made.operators[0].outputs[0] not in resolve(made, "int8")
    made = graph("ADD", value(ONE), value(OTHER, name="w"))
    assert made.operators[0].outputs[0] not in resolve(made, "int8", infers=False)
    assert cover_range(0.0, 0.0, "int16") is None and cover_range(-1e39, 1.0, "int8") is None


def test_what_leaves_the_model_is_in_eight_bits() -> None:
    made = graph("MAXIMUM", value(ONE), value(OTHER, name="w"))
    made.outputs, made.operators = [made.operators[0].outputs[0]], made.operators[:1]
    grids = resolve(made, "int8")
    assert grids[made.outputs[0]].dtype == "int8"
    assert ends_of(grids[made.outputs[0]]) == pytest.approx((-1.0, 3.0), abs=0.03)


def test_an_output_that_is_used_inside_is_in_eight_bits_and_verified(tmp_path: Path) -> None:
    for io_type in ("int8", "uint8"):
        plain = graph("MAXIMUM", value(ONE), value(OTHER, name="w"))
        plain.outputs.append(plain.operators[0].outputs[0])
        plain.input_names, plain.output_names = ["x", "w"], ["z", "y"]
        made = to_integers(plain, catalogue(), io_type=io_type)
        assert [each.dtype.name for each in made.graph.outputs] == [io_type] * 2
        with (tmp_path / "m.tflite").open("wb") as file:
            write(made.graph, [file])
        integers.check_tensors(tmp_path / "m.tflite", made)
        integers._check_source(plain, made)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_negated_parameters_hold_each_negated_value(dtype: str) -> None:
    low, zero = (-128, 3) if dtype == "int8" else (-32767, 0)
    given = QParams(dtype, (0.5,), (zero,), low, -1 - low if dtype == "int8" else 32767)
    made = negate_qparams(given)
    assert ends_of(made) == tuple(-end for end in reversed(ends_of(given)))
    assert (made.scale, negate_qparams(made)) == (given.scale, given)
