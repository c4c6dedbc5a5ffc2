"""Caffe nets, run and compared with loops."""

from __future__ import annotations

import io
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from google.protobuf import text_format

from tmconvert.errors import InternalError, WriteError
from tmconvert.errors.source import Source
from tmconvert.formats.caffe.schema import schema
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.symbolics.dialects import DIALECTS
from tmconvert.targets.caffe.writer import write_caffe
from tmconvert.targets.registry import runtime_for

LayerParameter, NetParameter = schema().LayerParameter, schema().NetParameter
F32 = np.dtype(np.float32)


def constant(name: str, data: np.ndarray) -> Value:
    return Value(name, data.dtype, data.shape, data)


def tensor(name: str, *shape: int) -> Value:
    return Value(name, F32, shape)


def layer(kind: str, inputs: list[Value | None], outputs: Value | list[Value], **attributes: Any) -> Operator:
    """A layer that has its first output's name: OpenCV finds outputs by the layer's name."""
    tops = outputs if isinstance(outputs, list) else [outputs]
    return Operator(kind, inputs, tops, attributes, tops[0].name)


def net_of(inputs: list[Value], operators: list[Operator], outputs: list[Value], *names: str) -> TargetGraph:
    return TargetGraph(
        target="caffe",
        version=0,
        name="net",
        inputs=inputs,
        outputs=outputs,
        operators=operators,
        input_names=[value.name for value in inputs],
        output_names=list(names) or [value.name for value in outputs],
    )


def encode(graph: TargetGraph) -> tuple[bytes, bytes]:
    prototxt, caffemodel = io.BytesIO(), io.BytesIO()
    write_caffe(graph, prototxt, caffemodel)
    return prototxt.getvalue(), caffemodel.getvalue()


def run(graph: TargetGraph, *arrays: np.ndarray) -> list[Any]:
    feeds = {value.name: array for value, array in zip(graph.inputs, arrays, strict=True)}
    with TemporaryDirectory() as folder:
        paths = [Path(folder, "net.prototxt"), Path(folder, "net.caffemodel")]
        for path, content in zip(paths, encode(graph), strict=True):
            path.write_bytes(content)
        return runtime_for("caffe", paths[0]).run(paths, feeds, graph.output_names)


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def close(got: np.ndarray, expected: np.ndarray) -> None:
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def convolve(image: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Stride (2, 1), padding (1, 0), one group."""
    padded = np.pad(image.astype(np.float64), [(0, 0), (0, 0), (1, 1), (0, 0)])
    height = (padded.shape[2] - weight.shape[2]) // 2 + 1
    width = padded.shape[3] - weight.shape[3] + 1
    result = np.zeros((len(image), len(weight), height, width))
    for n, c, i, j in np.ndindex(result.shape):
        window = padded[n, :, 2 * i : 2 * i + weight.shape[2], j : j + weight.shape[3]]
        result[n, c, i, j] = (window * weight[c]).sum() + bias[c]
    return result


def classifier() -> tuple[TargetGraph, np.ndarray, np.ndarray]:
    """Convolution, ReLU, Pooling, InnerProduct, Softmax; its weights are views of all kinds."""
    image = normal(1, 2, 3, 9, 8)
    weight = normal(2, 4, 3, 3, 5).transpose(3, 2, 1, 0)  # [5, 3, 3, 4]
    bias = normal(3, 5)[::-1]
    matrix = normal(4, 45, 7).astype(np.float64).T  # [7, 5 * 3 * 3]
    offset = np.broadcast_to(np.float32(0.5), 7)
    x, conv, relu = tensor("x", 2, 3, 9, 8), tensor("conv", 2, 5, 5, 5), tensor("relu", 2, 5, 5, 5)
    pool, dense, prob = tensor("pool", 2, 5, 3, 3), tensor("dense", 2, 7), tensor("prob", 2, 7)
    operators = [
        layer("Convolution", [x, constant("w", weight), constant("b", bias)], conv, num_output=5,
              kernel_h=3, kernel_w=4, stride_h=2, stride_w=1, pad_h=1, pad_w=0, group=1, bias_term=True),
        layer("ReLU", [conv], relu),
        layer("Pooling", [relu], pool, pool="MAX", kernel_size=2, stride=2, pad=0),
        layer("InnerProduct", [pool, constant("m", matrix), constant("o", offset)], dense, num_output=7),
        layer("Softmax", [dense], prob, axis=1),
    ]  # fmt: skip

    relued = np.maximum(convolve(image, weight, bias), 0)
    pooled = np.zeros((2, 5, 3, 3))
    for n, c, i, j in np.ndindex(pooled.shape):  # the last windows hang over the edge
        pooled[n, c, i, j] = relued[n, c, 2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max()
    logits = pooled.reshape(2, 45) @ matrix.T + 0.5
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = exponentials / exponentials.sum(axis=1, keepdims=True)
    return net_of([x], operators, [prob]), image, expected


def test_a_classifier() -> None:
    graph, image, expected = classifier()
    (got,) = run(graph, image)
    close(got, expected)


def test_normalization() -> None:
    image, mean, variance = normal(1, 2, 3, 5, 7), normal(2, 3), normal(3, 3) ** 2
    gamma, beta = normal(4, 3), normal(5, 3)
    x, norm, scaled = (tensor(name, 2, 3, 5, 7) for name in ("x", "norm", "scaled"))
    blobs = [constant("mean", mean), constant("variance", variance), constant("one", np.ones(1, "f4"))]
    operators = [
        layer("BatchNorm", [x, *blobs], norm, use_global_stats=True, eps=0.01),
        layer("Scale", [norm, constant("gamma", gamma), constant("beta", beta)], scaled, bias_term=True),
    ]
    expected = np.zeros(image.shape)
    for n, c, i, j in np.ndindex(image.shape):
        normed = (image[n, c, i, j] - mean[c]) / np.sqrt(variance[c] + 0.01)
        expected[n, c, i, j] = normed * gamma[c] + beta[c]
    (got,) = run(net_of([x], operators, [scaled]), image)
    close(got, expected)


def test_branches_with_two_inputs_and_several_outputs() -> None:
    """Slice, Eltwise, Concat, Reshape and Permute; outputs that another layer reads too."""
    first, second = normal(1, 2, 7, 3, 5), normal(2, 2, 4, 3, 5)
    a, b = tensor("a", 2, 7, 3, 5), tensor("b", 2, 4, 3, 5)
    head, tail = tensor("head", 2, 3, 3, 5), tensor("tail", 2, 4, 3, 5)
    mixed, joined = tensor("mixed", 2, 4, 3, 5), tensor("joined", 2, 4, 6, 5)
    flat, turned = tensor("flat", 2, 24, 5), tensor("turned", 2, 5, 24)
    operators = [
        layer("Slice", [a], [head, tail], axis=1, slice_point=3),
        layer("Eltwise", [tail, b], mixed, operation="SUM", coeff=[2.0, -1]),
        layer("Concat", [mixed, b], joined, axis=2),
        layer("Reshape", [joined], flat, shape=[0, -1, 5]),
        layer("Permute", [flat], turned, order=[0, 2, 1]),
    ]
    graph = net_of([a, b], operators, [head, mixed, turned])
    graph.version = DIALECTS.index("opencv")
    got = run(graph, first, second)
    difference = 2 * first[:, 3:] - second
    close(got[0], first[:, :3])
    close(got[1], difference)
    close(got[2], np.concatenate([difference, second], axis=2).reshape(2, 24, 5).transpose(0, 2, 1))


def test_outputs_that_are_inputs_or_twice_the_same() -> None:
    image = normal(1, 2, 3, 5, 7)
    x, y = tensor("x", 2, 3, 5, 7), tensor("y", 2, 3, 5, 7)
    operators = [layer("Power", [x], y, power=1.0, scale=-2.0, shift=0.5)]
    got = run(net_of([x], operators, [y, x, y], "y", "x copy", "y copy"), image)
    for array, expected in zip(got, [0.5 - 2 * image, image, 0.5 - 2 * image], strict=True):
        close(array, expected)


def test_a_constant_output_is_a_parameter_layer() -> None:
    """OpenCV 4 has no such layer; BVLC Caffe does."""
    x, y = tensor("x", 2, 3), tensor("y", 2, 3)
    data = normal(1, 3, 5).T
    graph = net_of([x], [layer("ReLU", [x], y)], [y, constant("c", data)], "y", "table")
    prototxt, caffemodel = encode(graph)
    written = NetParameter.FromString(caffemodel).layer[-1]
    assert (written.type, list(written.bottom), list(written.top)) == ("Parameter", [], ["table"])
    np.testing.assert_array_equal(np.array(written.blobs[0].data, "f4").reshape(5, 3), data)
    shape = text_format.Parse(prototxt.decode(), NetParameter()).layer[-1].parameter_param.shape
    assert list(shape.dim) == [5, 3]


PROTOTXT = """\
name: "net"
layer {
  name: "data"
  type: "Input"
  top: "data"
  input_param {
    shape {
      dim: 2
      dim: 3
      dim: 5
      dim: 7
    }
  }
}
layer {
  name: "conv"
  type: "Convolution"
  bottom: "data"
  top: "conv"
  convolution_param {
    num_output: 4
    bias_term: false
    kernel_size: 3
    pad_h: 0
    pad_w: 1
    dilation: 1
    dilation: 2
  }
}
layer {
  name: "pool"
  type: "Pooling"
  bottom: "conv"
  top: "pool"
  pooling_param {
    pool: AVE
    global_pooling: true
  }
}
layer {
  name: "sum \\"\\303\\251\\""
  type: "Eltwise"
  bottom: "pool"
  bottom: "pool"
  top: "sum \\"\\303\\251\\""
  eltwise_param {
    operation: SUM
    coeff: 0.1
    coeff: -1.0
  }
}
layer {
  name: "sigmoid"
  type: "Sigmoid"
  bottom: "sum \\"\\303\\251\\""
  top: "sigmoid"
}
"""


def test_the_text_reads_like_a_hand_written_one() -> None:
    data, conv = tensor("data", 2, 3, 5, 7), tensor("conv", 2, 4, 3, 5)
    pool, total, out = (tensor(name, 2, 4, 1, 1) for name in ("pool", 'sum "é"', "sigmoid"))
    operators = [
        layer("Convolution", [data, constant("w", normal(1, 4, 3, 3, 3)), None], conv, num_output=4,
              kernel_size=3, bias_term=False, pad_h=0, pad_w=1, dilation=[1, 2], group=1),
        layer("Pooling", [conv], pool, pool="AVE", global_pooling=True),
        layer("Eltwise", [pool, pool], total, operation="SUM", coeff=[np.float32(0.1), -1]),
        layer("Sigmoid", [total], out),
    ]  # fmt: skip
    prototxt, _ = encode(net_of([data], operators, [out]))
    parsed = text_format.Parse(prototxt.decode(), NetParameter())
    assert parsed == text_format.Parse(PROTOTXT, NetParameter())
    assert prototxt.decode() == PROTOTXT.replace("\\303\\251", "é")


def test_caffemodel_is_the_prototxt_with_blobs() -> None:
    graph, _, _ = classifier()
    prototxt, caffemodel = encode(graph)
    net = NetParameter.FromString(caffemodel)
    assert net.SerializeToString(deterministic=True) == caffemodel  # field order and lengths
    convolution, dense = net.layer[1], net.layer[4]
    assert [list(blob.shape.dim) for blob in convolution.blobs] == [[5, 3, 3, 4], [5]]
    assert [list(blob.shape.dim) for blob in dense.blobs] == [[7, 45], [7]]
    for each in net.layer:
        each.ClearField("blobs")
    assert net == text_format.Parse(prototxt.decode(), NetParameter())
    assert encode(graph) == (prototxt, caffemodel)


def test_message_bytes_by_hand() -> None:
    """The schema against bytes put together from caffe.proto's field numbers."""
    written = LayerParameter(name="a", type="Convolution", bottom=["b"], phase=1, loss_weight=[0.0])
    written.convolution_param.num_output = 5
    written.convolution_param.dilation.extend([1, 2])
    written.convolution_param.pad_h = 300
    assert written.SerializeToString(deterministic=True) == (
        b"\x0a\x01a"  # 1: name
        b"\x12\x0bConvolution"  # 2: type
        b"\x1a\x01b"  # 3: bottom
        b"\x2d\0\0\0\0"  # 5: loss_weight, 32 bits
        b"\x50\x01"  # 10: phase
        b"\xd2\x06\x0b"  # 106: convolution_param, 11 bytes; the tag is 106 * 8 + 2 = 0x352
        b"\x08\x05"  # 1: num_output
        b"\x48\xac\x02"  # 9: pad_h
        b"\x90\x01\x01\x90\x01\x02"  # 18: dilation, not packed
    )


@pytest.mark.parametrize("dtype", ["f2", "f8", ">f4", "i4", "i8", "?", ml_dtypes.bfloat16], ids=str)
def test_blobs_are_float32_whatever_the_constant(dtype: Any) -> None:
    data = np.random.default_rng(1).uniform(-3, 3, size=(3, 5)).astype(dtype).T
    x, y = tensor("x", 2, 3), tensor("y", 2, 5)
    operator = layer("InnerProduct", [x, constant("w", data)], y, num_output=5, bias_term=False)
    _, caffemodel = encode(net_of([x], [operator], [y]))
    (blob,) = NetParameter.FromString(caffemodel).layer[1].blobs
    np.testing.assert_array_equal(np.array(blob.data).reshape(5, 3), data.astype("f4"))


def test_an_input_and_a_layer_may_have_one_name() -> None:
    image = normal(1, 2, 3, 5, 7)
    x, y = tensor("x", 2, 3, 5, 7), tensor("y", 2, 3, 5, 7)
    graph = net_of([x], [Operator("AbsVal", [x], [y], {}, "x")], [y], "y")
    prototxt, _ = encode(graph)
    net = text_format.Parse(prototxt.decode(), NetParameter())
    assert [each.name for each in net.layer] == ["x_input", "x"]
    close(run(net_of([x], [layer("AbsVal", [x], y)], [y]), image)[0], np.abs(image))


def test_above_two_gibibytes_is_refused_before_anything_is_written() -> None:
    data = np.broadcast_to(np.float32(1), (2**15, 2**14))
    x, y = tensor("x", 1, 2**14), tensor("y", 1, 2**15)
    operator = layer("InnerProduct", [x, constant("w", data)], y, num_output=2**15, bias_term=False)
    prototxt, caffemodel = io.BytesIO(), io.BytesIO()
    with pytest.raises(WriteError) as caught:
        write_caffe(net_of([x], [operator], [y]), prototxt, caffemodel)
    assert str(caught.value) == (
        "error[TM5002]: the weights take 2.0 GiB, and a caffemodel can hold 2 GiB\n"
        "   = help: split the model, or convert it to another format"
    )
    assert prototxt.getvalue() == caffemodel.getvalue() == b""


@pytest.mark.parametrize(
    ("kind", "attributes", "message"),
    [
        ("HardSwish", {}, "this dialect of Caffe has no layer HardSwish"),
        ("ReLU", {"alpha": 1.0}, "ReLU has no parameter 'alpha'"),
        ("TanH", {"engine": 1}, "'engine' of TanH: 1 is not one of DEFAULT, CAFFE, CUDNN"),
        ("Pooling", {"pool": "MEAN"}, "'pool' of Pooling: 'MEAN' is not one of MAX, AVE, STOCHASTIC"),
        ("Pooling", {"pool": 1}, "'pool' of Pooling: 1 is not one of MAX, AVE, STOCHASTIC"),
        ("Pooling", {"pad": -1}, "'pad' of Pooling: "),
        ("Pooling", {"pad": [1, 2]}, "'pad' of Pooling: [1, 2] does not fit caffe.PoolingParameter.pad"),
        ("Softmax", {"axis": True}, "'axis' of Softmax: True does not fit caffe.SoftmaxParameter.axis"),
        ("Softmax", {"axis": 1.0}, "'axis' of Softmax: 1.0 does not fit caffe.SoftmaxParameter.axis"),
        ("Reshape", {"shape": ["x"]}, "'shape' of Reshape: 'x' does not fit caffe.ReshapeParameter.shape"),
    ],
)
def test_a_layer_that_does_not_fit(kind: str, attributes: dict[str, Any], message: str) -> None:
    x, y = tensor("x", 2, 3), tensor("y", 2, 3)
    operator = Operator(kind, [x], [y], attributes, "act", Source("net.py", 7, "head"))
    with pytest.raises(InternalError) as caught:
        encode(net_of([x], [operator], [y]))
    text = str(caught.value)
    assert text.startswith("error[TM9001]: layer 'act': ")
    assert message in text
    assert text.endswith("\n  --> net.py:7, in head")


def test_names_that_would_merge_layers() -> None:
    x, y, z = tensor("x", 2, 3), tensor("y", 2, 3), tensor("z", 2, 3)
    with pytest.raises(InternalError, match="the name 'x' is empty, or used twice"):
        encode(net_of([x], [layer("ReLU", [x], tensor("x", 2, 3))], []))
    twice = [Operator("ReLU", [x], [y], {}, "act"), Operator("ReLU", [y], [z], {}, "act")]
    with pytest.raises(InternalError, match="the name 'act' is empty, or used twice"):
        encode(net_of([x], twice, [z]))
