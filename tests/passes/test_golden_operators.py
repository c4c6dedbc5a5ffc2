"""Each pass on the operators of TFLite as text, before and after, and its record.

CASE.ir is the aten graph whose operators the pass gets: CASE.before; they become CASE.after. CASE is the name
of the pass, or PASS--CASE. ``pytest tests/passes/test_golden_operators.py --update-golden`` writes all but
the first; review the diff as code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.passes.test_golden import record_text
from tmconvert.ir.parser import parse_graph
from tmconvert.lowering.target_graph import TargetGraph, Value
from tmconvert.passes.rewriting import PassRecord
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME, TargetOptions
from tmconvert.targets.registry import target_named
from tmconvert.targets.tflite.passes.drop_reshapes import drop_reshapes
from tmconvert.targets.tflite.passes.fuse_activations import fuse_activations
from tmconvert.targets.tflite.passes.fuse_scales import fuse_scales
from tmconvert.targets.tflite.passes.merge_slices import merge_slices
from tmconvert.targets.tflite.passes.narrow_integers import narrow_integers
from tmconvert.targets.tflite.passes.own_biases import own_biases
from tmconvert.targets.tflite.passes.split_slices import split_slices

GOLDEN = Path(__file__).parent / "golden_operators"
PASSES: dict[str, Callable[[TargetGraph], PassRecord]] = {
    "drop_reshapes": drop_reshapes,
    "fuse_activations": fuse_activations,
    "fuse_activations--keeps_qparams": partial(fuse_activations, keeps_qparams=True),
    "fuse_scales": fuse_scales,
    "merge_slices": merge_slices,
    "narrow_integers": narrow_integers,
    "own_biases": own_biases,
    "split_slices": split_slices,
}
CASES = sorted(path.stem for path in GOLDEN.glob("*.ir"))


def test_every_pass_has_a_case() -> None:
    files = (path.stem for path in Path(fuse_activations.__code__.co_filename).parent.glob("*.py"))
    names = {name for name in files if name in PASSES}
    assert (
        {case.partition("--")[0] for case in CASES} == names == {name.partition("--")[0] for name in PASSES}
    )


@pytest.mark.parametrize("case", CASES)
def test_before_becomes_after(case: str, update_golden: bool) -> None:
    step = PASSES.get(case) or PASSES[case.partition("--")[0]]
    graph = parse_graph((GOLDEN / f"{case}.ir").read_text())
    options = TargetOptions("tflite", TFLITE_RUNTIME)
    lowered = target_named("tflite").lower(graph, catalogue(), options)
    assert not lowered.unsupported
    before = operators_text(lowered.graph)
    record = step(lowered.graph)
    after = operators_text(lowered.graph)
    assert bool(record) == (before != after)
    for suffix, text in {"before": before, "after": after, "record": record_text(record)}.items():
        golden = GOLDEN / f"{case}.{suffix}"
        if update_golden:
            golden.write_text(text)
        assert text == golden.read_text()


def operators_text(graph: TargetGraph) -> str:
    """One operator a line, with the values of small constants and the types of results."""
    lines = [f"graph({', '.join(map(typed, graph.inputs))}) -> ({', '.join(v.name for v in graph.outputs)})"]
    for operator in graph.operators:
        inputs = ", ".join("none" if value is None else operand(value) for value in operator.inputs)
        attributes = ", ".join(f"{name}={value}" for name, value in sorted(operator.attributes.items()))
        results = ", ".join(map(typed, operator.outputs))
        lines.append(f"  {results} = {operator.type}({inputs})" + f" {{{attributes}}}" * bool(attributes))
    return "".join(f"{line}\n" for line in lines)


def typed(value: Value) -> str:
    return f"{value.name}: {value.dtype}{list(value.shape)}"


def operand(value: Value) -> str:
    if value.data is None:
        return value.name
    numbers = value.data.tolist() if value.data.size <= 8 else "..."
    return f"{value.name}={numbers}" + f":{value.dtype}" * (value.dtype.kind != "f")
