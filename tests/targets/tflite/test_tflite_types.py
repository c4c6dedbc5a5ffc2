"""Which element types the releases of TFLite run, and what is written for those that do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.symbolics.ops.harness import Const, assert_target_matches, reference
from tests.targets.tflite.integer_samples import SAMPLES, Sample, weights
from tests.targets.tflite.integer_samples import bias as bias_of
from tests.targets.tflite.test_integer_kernels import MODES, given, grid, run
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.tflite.integer.legalize import legalize
from tmconvert.targets.tflite.integer.stages import to_integers
from tmconvert.targets.tflite.runtimes import first_release, kernel_release, types_of, types_refusal

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_the_table_is_that_of_the_measurements() -> None:
    """If this fails: python tools/make_tflite_types.py"""
    script = [sys.executable, "tools/make_tflite_types.py", "--print"]
    made = subprocess.run(script, capture_output=True, text=True, check=True, cwd=ROOT)
    assert made.stdout == (ROOT / "convert/targets/tflite/data/element_types.txt").read_text(encoding="utf-8")


def test_what_releases_run() -> None:
    assert first_release("QUANTIZE", "int8q>int16q") == 23
    assert first_release("QUANTIZE", "float32>int16q") == 14  # the oldest that was measured
    assert first_release("QUANTIZE", "nothing>nothing") == 0
    assert kernel_release("LOG", "int8") == 15
    assert kernel_release("FULLY_CONNECTED", "int16") == 14


def test_a_refusal_says_the_types_and_the_release() -> None:
    x, y = Value("x", np.dtype(np.int8), (2,)), Value("y", np.dtype(np.int8), (2,))
    operator = Operator("NEG", [x], [y], {}, "neg")
    assert types_of(operator) == "int8>int8"
    assert types_refusal(operator, 20) is None
    assert types_refusal(operator, 19) == (
        "the runtime 2.19 does not support TFLite's NEG of int8",
        "the runtime 2.20 and later support it: --runtime 2.20",
    )


def test_integers_that_the_runtime_does_not_take_are_cast() -> None:
    x = np.arange(-6, 6, dtype=np.int8).reshape(3, 4)
    for runtime in (14, 23):
        assert_target_matches("tflite", runtime, "aten::neg", [x], {}, reference("aten::neg", [x], {}))


def test_one_slope_is_no_prelu() -> None:
    """XNNPACK computed PRELU with one slope wrongly before 2.17."""
    x = np.linspace(-2, 2, 105, dtype=np.float32).reshape(3, 5, 7)
    args = [x, Const(np.float32([0.25]))]
    assert_target_matches("tflite", 14, "aten::prelu", args, {}, reference("aten::prelu", args, {}))


ROWS = Sample(
    "FULLY_CONNECTED", [(5, 2, 4), weights(12, 4, axis=0), bias_of(12)], [(5, 2, 12)], {"keep_num_dims": True}
)
# a call, the type of its tensors, a runtime, and what stands there for it
OTHERS = [
    ("EQUAL", "int16", 20, ["CAST", "CAST", "EQUAL"]),
    ("NOT_EQUAL", "int16", 20, ["CAST", "CAST", "NOT_EQUAL"]),
    ("GREATER", "int16", 22, ["CAST", "CAST", "GREATER"]),
    ("LESS_EQUAL", "int16", 18, ["CAST", "CAST", "LESS_EQUAL"]),
    ("LESS", "int16", 14, ["LESS"]),
    ("TILE", "int16", 18, ["CAST", "TILE", "CAST"]),
    ("DYNAMIC_UPDATE_SLICE", "int16", 18, ["CAST", "CAST", "DYNAMIC_UPDATE_SLICE", "CAST"]),
    ("SUM", "int16", 18, ["MEAN", "MUL"]),
    ("BATCH_MATMUL", "int8", 21, ["MUL", "BATCH_MATMUL"]),
    ("BATCH_MATMUL", "int8", 22, ["BATCH_MATMUL"]),
    ("FULLY_CONNECTED", "int16", 18, ["RESHAPE", "FULLY_CONNECTED", "RESHAPE"]),
]


def forms(graph: TargetGraph) -> list[str]:
    return [operator.type for operator in graph.operators]


def check(made: TargetGraph, older: TargetGraph, steps: dict[str, np.ndarray], path: Path, most: int) -> None:
    """Both graphs give the same integers, but for so many steps."""
    assert not [each for each in older.operators if types_refusal(each, int(older.version))]
    for mode in MODES:
        wanted, found = run(made, steps, mode, path), run(older, steps, mode, path)
        for name in wanted:
            off = np.abs(found[name].astype(np.int64) - wanted[name].astype(np.int64))
            assert off.max(initial=0) <= most


@pytest.mark.parametrize(("type", "kind", "runtime", "expected"), OTHERS)
def test_other_forms_for_older_runtimes(
    type: str, kind: str, runtime: int, expected: list[str], tmp_path: Path
) -> None:
    sample = next(each for each in SAMPLES if each.type == type)
    if type == "FULLY_CONNECTED":
        SAMPLES.append(sample := ROWS)
    graph = sample.graph()
    steps, numbers = given(sample, graph, kind)
    computed = run(graph, numbers, MODES[1], tmp_path / "f.tflite")
    for value in graph.outputs:
        if value.dtype == np.float32:
            value.qparams = grid(float(computed[value.name].min()), float(computed[value.name].max()))
    made = to_integers(graph, catalogue(), activations=kind, io_type=kind).graph
    made.version = runtime
    older = legalize(made)
    moving = [each for each in forms(older) if each in expected]
    assert moving == expected or forms(older) == expected
    is_requantized = expected[0] in ("QUANTIZE", "MUL")
    check(made, older, steps, tmp_path / "m.tflite", 1 if is_requantized else 2 * (type == "SUM"))


def test_int8_becomes_int16_by_a_sum(tmp_path: Path) -> None:
    """No TensorFlow up to 2.21 has QUANTIZE of int8 to int16."""
    graph = TargetGraph("tflite", 18, "sum")
    graph.inputs = [Value("x", np.dtype(np.float32), (3, 5)), Value("y", np.dtype(np.float32), (3, 5))]
    graph.outputs = [Value("z", np.dtype(np.float32), (3, 5))]
    graph.operators = [Operator("ADD", list(graph.inputs), list(graph.outputs), {}, "add")]
    graph.input_names, graph.output_names = ["x", "y"], ["z"]
    graph.inputs[0].qparams = grid(-2.0, 3.0)
    graph.inputs[1].qparams = replace_kind(grid(-1.0, 1.0))
    graph.outputs[0].qparams = replace_kind(grid(-3.0, 4.0))
    made = to_integers(graph, catalogue()).graph
    older = legalize(made)
    assert forms(made) == ["QUANTIZE", "ADD"]
    assert forms(older) == ["CAST", "ADD", "ADD"]
    random = np.random.default_rng(0)
    steps = {value.name: random.integers(-100, 100, (3, 5)).astype(value.dtype) for value in made.inputs}
    check(made, older, steps, tmp_path / "m.tflite", 0)


def replace_kind(given: object) -> object:
    from dataclasses import replace

    scale = given.scale[0] / 200  # type: ignore[attr-defined]
    return replace(
        given,
        dtype="int16",
        scale=(scale,),
        zero_point=(0,),
        quant_min=-32767,
        quant_max=32767,  # type: ignore[type-var]
    )


def test_products_broadcast_above_rank_4(tmp_path: Path) -> None:
    """The process ends in tflite-runtime 2.14."""
    sample = next(each for each in SAMPLES if each.type == "MUL" and len(each.results[0]) > 4)
    graph = sample.graph()
    steps, _ = given(sample, graph, "int8")
    graph.outputs[0].qparams = grid(-6.0, 9.0)
    made = to_integers(graph, catalogue()).graph
    made.version = 14
    older = legalize(made)
    assert forms(older) == ["BROADCAST_TO", "BROADCAST_TO", "MUL"]
    check(made, older, steps, tmp_path / "m.tflite", 0)
