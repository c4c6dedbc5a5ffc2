"""The passes of each target, in order."""

from __future__ import annotations

from collections.abc import Mapping

from tmconvert.passes.decompose import Decompose
from tmconvert.passes.drop_identities import DropIdentities
from tmconvert.passes.eliminate_common_subexpressions import EliminateCommonSubexpressions
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fold_constants import FoldConstants
from tmconvert.passes.fold_scale_bias import FoldScaleBias
from tmconvert.passes.fuse_conv_bn import FuseConvBn
from tmconvert.passes.fuse_views import FuseViews
from tmconvert.passes.manager import Pass
from tmconvert.passes.merge_reductions import MergeReductions
from tmconvert.passes.propagate_qparams import PropagateQParams
from tmconvert.passes.select_decomposition import SelectDecomposition
from tmconvert.symbolics.op import Op
from tmconvert.targets.onnx.reduce_weight_range import ReduceWeightRange
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.tflite.passes.align_ranks import AlignRanks
from tmconvert.targets.tflite.passes.assign_layout import AssignLayout
from tmconvert.targets.tflite.passes.fold_channel_shuffles import FoldChannelShuffles
from tmconvert.targets.tflite.passes.fold_transposes import FoldTransposes
from tmconvert.targets.tflite.passes.group_statistics import GroupStatistics
from tmconvert.targets.tflite.passes.narrow_weights import NarrowWeights
from tmconvert.targets.tflite.passes.sink_reshapes import SinkReshapes


def pipeline(goal: TargetOptions, catalogue: Mapping[str, Op]) -> list[Pass]:
    """Fresh passes for one conversion."""
    shared: list[Pass] = [
        SelectDecomposition(takes_steps=goal.target == "tflite" and goal.integers is not None),
        EliminateDeadCode(),
        PropagateQParams(dissolves=not goal.keeps_grids),
        FoldConstants(catalogue),
        FuseConvBn(),
        MergeReductions(catalogue),
        Decompose(catalogue, goal.target, goal.version),
    ]
    clean: list[Pass] = [FoldConstants(catalogue), EliminateDeadCode()]
    if goal.target == "tflite":
        shared.insert(-1, GroupStatistics(catalogue, goal.version))
        views: list[Pass] = [FuseViews(catalogue), DropIdentities(), EliminateDeadCode()]
        moved: list[Pass] = [FoldTransposes(catalogue), SinkReshapes(catalogue), EliminateDeadCode()]
        scales = FoldScaleBias(catalogue, roots=True)
        plan: list[Pass] = [
            AlignRanks(catalogue),
            *views,
            EliminateCommonSubexpressions(catalogue),
            scales,
            *moved,
            *views,
        ]
        plan += [SinkReshapes(catalogue), *views, scales]  # views that met are one now
        plan += [FoldChannelShuffles(catalogue), DropIdentities()]
        layout = AssignLayout(catalogue, goal.io_layout, dict(goal.io_layouts))
        asked = goal.integers
        narrow: list[Pass] = [NarrowWeights()] if asked is not None and asked.narrows_weights else []
        return [*shared, *plan, *clean, layout, EliminateDeadCode(), *narrow]
    shared += [
        DropIdentities(),
        EliminateCommonSubexpressions(catalogue),
        FoldScaleBias(catalogue, roots=False),
    ]
    if goal.target == "caffe":
        # fused, a chain of views comes apart again into the fewest steps
        steps: list[Pass] = [FuseViews(catalogue), Decompose(catalogue, goal.target, goal.version)]
        return [*shared, *steps, *clean]
    asked = goal.integers
    reduce: list[Pass] = [ReduceWeightRange()] if asked is not None and asked.reduce_range else []
    return [*shared, *clean, *reduce]
