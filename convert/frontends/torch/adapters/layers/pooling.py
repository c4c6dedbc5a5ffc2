"""Pooling over 1, 2 or 3 axes, adaptive pooling and max unpooling."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.layers import integer_layers
from tmconvert.frontends.torch.adapters.layers.dynamic_pooling import averaged_beyond, is_dynamic
from tmconvert.frontends.torch.adapters.layers.unbatched import batched, per_axis, size_of_axis
from tmconvert.frontends.torch.adapters.values import cast, kind_of, reshaped, static_ints
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.symbolics.idioms.dynamic_resizing import averaged

ATEN, FUNCTIONS = Table(), Table("torch.nn.functional.")
AXES = (1, 2, 3)


def _strides(g: Emitter, stride, kernel: list[Any]) -> list[Any]:
    """Returns the strides; by default, and for an empty list, the kernel size."""
    return kernel if stride is None or stride == [] or stride == () else per_axis(g, stride, len(kernel))


def _clipped(g: Emitter, x: Any, kernel: list[Any], padding: list[Any]) -> list[Any]:
    """Clips windows to the padded input: with ``ceil_mode`` they may extend beyond it."""
    extents = g.type(x).shape[-len(kernel) :]
    return [
        min(size, extent + 2 * around) for size, extent, around in zip(kernel, extents, padding, strict=True)
    ]


def _max_pool(axes: int) -> None:
    def windows(g: Emitter, op: str, input, kernel_size, stride, padding, dilation, ceil_mode) -> Any:
        kernel = per_axis(g, kernel_size, axes)
        steps = _strides(g, stride, kernel)
        around, spread = (per_axis(g, each, axes) for each in (padding, dilation))
        kernel = _clipped(g, input, kernel, around) if ceil_mode and spread == [1] * axes else kernel
        wide, narrow = _wide(g, input)
        if is_symbolic(tuple(around)) and not ceil_mode and not op.endswith("indices"):
            wide, around = _surrounded(g, wide, around, -math.inf), [0] * axes
        return batched(
            g, wide, axes, lambda x: narrow(g.call(op, x, kernel, steps, around, spread, bool(ceil_mode)))
        )

    @ATEN.add(f"max_pool{axes}d")
    def max_pool(
        g, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
    ):
        op = f"aten::max_pool{axes}d" + ("_with_indices" if return_indices else "")
        return windows(g, op, input, kernel_size, stride, padding, dilation, ceil_mode)

    @ATEN.add(f"max_pool{axes}d_with_indices")
    def max_pool_with_indices(
        g, input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=True
    ):
        op = f"aten::max_pool{axes}d_with_indices"
        return windows(g, op, input, kernel_size, stride, padding, dilation, ceil_mode)


def _surrounded(g: Emitter, x, around: list[Any], value: float) -> Any:
    """Pads both ends of the last axes: operators have the padding of windows as numbers."""
    ends = [0, 0] * (g.type(x).rank - len(around)) + [amount for amount in around for _ in range(2)]
    return g.call("aten::pad", x, ends, "constant", value)


def _averaged_in(
    g: Emitter, x, kernel: list[Any], steps: list[Any], around: list[Any], counts_padding: Any, divisor: Any
) -> Any:
    """Average pooling with dynamic padding: of a padded input, divided by the share of its own elements."""

    def means(y: Any, by: Any) -> Any:
        zeros = [0] * len(kernel)
        return batched(
            g,
            _surrounded(g, y, around, 0.0),
            len(kernel),
            lambda z: g.call(f"aten::avg_pool{len(kernel)}d", z, kernel, steps, zeros, False, True, by),
        )

    pooled = means(x, divisor)
    if counts_padding or divisor is not None:
        return pooled
    ones = g.call("aten::expand", g.constant(1, g.type(x).dtype), list(g.type(x).shape))
    return g.call("aten::div", pooled, means(ones, None))


def _wide(g: Emitter, x) -> tuple[Any, Any]:
    """Casts ``x`` to a type that pooling supports (float64 for integers), with the cast back."""
    dtype = g.type(x).dtype
    if dtype.kind == "f":
        return x, lambda result: result

    def narrow(result):
        if isinstance(result, (list, tuple)):
            return [cast(g, result[0], dtype), *result[1:]]
        return cast(g, result, dtype)

    return cast(g, x, np.float64), narrow


def _avg_pool(axes: int) -> None:
    @ATEN.add(f"avg_pool{axes}d")
    def avg_pool(
        g, input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True,
        divisor_override=None,
    ):  # fmt: skip
        kernel = per_axis(g, kernel_size, axes)
        steps, around = _strides(g, stride, kernel), per_axis(g, padding, axes)
        is_float = g.type(input).dtype.kind == "f"
        if is_symbolic(tuple(around)) and not ceil_mode and is_float:
            return _averaged_in(g, input, kernel, steps, around, count_include_pad, divisor_override)
        windows = kernel, steps, around
        if ceil_mode and is_float and is_dynamic(g.type(input).shape[-axes:], *windows):
            options = bool(count_include_pad), divisor_override
            return batched(g, input, axes, lambda x: averaged_beyond(g, x, *windows, *options))
        kernel = _clipped(g, input, kernel, around) if ceil_mode else kernel
        modes = (bool(ceil_mode), bool(count_include_pad), divisor_override)
        compute = functools.partial(g.call, f"aten::avg_pool{axes}d")
        if kind_of(g.type(input).dtype) < 2:
            compute = functools.partial(integer_layers.averaged, g)
        return batched(g, input, axes, lambda x: compute(x, kernel, steps, around, *modes))


def _adaptive(axes: int) -> None:
    def pooled(g: Emitter, op: str, input, output_size, dynamically=None) -> Any:
        given = list(output_size) if isinstance(output_size, (list, tuple)) else [output_size]
        given = given * axes if len(given) == 1 else given
        extents = g.type(input).shape[-axes:]
        sizes = [size_of_axis(g, size, extent) for size, extent in zip(given, extents, strict=True)]
        rows = zip(extents, sizes, strict=True)
        is_dynamic = any(is_symbolic(row) and row[1] not in (1, row[0]) for row in rows)
        if dynamically is not None and is_dynamic:
            return batched(g, input, axes, lambda x: dynamically(g, x, sizes))
        return batched(g, input, axes, lambda x: g.call(op, x, sizes))

    @ATEN.add(f"adaptive_avg_pool{axes}d")
    def adaptive_avg_pool(g, input, output_size):
        return pooled(g, f"aten::adaptive_avg_pool{axes}d", input, output_size, averaged)

    @ATEN.add(f"adaptive_max_pool{axes}d", f"adaptive_max_pool{axes}d_with_indices")
    def adaptive_max_pool(g, input, output_size, return_indices=True):
        return pooled(g, f"aten::adaptive_max_pool{axes}d_with_indices", input, output_size)

    @FUNCTIONS.add(f"adaptive_max_pool{axes}d")
    def values_of_adaptive_max_pool(g, input, output_size, return_indices=False):
        with_places = "_with_indices" if return_indices else ""
        return pooled(g, f"aten::adaptive_max_pool{axes}d{with_places}", input, output_size)


def _unpool(axes: int) -> None:
    op = f"aten::max_unpool{axes}d"

    def unpooled(g: Emitter, input, indices, sizes: list[Any]) -> Any:
        def compute(x):
            return g.call(op, x, reshaped(g, indices, list(g.type(x).shape)), sizes)

        return batched(g, input, axes, compute)

    @ATEN.add(f"max_unpool{axes}d")
    def max_unpool_to(g, input, indices, output_size, stride=None, padding=None):
        return unpooled(g, input, indices, per_axis(g, output_size, axes))

    @FUNCTIONS.add(f"max_unpool{axes}d")
    def max_unpool(g, input, indices, kernel_size, stride=None, padding=0, output_size=None):
        """Max unpooling; the default output size of an axis is (extent - 1) stride - 2 padding + kernel."""
        if output_size is not None:
            return unpooled(g, input, indices, static_ints(g, output_size)[-axes:])
        kernel = per_axis(g, kernel_size, axes)
        steps, around = _strides(g, stride, kernel), per_axis(g, padding, axes)
        rows = zip(g.type(input).shape[-axes:], steps, around, kernel, strict=True)
        sizes = [(extent - 1) * step - 2 * margin + size for extent, step, margin, size in rows]
        return unpooled(g, input, indices, sizes)


for _axes in AXES:
    _max_pool(_axes)
    _avg_pool(_axes)
    _adaptive(_axes)
    _unpool(_axes)


@ATEN.add(
    *("fractional_max_pool2d", "fractional_max_pool3d"),
    *("fractional_max_pool2d_with_indices", "fractional_max_pool3d_with_indices"),
)
def fractional_max_pool(g, *args, **kwargs):
    raise Refusal("fractional pooling uses random windows", "use adaptive_max_pool2d")
