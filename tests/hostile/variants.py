"""Files of strangers: chosen ones, each with something that no valid file says, and damaged copies.

``chosen`` writes a folder for each kind of input, with one file a variant. ``damaged`` changes bytes of a
valid file, from a seed.
"""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable, Iterator

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.frontends.onnx.models import of_nodes

FLOAT = TensorProto.FLOAT
HUGE = 2**62


def node(operator: str, names: str = "x", out: str = "y", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(operator, names.split(), [out], name=f"/{out}", **attributes)


def calls(depth: int) -> onnx.ModelProto:
    """A model whose functions call the next one twice each."""
    own, functions = [helper.make_opsetid("own", 1), helper.make_opsetid("", 18)], []
    for level in range(depth):
        inner = f"f{level + 1}" if level + 1 < depth else ""
        step = {"domain": "own"} if inner else {}
        nodes = [helper.make_node(inner or "Relu", [a], [b], **step) for a, b in (("x", "t"), ("t", "y"))]
        functions.append(helper.make_function("own", f"f{level}", ["x"], ["y"], nodes, own))
    return of_nodes(
        [helper.make_node("f0", ["x"], ["y"], domain="own")], {"x": [2]}, ["y"], functions=functions
    )


def looping(steps: int) -> onnx.ModelProto:
    """A loop of many steps."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "body",
        [value("i", 7, []), value("c", 9, []), value("v", 1, [2])],
        [value("d", 9, []), value("w", 1, [2])],
    )
    constants = [numpy_helper.from_array(np.array(steps), "n"), numpy_helper.from_array(np.array(True), "t")]
    loop = helper.make_node("Loop", ["n", "t", "x"], ["y"], body=body)
    return _with(loop, constants)


def _with(step: onnx.NodeProto, constants: list[onnx.TensorProto]) -> onnx.ModelProto:
    model = of_nodes([step], {"x": [2]}, ["y"])
    model.graph.initializer.extend(constants)
    return model


def constant_of(shape: list[int], data: bytes = b"", **others: object) -> onnx.ModelProto:
    tensor = TensorProto(name="w", data_type=FLOAT, dims=shape, raw_data=data)
    return _with(node("Add", "x w"), [tensor])


def external(location: str, **entries: str) -> onnx.ModelProto:
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return _with(node("Add", "x w"), [tensor])


def of_shape(shape: list[int | str], step: onnx.NodeProto | None = None) -> onnx.ModelProto:
    return of_nodes([step or node("Relu")], {"x": shape}, ["y"])


ONNX: dict[str, Callable[[], onnx.ModelProto]] = {
    "rank 33": lambda: of_shape([1] * 33),
    "rank 65": lambda: of_shape([1] * 65),
    "no elements of a huge size": lambda: of_shape([0, HUGE]),
    "a huge size": lambda: of_shape([HUGE, HUGE]),
    "a negative size": lambda: of_shape([-5, 2]),
    "an input of 2^31 elements": lambda: of_shape([2**31, 2]),
    "a constant of no elements of a huge size": lambda: constant_of([0, HUGE]),
    "a constant of rank 40": lambda: constant_of([1] * 40, b"\0" * 4),
    "a constant with too few bytes": lambda: constant_of([HUGE, HUGE], b"\0" * 8),
    "a huge pool": lambda: of_shape([1, 1, 4, 4], node("MaxPool", kernel_shape=[2**31 - 1] * 2)),
    "a pool with huge padding": lambda: of_shape(
        [1, 1, 4, 4], node("MaxPool", kernel_shape=[2, 2], pads=[2**40] * 4)
    ),
    "a pool without kernel": lambda: of_shape([1, 1, 4, 4], node("AveragePool", kernel_shape=[0, 0])),
    "a huge stride": lambda: of_shape([1, 1, 4, 4], node("MaxPool", kernel_shape=[2, 2], strides=[0, 2**62])),
    "a huge tile": lambda: _with(node("Tile", "x n"), [numpy_helper.from_array(np.array([HUGE]), "n")]),
    "a huge expansion": lambda: _with(
        node("Expand", "x n"), [numpy_helper.from_array(np.array([HUGE, 2]), "n")]
    ),
    "a huge range": lambda: _with(
        node("Range", "a b c"),
        [
            numpy_helper.from_array(np.array(number), name)
            for name, number in zip("abc", (0, HUGE, 1), strict=True)
        ],
    ),
    "a huge constant of a shape": lambda: _with(
        node("ConstantOfShape", "n"), [numpy_helper.from_array(np.array([2**40]), "n")]
    ),
    "a huge one-hot": lambda: _with(
        node("OneHot", "i n v"),
        [
            numpy_helper.from_array(np.array([1]), "i"),
            numpy_helper.from_array(np.array(2**50), "n"),
            numpy_helper.from_array(np.array([0.0, 1.0], np.float32), "v"),
        ],
    ),
    "a permutation of another rank": lambda: of_shape([2, 3], node("Transpose", perm=[5, 0])),
    "an axis out of range": lambda: of_shape([2, 3], node("Concat", axis=99)),
    "attributes of another type": lambda: of_shape([2, 3], node("Softmax", axis="x")),
    "an unknown operator": lambda: of_shape([2], node("Nope")),
    "nested calls": lambda: calls(30),
    "a long loop": lambda: looping(10**6),
    "external data outside": lambda: external("../secret"),
    "external data of a device": lambda: external("/dev/zero"),
    "external data of a pipe": lambda: external("pipe"),
    "external data of a link": lambda: external("link"),
    "external data of a huge length": lambda: external("near", offset="9" * 5000, length=str(HUGE)),
    "a name with control characters": lambda: of_shape([2], node("Relu", out="\x1b]0;x\x07")),
    "no nodes": lambda: of_nodes([], {"x": [2]}, ["x"]),
    "a huge opset": lambda: _opset(2**62),
}


def _opset(version: int) -> onnx.ModelProto:
    model = of_shape([2])
    model.opset_import[0].version = version
    return model


IMAGE = 'input: "x" input_shape { dim: 1 dim: 1 dim: 4 dim: 4 } '
RELU = 'layer { name: "a" type: "ReLU" bottom: "x" top: "y" }'
PROTOTXT = IMAGE.replace("{", "{{").replace("}", "}}") + (
    'layer {{ name: "a" type: "{}" bottom: "x" top: "y" {} }}'
)
CAFFE = {
    "a huge pool": PROTOTXT.format("Pooling", "pooling_param { kernel_size: 4294967295 stride: 4294967295 }"),
    "a pool of zero": PROTOTXT.format("Pooling", "pooling_param { kernel_size: 0 }"),
    "huge sizes": 'input: "x" input_shape { dim: 4611686018427387904 dim: 0 }',
    "rank 40": f'input: "x" input_shape {{ {"dim: 1 " * 40} }} {RELU}',
    "a negative size": f'input: "x" input_shape {{ dim: -3 }} {RELU}',
    "a reshape to too much": PROTOTXT.format(
        "Reshape", "reshape_param { shape { dim: 9999999999 dim: -1 } }"
    ),
    "a slice of nothing": PROTOTXT.format("Slice", "slice_param { slice_point: 99 }"),
    "a convolution without outputs": PROTOTXT.format(
        "Convolution", "convolution_param { num_output: 0 kernel_size: 9 }"
    ),
    "a bottom that nothing computes": 'layer { name: "a" type: "ReLU" bottom: "q" top: "y" }',
    "an unknown layer": PROTOTXT.format("Python", "python_param { module: 'os' layer: 'system' }"),
    "a number of 5000 digits": f'input: "x" input_shape {{ dim: {"1" * 5000} }}',
    "nested fields": "layer { " * 3000,
    "control characters": 'name: "\\033]0;x\\007" ' + PROTOTXT.format("ReLU", ""),
    "no text": "layer { name: \xff }",
}


def npz(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return stream.getvalue()


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode("latin1") + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


SHAPE = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }"
ARRAYS = {
    "an object": npz(x=npy(SHAPE.replace("<f4", "|O") % "(1,)", b"\x80\x04.")),
    "a huge shape": npz(x=npy(SHAPE % f"({HUGE}, {HUGE})")),
    "a shape of nothing": npz(x=npy(SHAPE % f"(0, {HUGE})")),
    "a negative shape": npz(x=npy(SHAPE % "(-1,)")),
    "a shape of text": npz(x=npy(SHAPE % "('a',)")),
    "rank 70": npz(x=npy(SHAPE % ("(" + "1," * 70 + ")"), b"\0" * 4)),
    "a header that is code": npz(x=npy("__import__('os').system('echo ran > ran')")),
    "an unfinished header": npz(x=npy("{" * 2000)),
    "no members": npz(),
    "a member that is not an array": npz(x=b"nothing"),
    "expansion": lambda: npz(x=npy(SHAPE % "(20000000, 1)", b"\0" * 80000000)),
}

CONFIGURATION = {
    "model_type": "bert",
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 8,
    "vocab_size": 31,
}
FOLDERS = {
    "a configuration as architecture": {**CONFIGURATION, "architectures": ["BertConfig"]},
    "a choice as architecture": {**CONFIGURATION, "architectures": ["AutoConfig"]},
    "a model choice as architecture": {**CONFIGURATION, "architectures": ["AutoModel"]},
    "a tokenizer as architecture": {**CONFIGURATION, "architectures": ["BertTokenizer"]},
    "a function as architecture": {**CONFIGURATION, "architectures": ["pipeline"]},
    "a module as architecture": {**CONFIGURATION, "architectures": ["utils"]},
    "a base class as architecture": {**CONFIGURATION, "architectures": ["PreTrainedModel"]},
    "a decoder that is none": {**CONFIGURATION, "architectures": ["BertLMHeadModel"]},
    "no architecture": CONFIGURATION,
    "architectures that are numbers": {**CONFIGURATION, "architectures": [3]},
    "a huge number": {**CONFIGURATION, "architectures": ["BertModel"], "hidden_size": 10**18},
    "a text for a number": {**CONFIGURATION, "architectures": ["BertModel"], "hidden_size": "x"},
    "no heads": {**CONFIGURATION, "architectures": ["BertModel"], "num_attention_heads": 0},
    "an unknown type": {"model_type": "\x1b[2J", "architectures": ["BertModel"]},
    "an unknown activation": {**CONFIGURATION, "architectures": ["BertModel"], "hidden_act": "os.system"},
}

TINY = "[[models]]\nmodel = 'net.onnx'\n"
CONFIGURATIONS = {
    "a number of 5000 digits": f"[onnx]\nopset = {'1' * 5000}\n{TINY}",
    "a long option": f"[onnx]\nrename = ['x={'b' * 4000}']\n{TINY}",
    "a long path": f"[tflite]\ncalibration = '{'b' * 5000}'\n{TINY}",
    "a pattern of stars": "[[models]]\nmodel = '****/x'\n",
    "an upward pattern": "[[models]]\nmodel = '../**/../*'\n",
    "a null character": '[[models]]\nmodel = "a\\u0000b"\n',
    "a null character in an output": '[[models]]\nmodel = "net.onnx"\noutput = "a\\u0000b.onnx"\n',
    "code": f"[options]\nplugin = ['evil.py']\n{TINY}",
    "a factory": "[[models]]\nmodel = 'evil:make'\n",
    "an output elsewhere": f"folder = '../elsewhere'\n{TINY}",
    "a device": "[[models]]\nmodel = '/dev/zero'\n",
    "a pipe": "[[models]]\nmodel = 'pipe'\n",
    "infinite": f"[tflite]\nmin-sqnr = inf\n{TINY}",
    "a date": f"[onnx]\nopset = 1979-05-27\n{TINY}",
    "deep": "a = " + "[" * 5000,
}

RECORDS = {
    "a list": "[]",
    "deep": "[" * 100000,
    "a forged entry": json.dumps(
        {
            "version": 1,
            "conversions": {"onnx net.onnx": {"key": "0", "files": {"/dev/zero": "0"}, "seal": "0"}},
        }
    ),
    "numbers": json.dumps({"version": 1, "conversions": {"onnx net.onnx": {"files": 3, "seal": 4}}}),
    "a number of 5000 digits": '{"version": ' + "1" * 5000 + "}",
}
REPORTS = {
    "a list": "[]",
    "deep": "[" * 100000,
    "numbers": json.dumps({"kind": "float32", "layers": [{"name": 3}]}),
    "infinite": '{"kind": "float32", "layers": [], "outputs": [NaN, Infinity]}',
    "a number of 5000 digits": '{"kind": ' + "1" * 5000 + "}",
}
PARAMETERS = {
    "a number of 5000 digits": '{"activation_encodings": {"x": [{"scale": ' + "1" * 5000 + "}]}}",
    "deep": '{"a":' * 50000,
    "infinite": '{"activation_encodings": {"x": [{"scale": Infinity, "offset": NaN, "bitwidth": 8}]}}',
    "a negative width": '{"activation_encodings": {"x": [{"scale": 1, "offset": 0, "bitwidth": -8}]}}',
    "a huge width": '{"activation_encodings": {"x": [{"scale": 1, "offset": 0, "bitwidth": 999999999}]}}',
    "no text": "\xff\xfe",
}


def damaged(data: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """Yields copies with other bytes, extreme numbers, cuts and moved parts."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        copy = bytearray(data)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(0, len(copy)))
            match number % 4:
                case 0:
                    copy[at] = int(rng.integers(0, 256))
                case 1:
                    at -= at % 4
                    extreme = int(rng.choice([0, 1, 0x7F, 0x7FFFFFFF, 0xFFFFFFFF, 0x80000000]))
                    copy[at : at + 4] = struct.pack("<I", extreme)
                case 2:
                    start, size = int(rng.integers(0, len(copy))), int(rng.integers(1, 65))
                    part = copy[start : start + size]
                    copy[at : at + len(part)] = part
                case _:
                    copy = copy[: max(at, 16)]
        yield bytes(copy)
