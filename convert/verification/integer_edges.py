"""Inputs and outputs that are integers in the file of a source, and the real numbers that they stand for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmconvert.ir import InternalGraph, TensorNode
from tmconvert.ir.fake_quant import quantize


def quantized_inputs(graph: InternalGraph, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns the inputs as a file takes them: in integers where an input itself has QParams."""
    found = []
    for node, array in zip(graph.inputs, inputs, strict=True):
        qparams = node.qparams if isinstance(node, TensorNode) else None
        is_whole = qparams is not None and qparams.source == "TFLite"
        found.append(quantize(array, qparams).astype(qparams.dtype) if is_whole and qparams else array)
    return found


def real_outputs(graph: InternalGraph, outputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns the real numbers that outputs in integers stand for."""
    found = []
    for node, array in zip(graph.outputs, outputs, strict=True):
        is_real = isinstance(node, TensorNode) and node.type.dtype.kind == "f"
        qparams = node.qparams if isinstance(node, TensorNode) and is_real else None
        if qparams is not None and array.dtype.kind in "iu" and len(qparams.scale) == 1:
            array = (array.astype(np.float32) - qparams.zero_point[0]) * np.float32(qparams.scale[0])
        found.append(array)
    return found
