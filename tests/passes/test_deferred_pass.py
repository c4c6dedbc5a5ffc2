"""Passes that are imported for the graphs that need them: they are not skipped on others."""

from __future__ import annotations

import pytest

from tests.passes.test_golden import CASES, GOLDEN, pass_of
from tmconvert.ir.parser import parse_graph
from tmconvert.passes.deferred_pass import DeferredPass
from tmconvert.passes.rewriting import PassRecord
from tmconvert.symbolics.registry import catalogue
from tmconvert.symbolics.target_names import TARGETS
from tmconvert.targets.onnx.target import newest_opset
from tmconvert.targets.options import Integers, TargetOptions
from tmconvert.targets.registry import passes_for


def _deferred() -> dict[str, DeferredPass]:
    options = [TargetOptions(target, 17, integers=Integers(reduce_range=True)) for target in TARGETS]
    options += [
        TargetOptions("onnx", newest_opset()),
        TargetOptions("onnx", newest_opset(), float_type="float16"),
    ]
    passes = [step for each in options for step in passes_for(each, catalogue())]
    return {step.name: step for step in passes if isinstance(step, DeferredPass)}


DEFERRED = _deferred()


def test_each_is_the_pass_of_its_name() -> None:
    assert len(DEFERRED) > 12
    assert [step.loaded.name for step in DEFERRED.values()] == list(DEFERRED)


@pytest.mark.parametrize("case", [case for case in CASES if case.partition("--")[0] in DEFERRED])
def test_a_graph_that_a_pass_changes_meets_its_conditions(case: str) -> None:
    before = (GOLDEN / f"{case}.before.ir").read_text()
    record: PassRecord = pass_of(case).run(parse_graph(before))
    assert record.done or record.refused
    assert DEFERRED[case.partition("--")[0]].is_needed(parse_graph(before))


def test_it_does_nothing_on_others(monkeypatch: pytest.MonkeyPatch) -> None:
    step = DeferredPass("tmconvert.passes.no_such_pass:NoSuchPass", [lambda name: name == "aten::tanh"])
    graph = parse_graph((GOLDEN / "fuse_rsqrt.before.ir").read_text())
    assert step.name == "no_such_pass"
    assert not step.run(graph)
