"""Functionalizes writes through views: computes the new base from the new content of a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.names import aten_name, functional
from tmconvert.frontends.torch.tracing.recording.aliases import Tracked, View
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.frontends.torch.tracing.recording.tape import Value
from tmconvert.frontends.torch.tracing.sizes.integers import untraced
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.ir.types import Args

# (method, base, *arguments) -> Value like base
Emit = Callable[..., Value]
Writer = Callable[..., Value]


def written_back(
    emit: Emit, capture: Callable[[Any], Value], tracked: Tracked, base: Value, new: Value
) -> Value:
    """Returns ``base`` with ``new`` written to the elements of view ``tracked``. Raises UnsupportedError."""
    call = _view(tracked).call
    name = aten_name(call.name, call.is_method)
    name = functional(name) or name
    if name in RESHAPES or (name in EXPANSIONS and tracked.shape == _view(tracked).base.shape):
        return emit("reshape_as", base, new, base)
    if name in PERMUTATIONS:
        return emit("permute", base, new, _inverse_permutation(tracked, base))
    writer = WRITERS.get(name)
    args = call.args[1:] if call.args else ()
    kwargs = {key: value for key, value in call.kwargs.items() if key not in ("input", "self")}
    if writer is None:
        return _at_elements(emit, capture, tracked, base, new)
    return writer(emit, tracked, base, new, *args, **kwargs)


_RESHAPES = """view reshape flatten unflatten squeeze unsqueeze view_as reshape_as ravel _unsafe_view
    _reshape_alias contiguous detach alias data lift_fresh to type_as resolve_conj resolve_neg
    dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout"""
_PERMUTATIONS = "transpose swapaxes swapdims t T mT H adjoint permute movedim moveaxis numpy_T"
RESHAPES, PERMUTATIONS = frozenset(_RESHAPES.split()), frozenset(_PERMUTATIONS.split())
EXPANSIONS = frozenset(("expand", "expand_as", "broadcast_to"))  # torch writes through those that add nothing


def _view(tracked: Tracked) -> View:
    assert tracked.view is not None
    return tracked.view


def _select(emit: Emit, tracked: Tracked, base: Value, new: Value, dim: object, index: object) -> Value:
    return emit("select_scatter", base, base, new, dim, index)


def _slice(
    emit: Emit,
    tracked: Tracked,
    base: Value,
    new: Value,
    dim: object = 0,
    start: object = None,
    end: object = None,
    step: object = 1,
) -> Value:
    return emit("slice_scatter", base, base, new, dim, start, end, step)


def _narrow(
    emit: Emit, tracked: Tracked, base: Value, new: Value, dim: object, start: object, length: object
) -> Value:
    return emit("narrow_scatter", base, base, new, dim, start)


def _item(emit: Emit, tracked: Tracked, base: Value, new: Value, index: object) -> Value:
    return emit("__setitem__", base, base, index, new)


def _diagonal(
    emit: Emit,
    tracked: Tracked,
    base: Value,
    new: Value,
    offset: object = 0,
    dim1: object = 0,
    dim2: object = 1,
) -> Value:
    return emit("diagonal_scatter", base, base, new, offset, dim1, dim2)


def _unbind(emit: Emit, tracked: Tracked, base: Value, new: Value, dim: object = 0) -> Value:
    return emit("select_scatter", base, base, new, dim, _view(tracked).place)


def _part(
    emit: Emit, tracked: Tracked, base: Value, new: Value, _: object = None, dim: object = 0, **more: object
) -> Value:
    """Writes back to one output of a split, whose offset is the sum of the sizes before it."""
    view = _view(tracked)
    return emit("part_scatter", base, base, new, dim, list(view.call.results())[: view.place])


def _real(emit: Emit, tracked: Tracked, base: Value, new: Value) -> Value:
    return emit("complex", base, new, emit("imag", new, base))


def _imag(emit: Emit, tracked: Tracked, base: Value, new: Value) -> Value:
    return emit("complex", base, emit("real", new, base), new)


def _same_again(name: str) -> Writer:
    return lambda emit, tracked, base, new: emit(name, base, new)


WRITERS: dict[str, Writer] = {
    "select": _select,
    "slice": _slice,
    "narrow": _narrow,
    "__getitem__": _item,
    "diagonal": _diagonal,
    "unbind": _unbind,
    "__iter__": _unbind,
    "real": _real,
    "imag": _imag,
    "conj": _same_again("conj"),
    "view_as_real": _same_again("view_as_complex"),
    "view_as_complex": _same_again("view_as_real"),
    **dict.fromkeys(["split", "chunk", "split_with_sizes", "unsafe_split", "unsafe_chunk"], _part),
}


def _again(tracked: Tracked, base: Value, tensor: torch.Tensor) -> torch.Tensor:
    """Applies the call that made the view to another tensor."""
    view = _view(tracked)
    trees = map_leaves(
        lambda leaf: tensor if leaf is view.viewed else untraced(leaf), (view.call.args, view.call.kwargs)
    )
    if any(isinstance(leaf, Value) for leaf in leaves(trees)):
        raise _unsupported(view.call.name)
    result = view.call.function(*trees[0], **trees[1])
    return next(leaf for place, leaf in enumerate(leaves(result)) if place == view.place)


def _inverse_permutation(tracked: Tracked, base: Value) -> tuple[int, ...]:
    probe = torch.empty([axis + 2 for axis in range(len(_view(tracked).base.shape))], device="meta")
    order = [extent - 2 for extent in _again(tracked, base, probe).shape]
    return tuple(order.index(axis) for axis in range(len(order)))


def _at_elements(
    emit: Emit, capture: Callable[[Any], Value], tracked: Tracked, base: Value, new: Value
) -> Value:
    """Handles all other views, by the flat indices of their elements in the base."""
    shape = _view(tracked).base.shape
    places = torch.arange(torch.Size(shape).numel()).reshape(shape)
    try:
        index = _again(tracked, base, places)
    except (RuntimeError, TypeError) as error:
        raise _unsupported(_view(tracked).call.name) from error
    flat = emit("reshape", base, base, (-1,))
    values = emit("reshape", base, new, (-1,))
    flat = emit("index_put", base, flat, (capture(index.reshape(-1).clone()),), values)
    return emit("reshape_as", base, flat, base)


def _unsupported(what: str) -> UnsupportedError:
    return UnsupportedError(
        "TM2012",
        f"the module writes to a tensor through a view by {what}, which tmconvert cannot functionalize",
        source=user_place(),
        notes=[("help", "compute a new tensor instead of writing to this one")],
    )


def from_its_start(input: Any, src: object, size: object, stride: object, storage_offset: Any = None) -> Args:
    """Returns arguments of ``as_strided_scatter`` with the offset counted from the tensor's first element.

    Raises UnsupportedError TM2012.
    """
    if not input.is_contiguous():
        raise UnsupportedError(
            "TM2012",
            "the module addresses the memory of a tensor whose elements are not contiguous",
            source=user_place(),
        )
    offset = 0 if storage_offset is None else storage_offset - input.storage_offset()
    return input, src, size, stride, offset
