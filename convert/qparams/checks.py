"""Checks records of quantization parameters against a model, and completes them from it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.qparams.records import ACTIVATION, BIAS, UNKNOWN, WEIGHT, Record
from tmconvert.targets.registry import target_named
from tmconvert.targets.written_model import Shape, WrittenLayer, WrittenModel


@dataclass(frozen=True)
class Finding:
    """A finding about a tensor: an error, or (not ``is_wrong``) a hint."""

    tensor: str
    text: str
    is_wrong: bool = True
    nearest: str = ""

    def __str__(self) -> str:
        return f"{self.tensor}: {self.text}" + (f", did you mean {self.nearest!r}?" if self.nearest else "")

    def to_json(self) -> dict[str, object]:
        return {
            "tensor": self.tensor,
            "text": self.text,
            "wrong": self.is_wrong,
            "nearest": self.nearest or None,
        }


def findings_of(records: Sequence[Record], model: WrittenModel, *, by_layer: bool) -> list[Finding]:
    """Checks a file against a written float model, which does not define which tensors are quantized."""
    if by_layer:
        return list(_layer_names(records, model))
    found = list(_names_and_channels(records, model))
    said = {record.name for record in records}
    has_weights = any(record.role in (WEIGHT, UNKNOWN) for record in records)
    lacking: dict[str, str] = {}
    weight_axes = target_named(model.target).weight_axes
    for layer in model.layers:
        if layer.type not in weight_axes:
            continue
        weight = next((name for name in layer.inputs if _is_weight(name, model)), None)
        taken = next((name for name in layer.inputs if name not in model.constants), None)
        if weight is not None and has_weights:
            lacking.setdefault(weight, f"the weight of a {layer.type} has no parameters")
        if weight is not None and taken is not None:
            lacking.setdefault(taken, f"the input of a {layer.type} has no parameters")
    found += [Finding(name, text, False) for name, text in lacking.items() if name not in said]
    return found


def _is_weight(name: str, model: WrittenModel) -> bool:
    return name in model.constants and len(model.tensors[name] or ()) > 1


def differences(records: Sequence[Record], expected: Sequence[Record]) -> list[Finding]:
    """Compares a file with one written from the model itself.

    Kinds of tensors of which the file has none are not reported as missing.
    """
    known = {record.name: record for record in expected}
    found = []
    for record in records:
        other = known.get(record.name)
        if other is None:
            found.append(_unknown(record.name, known, "the model does not quantize a tensor of that name"))
        elif len(record.scales) != len(other.scales):
            text = f"it has {len(record.scales)} scales, but the model has {len(other.scales)}"
            found.append(Finding(record.name, text))
        elif _reals(record) != _reals(other):
            found.append(Finding(record.name, "its scales or zero points differ from those of the model"))
    said = {record.name for record in records}
    roles = {record.role for record in records}
    for name, record in known.items():
        if name not in said and (record.role in roles or UNKNOWN in roles):
            found.append(Finding(name, f"the {record.role} is quantized in the model, but not in the file"))
    return found


def _reals(record: Record) -> list[tuple[np.float32, int]]:
    """Returns each scale with the number of steps above 0, independently of the integer type."""
    scales = np.asarray(record.scales, np.float32)
    return [(scale, record.quant_max - zero) for scale, zero in zip(scales, record.zero_points, strict=True)]


def _names_and_channels(records: Sequence[Record], model: WrittenModel) -> Iterator[Finding]:
    for record in records:
        if record.name not in model.tensors:
            yield _unknown(record.name, model.tensors, "the model has no tensor of that name")
            continue
        is_constant = record.name in model.constants
        if record.role == ACTIVATION and is_constant:
            yield Finding(record.name, "it is an activation in the file, but a constant in the model")
        if record.role in (WEIGHT, BIAS) and not is_constant:
            yield Finding(record.name, f"it is a {record.role} in the file, but computed in the model")
        if text := _channels(record, model.tensors[record.name]):
            yield Finding(record.name, text)


def _channels(record: Record, shape: Shape) -> str:
    count = len(record.scales)
    if count == 1 or shape is None:
        return ""
    if record.axis is not None:
        if not -len(shape) <= record.axis < len(shape):
            return f"its axis is {record.axis}, but the tensor has {len(shape)} axes"
        extents: Collection[int] = [shape[record.axis]]
    else:
        extents = shape
    if count in extents:
        return ""
    return f"it has {count} scales, but the tensor has shape {list(shape)}"


def _layer_names(records: Sequence[Record], model: WrittenModel) -> Iterator[Finding]:
    names = {name for layer in model.layers for name in (layer.name, *layer.outputs)}
    for name in dict.fromkeys(name for record in records for name in record.consumers):
        if name not in names:
            yield _unknown(name, names, "the model has no layer of that name")


def _unknown(name: str, names: Iterable[str], text: str) -> Finding:
    return Finding(name, text, nearest=next(iter(difflib.get_close_matches(name, names, 1)), ""))


# ---- what only the model knows


def with_model(records: Sequence[Record], model: WrittenModel) -> list[Record]:
    """Returns the records with roles, shapes, layers and axes of the model.

    Raises UsageError TM6043 where they are of another model.
    """
    wrong = next((found for found in _names_and_channels(records, model) if found.is_wrong), None)
    if wrong is not None:
        raise UsageError("TM6043", f"the parameters do not belong to this model: {wrong}")
    makers = {name: layer for layer in model.layers for name in layer.outputs}
    users: dict[str, list[WrittenLayer]] = {}
    for layer in model.layers:
        for name in dict.fromkeys(layer.inputs):
            users.setdefault(name, []).append(layer)
    return [_filled(record, model, makers, users) for record in records]


def _filled(
    record: Record,
    model: WrittenModel,
    makers: Mapping[str, WrittenLayer],
    users: Mapping[str, Sequence[WrittenLayer]],
) -> Record:
    taken_by = users.get(record.name, [])
    maker = makers.get(record.name)
    layer = (
        maker if maker is not None else taken_by[0] if record.name in model.constants and taken_by else None
    )
    role, shape = record.role, model.tensors[record.name]
    if role == UNKNOWN:
        role = WEIGHT if record.name in model.constants else ACTIVATION
    axis = record.axis
    if axis is None and len(record.scales) > 1 and shape is not None:
        usual = 0 if layer is None else target_named(model.target).weight_axes.get(layer.type, 0)
        axis = _axis(len(record.scales), shape, usual)
    filled = replace(
        record,
        role=role,
        axis=axis,
        shape=shape,
        producer="" if maker is None else maker.name,
        consumers=tuple(dict.fromkeys(each.name for each in taken_by)),
        operator="" if layer is None else layer.type,
    )
    if record.dtype:
        return filled
    dtype, low, high = ("int8", -128, 127) if role == WEIGHT else ("uint8", 0, 255)
    return replace(filled, dtype=dtype, quant_min=low, quant_max=high)


def _axis(count: int, shape: tuple[int, ...], usual: int) -> int | None:
    """The axis of the output's channels: the ``usual`` one of the layer, or the only one of that extent."""
    axes = [axis for axis, extent in enumerate(shape) if extent == count]
    return usual if usual in axes else axes[0] if len(axes) == 1 else None
