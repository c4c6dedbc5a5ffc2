"""Operators that are not converted, and why."""

from __future__ import annotations

_STRINGS = "strings and hash tables have no counterpart in the targets"
_REASONS = {
    _STRINGS: (
        *("HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_SIZE", "HASHTABLE_LOOKUP"),
        *("SKIP_GRAM", "LSH_PROJECTION"),
    ),
    "it draws random numbers": ("MULTINOMIAL",),
    "it runs on a delegate, whose operators are not in the file": ("DELEGATE",),
    "its weights are sparse": ("EMBEDDING_LOOKUP_SPARSE",),
}
_BY_NAME = {name: reason for reason, names in _REASONS.items() for name in names}
CUSTOM = "custom operators are code of the program that runs the model, which is not in the file"
STABLEHLO = "LiteRT's interpreter has no kernel for most operators of StableHLO"
UNKNOWN = "the installed package tflite does not know the operator"


def reason_of(name: str) -> str | None:
    """Returns why the operator ``name``, such as ``tflite.WHERE``, is not converted, if that is known."""
    operator = name.removeprefix("tflite.")
    if operator.startswith("custom."):
        return CUSTOM
    if operator.startswith("STABLEHLO_"):
        return STABLEHLO
    if operator.startswith("operator_"):
        return UNKNOWN
    return _BY_NAME.get(operator)
