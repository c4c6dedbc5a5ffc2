"""Max pooling with indices: max_pool and adaptive_max_pool, and max_unpool.

A place is the number of an element among all of its channel's, in the order of the axes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import FLOATS, Op, Tensor, boolean, integers
from tmconvert.symbolics.ops.layers.adaptive_pool import adaptive_windows, pooled_to
from tmconvert.symbolics.results import end_padding, onnx_padding, pooled
from tmconvert.symbolics.traits import Spatial

Array = np.ndarray
INT64 = np.dtype(np.int64)
# the elements of each window along one axis: as many lists as there are outputs
Axis = list[list[int]]


def _table(extents: Any, axes: list[Axis]) -> Array:
    """[windows, K]: element indices of each window; smaller windows repeat their first one."""
    windows = np.zeros((1, 1), np.int64)
    for extent, axis in zip(map(operator.index, extents), axes, strict=True):
        width = max(map(len, axis))
        rows = np.array([[*places, *[places[0]] * (width - len(places))] for places in axis])
        windows = (windows * extent)[:, None, :, None] + rows[None, :, None, :]
        windows = windows.reshape(-1, windows.shape[2] * width)
    return windows


def _found(x: Array, table: Array, outputs: Any) -> list[Array]:
    elements = x.reshape(*x.shape[:2], -1)[:, :, table]
    which = elements.argmax(-1)
    values = np.take_along_axis(elements, which[..., None], -1)
    places = table[np.arange(len(table)), which]
    return [part.reshape(*x.shape[:2], *outputs) for part in (values, places)]


def _found_by_ops(g: Any, x: Any, table: Array, outputs: Any) -> list[Any]:
    """Gathers all elements of all windows."""
    (batch, channels), (windows, width) = g.type(x).shape[:2], table.shape
    flat = g.call("aten::reshape", x, [batch, channels, math.prod(g.type(x).shape[2:])])
    elements = g.call("aten::index_select", flat, 2, g.constant(table.reshape(-1)))
    elements = g.call("aten::reshape", elements, [batch, channels, windows, width])
    values = g.call("aten::amax", elements, [3], False)
    which = g.call("aten::to", g.call("aten::argmax", elements, 3, False), dtype="int64")
    which = g.call("aten::add", which, g.constant(np.arange(windows) * width))
    which = g.call("aten::reshape", which, [batch * channels * windows])
    places = g.call("aten::index_select", g.constant(table.reshape(-1)), 0, which)
    return [g.call("aten::reshape", part, [batch, channels, *outputs]) for part in (values, places)]


def _pool_axes(extents: Any, outputs: Any, windows: Any) -> list[Axis]:
    axes = []
    for extent, count, *window in zip(extents, outputs, *windows, strict=True):
        kernel, step, padding, spread = window
        starts = [i * step - padding for i in range(count)]
        places = [[start + tap * spread for tap in range(kernel)] for start in starts]
        axes.append([[place for place in row if 0 <= place < extent] for row in places])
    return axes


def _adaptive_axes(extents: Any, outputs: Any) -> list[Axis]:
    pairs = zip(extents, outputs, strict=True)
    return [[list(range(*window)) for window in adaptive_windows(*pair)] for pair in pairs]


def _with_places(rule: Callable[..., TensorType]) -> Callable[..., list[TensorType]]:
    def result(**arguments: Any) -> list[TensorType]:
        values = rule(**arguments)
        return [values, TensorType(INT64, values.shape)]

    return result


def _max_pool(axes: int) -> Op:
    op = Op(
        f"aten::max_pool{axes}d_with_indices",
        args=[
            Tensor("x", FLOATS, ranks=(2 + axes,)), integers("kernel_size", length=axes),
            integers("stride", length=axes), integers("padding", [0] * axes, length=axes),
            integers("dilation", [1] * axes, length=axes), boolean("ceil_mode", False),
        ],
        result=_with_places(pooled),
        traits=[Spatial()],
    )  # fmt: skip

    def windows_of(type_: TensorType, *windows: Any) -> tuple[Array, Any]:
        outputs = pooled(type_, *windows).shape[2:]
        return _table(type_.shape[2:], _pool_axes(type_.shape[2:], outputs, windows[:-1])), outputs

    @op.reference
    def max_pool_ref(x, kernel_size, stride, padding, dilation, ceil_mode):
        """Ties select the first index. Source: torch.nn.functional.max_pool2d with return_indices."""
        type_ = TensorType(x.dtype, x.shape)
        return _found(x, *windows_of(type_, kernel_size, stride, padding, dilation, ceil_mode))

    @op.decompose
    def max_pool_gathered(g, x, kernel_size, stride, padding, dilation, ceil_mode):
        windows = windows_of(g.type(x), kernel_size, stride, padding, dilation, ceil_mode)
        return _found_by_ops(g, x, *windows)

    @op.onnx(since=10)
    def max_pool_onnx10(g, x, kernel_size, stride, padding, dilation, ceil_mode):
        windows = (kernel_size, stride, padding, dilation, ceil_mode)
        after = end_padding(x.shape, g.result_types[0].shape, *windows)
        values, places = g.op(
            "MaxPool",
            x,
            kernel_shape=kernel_size,
            strides=stride,
            **onnx_padding(kernel_size, padding, after),
            dilations=dilation if max(dilation) > 1 else None,
            shapes=[type_.shape for type_ in g.result_types],
        )
        plane = g.ints([math.prod(x.shape[2:])])  # ONNX counts through all channels of all images
        return [values, g.op("Mod", places, plane, shape=places.shape, dtype=INT64)]

    return op


def _adaptive_max_pool(axes: int) -> Op:
    op = Op(
        f"aten::adaptive_max_pool{axes}d_with_indices",
        args=[Tensor("x", FLOATS, ranks=(2 + axes,)), integers("output_size", length=axes)],
        result=_with_places(pooled_to),
        traits=[Spatial()],
    )

    @op.reference
    def adaptive_max_pool_ref(x, output_size):
        return _found(x, _table(x.shape[2:], _adaptive_axes(x.shape[2:], output_size)), output_size)

    @op.decompose
    def adaptive_max_pool_gathered(g, x, output_size):
        extents = g.type(x).shape[2:]
        return _found_by_ops(g, x, _table(extents, _adaptive_axes(extents, output_size)), output_size)

    return op


def _unpooled(x: TensorType, indices: TensorType, output_size: list[int]) -> TensorType:
    if indices.shape != x.shape:
        raise ValueError(f"the indices {indices} do not fit {x}")
    return TensorType(x.dtype, (*x.shape[:2], *output_size))


def _max_unpool(axes: int) -> Op:
    op = Op(
        f"aten::max_unpool{axes}d",
        args=[
            Tensor("x", FLOATS, ranks=(2 + axes,)),
            Tensor("indices", ("int64",), ranks=(2 + axes,)),
            integers("output_size", length=axes),
        ],
        result=_unpooled,
        traits=[Spatial()],
    )

    @op.reference
    def max_unpool_ref(x, indices, output_size):
        """Writes each element to its index, zeros elsewhere. Source: torch.nn.functional.max_unpool2d."""
        result = np.zeros((*x.shape[:2], math.prod(output_size)), x.dtype)
        flat = (*x.shape[:2], -1)
        np.put_along_axis(result, indices.reshape(flat), x.reshape(flat), 2)
        return result.reshape(*x.shape[:2], *output_size)

    @op.decompose
    def max_unpool_scatter(g, x, indices, output_size):
        batch, channels, *extents = g.type(x).shape
        flat = [batch, channels, math.prod(extents)]
        zero = g.constant(0, g.type(x).dtype)
        result = g.call("aten::expand", zero, [batch, channels, math.prod(output_size)])
        places, values = (g.call("aten::reshape", part, flat) for part in (indices, x))
        result = g.call("aten::scatter", result, 2, places, values)
        return g.call("aten::reshape", result, [batch, channels, *output_size])

    return op


OPS = [make(axes) for make in (_max_pool, _adaptive_max_pool, _max_unpool) for axes in (1, 2, 3)]
