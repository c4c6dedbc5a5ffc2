"""Lengths that key-value caches of transformers count in Python.

A layer with a sliding window keeps the last positions only, and counts all positions so far in an attribute.
That number is the length of a tensor of the cache: of a layer without a window, or of its own keys before the
window is full. In a run of the model it is that size, so that it stays dynamic; any other number is a
constant of the example.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import torch

from tmconvert.frontends.torch.tracing.sizes.replaced_functions import REPLACED

_COUNT = "cumulative_length"
_MASK_SIZES = "DynamicSlidingWindowLayer.get_mask_sizes"
_AXES = (2, -2)
_POSITIONS = -2  # the axis of keys [batch, heads, positions, width]


class LengthOf(NamedTuple):
    """A count of positions that is the length of the keys of the layer with this index."""

    layer: int


def cloned_cache(value: object, clones: dict[int, torch.Tensor]) -> Any:
    """Returns a deep copy of a cache with the tensors ``clones``, by the ids of those that they replace.

    Counts that are lengths of tensors are ``LengthOf`` in the copy.
    """
    found: Any = copy.deepcopy(value, dict(clones))
    for layers, copied in zip(_lists(value), _lists(found), strict=True):
        for layer, copied_layer in zip(layers, copied, strict=True):
            count = vars(layer).get(_COUNT)
            if isinstance(count, int):
                source = _source(layers, layer, count)
                if source is not None:
                    setattr(copied_layer, _COUNT, LengthOf(source))
    return found


def count_by_sizes(leaf: object, is_cache: Callable[[object], bool]) -> None:
    """Sets counts that are lengths of tensors, in the run that records the sizes of tensors."""
    for layers in _lists(leaf) if is_cache(leaf) else ():
        for layer in layers:
            count = vars(layer).get(_COUNT)
            if isinstance(count, LengthOf):
                setattr(layer, _COUNT, layers[count.layer].keys.shape[_POSITIONS])
                if _method(layer) == _MASK_SIZES:
                    layer.get_mask_sizes = functools.partial(_mask_sizes, layer)


def sizes_within_windows(
    wanted: Mapping[str, Mapping[int, str]], inputs: Mapping[str, torch.Tensor], caches: Iterable[object]
) -> dict[str, dict[int, str]]:
    """Returns ``dynamic_shapes`` in which a layer with a window has ``min(past,window-1)`` positions, where
    the request gives it the size of a layer without one.
    """
    found = {name: dict(axes) for name, axes in wanted.items()}
    names = {id(tensor): name for name, tensor in inputs.items()}
    for layers in (layers for cache in caches for layers in _lists(cache)):
        for layer in layers:
            count, window = (vars(layer).get(name) for name in (_COUNT, "sliding_window"))
            source = _source(layers, layer, count) if isinstance(count, int) else None
            if source is None or layers[source] is layer or not isinstance(window, int):
                continue
            whole = _size(found.get(names.get(id(layers[source].keys), ""), {}))
            from tmconvert.ir.symbolic.text import is_size_name

            for part in ("keys", "values"):
                axes = found.get(names.get(id(vars(layer).get(part)), ""), {})
                if is_size_name(whole) and _size(axes) == whole:
                    axes.update({axis: f"min({whole},{window - 1})" for axis in _AXES if axis in axes})
    return found


def windows_alone(wanted: Mapping[str, Mapping[int, str]], caches: Iterable[object]) -> list[str]:
    """Returns a note for caches whose layers all have a window: a full one hides the positions before."""
    for layers in (layers for cache in caches for layers in _lists(cache)):
        windows: list[Any] = [vars(layer).get("sliding_window") for layer in layers]
        if windows and all(isinstance(each, int) for each in windows) and any(map(_size, wanted.values())):
            return [
                "all layers of the cache have sliding windows: the file is right for at most "
                f"{min(windows) - 1} positions in them; a DynamicCache() without a configuration has no such "
                "limit"
            ]
    return []


def _size(axes: Mapping[int, str]) -> str:
    return next((axes[axis] for axis in _AXES if axis in axes), "")


def _method(layer: Any) -> str:
    return str(getattr(getattr(type(layer), "get_mask_sizes", None), "__qualname__", ""))


def _mask_sizes(layer: Any, query_length: int) -> tuple[int, int]:
    """Returns (length, offset) of the mask of a layer with a window, by a formula for all lengths."""
    smaller: Any = REPLACED["min"]
    held = smaller(layer.cumulative_length, layer.sliding_window - 1)
    return held + query_length, layer.cumulative_length - held


def _source(layers: list[Any], layer: Any, count: int) -> int | None:
    """Returns the index of a layer whose keys have ``count`` positions, without a window if possible."""
    same = [
        index
        for index, each in enumerate(layers)
        if isinstance(keys := vars(each).get("keys"), torch.Tensor)
        and keys.dim() >= -_POSITIONS
        and keys.shape[_POSITIONS] == count
    ]
    whole = [index for index in same if not isinstance(vars(layers[index]).get(_COUNT), int)]
    own = [index for index in same if layers[index] is layer]
    return next(iter([*whole, *own]), None)


def _lists(value: object) -> Iterator[list[Any]]:
    """Yields the lists of layers of a cache, and of the caches in its attributes."""
    for name, held in vars(value).items():
        if name == "layers" and isinstance(held, list):
            yield [each for each in held if hasattr(each, "__dict__")]
        elif "Cache" in type(held).__name__ and hasattr(held, "__dict__"):
            yield from _lists(held)
