"""Functions without an integer kernel, as tables: exact for each step, or each two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.passes.graphs import Net
from tests.targets.tflite.test_integer_kernels import MODES, grid, run
from tmconvert.ir import InternalGraph
from tmconvert.ir.types import QParams
from tmconvert.passes.manager import PassManager
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import Integers, TargetOptions
from tmconvert.targets.registry import lower, passes_for
from tmconvert.targets.tflite.integer.model import IntegerGraph
from tmconvert.targets.tflite.integer.qparams import RANGES, activation_qparams
from tmconvert.targets.tflite.integer.stages import to_integers
from tmconvert.targets.tflite.passes.fuse_activations import fuse_activations

GRID = grid(-2.0, 3.0)


def converted(graph: InternalGraph, kind: str = "int8") -> IntegerGraph:
    goal = TargetOptions("tflite", 23, "source", integers=Integers(kind, kind, False))
    PassManager(passes_for(goal, catalogue()), catalogue()).run(graph)
    lowered = lower(graph, catalogue(), "tflite", 23)
    assert not lowered.unsupported
    fuse_activations(lowered.graph, keeps_qparams=True)
    return to_integers(lowered.graph, catalogue(), activations=kind, io_type=kind)


def all_steps(kind: str) -> tuple[np.ndarray, np.ndarray, QParams]:
    """Each integer once, the number that it stands for on the grid of the third."""
    made = activation_qparams(GRID, kind)
    assert made is not None
    low, high = RANGES[kind]
    steps = np.arange(low, high + 1).astype(kind).reshape(2, 1, 16, -1)
    numbers = (steps.astype(np.float32) - made.zero_point[0]) * np.float32(made.scale[0])
    return steps, numbers, made


def check(
    made: IntegerGraph, fed: dict[str, np.ndarray], expected: np.ndarray, path: Path, steps: float = 0.0
) -> None:
    """Results are the nearest steps; with ``steps``, within so many."""
    quantization = made.graph.outputs[0].quantization
    assert quantization is not None and quantization.zero_point is not None
    scale, zero = float(quantization.scale[0]), int(quantization.zero_point[0])
    low, high = RANGES[made.activations]
    clipped = np.clip(expected, (low - zero) * scale, (high - zero) * scale)
    for mode in MODES:
        (found,) = run(made.graph, fed, mode, path).values()
        off = np.abs((found.astype(np.float64) - zero) * scale - clipped)[~np.isnan(clipped)]
        assert off.max() <= (steps or (0.5001 if made.activations == "int8" else 0.51)) * scale


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
    x.qparams, y.qparams = own, activation_qparams(wanted, kind)
    made = converted(net.give(y), kind)
    assert not made.fallbacks
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
    assert not made.fallbacks and types(made)[-1] == "GATHER"
    check(made, dict(zip(made.graph.input_names, steps, strict=True)), expected, tmp_path / "m.tflite")


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        (1 / 50, ["TANH", "MUL"]),
        (1 / 100, ["TANH", "MUL"]),
        (1 / 128, ["TANH"]),
        (1 / 190, ["TANH", "MUL"]),
        (1 / 200, ["CAST", "ADD", "GATHER"]),
    ],
)
def test_a_result_finer_than_the_kernel(scale: float, expected: list[str], tmp_path: Path) -> None:
    """TANH has steps of 1/128, which are rescaled to the source's; if these are much finer, a table does."""
    net = Net()
    steps, numbers, own = all_steps("int8")
    x = net.input(*steps.shape)
    y = net("aten::tanh", x)
    x.qparams, y.qparams = own, QParams("int8", (scale,), (0,), -128, 127)
    made = converted(net.give(y))
    assert types(made) == expected
    check(made, {made.graph.input_names[0]: steps}, np.tanh(numbers), tmp_path / "m.tflite", steps=1.3)


# ops, the type and scale of their result, the operators, and how many steps they may be off
GATES = [
    ("aten::hardsigmoid", "int8", 1 / 256, ["ADD", "MUL"], 1.3),
    ("aten::hardsigmoid", "int8", 1 / 255, ["ADD", "MUL"], 1.3),
    ("aten::hardsigmoid", "int8", 1 / 170, ["ADD", "MUL"], 1.1),
    ("aten::hardsigmoid", "int8", 1 / 500, ["CAST", "ADD", "GATHER"], 0.5001),
    ("aten::hardsigmoid", "int16", 1 / 32768, ["ADD", "MUL"], 3.0),
    ("aten::hardswish", "int8", 4 / 255, ["HARD_SWISH"], 1.3),
    ("aten::hardswish", "int16", 4 / 32768, ["ADD", "MUL", "MUL"], 4.0),
]


@pytest.mark.parametrize(("function", "kind", "scale", "expected", "most"), GATES)
def test_hard_gates_are_sums_and_products(
    function: str, kind: str, scale: float, expected: list[str], most: float, tmp_path: Path
) -> None:
    net = Net()
    random = np.random.default_rng(0)
    own = activation_qparams(grid(-7.0, 6.0), kind)
    assert own is not None
    steps = random.integers(*RANGES[kind], (2, 1, 16, 128)).astype(kind)
    numbers = (steps.astype(np.float32) - own.zero_point[0]) * np.float32(own.scale[0])
    x = net.input(*steps.shape)
    y = net(function, x)
    low, high = RANGES[kind]
    x.qparams = own
    zero = -128 if kind == "int8" and function == "aten::hardsigmoid" else 0
    y.qparams = QParams(kind, (scale,), (zero,), low, high)
    made = converted(net.give(y), kind)
    assert types(made) == expected
    wanted = catalogue()[function].evaluate([numbers], {})
    check(made, {made.graph.input_names[0]: steps}, wanted, tmp_path / "m.tflite", steps=most)


def test_functions_of_two_numbers_of_sixteen_bits_have_no_table() -> None:
    net = Net()
    x, other = net.input(2, 3), net.input(2, 3)
    y = net("aten::atan2", x, other)
    for node in (x, other, y):
        node.qparams = GRID
    made = converted(net.give(y), "int16")
    assert [island.operator.type for island in made.fallbacks] and "GATHER" not in types(made)
