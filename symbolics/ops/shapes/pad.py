"""aten::pad: pads or, for negative amounts, crops the ends of axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.symbolic.clamps import minimum, positive
from tmconvert.ir.symbolic.dims import Size, is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.layouts import SOURCE, LayoutRule, any_with
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, choice, integers, number
from tmconvert.symbolics.results import fits
from tmconvert.symbolics.traits import Homogeneous, Identity

Array = np.ndarray
Number = int | float

MODES = ("constant", "reflect", "replicate")
NUMPY_MODES: dict[str, Any] = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
MOST_CAFFE_PIECES = 16


def _pairs(pad: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(pad[::2], pad[1::2], strict=True))


def _result(x: TensorType, pad: list[int], mode: str, value: Number) -> TensorType:
    if len(pad) != 2 * x.rank:
        raise ValueError(f"pad {pad} must have two entries for each axis of {x}")
    shape = []
    for extent, (before, after) in zip(x.shape, _pairs(pad), strict=True):
        if mode == "constant":
            # symbolic amounts may be negative at some sizes only
            if minimum(before, 0) + minimum(after, 0) + extent < 0:
                raise ValueError(f"cannot crop {-before} and {-after} elements from an axis of {extent}")
        elif not _can_be_repeated(extent, (before, after), mode):
            raise ValueError(f"cannot pad {extent} elements by {before} and {after} in mode {mode}")
        shape.append(before + extent + after)
    if not fits(value, x.dtype):
        raise ValueError(f"the value {value} does not have the type of {x}")
    return TensorType(x.dtype, tuple(shape))


def _can_be_repeated(extent: Size, amounts: tuple[Size, Size], mode: str) -> bool:
    """Whether an axis has the elements that the mode repeats."""
    most = extent - 1 if mode == "reflect" else 0 if not extent else None
    # each amount by itself: which of two symbolic ones is larger may not be certain
    return not any(amount < 0 or (most is not None and amount > most) for amount in amounts)


def _layout(x: TensorType, pad: list[int], mode: str, value: Number) -> LayoutRule:
    return any_with(pad="per_axis") if x.rank == 4 else SOURCE


def _kept_channels(axis: int, count: int, pad: list[int], mode: str, value: float) -> np.ndarray | None:
    """Returns the channels if padding adds none, of zeros or others. ``pad`` starts with the first axis."""
    is_scaled = mode != "constant" or not value
    return np.arange(count) if is_scaled and not any(pad[2 * axis : 2 * axis + 2]) else None


pad = Op(
    "aten::pad",
    args=[Tensor("x", ANY_DTYPE), integers("pad"), choice("mode", MODES, "constant"), number("value", 0.0)],
    result=_result,
    layout=_layout,
    traits=[Homogeneous(channels=_kept_channels), Identity(lambda pad, **_: not any(pad))],
)


@pad.reference
def pad_ref(x: Array, pad: list[int], mode: str, value: Number) -> Array:
    """Crops first, then pads.

    Units: ``pad`` is [before, after] for each axis, from the first axis on (ATen counts from the last).
    Source: torch.nn.functional.pad.
    """
    for axis, (before, after) in enumerate(_pairs(pad)):
        x = x.take(range(max(-before, 0), x.shape[axis] + min(after, 0)), axis)
    widths = [(max(before, 0), max(after, 0)) for before, after in _pairs(pad)]
    if mode == "constant":
        return np.pad(x, widths, constant_values=np.array(value, x.dtype))
    return np.pad(x, widths, NUMPY_MODES[mode])


@pad.onnx(since=11)  # the amounts and the value are inputs; integers too
def pad_onnx11(g, x, pad, mode, value):
    constant = g.const(value) if mode == "constant" else None
    return g.op("Pad", x, g.ints(pad[::2] + pad[1::2]), constant, mode=NUMPY_MODES[mode])


@pad.onnx(since=2)
def pad_onnx2(g, x, pad, mode, value):
    if x.dtype == np.int64:  # Pad had floats only, and none holds it
        return _by_index_onnx(g, x, pad, mode, value)
    return g.op("Pad", x, pads=pad[::2] + pad[1::2], mode=NUMPY_MODES[mode], value=float(value))


def _by_index_onnx(g: Any, x: Any, pad: list[int], mode: str, value: Number) -> Any:
    """Gathers elements axis by axis; the padding value is one extra element."""
    for axis, (before, after) in enumerate(_pairs(pad)):
        if not before and not after:
            continue
        extent, shape = x.shape[axis], list(x.shape)
        options = {"constant_values": extent} if mode == "constant" else {}
        inner = np.arange(max(-before, 0), extent + min(after, 0))
        places = np.pad(inner, (max(before, 0), max(after, 0)), NUMPY_MODES[mode], **options)
        if extent in places:
            shape[axis] = 1
            block = g.const(np.full(shape, value, x.dtype))
            shape[axis] = extent + 1
            x = g.op("Concat", x, block, axis=axis, shape=shape)
        shape[axis] = len(places)
        x = g.op("Gather", x, g.ints(places), axis=axis, shape=shape)
    return x if any(pad) else g.identity(x)


@pad.tflite()
def pad_tflite(g, x, pad, mode, value):
    shape = g.result_types[0].shape
    if mode == "replicate":
        return _replicated_tflite(g, x, pad)
    if mode == "constant":
        x, pad = _cropped_tflite(g, x, pad)
    if not is_symbolic(pad) and not any(pad):
        return x
    widths = _widths_tflite(g, pad)
    if mode == "reflect":
        return g.op("MIRROR_PAD", x, widths, mode="REFLECT", shape=shape)
    if x.dtype == np.bool_ and not g.has("PAD", 5):
        padded = g.op(
            "PADV2", g.cast(x, np.dtype(np.int8)), widths, g.const(np.int8(bool(value))), shape=shape
        )
        return g.cast(padded, x.dtype)
    if value == 0:
        return g.op("PAD", x, widths, shape=shape)
    return g.op("PADV2", x, widths, g.const(value), shape=shape)


def _cropped_tflite(g: Any, x: Any, pad: list[int]) -> tuple[Any, list[Size]]:
    """Slices off what negative amounts crop; PAD takes none. Returns the other amounts, too."""
    cropped = [positive(-amount) for amount in pad]
    if is_symbolic(cropped) or any(cropped):
        size = [extent - a - b for extent, (a, b) in zip(x.shape, _pairs(cropped), strict=True)]
        x = g.op("SLICE", x, g.ints(cropped[::2]), g.ints(size), shape=size)
    return x, [positive(amount) for amount in pad]


def _widths_tflite(g: Any, pad: list[int]) -> Any:
    """Returns the amounts as [axes, 2]. Symbolic ones are computed as a vector."""
    if is_symbolic(pad):
        return idioms.tflite.reshaped(g, g.ints(pad), (len(pad) // 2, 2))
    return g.ints(_pairs(pad))


def _replicated_tflite(g: Any, x: Any, pad: list[int]) -> Any:
    """Gathers elements axis by axis, or repeats the first and the last one of a dynamic axis."""
    for axis, (before, after) in enumerate(_pairs(pad)):
        extent = x.shape[axis]
        if is_symbolic((before, after)):
            x = idioms.tflite.with_repeated_ends(g, x, axis, before, after)
        elif is_symbolic(extent) and not is_symbolic((before, after)) and min(before, after) >= 0:
            x = idioms.tflite.with_copied_ends(g, x, axis, before, after)
        elif before or after:
            indices = np.clip(np.arange(-before, extent + after), 0, extent - 1)
            shape = (*x.shape[:axis], len(indices), *x.shape[axis + 1 :])
            x = g.op("GATHER", x, g.ints(indices), axis=axis, shape=shape)
    return x


@pad.caffe()
def pad_caffe(g, x, pad, mode, value):
    if not all(g.result_types[0].shape):
        g.refuse("a Caffe blob cannot be empty")
    if mode != "constant":
        return _mirrored_caffe(g, x, pad, mode)
    for axis, (before, after) in enumerate(_pairs(pad)):
        x = idioms.caffe.sliced(g, x, axis, max(-before, 0), x.shape[axis] + min(after, 0))
    pad = [max(amount, 0) for amount in pad]
    inner = [(0, 0)] * len(x.shape)
    if len(x.shape) == 4 and any(pad[4:]):
        x, inner = _zeros_around(g, x, pad[4:]), [(0, 0), (0, 0), *_pairs(pad)[2:]]
    for axis, amounts in enumerate(_pairs(pad)):
        if any(amounts) and amounts != inner[axis]:
            shape = (*x.shape[:axis], x.shape[axis] + sum(amounts), *x.shape[axis + 1 :])
            rows = _zeros_around(g, idioms.caffe.as_rows(g, x, axis, axis + 1), [*amounts, 0, 0])
            x = idioms.caffe.reshaped(g, rows, shape)
    if value == 0 or not any(pad):
        return x
    margin = np.pad(
        np.zeros([extent - sum(pair) for extent, pair in zip(x.shape, _pairs(pad), strict=True)], x.dtype),
        _pairs(pad),
        constant_values=value,
    )
    return idioms.caffe.scaled(g, x, None, _without_equal_axes(margin, pad))


def _without_equal_axes(margin: Array, pad: list[int]) -> Array:
    """Returns ``margin`` with one entry along the axes without padding."""
    keep = tuple(slice(None) if any(pair) else slice(0, 1) for pair in _pairs(pad))
    return margin[keep]


def _zeros_around(g: Any, x: Any, pad: list[int]) -> Any:
    """Zero-pads ``x`` [N, C, H, W] by a convolution with a 1x1 kernel. Caffe pads both ends equally."""
    margins = max(pad[:2]), max(pad[2:])
    channels, (height, width) = x.shape[1], x.shape[2:]
    x = g.op(
        "Convolution",
        x,
        g.const(np.ones((channels, 1, 1, 1), x.dtype)),
        num_output=channels,
        bias_term=False,
        kernel_h=1,
        kernel_w=1,
        pad_h=margins[0],
        pad_w=margins[1],
        group=channels,
        shape=(x.shape[0], channels, height + 2 * margins[0], width + 2 * margins[1]),
    )
    for axis, margin, before, after in ((2, margins[0], *pad[:2]), (3, margins[1], *pad[2:])):
        x = idioms.caffe.sliced(g, x, axis, margin - before, x.shape[axis] - margin + after)
    return x


def _mirrored_caffe(g: Any, x: Any, pad: list[int], mode: str) -> Any:
    """Concatenates slices of one element around ``x``, axis by axis."""
    if sum(pad) > MOST_CAFFE_PIECES:
        g.refuse(
            f"Caffe has no layer for the padding mode {mode}, and emulating it would need {sum(pad)} slices"
        )
    for axis, (before, after) in enumerate(_pairs(pad)):
        if not before and not after:
            continue
        positions = np.arange(x.shape[axis])
        widened = np.pad(positions, (before, after), NUMPY_MODES[mode])
        single = {
            int(position): idioms.caffe.sliced(g, x, axis, int(position), int(position) + 1)
            for position in sorted({*widened[:before], *widened[len(widened) - after :]})
        }
        parts = [*widened[:before], *widened[len(widened) - after :]]
        values = [single[int(position)] for position in parts]
        values.insert(before, x)
        shape = (*x.shape[:axis], len(widened), *x.shape[axis + 1 :])
        x = g.op("Concat", *values, axis=axis, shape=shape)
    return x
