"""Each pass as text: what goes in, NAME.before.ir, what comes out, NAME.after.ir, and its record.

NAME is that of the pass, or PASS--CASE. ``pytest tests/passes/test_golden.py --update-golden`` writes the
latter two, and the first as the printer writes it; review the diff as code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.passes.graphs import apply, recorded
from tmconvert.ir.parser import parse_graph
from tmconvert.passes.change_float_types import ChangeFloatTypes
from tmconvert.passes.decompose import Decompose
from tmconvert.passes.drop_identities import DropIdentities
from tmconvert.passes.eliminate_common_subexpressions import EliminateCommonSubexpressions
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fold_constants import FoldConstants
from tmconvert.passes.fold_scale_bias import FoldScaleBias
from tmconvert.passes.fuse_attention import FuseAttention
from tmconvert.passes.fuse_conv_bn import FuseConvBn
from tmconvert.passes.fuse_gelu import FuseGelu
from tmconvert.passes.fuse_hardswish import FuseHardswish
from tmconvert.passes.fuse_layer_norm import FuseLayerNorm
from tmconvert.passes.fuse_rsqrt import FuseRsqrt
from tmconvert.passes.fuse_select import FuseSelect
from tmconvert.passes.fuse_views import FuseViews
from tmconvert.passes.merge_concats import MergeConcats
from tmconvert.passes.merge_reductions import MergeReductions
from tmconvert.passes.propagate_qparams import PropagateQparams
from tmconvert.passes.rewriting import PassRecord
from tmconvert.passes.select_decomposition import SelectDecomposition
from tmconvert.symbolics.registry import catalogue
from tmconvert.symbolics.target_names import TARGETS
from tmconvert.targets.onnx.passes.combine_slices import CombineSlices
from tmconvert.targets.onnx.passes.divide_by_roots import DivideByRoots
from tmconvert.targets.onnx.passes.drop_index_wraps import DropIndexWraps
from tmconvert.targets.onnx.passes.fuse_rms_norm import FuseRmsNorm
from tmconvert.targets.onnx.passes.hoist_transposes import HoistTransposes
from tmconvert.targets.onnx.passes.merge_reshapes import MergeReshapes
from tmconvert.targets.onnx.passes.reduce_weight_range import ReduceWeightRange
from tmconvert.targets.options import TFLITE_RUNTIME, Integers, TargetOptions
from tmconvert.targets.registry import passes_for, target_named
from tmconvert.targets.tflite.passes.align_ranks import AlignRanks
from tmconvert.targets.tflite.passes.assign_layout import AssignLayout
from tmconvert.targets.tflite.passes.fold_channel_shuffles import FoldChannelShuffles
from tmconvert.targets.tflite.passes.fold_transposes import FoldTransposes
from tmconvert.targets.tflite.passes.group_statistics import GroupStatistics
from tmconvert.targets.tflite.passes.narrow_weights import NarrowWeights
from tmconvert.targets.tflite.passes.sink_reshapes import SinkReshapes

GOLDEN = Path(__file__).parent / "golden"
PASSES: dict[str, Any] = {
    "align_ranks": lambda: AlignRanks(catalogue()),
    "assign_layout": lambda: AssignLayout(catalogue(), "nhwc"),
    "change_float_types": lambda: ChangeFloatTypes({"float64", "float16"}, "float32"),
    "combine_slices": lambda: CombineSlices(catalogue()),
    "decompose": lambda: Decompose(catalogue(), "caffe", 0),
    "divide_by_roots": lambda: DivideByRoots(catalogue()),
    "drop_identities": DropIdentities,
    "drop_index_wraps": lambda: DropIndexWraps(catalogue()),
    "eliminate_common_subexpressions": lambda: EliminateCommonSubexpressions(catalogue()),
    "eliminate_dead_code": EliminateDeadCode,
    "fold_channel_shuffles": lambda: FoldChannelShuffles(catalogue()),
    "fold_constants": lambda: FoldConstants(catalogue()),
    "fold_scale_bias": lambda: FoldScaleBias(catalogue()),
    "fold_transposes": lambda: FoldTransposes(catalogue()),
    "fuse_conv_bn": FuseConvBn,
    "fuse_attention": lambda: FuseAttention(catalogue()),
    "fuse_gelu": lambda: FuseGelu(catalogue()),
    "fuse_hardswish": lambda: FuseHardswish(catalogue()),
    "fuse_layer_norm": lambda: FuseLayerNorm(catalogue()),
    "fuse_rms_norm": lambda: FuseRmsNorm(catalogue()),
    "fuse_rsqrt": lambda: FuseRsqrt(catalogue()),
    "fuse_select": lambda: FuseSelect(catalogue()),
    "fuse_views": lambda: FuseViews(catalogue()),
    "group_statistics": lambda: GroupStatistics(catalogue(), TFLITE_RUNTIME),
    "group_statistics--older_runtime": lambda: GroupStatistics(catalogue(), 5),
    "hoist_transposes": lambda: HoistTransposes(catalogue()),
    "merge_concats": lambda: MergeConcats(catalogue()),
    "merge_reductions": lambda: MergeReductions(catalogue()),
    "merge_reshapes": lambda: MergeReshapes(catalogue()),
    "narrow_weights": NarrowWeights,
    "propagate_qparams": PropagateQparams,
    "reduce_weight_range": ReduceWeightRange,
    "select_decomposition": SelectDecomposition,
    "sink_reshapes": lambda: SinkReshapes(catalogue()),
}
NEWEST_OPSET = target_named("onnx").newer_versions(17)[-1]
CASES = sorted(path.name.removesuffix(".before.ir") for path in GOLDEN.glob("*.before.ir"))


def test_every_pass_has_a_case() -> None:
    """Every pass of every target, in every mode that has passes of its own."""
    names = {name.partition("--")[0] for name in PASSES}
    assert {case.partition("--")[0] for case in CASES} == names
    assert all(PASSES[name]().name == name.partition("--")[0] for name in PASSES)
    integers = Integers(reduce_range=True)
    options = [TargetOptions(target, 17, integers=integers) for target in TARGETS]
    options.append(TargetOptions("onnx", NEWEST_OPSET))
    assert {step.name for each in options for step in passes_for(each, catalogue())} == names


@pytest.mark.parametrize("case", CASES)
def test_before_becomes_after(case: str, update_golden: bool) -> None:
    graph = parse_graph((GOLDEN / f"{case}.before.ir").read_text())
    found = {".before.ir": graph.to_text()}
    record = recorded(pass_of(case), graph)
    found |= {".after.ir": graph.to_text(), ".record": record_text(record)}
    for suffix, text in found.items():
        golden = GOLDEN / f"{case}{suffix}"
        if update_golden:
            golden.write_text(text)
        assert text == golden.read_text()
    assert parse_graph(graph.to_text()).to_text() == graph.to_text()


def pass_of(case: str) -> Any:
    return (PASSES.get(case) or PASSES[case.partition("--")[0]])()


def record_text(record: PassRecord) -> str:
    return "".join(f"{event}\n" for event in (*record.done, *record.refused))


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("assign_layout")])
def test_a_second_run_changes_nothing(case: str) -> None:
    graph = parse_graph((GOLDEN / f"{case}.after.ir").read_text())
    EliminateDeadCode().run(graph)
    assert not apply(pass_of(case), graph)
