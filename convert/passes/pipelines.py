"""The passes of each target, in order."""

from __future__ import annotations

from collections.abc import Mapping

from ..symbolics.op import Op
from ..targets import Goal
from .align_ranks import AlignRanks
from .assign_layout import AssignLayout
from .choose_steps import ChooseSteps
from .decompose import Decompose
from .drop_identities import DropIdentities
from .eliminate_dead_code import EliminateDeadCode
from .fold_constants import FoldConstants
from .fold_scales import FoldScales
from .fuse_conv_bn import FuseConvBn
from .fuse_views import FuseViews
from .group_statistics import GroupStatistics
from .manager import Pass
from .merge_equal import MergeEqual
from .merge_reductions import MergeReductions
from .move_views import MoveViews
from .narrow_weights import NarrowWeights
from .reduce_weight_range import ReduceWeightRange
from .route_channels import RouteChannels
from .settle_quantization import SettleQuantization
from .sink_views import SinkViews


def pipeline(goal: Goal, catalogue: Mapping[str, Op]) -> list[Pass]:
    """Fresh passes for one conversion."""
    shared: list[Pass] = [
        ChooseSteps(takes_steps=goal.target == "tflite" and goal.integers is not None),
        EliminateDeadCode(),
        SettleQuantization(dissolves=not goal.keeps_grids),
        FoldConstants(catalogue),
        FuseConvBn(),
        MergeReductions(catalogue),
        Decompose(catalogue, goal.target, goal.version),
    ]
    clean: list[Pass] = [FoldConstants(catalogue), EliminateDeadCode()]
    if goal.target == "tflite":
        shared.insert(-1, GroupStatistics(catalogue, goal.version))
        views: list[Pass] = [FuseViews(catalogue), DropIdentities(), EliminateDeadCode()]
        moved: list[Pass] = [MoveViews(catalogue), SinkViews(catalogue), EliminateDeadCode()]
        scales = FoldScales(catalogue, roots=True)
        plan: list[Pass] = [AlignRanks(catalogue), *views, MergeEqual(catalogue), scales, *moved, *views]
        plan += [SinkViews(catalogue), *views, scales]  # views that met are one now
        plan += [RouteChannels(catalogue), DropIdentities()]
        layout = AssignLayout(catalogue, goal.io_layout, dict(goal.io_layouts))
        asked = goal.integers
        narrow: list[Pass] = [NarrowWeights()] if asked is not None and asked.narrows_weights else []
        return [*shared, *plan, *clean, layout, EliminateDeadCode(), *narrow]
    shared += [DropIdentities(), MergeEqual(catalogue), FoldScales(catalogue, roots=False)]
    if goal.target == "caffe":
        # fused, a chain of views comes apart again into the fewest steps
        steps: list[Pass] = [FuseViews(catalogue), Decompose(catalogue, goal.target, goal.version)]
        return [*shared, *steps, *clean]
    asked = goal.integers
    reduce: list[Pass] = [ReduceWeightRange()] if asked is not None and asked.reduce_range else []
    return [*shared, *clean, *reduce]
