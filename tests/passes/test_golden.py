"""Each pass as text: what goes in, NAME.before.ir, and what comes out, NAME.after.ir.

``pytest tests/passes/test_golden.py --update-golden`` writes the latter; review the diff as code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.passes.graphs import apply
from tmconvert.ir.parser import parse_graph
from tmconvert.passes.decompose import Decompose
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fold_constants import FoldConstants
from tmconvert.passes.fuse_conv_bn import FuseConvBn
from tmconvert.passes.fuse_views import FuseViews
from tmconvert.passes.merge_reductions import MergeReductions
from tmconvert.passes.propagate_qparams import PropagateQparams
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.tflite.passes.align_ranks import AlignRanks
from tmconvert.targets.tflite.passes.assign_layout import AssignLayout

GOLDEN = Path(__file__).parent / "golden"
PASSES: dict[str, Any] = {
    "align_ranks": lambda: AlignRanks(catalogue()),
    "assign_layout": lambda: AssignLayout(catalogue(), "nhwc"),
    "decompose": lambda: Decompose(catalogue(), "caffe", 0),
    "eliminate_dead_code": EliminateDeadCode,
    "fold_constants": lambda: FoldConstants(catalogue()),
    "fuse_conv_bn": FuseConvBn,
    "fuse_views": lambda: FuseViews(catalogue()),
    "merge_reductions": lambda: MergeReductions(catalogue()),
    "propagate_qparams": PropagateQparams,
}
CASES = sorted(path.name.removesuffix(".before.ir") for path in GOLDEN.glob("*.before.ir"))


def test_every_pass_has_a_case() -> None:
    assert {case.partition("--")[0] for case in CASES} == set(PASSES)
    assert all(PASSES[name]().name == name for name in PASSES)


@pytest.mark.parametrize("case", CASES)
def test_before_becomes_after(case: str, update_golden: bool) -> None:
    before = (GOLDEN / f"{case}.before.ir").read_text()
    graph = parse_graph(before)
    assert graph.to_text() == before, "a golden file is written as the printer writes it"
    assert apply(PASSES[case.partition("--")[0]](), graph)
    golden = GOLDEN / f"{case}.after.ir"
    if update_golden:
        golden.write_text(graph.to_text())
    assert graph.to_text() == golden.read_text()
    assert parse_graph(graph.to_text()).to_text() == graph.to_text()


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("assign_layout")])
def test_a_second_run_changes_nothing(case: str) -> None:
    graph = parse_graph((GOLDEN / f"{case}.after.ir").read_text())
    assert not apply(PASSES[case.partition("--")[0]](), graph)
