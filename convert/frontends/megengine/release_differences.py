"""Functions with other parameters, defaults or results in earlier MegEngine releases.

A file keeps a call as its release recorded it, and 1.6 even as the user wrote it. Each function here has the
signature of an earlier release and calls ``now``, the adapter of the newest release.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from tmconvert.ir.emitter import Emitter

Adapter = Callable[..., Any]
Release = tuple[int, ...]

NEWEST: Release = (1, 13, 0)
_OLDER: list[tuple[str, Release, Adapter]] = []


def release_called(version: str) -> Release:
    """Parses a version such as "1.12.4"; a missing one counts as the newest."""
    numbers = re.match(r"\d{1,4}(\.\d{1,4}){0,3}", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else NEWEST


@cache
def as_of(release: Release, name: str, now: Adapter) -> Adapter:
    """Returns the adapter of a function for ``release``."""
    for wanted, last, older in _OLDER:
        if wanted == name and release <= last:
            return partial(older, now)
    return now


def until(last: Release, *names: str) -> Callable[[Adapter], Adapter]:
    """Declares the form of functions up to and including a release; the earliest matching one applies."""

    def declare(adapter: Adapter) -> Adapter:
        for name in names:
            prefix = "" if name.startswith("opdef.") else "megengine.functional."
            _OLDER.append((prefix + name, last, adapter))
        return adapter

    return declare


@until((1, 8, 99), "nn.pad")
def pad(
    now: Adapter,
    g: Emitter,
    src: object,
    pad_witdth: object,
    mode: object = "constant",
    constant_value: object = 0.0,
) -> Any:
    return now(g, src, pad_witdth, mode, constant_value)


until((1, 10, 99), "math.sign")(lambda now, g, inp: now(g, inp))
until((1, 11, 99), "nn.prelu")(lambda now, g, inp, weight: now(g, inp, weight))


@until((1, 12, 0), "math.topk")
def topk(
    now: Adapter,
    g: Emitter,
    inp: object,
    k: object,
    descending: object = False,
    kth_only: object = False,
    no_sort: object = False,
) -> Any:
    return now(g, inp, k, descending, kth_only, no_sort)


@until((1, 6, 99), "tensor.full")
def full(
    now: Adapter, g: Emitter, shape: object, value: object, dtype: object = "float32", device: object = None
) -> Any:
    return now(g, shape, value, dtype=dtype, device=device)


@until((1, 6, 99), "opdef.BatchNorm")
def batch_norm_operator(now: Adapter, g: Emitter, *inputs: object, **state: object) -> list[Any]:
    """Had five results; in inference all but the last are workspace."""
    return [None, None, None, None, now(g, *inputs, **state)[-1]]


@until((1, 11, 1), "elemwise.square")
def square(now: Adapter, g: Emitter, x: object) -> Any:
    """Returned float32 for every element type of ``x``."""
    result = now(g, x)
    is_float32 = g.type(result).dtype == np.float32
    return result if is_float32 else g.call("aten::to", result, dtype="float32")


# Names of the parameters before output_padding came, behind padding.
_PLAIN = ("inp", "weight", "bias", "stride", "padding", "dilation", "groups", "conv_mode", "compute_mode")
_QUANTIZED = (*_PLAIN[:3], "dtype", *_PLAIN[3:])


def _without_output_padding(names: tuple[str, ...]) -> Adapter:
    def conv_transpose(now: Adapter, g: Emitter, *args: object, **kwargs: object) -> Any:
        if len(args) > len(names) or "output_padding" in kwargs:  # 1.10 may have it already
            return now(g, *args, **kwargs)
        return now(g, **dict(zip(names, args, strict=False)), **kwargs)

    return conv_transpose


until((1, 10, 99), "nn.conv_transpose2d")(_without_output_padding(_PLAIN))
until((1, 10, 99), "nn.conv_transpose3d")(_without_output_padding(_PLAIN[:7]))
until((1, 10, 99), "quantized.conv_transpose2d")(_without_output_padding(_QUANTIZED))
