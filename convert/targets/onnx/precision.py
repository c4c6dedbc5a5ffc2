"""Checks of the options for types of floats and weights in ONNX."""

from __future__ import annotations

from collections.abc import Collection

from tmconvert.errors import UsageError
from tmconvert.targets.options import TargetOptions

INT4_SINCE = 21
HALVES = ("float16", "bfloat16")


def check_float_type(options: TargetOptions, *, is_quantized: bool) -> None:
    """Raises UsageError TM6002 for types of floats and weights that exclude each other."""
    float_type, weights = options.float_type, options.weights
    if weights is not None and is_quantized:
        raise UsageError("TM6002", "compressed weights are part of quantized: omit weights")
    if options.float_io and float_type not in HALVES:
        raise UsageError("TM6002", "io_type applies to float_type float16 or bfloat16")
    if float_type not in HALVES:
        return
    if weights == "float16" or (weights is not None and float_type == "bfloat16"):
        message = f"with float_type {float_type} weights are {float_type}, too: omit weights"
        raise UsageError("TM6002", message)
    if is_quantized or (options.integer_weights != "float32" and float_type == "bfloat16"):
        raise UsageError("TM6002", f"integers have float32 scales: omit float_type {float_type}")


def with_opset_for(options: TargetOptions, types: Collection[str]) -> TargetOptions:
    """Returns the options with the opset for weights of ``types``, where the lowest is requested.

    Raises UsageError TM6002 for an opset without such weights, and for scales of other weights.
    """
    if "int4" not in types and options.weight_scales != "max":
        message = f"weight_scales {options.weight_scales} applies to weights of int4, not {options.weights}"
        raise UsageError("TM6002", message, notes=[("help", "use --weights int4, or omit weight_scales")])
    if "int4" not in types or options.version >= INT4_SINCE:
        return options
    if options.takes_lowest:
        return options._replace(version=INT4_SINCE)
    message = f"weights of int4 need opset {INT4_SINCE}, not {options.version}"
    help = f"use --opset {INT4_SINCE} or auto, or --weights int8"
    raise UsageError("TM6002", message, notes=[("help", help)])
