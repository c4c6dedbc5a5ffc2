"""Functions without an integer kernel, as tables: exact for each of the 256 steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.lower.test_integer_kernels import MODES, grid, run
from tests.passes.graphs import Net
from tmconvert.ir import InternalGraph
from tmconvert.ir.types import QParams
from tmconvert.lower.integers.integer_graph import in_integers
from tmconvert.lower.integers.integer_model import IntegerGraph
from tmconvert.lower.integers.tables import tabulated
from tmconvert.lower.lower import lower
from tmconvert.passes.manager import PassManager
from tmconvert.passes.pipelines import pipeline
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets import Goal, Integers

GRID = grid(-2.0, 3.0)
STEPS = np.arange(-128, 128, dtype=np.int8).reshape(2, 1, 16, 8)
NUMBERS = ((STEPS.astype(np.float32) - GRID.zero_point[0]) * np.float32(GRID.scale[0])).astype(np.float32)


def converted(graph: InternalGraph) -> IntegerGraph:
    goal = Goal("tflite", 23, "source", integers=Integers("int8", "int8", False))
    PassManager(pipeline(goal, catalogue()), catalogue()).run(graph)
    lowered = lower(graph, catalogue(), "tflite", 23)
    assert not lowered.unsupported
    return in_integers(tabulated(lowered.graph, graph, catalogue()))


def types(made: IntegerGraph) -> list[str]:
    return [operator.type for operator in made.graph.operators]


FUNCTIONS = {
    "aten::sin": {},
    "aten::erf": {},
    "aten::floor": {},
    "aten::round": {},
    "aten::neg": {},
    "aten::sqrt": {},
    "aten::rsqrt": {},
    "aten::log": {},
    "aten::reciprocal": {},
    "aten::softplus": {"beta": 1.0, "threshold": 20.0},
    "aten::mish": {},
    "aten::silu": {},
    "aten::sign": {},
    "aten::expm1": {},
    "aten::hardtanh": {"min_val": -0.5, "max_val": 0.75},
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_tables_are_exact(function: str, tmp_path: Path) -> None:
    net = Net()
    x = net.input(*STEPS.shape)
    y = net(function, x, **FUNCTIONS[function])
    expected = catalogue()[function].evaluate([NUMBERS], FUNCTIONS[function])
    finite = expected[np.isfinite(expected)]
    x.qparams, y.qparams = GRID, grid(float(finite.min()) * 0.9, min(float(finite.max()) * 0.9, 8.0))
    made = converted(net.give(y))
    assert not made.islands
    if types(made) != ["CAST", "ADD", "GATHER"]:  # it has a kernel
        assert function in ("aten::log", "aten::hardtanh", "aten::silu")
        return
    for mode in MODES:
        (found,) = run(made.graph, {made.graph.input_names[0]: STEPS}, mode, tmp_path / "m.tflite").values()
        scale, zero = y.qparams.scale[0], y.qparams.zero_point[0]
        clipped = np.clip(expected, (-128 - zero) * scale, (127 - zero) * scale)
        off = np.abs((found.astype(np.float64) - zero) * scale - clipped)[np.isfinite(clipped)]
        assert off.max() <= 0.5001 * scale


@pytest.mark.parametrize(
    ("scale", "expected"), [(1 / 50, ["TANH", "MUL"]), (1 / 100, ["CAST", "ADD", "GATHER"])]
)
def test_a_result_finer_than_the_kernel(scale: float, expected: list[str]) -> None:
    """TANH writes steps of 1/128; where the source's are not much wider, a table does better."""
    net = Net()
    x = net.input(*STEPS.shape)
    y = net("aten::tanh", x)
    x.qparams, y.qparams = GRID, QParams("int8", (scale,), (0,), -128, 127)
    assert types(converted(net.give(y))) == expected


def test_functions_of_two_numbers_have_no_table() -> None:
    net = Net()
    x, other = net.input(2, 3), net.input(2, 3)
    y = net("aten::atan2", x, other)
    for node in (x, other, y):
        node.qparams = GRID
    made = converted(net.give(y))
    assert [island.operator.type for island in made.islands] and "GATHER" not in types(made)
