"""Runs a TFLite file and returns all its tensors, dequantized."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.ir.fake_quant import quantize
from tmconvert.ir.types import QParams
from tmconvert.verification.observed import Observed
from tmconvert.verification.runtime import THREADS, refusals, silent_stderr


def allocate(interpreter: Any, shapes: Mapping[int, tuple[int, ...]]) -> None:
    """Allocates LiteRT's tensors for inputs of these shapes, by index.

    Inputs that have their shape are not resized: on 64-bit ARM LiteRT crashes where the shape is ().
    """
    for described in interpreter.get_input_details():
        index = described["index"]
        if index in shapes and tuple(described["shape"]) != shapes[index]:
            interpreter.resize_tensor_input(index, shapes[index])
    interpreter.allocate_tensors()


def observed_here(path: Path, inputs: Mapping[str, np.ndarray]) -> dict[str, Observed]:
    """Returns tensors by name, in LiteRT's own kernels, as a delegate would hide intermediate results.

    ``inputs`` are float32 where the file takes integers with QParams, and in its layout.
    """
    from ai_edge_litert import interpreter as litert

    with refusals("LiteRT"), silent_stderr():
        interpreter = litert.Interpreter(
            model_path=os.fspath(path),
            num_threads=THREADS,
            experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            experimental_preserve_all_tensors=True,
        )
        (signature,) = interpreter.get_signature_list()
        details = interpreter.get_signature_runner(signature).get_input_details()
        allocate(interpreter, {each["index"]: inputs[name].shape for name, each in details.items()})
        for name, described in details.items():
            interpreter.set_tensor(described["index"], in_steps(inputs[name], described))
        interpreter.invoke()
        return {
            described["name"]: _observed(interpreter, described)
            for described in interpreter.get_tensor_details()
            if described["name"]
        }


def in_steps(array: np.ndarray, described: Mapping[str, Any]) -> np.ndarray:
    """Quantizes an input as the file expects it."""
    dtype, (scale, zero_point) = np.dtype(described["dtype"]), described["quantization"]
    if dtype == array.dtype or not scale:
        return array.astype(dtype, order="C", copy=False)
    ends = np.iinfo(dtype)
    qparams = QParams(dtype.name, (float(scale),), (int(zero_point),), int(ends.min), int(ends.max))
    return quantize(array, qparams).astype(dtype, order="C")


def _observed(interpreter: Any, described: Mapping[str, Any]) -> Observed:
    try:
        array = interpreter.get_tensor(described["index"])
    except ValueError:  # of an operator that needs none, such as a bias left out
        return Observed(np.zeros(0, np.float32))
    scale, zero_point = described["quantization"]
    if not scale:
        return Observed(np.array(array))
    ends = np.iinfo(array.dtype)
    real = (array.astype(np.float32) - np.float32(zero_point)) * np.float32(scale)
    low, high = ((int(end) - int(zero_point)) * float(scale) for end in (ends.min, ends.max))
    return Observed(real, float(scale), low, high)
