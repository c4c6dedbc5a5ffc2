"""The first and the last passes of every target."""

from __future__ import annotations

from collections.abc import Mapping

from tmconvert.passes.change_float_types import ChangeFloatTypes
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fold_constants import FoldConstants
from tmconvert.passes.fuse_attention import FuseAttention
from tmconvert.passes.fuse_conv_bn import FuseConvBn
from tmconvert.passes.fuse_gelu import FuseGelu
from tmconvert.passes.fuse_hardswish import FuseHardswish
from tmconvert.passes.fuse_layer_norm import FuseLayerNorm
from tmconvert.passes.fuse_rsqrt import FuseRsqrt
from tmconvert.passes.fuse_select import FuseSelect
from tmconvert.passes.manager import Pass
from tmconvert.passes.merge_concats import MergeConcats
from tmconvert.passes.merge_reductions import MergeReductions
from tmconvert.passes.propagate_qparams import PropagateQparams
from tmconvert.passes.select_decomposition import SelectDecomposition
from tmconvert.symbolics.op import Op


def initial_passes(
    catalogue: Mapping[str, Op], *, keeps_qparams: bool, takes_decompositions: bool = False
) -> list[Pass]:
    """Returns the passes on the normalized graph that run before ops without symbolic are decomposed.

    ``keeps_qparams`` keeps each tensor with QParams as a tensor of the file; ``takes_decompositions`` prefers
    the decomposition of calls that have no integer kernel.
    """
    return [
        SelectDecomposition(takes_steps=takes_decompositions),
        EliminateDeadCode(),
        PropagateQparams(dissolves=not keeps_qparams),
        FoldConstants(catalogue),
        FuseConvBn(),
        *fused_idioms(catalogue),
        MergeReductions(catalogue),
        MergeConcats(catalogue),
    ]


def fused_idioms(catalogue: Mapping[str, Op]) -> list[Pass]:
    """Returns the passes that find ops in the steps that frameworks and exporters write of them.

    They leave the steps, which nothing uses any more, to dead-code elimination.
    """
    fused: list[Pass] = [
        fuse(catalogue)
        for fuse in (FuseGelu, FuseHardswish, FuseRsqrt, FuseLayerNorm, FuseAttention, FuseSelect)
    ]
    return [*fused, EliminateDeadCode()]


def final_passes(catalogue: Mapping[str, Op]) -> list[Pass]:
    """Returns the last passes of every target: constant folding and dead-code elimination."""
    return [FoldConstants(catalogue), EliminateDeadCode()]


def float_types(to: str | None) -> list[Pass]:
    """Returns the pass that gives all floats the type ``to``; none where it is None."""
    return [] if to is None else [ChangeFloatTypes(("float64", "float32", "float16"), to)]
