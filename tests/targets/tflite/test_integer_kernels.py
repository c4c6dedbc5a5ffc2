"""Each integer kernel of the table, in LiteRT with and without XNNPACK, beside the same call in float."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.targets.tflite.integer_samples import RESULTS, SAMPLES, Sample
from tmconvert.ir.types import QParams
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.registry import write
from tmconvert.targets.tflite.integer.legalize import legalize
from tmconvert.targets.tflite.integer.model import IntegerGraph
from tmconvert.targets.tflite.integer.qparams import activation_qparams
from tmconvert.targets.tflite.integer.stages import to_integers
from tmconvert.targets.tflite.operators import SPECS

litert = pytest.importorskip("ai_edge_litert.interpreter")
MODES = [litert.OpResolverType.AUTO, litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES]
KERNELS = {name: each.integer for name, each in SPECS.items() if each.integer and each.code is not None}
ROWS = sorted((type, kind) for type, kernel in KERNELS.items() for kind in kernel.types)
# A kernel rounds once, twice where its arithmetic is of integers; a QUANTIZE behind it once more.
STEPS = 2.0
# In int16 functions are read from tables of 513 entries; two products stand for a resizing.
ROUGH = {
    ("TANH", "int16"): 4.0,
    ("LOGISTIC", "int16"): 2.0,
    ("SOFTMAX", "int16"): 2 * 11 + 3.0,
    ("RESIZE_BILINEAR", "int16"): 3.5,
}


def run(graph: TargetGraph, inputs: dict[str, np.ndarray], mode: object, path: Path) -> dict[str, np.ndarray]:
    with path.open("wb") as file:
        write(graph, [file])
    interpreter = litert.Interpreter(str(path), num_threads=1, experimental_op_resolver_type=mode)
    return dict(interpreter.get_signature_runner()(**inputs))


def grid(low: float, high: float) -> QParams:
    low, high = min(low, 0.0), max(high, 0.0)
    scale = float(np.float32((high - low) / 255)) or 1.0
    return QParams("int8", (scale,), (int(np.clip(round(-128 - low / scale), -128, 127)),), -128, 127)


def given(
    sample: Sample, graph: TargetGraph, kind: str
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Random integers for the inputs, each with a grid of its own, and the numbers that they stand for."""
    random = np.random.default_rng(SAMPLES.index(sample))
    steps, numbers = {}, {}
    for number, value in enumerate(graph.inputs):
        if value.dtype != np.float32:
            steps[value.name] = numbers[value.name] = random.integers(0, 2, value.shape).astype(value.dtype)
            continue
        value.qparams = grid(sample.low * (1 + 0.1 * number), sample.high * (1 + 0.07 * number))
        made = activation_qparams(value.qparams, kind)
        assert made is not None
        low, high = (round(end / made.scale[0]) + made.zero_point[0] for end in (sample.low, sample.high))
        steps[value.name] = random.integers(low + (sample.low == 0), high + 1, value.shape).astype(kind)
        offset = steps[value.name].astype(np.float32) - np.float32(made.zero_point[0])
        numbers[value.name] = offset * np.float32(made.scale[0])
    return steps, numbers


def check(sample: Sample, kind: str, path: Path, *, own_grid: bool) -> IntegerGraph:
    """The call in integers is that in float; with ``own_grid`` where its results are on a grid that clips."""
    graph = sample.graph()
    steps, numbers = given(sample, graph, kind)
    expected = run(graph, numbers, MODES[1], path)
    for value in graph.outputs:
        if value.dtype == np.float32:
            ends = expected[value.name].min() * 0.9, expected[value.name].max() * 0.9
            wanted = grid(*(float(end) for end in ends))
            value.qparams = wanted if own_grid else given_grid(sample, graph, kind) or wanted
    made = to_integers(graph, catalogue(), activations=kind, io_type=kind)
    for mode in MODES:
        found = run(made.graph, steps, mode, path)
        for value, whole in zip(graph.outputs, made.graph.outputs, strict=True):
            if value.dtype != np.float32:
                # an index belongs to one of several that are equal; numbers on two grids are hardly ever
                assert np.mean(found[value.name] != expected[value.name]) <= 0.05
                continue
            assert whole.quantization is not None and whole.quantization.zero_point is not None
            scale, zero = float(whole.quantization.scale[0]), int(whole.quantization.zero_point[0])
            ends = np.iinfo(kind)
            clipped = np.clip(expected[value.name], (ends.min - zero) * scale, (ends.max - zero) * scale)
            off = np.abs((found[value.name].astype(np.float64) - zero) * scale - clipped) / scale
            assert off.max(initial=0) <= ROUGH.get((sample.type, kind), STEPS)
    return made


def given_grid(sample: Sample, graph: TargetGraph, kind: str) -> QParams | None:
    """The grid that the kernel itself gives its results."""
    fixed = KERNELS[sample.type].fixed
    if kind in fixed:
        (scale, zero), ends = fixed[kind], np.iinfo(kind)
        return QParams(kind, (scale,), (zero,), int(ends.min), int(ends.max))
    if KERNELS[sample.type].relation == "same" and len(graph.inputs) == 1:
        return graph.inputs[0].qparams
    return None


def test_each_row_has_samples() -> None:
    assert {sample.type for sample in SAMPLES} == set(KERNELS)


@pytest.mark.parametrize(("type", "kind"), ROWS)
def test_kernel(type: str, kind: str, tmp_path: Path) -> None:
    relation = KERNELS[type].relation
    for sample in SAMPLES:
        if sample.type != type:
            continue
        made = check(sample, kind, tmp_path / "m.tflite", own_grid=True)
        types = [operator.type for operator in made.graph.operators]
        if "BATCH_MATMUL" in types and type == "RESIZE_BILINEAR":
            assert kind == "int16"  # see test_integer_resizes
            continue
        assert type in types and not made.fallbacks
        assert (
            types == [type] or relation in ("same", "fixed") or (relation == "compared" and kind == "int16")
        )
        if relation in ("same", "fixed") and len(sample.graph().inputs) == 1 and type not in RESULTS:
            made = check(sample, kind, tmp_path / "m.tflite", own_grid=False)
            assert [operator.type for operator in made.graph.operators] == [type]
            assert not made.requantized


@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_wide_numbers_are_compared_in_float(scale: float) -> None:
    """LiteRT would end the process."""
    graph = Sample("LESS", [(3, 5), (3, 5)], [(3, 5)]).graph()
    for value in graph.inputs:
        value.qparams = QParams("int8", (scale,), (0,), -128, 127)
    assert bool(to_integers(graph, catalogue()).fallbacks) == (scale > 1)


@pytest.mark.parametrize("type", ["ADD", "SUB"])
@pytest.mark.parametrize("scales", [(1.0, 0.5, 0.25), (0.25, 0.5, 1.0), (1.0, 1.0006, 1.0)])
def test_sums_of_int16_with_powers_of_two(
    type: str, scales: tuple[float, float, float], tmp_path: Path
) -> None:
    """LiteRT's kernel for these takes few combinations, and rounds scales that are nearly such powers."""
    graph = Sample(type, [(3, 5), (3, 5)], [(3, 5)]).graph()
    for value, scale in zip((*graph.inputs, *graph.outputs), scales, strict=True):
        value.qparams = QParams("int16", (scale,), (0,), -32768, 32767)
    made = legalize(to_integers(graph, catalogue(), activations="int16", io_type="int16").graph)
    steps = {value.name: np.arange(-7, 8, dtype=np.int16).reshape(3, 5) * 2000 for value in made.inputs}
    x, y = (steps[value.name] * scale for value, scale in zip(made.inputs, scales, strict=False))
    exact = np.clip((x + y if type == "ADD" else x - y) / scales[2], -32768, 32767)
    (found,) = run(made, steps, MODES[1], tmp_path / "m.tflite").values()
    assert np.abs(found - exact).max() <= 1
