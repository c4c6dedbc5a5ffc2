"""Files in which one thing is changed, whatever it is: a number, an attribute, an operand.

``changed_files`` makes them from a written file; ``verdict`` says what becomes of one: it is refused, or it
computes the same on inputs that verification never saw.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from google.protobuf import text_format
from onnx.numpy_helper import from_array, to_array

import tmconvert
from tmconvert.errors import TmconvertError
from tmconvert.formats.caffe.schema import schema
from tmconvert.ir import TracedModule
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.registry import runtime_for
from tmconvert.verification.inputs import drawn_inputs


class Change(NamedTuple):
    """``write`` puts the changed files at the paths it is given."""

    what: str
    write: Callable[[list[Path]], None]


def changed_files(paths: list[Path], target: str, random: np.random.Generator) -> Iterator[Change]:
    """Single changes, each drawn anew: of what is chosen evenly, then of the place."""
    made = {"onnx": _of_onnx, "tflite": _of_tflite, "caffe": _of_caffe}[target]
    while True:
        change = made(paths, random)
        if change is not None:
            yield change


def _element(data: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, str]:
    """The array with one other element: a tenth of the largest more, one more, or the negation of a bool."""
    data = data.copy()
    at = int(random.integers(data.size))
    flat = data.reshape(-1)
    before = flat[at]
    if data.dtype.kind == "f":
        flat[at] = before + max(float(np.abs(data[np.isfinite(data)]).max(initial=0)), 1e-3) / 10
    elif data.dtype.kind == "b":
        flat[at] = not before
    else:
        step = max(int(np.abs(data.astype(np.int64)).max()) // 10, 1)
        ends = np.iinfo(data.dtype)
        flat[at] = int(before) + step if int(before) + step <= ends.max else int(before) - step
    return data, f"element {at}: {before} is {flat[at]}"


# ---- ONNX


def _of_onnx(paths: list[Path], random: np.random.Generator) -> Change | None:
    model = onnx.load(paths[0])
    what = random.choice([_initializer, _attribute, _operands, _operator])(model, random)
    return what and Change(what, lambda out: onnx.save(model, out[0]))


def _initializer(model: onnx.ModelProto, random: np.random.Generator) -> str | None:
    tensors = [
        each
        for each in model.graph.initializer
        if to_array(each).size and to_array(each).dtype.kind in "fiub"
    ]
    if not tensors:
        return None
    tensor = tensors[random.integers(len(tensors))]
    data, what = _element(to_array(tensor), random)
    tensor.CopyFrom(from_array(data, tensor.name))
    return f"{tensor.name}, {what}"


def _attribute(model: onnx.ModelProto, random: np.random.Generator) -> str | None:
    found = [
        (node, each) for node in model.graph.node for each in node.attribute if each.type in (1, 2, 6, 7)
    ]
    if not found:
        return None
    node, attribute = found[random.integers(len(found))]
    if attribute.type == 1:
        attribute.f = attribute.f * 1.5 + 0.1
    elif attribute.type == 2:
        attribute.i += 1
    elif attribute.type == 7 and len(attribute.ints):
        attribute.ints[random.integers(len(attribute.ints))] += 1
    else:
        return None
    return f"{node.name}: {attribute.name}"


def _operands(model: onnx.ModelProto, random: np.random.Generator) -> str | None:
    nodes = [node for node in model.graph.node if len(node.input) > 1 and all(node.input)]
    if not nodes:
        return None
    node = nodes[random.integers(len(nodes))]
    one, other = random.choice(len(node.input), 2, replace=False)
    node.input[one], node.input[other] = node.input[other], node.input[one]
    return f"{node.name}: operands {one} and {other} exchanged"


_LIKE = {
    "Relu": "Sigmoid",
    "Sigmoid": "Tanh",
    "Tanh": "Relu",
    "Add": "Sub",
    "Sub": "Add",
    "Mul": "Div",
    "Div": "Mul",
    "MaxPool": "AveragePool",
    "ReduceMean": "ReduceMax",
    "ReduceMax": "ReduceMean",
    "Exp": "Abs",
    "Sqrt": "Abs",
}


def _operator(model: onnx.ModelProto, random: np.random.Generator) -> str | None:
    nodes = [node for node in model.graph.node if node.op_type in _LIKE]
    if not nodes:
        return None
    node = nodes[random.integers(len(nodes))]
    what = f"{node.name}: {node.op_type} is {_LIKE[node.op_type]}"
    node.op_type = _LIKE[node.op_type]
    return what


# ---- TFLite


_TYPES = {0: "float32", 2: "int32", 3: "uint8", 4: "int64", 6: "bool", 7: "int16", 9: "int8"}


def _of_tflite(paths: list[Path], random: np.random.Generator) -> Change | None:
    import flatbuffers
    from ai_edge_litert import schema_py_generated as lite

    model = lite.ModelT.InitFromPackedBuf(paths[0].read_bytes(), 0)
    what = random.choice([_buffer, _option, _inputs])(model, random)

    def write(out: list[Path]) -> None:
        builder = flatbuffers.Builder(1 << 16)
        builder.Finish(model.Pack(builder), b"TFL3")
        out[0].write_bytes(builder.Output())

    return what and Change(what, write)


def _buffer(model: Any, random: np.random.Generator) -> str | None:
    tensors = [
        each
        for each in model.subgraphs[0].tensors
        if model.buffers[each.buffer].data is not None
        and len(model.buffers[each.buffer].data)
        and each.type in _TYPES
    ]
    if not tensors:
        return None
    tensor = tensors[random.integers(len(tensors))]
    buffer = model.buffers[tensor.buffer]
    data, what = _element(np.array(buffer.data, np.uint8).view(_TYPES[tensor.type]), random)
    buffer.data = data.view(np.uint8)
    return f"{tensor.name.decode()}, {what}"


def _option(model: Any, random: np.random.Generator) -> str | None:
    found = [
        (place, call.builtinOptions, name)
        for place, call in enumerate(model.subgraphs[0].operators)
        for name, value in vars(call.builtinOptions or object.__new__(type("None", (), {}))).items()
        if type(value) in (int, bool, float)
    ]
    if not found:
        return None
    place, options, name = found[random.integers(len(found))]
    value = getattr(options, name)
    ends = {
        "padding": 1 - value if isinstance(value, int) else 0,
        "fusedActivationFunction": 0 if value else 1,
    }
    setattr(options, name, ends.get(name, not value if isinstance(value, bool) else value + 1))
    return f"operator {place}: {name}"


def _inputs(model: Any, random: np.random.Generator) -> str | None:
    calls = [call for call in model.subgraphs[0].operators if len(call.inputs) > 1]
    if not calls:
        return None
    call = calls[random.integers(len(calls))]
    inputs = np.array(call.inputs)
    one, other = random.choice(len(inputs), 2, replace=False)
    inputs[[one, other]] = inputs[[other, one]]
    call.inputs = inputs
    return f"operator of {list(inputs)}: operands {one} and {other} exchanged"


# ---- Caffe


def _of_caffe(paths: list[Path], random: np.random.Generator) -> Change | None:
    text, weights = paths[0].read_text(), paths[1].read_bytes()
    net = schema().NetParameter()
    net.ParseFromString(weights)
    layers = [layer for layer in net.layer if layer.blobs]
    if layers and random.integers(2):
        layer = layers[random.integers(len(layers))]
        blob = layer.blobs[random.integers(len(layer.blobs))]
        data, what = _element(np.array(blob.data, np.float32), random)
        blob.data[:] = data.tolist()
        return Change(f"{layer.name}, {what}", lambda out: _put(out, text, net.SerializeToString()))
    numbers = list(re.finditer(r"(?<=: )-?\d+(\.\d+)?(?=\s*\n)", text))
    if not numbers:
        return None
    found = numbers[random.integers(len(numbers))]
    other = str(float(found[0]) * 1.5 + 0.1) if "." in found[0] else str(int(found[0]) + 1)
    line = text.count("\n", 0, found.start()) + 1
    edited = text[: found.start()] + other + text[found.end() :]
    try:
        text_format.Parse(edited, schema().NetParameter())
    except text_format.ParseError:
        return None
    what = f"line {line}: {text.splitlines()[line - 1].strip()} is {other}"
    return Change(what, lambda out: _put(out, edited, weights))


def _put(out: list[Path], text: str, weights: bytes) -> None:
    out[0].write_text(text)
    out[1].write_bytes(weights)


# ---- what becomes of them


def verdict(model: TracedModule, target: str, paths: list[Path], changed: list[Path]) -> str:
    """Refused, equal, or slipped: of a file that verification takes and that computes something else."""
    try:
        tmconvert.verify(model, changed[0])
    except TmconvertError as error:
        assert error.code.startswith(("TM1", "TM4", "TM6")), error
        return f"refused: {error.code}"
    off = max(_distances(model, target, paths, changed))
    return "equal" if off <= _ALLOWED else f"slipped: {off:.1e} off"


_ALLOWED = 2e-4  # twice the tolerance of floats: two files that it allows may be as far apart
SEEDS = (7, 8, 9, 10)  # of inputs that verification does not draw


def _distances(model: TracedModule, target: str, paths: list[Path], changed: list[Path]) -> Iterator[float]:
    from tmconvert.formats.tflite.metadata import tflite_layouts
    from tmconvert.passes.normalize import normalize
    from tmconvert.symbolics.layouts import NCHW_TO_NHWC

    graph = normalize(model.flatten(), catalogue()).graph
    runtime = runtime_for(target, paths[0])
    assert runtime is not None
    nhwc = (tflite_layouts(paths[0]) or ((), ()))[0] if target == "tflite" else ()
    outputs = list(graph.output_names) or [node.name for node in graph.outputs]
    shapes = [node.type.shape for node in graph.outputs] if target == "caffe" else None
    for seed in SEEDS:
        arrays = drawn_inputs(graph, catalogue(), seed)
        if seed % 2:
            arrays = [array + 2 if array.dtype.kind == "f" else array for array in arrays]
        fed = {
            node.name: array.transpose(NCHW_TO_NHWC) if nhwc and nhwc[number] else array
            for number, (node, array) in enumerate(zip(graph.inputs, arrays, strict=True))
        }
        made = [runtime.run(each, fed, outputs, shapes=shapes) for each in (paths, changed)]
        for one, other in zip(*made, strict=True):
            scale = float(np.max(np.abs(one[np.isfinite(one)]), initial=0)) or 1.0
            yield float(np.max(np.abs(np.nan_to_num(one.astype(np.float64) - other)), initial=0)) / scale
