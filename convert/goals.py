"""From the options of a conversion to its Goal."""

from __future__ import annotations

from collections.abc import Mapping

from .errors import UsageError
from .targets import Goal, Integers


def tflite_goal(
    version: int,
    io_layout: str | Mapping[str, str] | None,
    integers: Integers | None = None,
    *,
    keep_int64: bool = False,
) -> Goal:
    """``io_layout`` is the order of all, or orders by name and, at ``*``, that of the others."""
    named = dict(io_layout) if isinstance(io_layout, Mapping) else {"*": io_layout or "nhwc"}
    for name, order in named.items():
        if order not in ("nhwc", "source"):
            of = "" if name == "*" else f" of {name!r}"
            raise UsageError(
                "TM6002", f"io_layout{of} is {order!r}", notes=[("help", 'use "nhwc" or "source"')]
            )
    others = named.pop("*", "nhwc")
    return Goal("tflite", version, others, tuple(named.items()), integers, keep_int64)


def integers_asked(
    quantized: bool, weights: str | None, activations: str | None, io_type: str | None, allow_float: bool
) -> Integers | None:
    """What ``quantized`` asks for. Raises UsageError TM6002 for wrong options, or that do not go together."""
    if weights is not None:
        _check_weights(weights)
    if not quantized:
        given = {"activations": activations, "io_type": io_type, "allow_float": allow_float}
        for name, value in given.items():
            if value:
                raise UsageError("TM6002", f"{name} is {value!r}, and goes with quantized")
        return None
    if weights is not None:
        raise UsageError("TM6002", "weights of fewer bits are part of quantized: leave weights out")
    kind = activations or "int8"
    for name, value, choices in (
        ("activations", kind, ("int8", "int16")),
        ("io_type", io_type or kind, (kind, "uint8", "float32") if kind == "int8" else (kind, "float32")),
    ):
        if value not in choices:
            raise UsageError(
                "TM6002", f"{name} is {value!r}", notes=[("help", f"use {' or '.join(choices)}")]
            )
    return Integers(kind, io_type or kind, allow_float)


def _check_weights(weights: str) -> None:
    from .lower.compress_weights import KINDS

    if weights not in KINDS:
        raise UsageError("TM6002", f"weights is {weights!r}", notes=[("help", f"use {' or '.join(KINDS)}")])
