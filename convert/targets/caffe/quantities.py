"""Quantities of a layer that rules of dialects limit, by the names in these rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from tmconvert.formats.caffe.layers import convolution, pooling
from tmconvert.formats.caffe.layers.layer import Shape
from tmconvert.formats.caffe.net import NetLayer

Numbers = Iterable[float]
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


def _half_pairs(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    """How many of the numbers of a window are set for one axis alone, as kernel_h without kernel_w."""
    is_set = layer.parameters.HasField
    return [sum(is_set(f"{name}_h") != is_set(f"{name}_w") for name in ("kernel", "stride", "pad"))]


def _padded_averages(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    pool = pooling.pool_of(layer.parameters, bottoms[0])
    return pool.pad if pool.method == pooling.AVE else []


def _axis_of_images(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    """The axis of a layer, unless it is the last one of three."""
    rank = len(bottoms[0])
    axis = layer.parameters.axis % rank
    return [] if axis == rank - 1 == 2 else [axis]


def _first_size(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    parameters = layer.parameters
    return list(parameters.shape.dim[:1]) if parameters.axis == 0 else []


def _missing_bounds(layer: NetLayer, bottoms: list[Shape], tops: list[Shape]) -> Numbers:
    return [2 - layer.parameters.HasField("min") - layer.parameters.HasField("max")]


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


QUANTITIES: dict[str, Quantity] = {
    "affine": _affine,
    "axis": lambda layer, bottoms, tops: [layer.parameters.axis],
    "axes that vanish": lambda layer, bottoms, tops: [len(bottoms[0]) - len(tops[0])],
    "axis of images": _axis_of_images,
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
    "first axis of the order": lambda layer, bottoms, tops: layer.parameters.order[:1],
    "first size of a reshape": _first_size,
    "extents": lambda layer, bottoms, tops: [extent for top in tops for extent in top[1:]],
    "group": lambda layer, bottoms, tops: [layer.parameters.group],
    "height and width": lambda layer, bottoms, tops: [e for top in tops if len(top) == 4 for e in top[2:]],
    "half pairs of a window": _half_pairs,
    "k across channels": _k_across,
    "kernel": _window("kernel"),
    "negative axis below rank 4": _negative_axis,
    "numbers of a window with three axes": _volumes,
    "missing bounds": _missing_bounds,
    "mask of padded windows": _padded_mask,
    "omitted windows": _omitted_windows,
    "order": lambda layer, bottoms, tops: [int("".join(map(str, layer.parameters.order)) or 0)],
    "pad": _window("pad"),
    "padding of averages": _padded_averages,
    "pooling method": lambda layer, bottoms, tops: [layer.parameters.pool],
    "ranks": lambda layer, bottoms, tops: [len(top) for top in tops],
    "rank of bottoms": lambda layer, bottoms, tops: [len(bottom) for bottom in bottoms],
    "rank of inputs": lambda layer, bottoms, tops: [len(top) for top in tops],
    "rounding down": _rounds_down,
    "slices without a point": _slices,
    "stride": _window("stride"),
    "stride beyond two kernels": _beyond("stride", 2),
    "tops": lambda layer, bottoms, tops: [len(layer.tops)],
    "transpose": lambda layer, bottoms, tops: [layer.parameters.transpose],
}
