"""Quantities of a layer that rules of dialects limit, by the names in these rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from tmconvert.formats.caffe.layers import convolution, pooling
from tmconvert.formats.caffe.layers.layer import Shape
from tmconvert.formats.caffe.net import NetLayer

Numbers = Iterable[float]
_OLD_AXES = {"Concat": ("concat_dim",), "Slice": ("slice_dim",)}
_UNREAD_BY_MNN = {
    **_OLD_AXES,
    "Flatten": ("end_axis",),
    "Interp": ("zoom_factor", "shrink_factor"),
    "Reduction": ("coeff",),
    "Reshape": ("axis", "num_axes"),
}
Quantity = Callable[[NetLayer, list[Shape], list[Shape]], Numbers]


def _window(number: str) -> Quantity:
    """ "kernel", "stride", "pad" or "dilation" of a convolution or a pooling, one for each axis."""

    def numbers(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
        if layer.type != "Pooling":
            return list(getattr(convolution.window(layer.parameters, len(bottoms[0])), number))
        pool = pooling.pool_of(layer.parameters, bottoms[0])
        return [] if layer.parameters.global_pooling else list(getattr(pool, number, []))

    return numbers


def _beyond(first: str, times: int) -> Quantity:
    """By how much the ``first`` numbers of a window are above ``times`` the kernel."""

    def numbers(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
        above, kernel = (_window(name)(layer, bottoms, tops) for name in (first, "kernel"))
        return [a - times * k for a, k in zip(above, kernel, strict=True)]

    return numbers


def _volumes(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    if len(bottoms[0]) != 5:
        return []
    return [len(getattr(layer.parameters, name)) for name in ("kernel_size", "stride", "pad", "dilation")]


def _slices(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    return [len(layer.tops) > 1 and not layer.parameters.slice_point]


def _batch_statistics(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    parameters = layer.parameters
    return [parameters.HasField("use_global_stats") and not parameters.use_global_stats]


def _affine(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    return [layer.parameters.scale != 1 or layer.parameters.shift != 0]


def _k_across(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    return [layer.parameters.k] if layer.parameters.norm_region == pooling.ACROSS_CHANNELS else []


def _negative_axis(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    if not bottoms or len(bottoms[0]) == 4 or layer.parameters is None:
        return []
    axis = getattr(layer.parameters, "axis", 0)
    return [isinstance(axis, int) and axis < 0]


def _unequal(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    dilations = list(_window("dilation")(layer, bottoms, tops))
    return [max(dilations) - min(dilations)]


def _unequal_numbers(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    fields = (getattr(layer.parameters, name) for name in ("kernel_size", "stride", "pad"))
    return [max(numbers) - min(numbers) for numbers in fields if numbers]


def _omitted_windows(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    """Windows of a padded Pooling that would begin after the image and its padding."""
    pool = pooling.pool_of(layer.parameters, bottoms[0])
    rounded = replace(pool, pad=[0, 0])  # which omits none
    extents = tuple(extent + 2 * pad for extent, pad in zip(bottoms[0][2:], pool.pad, strict=True))
    return [a - b for a, b in zip(rounded.counts(extents), pool.counts(bottoms[0][2:]), strict=True)]


def _padded_mask(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    return [len(tops) == 2 and any(pooling.pool_of(layer.parameters, bottoms[0]).pad)]


def _rounds_down(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    return [layer.parameters.round_mode]


def _set_fields(names: Mapping[str, Sequence[str]]) -> Quantity:
    """How many of these fields, by the type of the layer, are set."""
    return lambda layer, bottoms, tops: [sum(map(layer.parameters.HasField, names[layer.type]))]


QUANTITIES: dict[str, Quantity] = {
    "affine": _affine,
    "axis": lambda layer, bottoms, tops: [layer.parameters.axis],
    "base": lambda layer, bottoms, tops: [layer.parameters.base],
    "batch axis": lambda layer, bottoms, tops: (
        [abs(top[0] - bottoms[0][0]) for top in tops if top and bottoms[0]] if bottoms else []
    ),
    "batch statistics": _batch_statistics,
    "beta": lambda layer, bottoms, tops: [layer.parameters.beta],
    "biases of a computed factor": lambda layer, bottoms, tops: [
        int(len(bottoms) == 2 and layer.parameters.bias_term)
    ],
    "bias": lambda layer, bottoms, tops: [layer.parameters.bias_term],
    "bottoms": lambda layer, bottoms, tops: [len(bottoms)],
    "difference of dilations": _unequal,
    "difference of numbers of a window": _unequal_numbers,
    "dilation": _window("dilation"),
    "eps": lambda layer, bottoms, tops: [layer.parameters.eps],
    "exponent": lambda layer, bottoms, tops: [layer.parameters.power],
    "fields that MNN does not read": _set_fields(_UNREAD_BY_MNN),
    "extents": lambda layer, bottoms, tops: [extent for top in tops for extent in top[1:]],
    "group": lambda layer, bottoms, tops: [layer.parameters.group],
    "height and width": lambda layer, bottoms, tops: [e for top in tops if len(top) == 4 for e in top[2:]],
    "k across channels": _k_across,
    "kernel": _window("kernel"),
    "negative axis below rank 4": _negative_axis,
    "numbers of a window with three axes": _volumes,
    "mask of padded windows": _padded_mask,
    "omitted windows": _omitted_windows,
    "order": lambda layer, bottoms, tops: [int("".join(map(str, layer.parameters.order)) or 0)],
    "pad": _window("pad"),
    "pooling method": lambda layer, bottoms, tops: [layer.parameters.pool],
    "ranks": lambda layer, bottoms, tops: [len(top) for top in tops],
    "rank of inputs": lambda layer, bottoms, tops: [len(top) for top in tops],
    "rounding down": _rounds_down,
    "slices without a point": _slices,
    "old fields of the axis": _set_fields(_OLD_AXES),
    "stride": _window("stride"),
    "stride beyond two kernels": _beyond("stride", 2),
    "transpose": lambda layer, bottoms, tops: [layer.parameters.transpose],
}
