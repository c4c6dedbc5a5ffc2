"""The first and the last passes of every target."""

from __future__ import annotations

from tmconvert.passes.deferred_pass import Condition, DeferredPass, calls, has
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fold_constants import FoldConstants
from tmconvert.passes.manager import Pass
from tmconvert.symbolics.op import Ops
from tmconvert.symbolics.registry import op_has
from tmconvert.symbolics.traits import (
    Arithmetic,
    Clamp,
    Concatenates,
    Identity,
    KeepsQparams,
    Reduction,
    SelectsElements,
)

# the passes that find an op in its steps, by module and class, with the ops that the steps have
_IDIOMS: dict[str, list[Condition]] = {
    "fuse_gelu:FuseGelu": [has(Arithmetic), calls("aten::erf", "aten::tanh")],
    "fuse_hardswish:FuseHardswish": [
        has(Arithmetic),
        lambda name: name == "aten::hardsigmoid" or op_has(name, Clamp),
    ],
    "fuse_rsqrt:FuseRsqrt": [calls("aten::sqrt")],
    "fuse_layer_norm:FuseLayerNorm": [has(Arithmetic), calls("aten::mean")],
    "fuse_attention:FuseAttention": [calls("aten::matmul"), calls("aten::softmax")],
    "fuse_select:FuseSelect": [calls("aten::split_with_sizes", "aten::slice")],
}


def initial_passes(catalogue: Ops, *, keeps_qparams: bool, takes_decompositions: bool = False) -> list[Pass]:
    """Returns the passes on the normalized graph that run before ops without symbolic are decomposed.

    ``keeps_qparams`` keeps each tensor with QParams as a tensor of the file; ``takes_decompositions`` prefers
    the decomposition of calls that have no integer kernel.
    """
    return [
        _deferred(
            "select_decomposition:SelectDecomposition",
            [calls("tm::in_steps")],
            takes_steps=takes_decompositions,
        ),
        EliminateDeadCode(),
        _deferred(
            "propagate_qparams:PropagateQparams",
            [lambda name: name == "tm::requantize" or op_has(name, KeepsQparams, SelectsElements)],
            dissolves=not keeps_qparams,
        ),
        FoldConstants(catalogue),
        fused_batch_norms(),
        *fused_idioms(catalogue),
        _deferred("merge_reductions:MergeReductions", [has(Reduction)], catalogue),
        _deferred("merge_concats:MergeConcats", [has(Concatenates)], catalogue),
    ]


def fused_idioms(catalogue: Ops) -> list[Pass]:
    """Returns the passes that find ops in the steps that frameworks and exporters write of them.

    They leave the steps, which nothing uses any more, to dead-code elimination.
    """
    fused = (_deferred(place, conditions, catalogue) for place, conditions in _IDIOMS.items())
    return [*fused, EliminateDeadCode()]


def fused_batch_norms() -> Pass:
    """Returns the pass that fuses batch normalizations into convolutions and matrix products."""
    return _deferred("fuse_conv_bn:FuseConvBn", [calls("aten::batch_norm")])


def folded_scales(catalogue: Ops) -> Pass:
    """Returns the pass that folds factors and summands into linear layers."""
    return _deferred("fold_scale_bias:FoldScaleBias", [has(Arithmetic)], catalogue, roots=False)


def dropped_identities() -> Pass:
    """Returns the pass that removes calls whose result is their operand."""
    return _deferred("drop_identities:DropIdentities", [has(Identity, Arithmetic)])


def final_passes(catalogue: Ops) -> list[Pass]:
    """Returns the last passes of every target: constant folding and dead-code elimination."""
    return [FoldConstants(catalogue), EliminateDeadCode()]


def float_types(to: str | None) -> list[Pass]:
    """Returns the pass that gives all floats the type ``to``; none where it is None."""
    if to is None:
        return []
    from tmconvert.passes.change_float_types import ChangeFloatTypes

    return [ChangeFloatTypes(("float64", "float32", "float16"), to)]


def _deferred(place: str, conditions: list[Condition], *args: object, **kwargs: object) -> Pass:
    return DeferredPass(f"tmconvert.passes.{place}", conditions, *args, **kwargs)
