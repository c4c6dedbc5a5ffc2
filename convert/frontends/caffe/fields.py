"""Parameters of layers as the keyword arguments of calls, and back."""

from __future__ import annotations

from collections.abc import Mapping, MutableSequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.formats.caffe.dialects import MERGED
from tmconvert.formats.caffe.schema import schema

# how weights begin in training, and how they are computed
_IGNORED = frozenset({"weight_filler", "bias_filler", "filler", "scale_filler", "engine", "debug_info"})


def fields_of(parameters: Any) -> dict[str, Any]:
    """Returns the fields that a text gives, by name; an enum by its label, a message as a dict."""
    if parameters is None:
        return {}
    return {
        field.name: _plain(field, value)
        for field, value in parameters.ListFields()
        if field.name not in _IGNORED
    }


def _plain(field: Any, value: Any) -> Any:
    if isinstance(value, MutableSequence):
        return [_plain(field, each) for each in value]
    if field.message_type is not None:
        return fields_of(value)
    if field.enum_type is not None:
        return field.enum_type.values_by_number[value].name
    # the shortest text of a float32, as in the file
    return float(str(np.float32(value))) if isinstance(value, float) else value


def parameters_of(kind: str, fields: Mapping[str, Any]) -> Any:
    """Returns the message of a layer type with these fields; None where it has none. Raises Refusal."""
    made = schema(MERGED.name)
    name = made.parameter_fields.get(kind)
    if name is None:
        if fields:
            raise Refusal(f"a layer {kind} has no parameters, such as {next(iter(fields))}")
        return None
    parameters = getattr(made.LayerParameter(), name)
    try:
        _fill(parameters, fields)
    except (AttributeError, TypeError, ValueError, KeyError) as error:
        raise Refusal(f"the parameters of a layer {kind} do not fit: {error}") from error
    return parameters


def _fill(message: Any, fields: Mapping[str, Any]) -> None:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            getattr(message, name).SetInParent()
            _fill(getattr(message, name), value)
        elif isinstance(value, list | tuple):
            for each in value:
                if isinstance(each, Mapping):
                    _fill(getattr(message, name).add(), each)
                else:
                    getattr(message, name).append(each)
        else:
            setattr(message, name, value)
