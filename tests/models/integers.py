"""Quantized models of the corpus in integers: how far the files are from MegEngine, in steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from ai_edge_litert import interpreter as litert
from onnx.numpy_helper import to_array

from tests.models import corpus
from tmconvert.formats.tflite.metadata import tflite_layouts
from tmconvert.symbolics.layouts import NCHW_TO_NHWC, NHWC_TO_NCHW
from tmconvert.targets.tflite.verify.observed import in_steps

WITH_XNNPACK = litert.OpResolverType.AUTO
OWN_KERNELS = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
ROUNDING = 1e-3  # of a step, which numbers that are on it are off in float32


def models() -> list[str]:
    """The quantization-aware and fixed-point models."""
    stems = (path.stem for path in corpus.DATA.glob("*.tm"))
    return sorted(stem for stem in stems if stem.startswith(("qat_", "quantized_")) or stem.endswith("_qat"))


@dataclass
class Distance:
    """Of the elements of all outputs, in steps: how many are more than one off, and the most."""

    elements: int = 0
    beyond: int = 0
    most: float = 0.0

    def add(self, steps: np.ndarray) -> None:
        self.elements += steps.size
        self.beyond += int(np.sum(steps > 1 + ROUNDING))
        self.most = max(self.most, float(np.max(steps, initial=0)))

    @property
    def is_near(self) -> bool:
        """Within one step for 999 of 1000 elements, within three for the rest."""
        return self.beyond <= 0.001 * self.elements and self.most <= 3 + ROUNDING

    def __str__(self) -> str:
        share = f", {self.beyond} of {self.elements} beyond one" if self.beyond else ""
        return f"{abs(round(self.most, 1)):g}{share}"


def tflite_distance(
    path: Path, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray], mode: object = WITH_XNNPACK
) -> Distance:
    """Outputs as the numbers that they stand for; those in float in shares of 1/255 of their range."""
    runner = _interpreter(path, mode).get_signature_runner()
    return tflite_outputs_distance(path, runner(**tflite_feeds(path, inputs)), expected)


def tflite_feeds(path: Path, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
    """The inputs as the file takes them, by the names of its signature."""
    described = _interpreter(path).get_signature_runner().get_input_details()
    return {
        name: in_steps(array.transpose(NCHW_TO_NHWC) if nhwc else array, details)
        for (name, details), array, nhwc in zip(described.items(), inputs, _layouts(path)[0], strict=True)
    }


def tflite_outputs_distance(
    path: Path, found: Mapping[str, np.ndarray], expected: Sequence[np.ndarray]
) -> Distance:
    """The distance of outputs that a run of the file gave, by the names of its signature."""
    interpreter, distance = _interpreter(path), Distance()
    described = interpreter.get_signature_runner().get_output_details()
    by_index = {details["index"]: (name, details) for name, details in described.items()}
    order = [each["index"] for each in interpreter.get_output_details()]
    for index, wanted, nhwc in zip(order, expected, _layouts(path)[1], strict=True):
        name, details = by_index[index]
        scale, zero_point = details["quantization"]
        array = found[name].astype(np.float64)
        array = (array - zero_point) * scale if scale else array
        distance.add(_steps(array.transpose(NHWC_TO_NCHW) if nhwc else array, wanted, scale))
    return distance


def _interpreter(path: Path, mode: object = WITH_XNNPACK) -> litert.Interpreter:
    return litert.Interpreter(str(path), num_threads=1, experimental_op_resolver_type=mode)


def _layouts(path: Path) -> tuple[list[bool], list[bool]]:
    layouts = tflite_layouts(path)
    assert layouts is not None
    return layouts


def onnx_distance(path: Path, inputs: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> Distance:
    """As ``tflite_distance``; the step is that of the pair that makes an output."""
    session = onnxruntime.InferenceSession(path, _options())
    fed = {given.name: array for given, array in zip(session.get_inputs(), inputs, strict=True)}
    return onnx_outputs_distance(path, session.run(None, fed), expected)


def onnx_outputs_distance(
    path: Path, outputs: Sequence[np.ndarray], expected: Sequence[np.ndarray]
) -> Distance:
    """The distance of outputs that a run of the file gave."""
    graph, distance = onnx.load(path).graph, Distance()
    constants = {tensor.name: to_array(tensor) for tensor in graph.initializer}
    makers = {name: node for node in graph.node for name in node.output}
    for output, found, wanted in zip(graph.output, outputs, expected, strict=True):
        maker = makers.get(output.name)
        is_pair = maker is not None and maker.op_type == "DequantizeLinear"
        distance.add(_steps(found, wanted, float(constants[maker.input[1]]) if is_pair else 0.0))
    return distance


def _steps(found: np.ndarray, wanted: np.ndarray, step: float) -> np.ndarray:
    assert found.shape == wanted.shape
    return np.abs(found - wanted) / (step or float(np.max(np.abs(wanted))) / 255)


def onnx_kernels(path: Path, folder: Path) -> Counter[str]:
    """The operators of the graph that ONNX Runtime makes of a file, which it runs."""
    options = _options()
    options.optimized_model_filepath = str(folder / "optimized.onnx")
    onnxruntime.InferenceSession(path, options)
    return Counter(node.op_type for node in onnx.load(folder / "optimized.onnx").graph.node)


def _options() -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    return options


@dataclass
class Census:
    """Operators by type, those that touch a float tensor, and the element types of all tensors."""

    operators: Counter[str]
    in_float: Counter[str]
    weights: set[str]


def census(path: Path) -> Census:
    """What is in a TFLite file, as LiteRT reads it."""
    mode = OWN_KERNELS
    interpreter = litert.Interpreter(str(path), num_threads=1, experimental_op_resolver_type=mode)
    interpreter.allocate_tensors()
    types = {each["index"]: np.dtype(each["dtype"]).name for each in interpreter.get_tensor_details()}
    found = Census(Counter(), Counter(), set())
    for operator in interpreter._get_ops_details():
        name, touched = operator["op_name"], [*operator["inputs"], *operator["outputs"]]
        found.operators[name] += 1
        if any(types.get(index) == "float32" for index in touched):
            found.in_float[name] += 1
        if name in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"):
            found.weights.add(types[operator["inputs"][1]])
    return found
