"""Files of parameters before readers that others wrote: ONNX Runtime's quantizer, protobuf's text format."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format
from onnx import numpy_helper

import tmconvert
from tests.models import corpus
from tmconvert.qparams.file import read_parameters
from tmconvert.qparams.records import ACTIVATION, WEIGHT, Record


def written(name: str, target: str, folder: Path, format: str) -> tuple[Path, Path, list[Record]]:
    """The model, the file in ``format``, and the records that mgeconvert's format has."""
    path, parameters, plain = (folder / each for each in (f"m{corpus.SUFFIXES[target]}", "q", "q.json"))
    convert = getattr(tmconvert, f"to_{target}")
    convert(corpus.model(name), path, qparams=plain)
    convert(corpus.model(name), path, qparams=parameters, qparams_format=format)
    return path, parameters, read_parameters(plain)[0]


class Samples:
    """A reader of calibration data, as the quantizer asks for."""

    def __init__(self, name: str, inputs: list[np.ndarray]) -> None:
        self.samples = iter([{name: array} for array in inputs])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.samples, None)


@pytest.mark.parametrize("name", ["qat_small_ema", "qat_small_asym_quint8", "qat_perchannel_weight"])
def test_onnxruntime_quantizes_by_the_file(name: str, tmp_path: Path) -> None:
    path, parameters, records = written(name, "onnx", tmp_path, "onnxruntime")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
        from onnxruntime.quantization.static_quantize_runner import get_tensor_quant_overrides

        inputs, _ = corpus.golden(name)
        (x,) = onnx.load(path).graph.input
        quantize_static(
            path,
            tmp_path / "int8.onnx",
            Samples(x.name, inputs),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            extra_options={"TensorQuantOverrides": get_tensor_quant_overrides(parameters)},
        )
    graph = onnx.load(tmp_path / "int8.onnx").graph
    constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    scales = {
        node.input[0].removesuffix("_quantized"): constants[node.input[1]]
        for node in graph.node
        if node.op_type in ("QuantizeLinear", "DequantizeLinear")
    }
    judged = set()
    for record in records:
        if record.name in scales and record.role in (ACTIVATION, WEIGHT):
            np.testing.assert_array_equal(scales[record.name].reshape(-1), np.float32(record.scales))
            judged.add(record.role)
    assert judged == {ACTIVATION, WEIGHT}


# the fields of AMCT's record that are used, by CANN's documentation; the numbers are of no matter to text
FIELDS = {
    "scale_d": ("TYPE_FLOAT", "LABEL_OPTIONAL"),
    "offset_d": ("TYPE_INT32", "LABEL_OPTIONAL"),
    "scale_w": ("TYPE_FLOAT", "LABEL_REPEATED"),
    "offset_w": ("TYPE_INT32", "LABEL_REPEATED"),
    "channels": ("TYPE_INT32", "LABEL_OPTIONAL"),
    "height": ("TYPE_INT32", "LABEL_OPTIONAL"),
    "width": ("TYPE_INT32", "LABEL_OPTIONAL"),
}


def amct_message() -> Any:
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="amct.proto", package="amct", syntax="proto2")
    value, record, root = (file.message_type.add(name=name) for name in ("Value", "Record", "Records"))
    for number, (name, (type, label)) in enumerate(FIELDS.items(), start=1):
        value.field.add(name=name, number=number, type=getattr(kinds, type), label=getattr(kinds, label))
    record.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_REQUIRED)
    inner = kinds.TYPE_MESSAGE
    record.field.add(name="value", number=2, type=inner, label=kinds.LABEL_OPTIONAL, type_name=".amct.Value")
    root.field.add(name="record", number=1, type=inner, label=kinds.LABEL_REPEATED, type_name=".amct.Record")
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("amct.Records"))()


@pytest.mark.parametrize(("target", "format"), [("onnx", "ascend"), ("caffe", "ascend-caffe")])
def test_protobuf_reads_the_record_of_amct(target: str, format: str, tmp_path: Path) -> None:
    _, parameters, records = written("qat_small_asym_quint8", target, tmp_path, format)
    message = text_format.Parse(parameters.read_text(), amct_message())
    weights = [record for record in records if record.role == WEIGHT]
    assert len(message.record) == len(weights) == 5
    given = {record.scales[0]: record for record in records if record.role == ACTIVATION}
    for layer, weight in zip(message.record, weights, strict=True):
        assert list(layer.value.scale_w) == list(weight.scales) and list(layer.value.offset_w) == [0]
        activation = given[layer.value.scale_d]
        assert layer.value.offset_d == activation.zero_points[0] - 128
        assert layer.value.HasField("channels") == (target == "caffe")


def test_the_quantizer_of_onnxruntime_needs_nothing_but_scales(tmp_path: Path) -> None:
    _, parameters, _ = written("qat_small_ema", "onnx", tmp_path, "onnxruntime")
    for entries in json.loads(parameters.read_text()).values():
        assert all(set(entry) <= {"axis", "scale", "zero_point"} for entry in entries)


def test_a_layer_that_takes_floats_has_no_record(tmp_path: Path) -> None:
    report = tmconvert.to_onnx(
        corpus.model("qat_mobilenetv2_minmax"),
        tmp_path / "m.onnx",
        qparams=tmp_path / "q",
        qparams_format="ascend",
    )
    (note,) = [note for note in report.notes if "quantization parameters" in note]
    assert (
        "11 activations and 11 weights" in note and "12 activations, 1 weight and 11 biases left out" in note
    )
    assert '"/fc_out/Gemm"' not in (tmp_path / "q").read_text()
