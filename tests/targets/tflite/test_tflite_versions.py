"""Operator versions: each rule on both sides of its boundary, and against the installed runtime."""

from __future__ import annotations

import io
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.tflite import writer as tflite_writer
from tmconvert.targets.tflite.operators import SPECS, spec, version_rules
from tmconvert.targets.tflite.runtimes import minimum_runtime
from tmconvert.targets.tflite.versions import model_versions, operator_version

DTYPES = {
    "f32": "float32",
    "f16": "float16",
    "f64": "float64",
    "bf16": ml_dtypes.bfloat16,
    "c64": "complex64",
}
DTYPES |= {f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}
DTYPES |= {f"u{bits}": f"uint{bits}" for bits in (8, 16, 32)}
DTYPES["bool"] = "bool"


def value(text: str) -> Value | None:
    """A tensor from "i8", "f32:2,3,5" or "i8*3" (3 scales, one a channel), or None from "-"."""
    if text == "-":
        return None
    text, _, scales = text.partition("*")
    dtype, _, shape = text.partition(":")
    sizes = tuple(int(size) for size in shape.split(",")) if shape else (2, 3, 5, 7)
    return Value(f"{text}*{scales}", np.dtype(DTYPES[dtype]), sizes)


def scales_in_name(value: Value) -> tuple[float, ...]:
    return tuple(0.5 for _ in range(int(value.name.partition("*")[2] or 0)))


HYBRID_LSTM = "f32 f32 i8"
RANK_5, RANK_6, RANK_7 = "f32:2,3,5,7,1", "f32:2,3,5,7,1,4", "f32:2,3,5,7,1,4,6"

# Operator, inputs -> output (that of the first input when left out), attributes, version.
CASES: list[tuple[str, str, dict[str, Any], int]] = [
    ("CONV_2D", "f32 f32 f32", {}, 1),
    ("CONV_2D", "f32 i8 f32", {}, 2),
    ("CONV_2D", "i8 i8 i32", {}, 3),
    ("CONV_2D", "i16 i16 i64", {}, 4),
    ("CONV_2D", "f32 i8*3 f32", {}, 5),
    ("CONV_2D", "f32:2,3,5,6 f32:4,1,1,3 f32", {}, 6),
    ("CONV_2D", "i16 i8 i32", {"quantized_bias_type": "FLOAT32"}, 1),
    ("CONV_2D", "i16 i8 i32", {"quantized_bias_type": "INT32"}, 8),
    ("DEPTHWISE_CONV_2D", "f32 f32 f32", {"dilation_w_factor": 1}, 1),
    ("DEPTHWISE_CONV_2D", "f32 f32 f32", {"dilation_w_factor": 2}, 2),
    ("DEPTHWISE_CONV_2D", "f32 f32 f32", {"dilation_h_factor": 3}, 2),
    ("DEPTHWISE_CONV_2D", "i8 i8 i32", {"dilation_w_factor": 2}, 3),
    ("DEPTHWISE_CONV_2D", "f32 i8 f32", {}, 4),
    ("DEPTHWISE_CONV_2D", "i16 i16 i64", {}, 5),
    ("DEPTHWISE_CONV_2D", "f32 i8*3 f32", {}, 6),
    ("FULLY_CONNECTED", "f32 f32 f32", {"keep_num_dims": False}, 1),
    ("FULLY_CONNECTED", "f32 f32 -", {}, 1),
    ("FULLY_CONNECTED", "f32 f32 f32", {"weights_format": "SHUFFLED4x16INT8"}, 2),
    ("FULLY_CONNECTED", "f32 i8 f32", {}, 3),
    ("FULLY_CONNECTED", "i8 i8 i32", {}, 4),
    ("FULLY_CONNECTED", "i8 i8 i32", {"keep_num_dims": True}, 5),
    ("FULLY_CONNECTED", "f32 f32", {"keep_num_dims": True}, 6),
    ("FULLY_CONNECTED", "i16 i16", {}, 7),
    ("FULLY_CONNECTED", "f32 i8 f32", {"asymmetric_quantize_inputs": True}, 9),
    ("FULLY_CONNECTED", "i16 i8 i32", {"quantized_bias_type": "INT32"}, 11),
    ("FULLY_CONNECTED", "f32 i8*3", {}, 12),
    ("TRANSPOSE_CONV", "i32 f32 f32", {}, 1),
    ("TRANSPOSE_CONV", "i32 f32 f32 -", {}, 1),
    ("TRANSPOSE_CONV", "i32 i8 i8", {}, 2),
    ("TRANSPOSE_CONV", "i32 f32 f32 f32", {"fused_activation_function": "NONE"}, 3),
    ("TRANSPOSE_CONV", "i32 f32 f32", {"fused_activation_function": "RELU"}, 4),
    ("TRANSPOSE_CONV", "i32 i8 i16 i32", {"quantized_bias_type": "INT32"}, 5),
    ("ADD", "f32 f32", {}, 1),
    ("ADD", "i8 i8", {}, 2),
    ("ADD", "i16*1 i16*1", {"pot_scale_int16": True}, 1),
    ("ADD", "i16*1 i16*1", {"pot_scale_int16": False}, 3),
    ("ADD", "i64 i64", {}, 4),
    ("ADD", "i16 i16", {"pot_scale_int16": False}, 5),
    ("ADD", "f16 f16", {}, 6),
    ("SUB", f"{RANK_5} {RANK_5}", {}, 1),
    ("SUB", "i8 i8", {}, 2),
    ("SUB", f"{RANK_5} f32:1", {}, 3),
    ("SUB", "i64 i64", {}, 4),
    ("SUB", "i16 i16", {"pot_scale_int16": False}, 5),
    ("MUL", "f32 f32", {}, 1),
    ("MUL", "i8 i8", {}, 2),
    ("MUL", "i8*1 i8*1 -> i8*1", {}, 2),
    ("MUL", "i16*1 i16*1", {}, 4),
    ("MUL", "i64 i64", {}, 5),
    ("MUL", "c64 c64", {}, 6),
    ("MUL", "i16 i16", {}, 7),
    ("MUL", "u32 u32", {}, 7),
    ("MUL", "f16 f16", {}, 8),
    ("DIV", "f32 f32:7", {}, 1),
    ("DIV", f"{RANK_5} f32:1", {}, 2),
    ("MAXIMUM", f"{RANK_5} f32:1", {}, 3),
    ("MINIMUM", "i16 i16", {}, 4),
    ("MINIMUM", "i8 i8", {}, 2),
    ("SOFTMAX", "f32", {}, 1),
    ("SOFTMAX", "i8", {}, 2),
    ("SOFTMAX", "i16", {}, 3),
    ("SOFTMAX", "f16", {}, 4),
    ("CONCATENATION", "u32 u32", {}, 4),
    ("CONCATENATION", "f16 f16", {}, 6),
    ("TRANSPOSE", "f32 i32", {}, 1),
    ("TRANSPOSE", "i8 i32", {}, 2),
    ("TRANSPOSE", "bool i32", {}, 3),
    ("TRANSPOSE", f"{RANK_5} i32", {}, 4),
    ("TRANSPOSE", "i16 i32", {}, 5),
    ("TRANSPOSE", f"{RANK_6} i32", {}, 6),
    ("TRANSPOSE", f"{RANK_7} i32", {}, 8),
    ("TRANSPOSE", "bf16 i32", {}, 8),
    ("TRANSPOSE", "f16 i32", {}, 9),
    ("PAD", "i16 i32", {}, 3),
    ("PADV2", f"{RANK_5} i32 f32", {}, 4),
    ("PAD", "bool i32", {}, 5),
    ("SLICE", "f32 i32 i32", {}, 1),
    ("SLICE", "i16 i32 i32", {}, 4),
    ("SLICE", f"{RANK_5} i32 i32", {}, 5),
    ("SLICE", "u32 i32 i32", {}, 6),
    ("SLICE", "f16 i32 i32", {}, 8),
    ("STRIDED_SLICE", "f32 i32 i32 i32", {"begin_mask": 3, "new_axis_mask": 0}, 1),
    ("STRIDED_SLICE", "bool i32 i32 i32", {}, 3),
    ("STRIDED_SLICE", f"{RANK_5} i32 i32 i32", {}, 4),
    ("STRIDED_SLICE", "f32 i32 i32 i32", {"new_axis_mask": 1}, 6),
    ("STRIDED_SLICE", "f32 i32 i32 i32", {"ellipsis_mask": 1}, 6),
    ("STRIDED_SLICE", "u32 i32 i32 i32", {}, 7),
    ("STRIDED_SLICE", "f32 i32 i32 i32", {"offset": True}, 8),
    ("RESIZE_BILINEAR", "f32 i32", {"align_corners": True}, 1),
    ("RESIZE_BILINEAR", "i8 i32", {"half_pixel_centers": True}, 3),
    ("RESIZE_NEAREST_NEIGHBOR", "f32 i32", {"align_corners": True}, 3),
    ("RESIZE_NEAREST_NEIGHBOR", "i16 i32", {}, 4),
    ("SPLIT", "i32 f32", {}, 1),
    ("SPLIT", "i32 i8", {}, 2),
    ("SPLIT", "i32 i32", {}, 3),
    ("SPLIT", "i32 i16", {}, 4),
    ("PACK", "u32 u32", {}, 4),
    ("UNPACK", "u8", {}, 2),
    ("UNPACK", "f16", {}, 5),
    ("GATHER", "f32 i32", {"batch_dims": 0}, 1),
    ("GATHER", "bool i32", {}, 3),
    ("GATHER", "i16 i32", {"batch_dims": 1}, 5),
    ("GATHER", "f32 i16", {}, 6),
    ("GATHER_ND", "i16 i32", {}, 3),
    ("GATHER_ND", "f32 i16", {}, 4),
    ("QUANTIZE", "f32 -> i8*1", {}, 1),
    ("QUANTIZE", "f32 -> i16*1", {}, 2),
    ("QUANTIZE", "f32 -> i8*3", {}, 3),
    ("DEQUANTIZE", "u8 -> f32", {}, 1),
    ("DEQUANTIZE", "i8*1 -> f32", {}, 2),
    ("DEQUANTIZE", "f16 -> f32", {}, 3),
    ("DEQUANTIZE", "i8*3 -> f32", {}, 5),
    ("CAST", "f32 -> i64", {}, 1),
    ("CAST", "u32 -> f32", {}, 2),
    ("CAST", "f32 -> i8", {}, 3),
    ("CAST", "u16 -> f32", {}, 4),
    ("CAST", "f32 -> f16", {}, 5),
    ("CAST", "f64 -> f32", {}, 5),
    ("CAST", "bf16 -> f32", {}, 7),
    ("BATCH_MATMUL", "f32 i8", {}, 1),
    ("BATCH_MATMUL", "f32 i8", {"asymmetric_quantize_inputs": True}, 4),
    ("ARG_MAX", "bool i32 -> i32", {}, 3),
    ("EQUAL", "i16 i16", {}, 5),
    ("NOT_EQUAL", "i16 i16", {}, 4),
    ("LESS", "i16 i16", {}, 3),
    ("GREATER", "i16 i16", {}, 1),
    ("GREATER", "i8 i8", {}, 2),
    ("RELU", "u8", {}, 2),
    ("RELU6", "u8", {}, 1),
    ("RELU6", "i16", {}, 3),
    ("ABS", "i16*1", {}, 3),
    ("ABS", "i16", {}, 4),
    ("ABS", "i32", {}, 5),
    ("SQRT", "i8", {}, 2),
    ("BROADCAST_TO", "f32 i32", {}, 2),
    ("BROADCAST_TO", "i16 i32", {}, 3),
    ("BATCH_TO_SPACE_ND", "i8 i32 i32", {}, 2),
    ("SPACE_TO_BATCH_ND", "i8:2,3,5 i32 i32", {}, 3),
    ("SELECT", f"bool {RANK_5} {RANK_5} -> f32", {}, 3),
    ("SELECT_V2", "bool f32 f32", {}, 1),
    ("GELU", "u8", {}, 2),
    ("GELU", "f16", {}, 3),
    ("FILL", "i32 i16", {}, 3),
    ("FILL", "i32 f16", {}, 4),
    ("TOPK_V2", "f32 i16", {}, 3),
    ("LSTM", HYBRID_LSTM, {}, 3),
    ("LSTM", HYBRID_LSTM, {"kernel_type": "BASIC"}, 2),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", "f32 f32 f32", {}, 1),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", HYBRID_LSTM, {}, 2),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", HYBRID_LSTM, {"asymmetric_quantize_inputs": True}, 3),
    ("UNIDIRECTIONAL_SEQUENCE_LSTM", HYBRID_LSTM, {"diagonal_recurrent_tensors": True}, 4),
    ("BIDIRECTIONAL_SEQUENCE_RNN", "f32 i8", {}, 2),
    ("FLOOR_DIV", "i32 i32", {}, 1),
    ("FLOOR_DIV", "f32 f32", {}, 2),
    ("FLOOR_DIV", "i8 i8", {}, 3),
    ("DYNAMIC_UPDATE_SLICE", "f32 f32 i64", {}, 2),
    ("WHERE", "bool -> i64", {}, 1),
    ("WHERE", "f32 -> i64", {}, 2),
    ("RESHAPE", "i8 i32", {}, 1),
]


def operator(type: str, tensors: str, attributes: dict[str, Any]) -> Operator:
    inputs, _, output = tensors.partition("->")
    values = [value(text) for text in inputs.split()]
    result = value(output.strip()) if output else values[0]
    assert result is not None
    return Operator(type, values, [result], attributes, "op")


@pytest.mark.parametrize(("type", "tensors", "attributes", "version"), CASES)
def test_rules(
    type: str, tensors: str, attributes: dict[str, Any], version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(version_rules, "scales", scales_in_name)
    assert operator_version(operator(type, tensors, attributes)) == version


def test_a_product_that_is_scaled_up_needs_version_3(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, z = (Value(name, np.dtype(np.int8), (2, 3)) for name in "xyz")
    factors = {"x": 0.5, "y": 0.25, "z": 0.125}
    monkeypatch.setattr(version_rules, "scales", lambda value: (factors[value.name],))
    assert operator_version(Operator("MUL", [x, y], [z], {}, "mul")) == 3
    factors["z"] = 0.126
    assert operator_version(Operator("MUL", [x, y], [z], {}, "mul")) == 2


def test_the_highest_version_serves_all_uses() -> None:
    uses = [("TRANSPOSE", "i8 i32"), ("ADD", "f32 f32"), ("TRANSPOSE", "bool i32"), ("TRANSPOSE", "f32 i32")]
    versions = model_versions([operator(type, tensors, {}) for type, tensors in uses])
    assert list(versions.items()) == [("TRANSPOSE", 3), ("ADD", 1)]


def test_minimum_runtime_is_the_newest_release_needed() -> None:
    assert minimum_runtime({"CONV_2D": 1, "RELU": 1}) == "1.5.0"
    assert minimum_runtime({"CONV_2D": 1, "TILE": 1, "LEAKY_RELU": 1}) == "1.13.1"
    assert minimum_runtime({"LEAKY_RELU": 1, "BATCH_MATMUL": 1, "FLOOR": 1}) == "2.3.0"
    assert minimum_runtime({"GELU": 1, "TRANSPOSE": 7}) == "2.20.0"
    assert minimum_runtime({"ADD": 99, "BROADCAST_TO": 1}) == ""


# Computed as LiteRT does, though no runtime registers them yet.
UNREGISTERED = {("UNIDIRECTIONAL_SEQUENCE_LSTM", 5), ("LSTM", 5)}


def refusal(type: str, version: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the interpreter says of an operator of this version, before it looks at the tensors."""
    fields = spec(type).option_fields.values()
    samples = {"float32": 1.0, "int32": 1, "padding": "SAME", "mirror": "REFLECT", "type": "INT32"}
    samples["graph"] = TargetGraph("tflite", 20, "inside")
    attributes = {field.name: samples[field.kind] for field in fields if field.required}
    graph = TargetGraph("tflite", 20, "net", operators=[Operator(type, [], [], {**attributes}, "op")])
    monkeypatch.setattr(tflite_writer, "model_versions", lambda operators: {type: version})
    file = io.BytesIO()
    tflite_writer.write_tflite(graph, file)
    try:
        Interpreter(model_content=file.getvalue())
    except ValueError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("type", sorted(name for name, each in SPECS.items() if each.code is not None))
def test_the_runtime_knows_every_version(type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {version for version, _ in spec(type).versions} | {2 if type == "BROADCAST_TO" else 1}
    for version in sorted(versions):
        known = (type, version) not in UNREGISTERED
        assert ("Didn't find op" not in refusal(type, version, monkeypatch)) == known, version
        assert bool(minimum_runtime({type: version})) == known, version
    assert "Didn't find op" in refusal(type, 99, monkeypatch)
