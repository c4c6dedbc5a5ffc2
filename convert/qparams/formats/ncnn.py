"""ncnn's calibration table: 127 / threshold for each weight channel and the input of each layer.

Names are those of layers. Integers are -127 to 127 with zero points of 0; a weight has a value for each
output channel, or for each group of a grouped convolution. Numbers are the reciprocals of float32 scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tmconvert.qparams.formats.format import (
    CannotCarry,
    Format,
    Layer,
    Unreadable,
    in_a_layer,
    known_role,
    layers,
    of_layers,
    one_activation_scale,
    symmetric_bytes,
)
from tmconvert.qparams.records import ACTIVATION, WEIGHT, Record

# the layers that ncnn computes in int8, as ONNX and Caffe call them
_TYPES = ("Conv", "Convolution", "Gemm", "InnerProduct")
_WEIGHT = "_param_0"
_LONGEST = 255 - len(_WEIGHT)


def write(records: Sequence[Record]) -> str:
    found = layers(records, _TYPES)
    lines = [[f"{layer.name}{_WEIGHT}", *map(_reciprocal, _channels(layer))] for layer in found]
    lines += [[layer.name, _reciprocal(layer.given.scales[0])] for layer in found if layer.given is not None]
    return "".join(f"{' '.join(line)}\n" for line in lines)


def _reciprocal(scale: float) -> str:
    return repr(1 / float(np.float32(scale)))


def _channels(layer: Layer) -> tuple[float, ...]:
    """Returns the scales of a layer in ncnn's form: one per group, if there are several, or per channel."""
    weight, groups = layer.weight, _groups(layer)
    wanted = groups if groups > 1 else weight.shape[0] if weight.shape else len(weight.scales)
    if len(weight.scales) == 1:
        return weight.scales * wanted
    if len(weight.scales) == wanted:
        return weight.scales
    of_group = np.reshape(weight.scales, (wanted, -1)) if len(weight.scales) % wanted == 0 else None
    if of_group is None or (of_group != of_group[:, :1]).any():
        raise CannotCarry(
            weight, (f"it has {len(weight.scales)} scales, but ncnn requires one for each of {wanted} groups")
        )
    return tuple(map(float, of_group[:, 0]))


def _groups(layer: Layer) -> int:
    given = None if layer.given is None else layer.given.shape
    shape = layer.weight.shape
    if given is None or shape is None or len(given) < 3 or len(given) != len(shape) or not shape[1]:
        return 1
    return max(given[1] // shape[1], 1)


def counted_channels(record: Record) -> str:
    if record.role == WEIGHT and len(record.scales) == 1 and record.shape is None:
        return "its number of channels is unknown"
    return ""


def short_layer_names(record: Record) -> str:
    for name in record.consumers:
        if not name or any(char.isspace() for char in name) or len(name.encode()) > _LONGEST:
            return f"the name of its layer {name!r} contains spaces, or has more than {_LONGEST} bytes"
    return ""


def read(text: str) -> list[Record]:
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        name, *words = line.split()
        try:
            values = np.array(words, np.float64)
        except ValueError:
            raise Unreadable(f"line {number}: the fields after {name!r} must be numbers") from None
        if not len(values) or not np.isfinite(values).all() or not (values > 0).all():
            raise Unreadable(f"line {number}: {name!r} needs positive numbers")
        layer = name.removesuffix(_WEIGHT)
        if layer == name and len(values) > 1:
            raise Unreadable(f"line {number}: the input of {name!r} has {len(values)} scales instead of one")
        role = ACTIVATION if layer == name else WEIGHT
        with np.errstate(over="ignore", under="ignore"):
            scales = tuple(map(float, (1 / values).astype(np.float32)))
        found.append(
            Record(
                name,
                role,
                "int8_narrow",
                scales,
                (0,) * len(scales),
                -127,
                127,
                symmetric=True,
                shape=None if role == ACTIVATION else (len(scales),),
                consumers=(layer,),
            )
        )
    return found


def recognises(text: str, found: dict[str, object]) -> bool:
    first = next((line for line in text.splitlines() if line.strip()), "")
    return first.partition(" ")[0].endswith(_WEIGHT)


NCNN = Format(
    "ncnn",
    "ncnn calibration table",
    write,
    read,
    recognises,
    (known_role, one_activation_scale, symmetric_bytes, in_a_layer, counted_channels, short_layer_names),
    (ACTIVATION, WEIGHT),
    partial(of_layers, types=_TYPES),
    ("onnx", "caffe"),
    by_layer=True,
)
