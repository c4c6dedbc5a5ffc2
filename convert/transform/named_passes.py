"""Passes by name: tmconvert's, MegEngine's names for them, and those that users register."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from tmconvert.errors import UsageError
from tmconvert.errors.suggestions import no_such_name
from tmconvert.passes.backward_fold_scale import BackwardFoldScale
from tmconvert.passes.drop_identities import DropIdentities
from tmconvert.passes.eliminate_common_subexpressions import EliminateCommonSubexpressions
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fold_constants import FoldConstants
from tmconvert.passes.fold_scale_bias import FoldScaleBias
from tmconvert.passes.fuse_add_mul import FuseAddMul
from tmconvert.passes.fuse_conv_bn import FuseConvBn
from tmconvert.passes.fuse_views import FuseViews
from tmconvert.passes.manager import Pass
from tmconvert.passes.merge_reductions import MergeReductions
from tmconvert.passes.norm_elem_wise import NormElemWise
from tmconvert.passes.propagate_qparams import PropagateQparams
from tmconvert.passes.select_decomposition import SelectDecomposition
from tmconvert.symbolics.op import Op
from tmconvert.transform.user_pass import UserPass

Make = Callable[[Mapping[str, Op]], Pass]


def _of_tflite(module: str, name: str) -> Make:
    """Returns a function that imports and makes a pass of TFLite."""
    path = f"tmconvert.targets.tflite.passes.{module}"
    return lambda catalogue: getattr(importlib.import_module(path), name)(catalogue)


# the name of each pass is that of its class; the attribute ``name`` is taken, too
SHIPPED: dict[str, Make] = {
    "BackwardFoldScale": BackwardFoldScale,
    "DropIdentities": lambda catalogue: DropIdentities(),
    "EliminateCommonSubexpressions": EliminateCommonSubexpressions,
    "EliminateDeadCode": lambda catalogue: EliminateDeadCode(),
    "FoldChannelShuffles": _of_tflite("fold_channel_shuffles", "FoldChannelShuffles"),
    "FoldConstants": FoldConstants,
    "FoldScaleBias": partial(FoldScaleBias, roots=False),
    "FoldTransposes": _of_tflite("fold_transposes", "FoldTransposes"),
    "FuseAddMul": FuseAddMul,
    "FuseConvBn": lambda catalogue: FuseConvBn(),
    "FuseViews": FuseViews,
    "MergeReductions": MergeReductions,
    "NormElemWise": NormElemWise,
    "PropagateQparams": lambda catalogue: PropagateQparams(),
    "SelectDecomposition": lambda catalogue: SelectDecomposition(takes_steps=False),
    "SinkReshapes": _of_tflite("sink_reshapes", "SinkReshapes"),
}
# MegEngine's passes, and what each is here, with what it requires there. The weights of a graph of ATen-style
# ops are constants, and its shapes are numbers that folding constants makes of them.
MEGENGINE: dict[str, tuple[str, ...]] = {
    "AttrToConstant": (),
    "FixInputShape": ("FoldConstants",),
    "FlodConstant": ("FoldConstants",),
    "NormElemWise": ("FoldConstants", "NormElemWise"),
    "FuseAddMul": ("FoldConstants", "NormElemWise", "FuseAddMul", "DropIdentities"),
    "FuseConvBn": ("FuseConvBn",),
    "BackwardFoldScale": ("FoldConstants", "NormElemWise", "BackwardFoldScale"),
}
_registered: dict[str, UserPass] = {}


def register(name: str, pass_: object, after: Sequence[str]) -> None:
    """Registers a pass of a user. Raises UsageError TM6051 for a name that is taken."""
    if not name or name in _by_name() or name in MEGENGINE:
        raise UsageError("TM6051", f"a pass cannot be called {name!r}: it is the name of another one")
    for other in after:
        known = [*_by_name(), *_registered]
        if other not in known:
            raise no_such_name(
                other, known, f"the pass {name} must come after a pass that there is not:", "TM6051"
            )
    _registered[name] = UserPass(name, pass_, tuple(_snake(other) for other in after))


@contextmanager
def temporary_passes() -> Iterator[None]:
    """Context manager that undoes registrations at its end."""
    before = dict(_registered)
    try:
        yield
    finally:
        _registered.clear()
        _registered.update(before)


def requested_passes(names: Sequence[object], catalogue: Mapping[str, Op]) -> list[Pass]:
    """Returns new passes for names, and for passes that are not registered; equal ones in a row once.

    Raises UsageError TM6051 for an unknown name.
    """
    found: list[Pass] = []
    for each in names:
        for step in _passes_of(each, catalogue):
            if not found or found[-1].name != step.name:
                found.append(step)
    return found


def with_required(passes: Sequence[Pass], catalogue: Mapping[str, Op]) -> list[Pass]:
    """Returns the passes, each after those that it requires."""
    order: list[Pass] = []

    def add(step: Pass, pending: frozenset[str]) -> None:
        for name in getattr(step, "after", ()):
            if name not in pending and all(other.name != name for other in order):
                for required in _passes_of(name, catalogue):
                    add(required, pending | {step.name})
        order.append(step)

    for step in passes:
        add(step, frozenset())
    return order


def _passes_of(each: object, catalogue: Mapping[str, Op]) -> list[Pass]:
    if not isinstance(each, str):
        name = getattr(each, "name", None) or getattr(each, "__name__", type(each).__name__)
        return [UserPass(str(name), each)]
    if each in _registered:
        return [_registered[each]]
    if each in MEGENGINE:
        return [SHIPPED[name](catalogue) for name in MEGENGINE[each]]
    by_name = _by_name()
    if each in by_name:
        return [by_name[each](catalogue)]
    raise no_such_name(each, [*_registered, *MEGENGINE, *by_name], "there is no pass", "TM6051")


def _by_name() -> dict[str, Make]:
    return {**SHIPPED, **{_snake(name): make for name, make in SHIPPED.items()}}


def _snake(name: str) -> str:
    """Returns the attribute ``name`` of a pass for the name of its class.

    >>> _snake("FuseConvBn")
    'fuse_conv_bn'
    """
    if name not in SHIPPED:
        return name
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name).lstrip("_")


def with_requested(passes: Sequence[Pass], requested: Sequence[Pass]) -> list[Pass]:
    """Returns the passes of a target with those that a user requests, each as early as its ``after`` allows.

    Raises UsageError TM6051 for one that must come after a pass that does not run.
    """
    order = list(passes)
    for number, step in enumerate(requested):
        needed = set(getattr(step, "after", ()))
        earlier = [order.index(other) + 1 for other in requested[:number]]
        position = max(earlier, default=0)
        while needed - {other.name for other in order[:position]}:
            if position == len(order):
                missing = ", ".join(sorted(needed - {other.name for other in order}))
                raise UsageError(
                    "TM6051",
                    f"the pass {step.name} must come after {missing}, which this conversion does not run",
                    notes=[("help", f"passes: {', '.join(dict.fromkeys(each.name for each in order))}")],
                )
            position += 1
        order.insert(position, step)
    return order
