"""Functions without an integer kernel, as tables: exact for each step, or each two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.lower.test_integer_kernels import MODES, grid, run
from tests.passes.graphs import Net
from tmconvert.ir import InternalGraph
from tmconvert.ir.types import QParams
from tmconvert.lower.integers.grids import RANGES, activation_grid
from tmconvert.lower.integers.integer_graph import in_integers
from tmconvert.lower.integers.integer_model import IntegerGraph
from tmconvert.lower.integers.tables import tabulated
from tmconvert.lower.lower import lower
from tmconvert.passes.manager import PassManager
from tmconvert.passes.pipelines import pipeline
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets import Goal, Integers

GRID = grid(-2.0, 3.0)


def converted(graph: InternalGraph, kind: str = "int8") -> IntegerGraph:
    goal = Goal("tflite", 23, "source", integers=Integers(kind, kind, False))
    PassManager(pipeline(goal, catalogue()), catalogue()).run(graph)
    lowered = lower(graph, catalogue(), "tflite", 23)
    assert not lowered.unsupported
    made = tabulated(lowered.graph, graph, catalogue(), kind)
    return in_integers(made, activations=kind, io_type=kind)


def all_steps(kind: str) -> tuple[np.ndarray, np.ndarray, QParams]:
    """Each integer once, the number that it stands for on the grid of the third."""
    made = activation_grid(GRID, kind)
    assert made is not None
    low, high = RANGES[kind]
    steps = np.arange(low, high + 1).astype(kind).reshape(2, 1, 16, -1)
    numbers = (steps.astype(np.float32) - made.zero_point[0]) * np.float32(made.scale[0])
    return steps, numbers, made


def check(made: IntegerGraph, fed: dict[str, np.ndarray], expected: np.ndarray, path: Path) -> None:
    quantization = made.graph.outputs[0].quantization
    assert quantization is not None and quantization.zero_point is not None
    scale, zero = float(quantization.scale[0]), int(quantization.zero_point[0])
    low, high = RANGES[made.activations]
    clipped = np.clip(expected, (low - zero) * scale, (high - zero) * scale)
    for mode in MODES:
        (found,) = run(made.graph, fed, mode, path).values()
        off = np.abs((found.astype(np.float64) - zero) * scale - clipped)[~np.isnan(clipped)]
        assert off.max() <= 0.5001 * scale if made.activations == "int8" else 0.51 * scale


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
    "aten::exp": {},
    "aten::hardtanh": {"min_val": -0.5, "max_val": 0.75},
}


HAVE_KERNELS = {
    "int8": {"aten::log", "aten::hardtanh", "aten::silu", "aten::exp"},
    "int16": {"aten::hardtanh", "aten::silu"},
}


@pytest.mark.parametrize("kind", ["int8", "int16"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_tables_are_exact(function: str, kind: str, tmp_path: Path) -> None:
    net = Net()
    steps, numbers, own = all_steps(kind)
    x = net.input(*steps.shape)
    y = net(function, x, **FUNCTIONS[function])
    with np.errstate(all="ignore"):
        expected = catalogue()[function].evaluate([numbers], FUNCTIONS[function])
    finite = expected[np.isfinite(expected)]
    wanted = grid(float(finite.min()) * 0.9, min(float(finite.max()) * 0.9, 8.0))
    x.qparams, y.qparams = own, activation_grid(wanted, kind)
    made = converted(net.give(y), kind)
    assert not made.islands
    if types(made) != ["CAST", "ADD", "GATHER"]:
        assert function in HAVE_KERNELS[kind]
        return
    check(made, {made.graph.input_names[0]: steps}, expected, tmp_path / "m.tflite")


OF_TWO = {
    "aten::div": {},
    "aten::atan2": {},
    "aten::pow": {},
    "aten::logaddexp": {},
}


@pytest.mark.parametrize("shapes", [((256, 256), (256, 256)), ((256, 1), (1, 256)), ((1, 256), (256, 1))])
@pytest.mark.parametrize("function", OF_TWO)
def test_functions_of_two_numbers(function: str, shapes: tuple[tuple[int, int], ...], tmp_path: Path) -> None:
    """All pairs of integers: zero divisors, too."""
    net = Net()
    nodes = [net.input(*shape) for shape in shapes]
    y = net(function, *nodes, **OF_TWO[function])
    grids = [GRID, grid(-1.0, 4.0)]
    steps, numbers = [], []
    for node, shape, own in zip(nodes, shapes, grids, strict=True):
        node.qparams = own
        column = np.arange(-128, 128).astype(np.int8)
        column = column.reshape(shape if 1 in shape else (1, 256) if steps else (256, 1))
        steps.append(np.ascontiguousarray(np.broadcast_to(column, shape)))
        numbers.append((steps[-1].astype(np.float32) - own.zero_point[0]) * np.float32(own.scale[0]))
    with np.errstate(all="ignore"):
        expected = catalogue()[function].evaluate(numbers, OF_TWO[function])
    y.qparams = grid(-2.0, 2.5)
    made = converted(net.give(y))
    assert not made.islands and types(made)[-1] == "GATHER"
    check(made, dict(zip(made.graph.input_names, steps, strict=True)), expected, tmp_path / "m.tflite")


@pytest.mark.parametrize(
    ("scale", "expected"), [(1 / 50, ["TANH", "MUL"]), (1 / 100, ["CAST", "ADD", "GATHER"])]
)
def test_a_result_finer_than_the_kernel(scale: float, expected: list[str]) -> None:
    """TANH writes steps of 1/128; where the source's are not much wider, a table does better."""
    net = Net()
    x = net.input(2, 3)
    y = net("aten::tanh", x)
    x.qparams, y.qparams = GRID, QParams("int8", (scale,), (0,), -128, 127)
    assert types(converted(net.give(y))) == expected


def test_functions_of_two_numbers_of_sixteen_bits_have_no_table() -> None:
    net = Net()
    x, other = net.input(2, 3), net.input(2, 3)
    y = net("aten::atan2", x, other)
    for node in (x, other, y):
        node.qparams = GRID
    made = converted(net.give(y), "int16")
    assert [island.operator.type for island in made.islands] and "GATHER" not in types(made)
