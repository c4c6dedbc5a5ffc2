"""Decodes the quantization parameters of ``tm.json``."""

from __future__ import annotations

import math

from tmconvert.container.faults import nonsense
from tmconvert.ir import QParams

FIELDS = {
    *("dtype", "scale", "zero_point", "quant_min", "quant_max", "channel_axis"),
    *("symmetric", "source"),
}
NOT_FINITE = {"nan", "inf", "-inf"}
MAX_NAME = 100


def decode_qparams(value: object) -> QParams:
    """Decodes QParams. Raises LoadError TM1015 for anything but an object of the right fields and types."""
    if not isinstance(value, dict) or set(value) != FIELDS:
        raise nonsense("a quantization has missing or unexpected entries")
    axis = value["channel_axis"]
    integers = [value["quant_min"], value["quant_max"], *([] if axis is None else [axis])]
    if not all(isinstance(value[name], list) for name in ("scale", "zero_point")):
        raise nonsense("the scales or the zero points of a quantization must be a list")
    if not all(type(item) is int for item in (*integers, *value["zero_point"])):
        raise nonsense("a bound, an axis or a zero point of a quantization must be an integer")
    if type(value["symmetric"]) is not bool:
        raise nonsense("a quantization is neither symmetric nor asymmetric")
    return QParams(
        _name(value["dtype"]),
        tuple(map(_scale, value["scale"])),
        tuple(value["zero_point"]),
        value["quant_min"],
        value["quant_max"],
        axis,
        value["symmetric"],
        _name(value["source"]),
    )


def _scale(value: object) -> float:
    if isinstance(value, dict) and set(value) == {"float"} and value["float"] in NOT_FINITE:
        return float(value["float"])
    if not isinstance(value, float) or not math.isfinite(value):
        raise nonsense("a scale must be a float")
    return value


def _name(value: object) -> str:
    if not isinstance(value, str) or len(value) > MAX_NAME:
        raise nonsense("the type or the source of a quantization must be a name")
    return value
