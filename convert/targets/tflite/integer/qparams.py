"""QParams of the tensors of an integer TFLite file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tmconvert.ir.fake_quant import fake_quantize, finest_scales, quantize
from tmconvert.ir.types import QParams
from tmconvert.lowering.bias_scales import widen_scales
from tmconvert.lowering.target_graph import Operator, Quantization, Value
from tmconvert.targets.tflite.integer.infer_int16 import cover_range, ends_of, subdivide
from tmconvert.targets.tflite.operators import spec

RANGES = {"int8": (-128, 127), "int16": (-32768, 32767)}
_LARGEST_PRODUCT = {"int8": 255 * 127, "int16": 32768 * 127}
_SMALLEST_FACTOR = 2.0**-31  # of kernels, from steps of a bias to those of a result
_LEAST_LIMIT = 2**24  # of a bias, for layers with very many terms
BIAS_LIMITS = {"int8": (-(2**31), 2**31 - 1), "int16": (-(2**39), 2**39 - 1)}  # by the type of ``x``
_SHIFT = 128  # from uint8 to int8
# steps of a sum that one of a summand is at most: from 2**14 on the kernel of int16 aborts
_COARSEST = 4096.0
_TINY = float(np.finfo(np.float32).tiny)


def activation_qparams(qparams: QParams, kind: str) -> QParams | None:
    """Returns the int8 or int16 QParams of an activation; None for per-channel parameters, or more bits.

    Types of eight bits and less keep scale and integers; unsigned ones of eight bits are shifted by 128. In
    int16 QParams are symmetric: those of the source, or the finest for the range. Tensors with 16 bits in the
    source stay int16.
    """
    if len(qparams.scale) != 1:
        return None
    low, high = _ends(qparams)
    wide = high - low > 255
    if wide and qparams.zero_point == (0,) and low >= -32768 and high <= 32767:
        return replace(qparams, dtype="int16")
    if kind == "int16" or (wide and high - low <= 65535):
        ends = [(end - qparams.zero_point[0]) * qparams.scale[0] for end in _ends(qparams)]
        return _symmetric(max(map(abs, ends)), 32767, "int16")
    if qparams.quant_max > 127:
        qparams = replace(
            qparams,
            zero_point=(qparams.zero_point[0] - _SHIFT,),
            quant_min=qparams.quant_min - _SHIFT,
            quant_max=qparams.quant_max - _SHIFT,
        )
    lowest, highest = RANGES["int8"]
    if qparams.quant_min < lowest or qparams.quant_max > highest:
        return None
    return QParams("int8", qparams.scale, qparams.zero_point, qparams.quant_min, qparams.quant_max)


def align_qparams(qparams: QParams, kind: str) -> QParams:
    """Converts QParams to the other type: int16 ones contain all steps of the int8 ones."""
    if qparams.dtype == kind:
        return qparams
    if kind == "int16":
        return subdivide(qparams)
    if qparams.inferred and (covering := cover_range(*ends_of(qparams), kind)) is not None:
        return covering
    return _symmetric(qparams.scale[0] * RANGES["int16"][1], RANGES[kind][1], kind)


def fixed_qparams(type: str, kind: str) -> QParams:
    """Returns the QParams of the results of a "fixed" kernel."""
    kernel = spec(type).integer
    assert kernel is not None
    scale, zero_point = kernel.fixed[kind]
    return QParams(kind, (scale,), (zero_point,), *RANGES[kind])


def steps_of(qparams: QParams) -> range:
    """Returns the integers for which a lookup table has entries: those of the range, for int8 all."""
    low, high = RANGES["int8"] if qparams.dtype == "int8" else _ends(qparams)
    return range(low, high + 1)


def summand_qparams(value: Value, qparams: QParams, result: QParams) -> QParams:
    """Returns the QParams of a summand: its own, or those of the sum, where these are much finer."""
    is_coarse = is_zero(value) or qparams.scale[0] > _COARSEST * result.scale[0]
    return align_qparams(result, qparams.dtype) if is_coarse else qparams


def is_zero(value: Value) -> bool:
    return value.data is not None and not value.data.any()


def constant_qparams(data: np.ndarray, kind: str) -> QParams:
    """Returns the finest QParams that contain 0 and all elements of a constant."""
    low, high = min(float(np.min(data, initial=0)), 0.0), max(float(np.max(data, initial=0)), 0.0)
    if kind == "int16" or low == 0 == high or _is_one_number(data):
        return _symmetric(max(-low, high), RANGES[kind][1], kind)
    scale = float(np.float32(max((high - low) / 255, _TINY)))
    zero_point = int(np.clip(round(-128 - low / scale), -128, 127))
    return QParams("int8", (scale,), (zero_point,), -128, 127)


def weight_qparams(value: Value, axis: int | None) -> QParams:
    """Returns int8 QParams with zero point 0: the source's scales if valid, else the finest in [-127, 127].

    ``axis`` is the channel axis, None requests one scale. A weight with other QParams in the source is
    converted first (``quantize_weight``). In a weight with zero points, channels with a zero point of 0 keep
    their scales, as do those whose distance from 0 is at most 127 steps.
    """
    given = value.qparams
    if given is not None and given.channel_axis in (None, axis) and _is_symmetric(given):
        ends = given.quant_min, given.quant_max
        return QParams("int8", given.scale, given.zero_point, *ends, given.channel_axis)
    data = _source_weight(value)
    others = tuple(each for each in range(data.ndim) if each != axis)
    largest = np.max(np.abs(data), axis=others if axis is not None else None, initial=0).reshape(-1)
    scale = finest_scales(largest)
    lowest = -127
    if given is not None and given.channel_axis in (None, axis):
        lowest = max(given.quant_min, -128) if given.is_signed else lowest
        own = np.array(given.scale)
        is_whole = np.array(given.zero_point) == 0 if given.quant_max <= 127 else False
        scale = np.where(is_whole | (np.rint(largest / own) <= 127), own, scale)
    scales = tuple(map(float, scale.astype(np.float32)))
    return QParams("int8", scales, (0,) * len(scales), lowest, 127, axis)


def widen_for_bias(
    weight: QParams, x: QParams, bias: np.ndarray | None, terms: int, result: QParams | None
) -> QParams:
    """Returns the QParams of weights with scales so large that the integers of the bias hold it.

    The scale of a bias is that of ``x`` times that of the weights, and has to be a normal float32. Weights
    that need a smaller scale are too small to change a result that has this bias. Kernels add ``terms``
    products to the bias in its type, so that its integers keep a distance from the end; and they give 0
    where a step of the bias is less than 2**-31 steps of the ``result``.
    """
    step = float(x.scale[0])
    most = max(BIAS_LIMITS[x.dtype][1] - terms * _LARGEST_PRODUCT[x.dtype], _LEAST_LIMIT)
    least = max(_TINY, 0.0 if result is None else result.scale[0] * _SMALLEST_FACTOR) / step
    return widen_scales(weight, step, bias, most, least)


def _is_symmetric(qparams: QParams) -> bool:
    """Whether these are symmetric QParams of at most 8 bits."""
    return not any(qparams.zero_point) and qparams.quant_min >= -128 and qparams.quant_max <= 127


def quantize_weight(value: Value, qparams: QParams) -> np.ndarray:
    """Quantizes the weights to int8."""
    return quantize(_source_weight(value), qparams).astype(np.int8)


def dequantize_weight(value: Value, axis: int) -> np.ndarray:
    """Dequantizes the integers of a weight; its channels are along ``axis``."""
    qparams = weight_qparams(value, axis)
    return fake_quantize(_source_weight(value), qparams)


def is_derived(value: Value, qparams: QParams) -> bool:
    """Whether the scales of a weight are not the source's."""
    return value.qparams is None or value.qparams.scale != qparams.scale


def _source_weight(value: Value) -> np.ndarray:
    """Returns the real values of a weight, quantized with the source's QParams where ours differ."""
    assert value.data is not None
    given = value.qparams
    if given is None or _is_symmetric(given):
        return value.data
    return fake_quantize(value.data, given)


def quantization(qparams: QParams) -> Quantization:
    """Returns the quantization in file form."""
    return Quantization(
        np.array(qparams.scale, np.float32), qparams.channel_axis or 0, np.array(qparams.zero_point, np.int64)
    )


def negate_qparams(qparams: QParams) -> QParams:
    """Returns the QParams that contain exactly the negated values of ``qparams``, which are of one tensor.

    Integers of eight bits are q' = -1 - q, so that each has one; symmetric ones of 16 bits -q.
    """
    shift = 1 if qparams.dtype == "int8" else 0
    lowest, highest = RANGES[qparams.dtype]
    low, high = -shift - qparams.quant_max, min(-shift - qparams.quant_min, highest)
    return QParams(qparams.dtype, qparams.scale, (-shift - qparams.zero_point[0],), max(low, lowest), high)


def is_equal(one: QParams, other: QParams) -> bool:
    """Whether two QParams stand for the same values, whatever their ranges."""
    return (one.dtype, one.scale, one.zero_point) == (other.dtype, other.scale, other.zero_point)


def operands(operator: Operator) -> list[Value]:
    """Returns the data operands of an operator, including constants."""
    found = [operator.inputs[i] for i in spec(operator.type).data_of(len(operator.inputs))]
    return [value for value in found if value is not None]


def _symmetric(largest: float, steps: int, kind: str) -> QParams:
    scale = float(np.float32(max(largest / steps, _TINY))) if largest > 0 else 0.5
    return QParams(kind, (scale,), (0,), *RANGES[kind])


def _is_one_number(data: np.ndarray) -> bool:
    return data.size > 0 and bool(np.all(data == data.reshape(-1)[0]))


def _ends(qparams: QParams) -> tuple[int, int]:
    return qparams.quant_min, qparams.quant_max
