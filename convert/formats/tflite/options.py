"""Reads the options of operators, by the tables of the schema."""

from __future__ import annotations

from typing import Any

from tmconvert.formats.tflite.faults import damaged
from tmconvert.formats.tflite.flatbuffer import Table
from tmconvert.formats.tflite.schema import ENUMS, OptionField, option_fields_by_code

# how kernels compute, not what: a graph does not depend on them
_OF_KERNELS = frozenset({"asymmetric_quantize_inputs", "pot_scale_int16"})


def options_of(path: str, operator: Table, subgraphs: int, place: str) -> dict[str, Any]:
    """Returns the options of an operator that differ from the schema's defaults. Raises LoadError TM1041."""
    code = operator.integer(3, "uint8")
    table = operator.table(4) if code else None
    if table is None:
        return {}
    fields = option_fields_by_code().get(code)
    if fields is None:
        raise damaged(path, f"{code} is not a type of BuiltinOptions", place)
    found = {}
    for each in fields.values():
        if each.kind == "type":  # the results' tensors have their types
            continue
        value = _value(path, table, each, place)
        if each.name not in _OF_KERNELS and value is not None:
            found[each.name] = value
        if each.kind == "graph" or each.name == "subgraph":
            number = value or 0
            if not 0 <= number < subgraphs:
                raise damaged(
                    path, f"an operator calls subgraph {number}, but the model has {subgraphs}", place
                )
            found[each.name] = number
    return found


def _value(path: str, table: Table, field: OptionField, place: str) -> Any:
    """Returns the value of a field; None for its default."""
    if field.kind in ("int32s", "float32s"):
        return table.numbers(field.slot, field.kind[:-1]) or None
    if field.kind == "text":
        return table.text(field.slot) or None
    names = ENUMS.get(field.kind)
    kind = "int32" if field.kind == "graph" else "int8" if names else field.kind
    value = table.number(field.slot, kind, field.default)
    if names is None:
        return None if value == field.default and not field.required else value
    name = next((name for name, number in names.items() if number == value), None)
    if name is None:
        raise damaged(path, f"the option {field.name} has the unknown value {value}", place)
    return None if value == field.default and not field.required else name
