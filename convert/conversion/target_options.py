"""From the options of a conversion to its Goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tmconvert.calibration.settings import CalibrationRequest
from tmconvert.errors import UsageError
from tmconvert.targets.options import Integers, Parameters, TargetOptions
from tmconvert.targets.registry import target_version


def tflite_options(
    version: int,
    io_layout: str | Mapping[str, str] | None,
    integers: Integers | None = None,
    *,
    keep_int64: bool = False,
) -> TargetOptions:
    """``io_layout`` is the order of all, or orders by name and, at ``*``, that of the others."""
    named = dict(io_layout) if isinstance(io_layout, Mapping) else {"*": io_layout or "nhwc"}
    for name, order in named.items():
        if order not in ("nhwc", "source"):
            of = "" if name == "*" else f" of {name!r}"
            raise UsageError(
                "TM6002", f"io_layout{of} is {order!r}", notes=[("help", 'use "nhwc" or "source"')]
            )
    others = named.pop("*", "nhwc")
    return TargetOptions("tflite", version, others, tuple(named.items()), integers, keep_int64)


def integers_asked(
    quantized: bool,
    weights: str | None,
    activations: str | None,
    io_type: str | None,
    allow_float: bool,
    wide_weights: bool,
) -> Integers | None:
    """What ``quantized`` asks for. Raises UsageError TM6002 for wrong options, or that do not go together."""
    if weights is not None:
        _check_weights(weights)
    if not quantized:
        given: dict[str, object] = {"activations": activations, "io_type": io_type}
        given |= {"allow_float": allow_float, "wide_weights": wide_weights}
        for name, value in given.items():
            if value:
                raise UsageError("TM6002", f"{name} is {value!r}, and goes with quantized")
        return None
    if weights is not None:
        raise UsageError("TM6002", "weights of fewer bits are part of quantized: leave weights out")
    kind = _chosen("activations", activations or "int8", ("int8", "int16"))
    edges = (kind, "uint8", "float32") if kind == "int8" else (kind, "float32")
    return Integers(kind, _chosen("io_type", io_type or kind, edges), allow_float, wide_weights)


def onnx_options(
    version: int,
    quantized: bool,
    activations: str | None,
    weight_type: str | None = None,
    reduce_range: bool = False,
) -> TargetOptions:
    """Raises UsageError TM6002 for wrong options, or that do not go together.

    Weights beside uint8 activations are uint8 by default, which integer kernels sum exactly on every
    processor. int8 activations are for runtimes that take int8 alone.
    """
    if not quantized:
        given = {"activations": activations, "weight_type": weight_type, "reduce_range": reduce_range}
        for name, value in given.items():
            if value:
                raise UsageError("TM6002", f"{name} is {value!r}, and goes with quantized")
        return TargetOptions("onnx", version)
    kind = _chosen("activations", activations or "uint8", ("uint8", "int8", "uint16", "int16"))
    default = "uint8" if kind.startswith("u") else "int8"
    stored = _chosen("weight_type", weight_type or default, ("uint8", "int8"))
    integers = Integers(kind, "float32", weight_type=stored, reduce_range=bool(reduce_range))
    return TargetOptions("onnx", version, integers=integers)


def options_of_file(target: str, options: Mapping[str, Any]) -> TargetOptions | None:
    """What a file was written for, of the options that it names; None where it is as any other.

    Raises UsageError TM6002 for options that there are not.
    """
    asked = options.get("integers") or {}
    weights, version = options.get("weights"), options.get(target)
    baked = Parameters(None, "", True) if options.get("fake_quant_weights") else None
    if not (asked or weights or baked) or not isinstance(asked, Mapping):
        return None
    if baked is not None and target != "tflite":
        return TargetOptions(target, target_version(target, version), parameters=baked)
    activations, io_type = (asked.get(name) for name in ("activations", "io_type"))
    if target == "onnx":
        # files of releases without the option have int8
        stored, reduces = asked.get("weight_type", "int8"), bool(asked.get("reduce_range"))
        return onnx_options(target_version(target, version), True, activations, stored, reduces)
    switches = (bool(asked.get(name)) for name in ("allow_float", "wide_weights"))
    integers = integers_asked(bool(asked), weights, activations, io_type, *switches)
    keep_int64 = bool(options.get("keep_int64"))
    goal = tflite_options(
        target_version(target, version), options.get("io_layout"), integers, keep_int64=keep_int64
    )
    return goal._replace(parameters=baked, weights=weights)


def check_data(goal: TargetOptions, measuring: CalibrationRequest) -> None:
    """Raises UsageError TM6002 where data is given, and there is no use for it."""
    if measuring.data is not None and goal.integers is None and goal.parameters is None:
        raise UsageError(
            "TM6002", "calibration goes with quantized, or with qparams, for which it finds scales"
        )
    if measuring.report_data is not None and goal.integers is None:
        raise UsageError("TM6002", "report_data goes with quantized, whose layers are reported on")


def _chosen(name: str, value: Any, choices: Sequence[str]) -> str:
    if value not in choices:
        raise UsageError("TM6002", f"{name} is {value!r}", notes=[("help", f"use {' or '.join(choices)}")])
    return str(value)


def _check_weights(weights: str) -> None:
    from tmconvert.targets.tflite.compress_weights import KINDS

    if weights not in KINDS:
        raise UsageError("TM6002", f"weights is {weights!r}", notes=[("help", f"use {' or '.join(KINDS)}")])


def with_parameters(
    goal: TargetOptions,
    qparams: str | PathLike[str] | None,
    qparams_format: str | None,
    fake_quant_weights: bool,
    *,
    weights: str | None = None,
) -> TargetOptions:
    """``goal`` with what is asked of parameters beside a plain float model. Raises UsageError TM6002."""
    if qparams is None and qparams_format is not None:
        raise UsageError("TM6002", f"qparams_format is {qparams_format!r}, and goes with qparams")
    if qparams is None and not fake_quant_weights:
        return goal
    from tmconvert.qparams.formats import DEFAULT, format_called

    if qparams_format is not None:
        format_called(qparams_format)
    option = "fake_quant_weights" if qparams is None else "qparams"
    if goal.integers is not None or weights is not None:
        other = f"weights={weights!r}" if weights is not None else "quantized"
        raise UsageError("TM6002", f"{option} goes with a plain float model: leave {other} out")
    path = None if qparams is None else Path(qparams)
    return goal._replace(parameters=Parameters(path, qparams_format or DEFAULT, fake_quant_weights))
