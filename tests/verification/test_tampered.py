"""Integer files in which one number or one name is wrong are refused; right ones pass, whatever goes in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.numpy_helper import from_array, to_array

import tmconvert
from tests.models import corpus, integers
from tmconvert.errors import VerificationError

schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
NAME = "qat_resnet_ema"


def tensors(model: Any) -> dict[str, Any]:
    return {tensor.name.decode(): tensor for tensor in model.subgraphs[0].tensors}


def operators(model: Any, code: int) -> list[Any]:
    """Those of a type, by its number."""
    wanted = [index for index, each in enumerate(model.operatorCodes) if each.builtinCode == code]
    return [each for each in model.subgraphs[0].operators if each.opcodeIndex in wanted]


def convolution(model: Any, place: int = 1) -> tuple[Any, Any, Any, Any]:
    """(input, weights, bias, output) of a convolution."""
    call, all = operators(model, 3)[place], model.subgraphs[0].tensors
    x, weight, bias = (all[index] for index in call.inputs)
    return x, weight, bias, all[call.outputs[0]]


def numbers(model: Any, tensor: Any, dtype: str) -> np.ndarray:
    """What a tensor holds, to be written to."""
    data = np.array(model.buffers[tensor.buffer].data, np.uint8)
    model.buffers[tensor.buffer].data = data
    return data.view(dtype)


def flipped_sign(model: Any) -> None:
    data = numbers(model, convolution(model)[1], "int8")
    data[np.argmax(np.abs(data) < 5)] *= -1
    data[np.argmax(np.abs(data) == 1)] *= -1


def doubled(place: int) -> Callable[[Any], None]:
    def tampered(model: Any) -> None:
        tensor = convolution(model)[place]
        tensor.quantization.scale = np.array(tensor.quantization.scale) * np.float32(2)

    return tampered


def another_bias(model: Any) -> None:
    numbers(model, convolution(model)[2], "int32")[0] += 1


def another_zero_point(model: Any) -> None:
    tensor = convolution(model)[3]
    tensor.quantization.zeroPoint = np.array(tensor.quantization.zeroPoint) + 1


def alike(model: Any) -> tuple[Any, Any]:
    """Two convolutions with weights of one shape."""
    calls, all = operators(model, 3), model.subgraphs[0].tensors
    for one in calls:
        for other in calls:
            same = list(all[one.inputs[1]].shape) == list(all[other.inputs[1]].shape)
            if one is not other and same:
                return one, other
    raise AssertionError("there are none")


def swapped_weights(model: Any) -> None:
    """Each name has its numbers; the operators take the others."""
    one, other = alike(model)
    first, second = (np.array(each.inputs) for each in (one, other))
    first[1], second[1] = second[1], first[1]
    one.inputs, other.inputs = first, second


def swapped_names(model: Any) -> None:
    one, other = (model.subgraphs[0].tensors[each.inputs[1]] for each in alike(model))
    one.name, other.name = other.name, one.name
    one.buffer, other.buffer = other.buffer, one.buffer
    one.quantization, other.quantization = other.quantization, one.quantization


def decoy(model: Any) -> None:
    """A right tensor with the name of a wrong one."""
    import copy

    weight = convolution(model)[1]
    twin = copy.deepcopy(weight)
    twin.buffer = len(model.buffers)
    model.buffers.append(copy.deepcopy(model.buffers[weight.buffer]))
    model.subgraphs[0].tensors.append(twin)
    numbers(model, weight, "int8")[:3] += 1


def renamed(model: Any) -> None:
    """What has another name is not compared, and could be anything."""
    convolution(model)[3].name = b"something_else"


def lost_activation(model: Any) -> None:
    call = next(each for each in operators(model, 3) if each.builtinOptions.fusedActivationFunction == 1)
    call.builtinOptions.fusedActivationFunction = 0


TFLITE = {
    "the sign of a weight": flipped_sign,
    "the scale of an activation": doubled(3),
    "the scale of an input": doubled(0),
    "the scale of weights": doubled(1),
    "the scale of a bias": doubled(2),
    "a bias": another_bias,
    "a zero point": another_zero_point,
    "weights of two operators": swapped_weights,
    "weights and their names": swapped_names,
    "a second tensor of the name": decoy,
    "another name": renamed,
}


@pytest.fixture(scope="module")
def lite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.converted(NAME, "tflite", tmp_path_factory.mktemp("lite"), quantized=True)[1][0]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return corpus.converted(NAME, "onnx", tmp_path_factory.mktemp("pairs"), quantized=True)[1][0]


def edited_tflite(path: Path, edit: Callable[[Any], None], out: Path) -> Path:
    import flatbuffers

    model = schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    edit(model)
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(model.Pack(builder), b"TFL3")
    out.write_bytes(builder.Output())
    return out


def test_an_untouched_tflite_file_passes(lite: Path, tmp_path: Path) -> None:
    path = edited_tflite(lite, lambda model: None, tmp_path / "m.tflite")
    assert tmconvert.verify(corpus.model(NAME), path).max_error < 0.01


@pytest.mark.parametrize("what", TFLITE)
def test_tflite(what: str, lite: Path, tmp_path: Path) -> None:
    path = edited_tflite(lite, TFLITE[what], tmp_path / "m.tflite")
    with pytest.raises(VerificationError) as caught:
        tmconvert.verify(corpus.model(NAME), path)
    assert caught.value.code == "TM4001", caught.value.message


def test_a_lost_activation_is_seen(tmp_path: Path) -> None:
    """An input of which a ReLU is needed: the grid of the result alone does not clip at 0."""
    _, (path,) = corpus.converted("qat_small_ema", "tflite", tmp_path, quantized=True)
    path = edited_tflite(path, lost_activation, tmp_path / "n.tflite")
    with pytest.raises(VerificationError, match="TM4001"):
        tmconvert.verify(corpus.model("qat_small_ema"), path)


# ---- ONNX


def constants(model: onnx.ModelProto) -> dict[str, onnx.TensorProto]:
    return {tensor.name: tensor for tensor in model.graph.initializer}


def put(tensor: onnx.TensorProto, array: np.ndarray) -> None:
    tensor.CopyFrom(from_array(array, tensor.name))


def conv_parts(model: onnx.ModelProto, place: int = 1) -> list[onnx.NodeProto]:
    """The DequantizeLinears in front of a convolution."""
    makers = {name: node for node in model.graph.node for name in node.output}
    conv = [node for node in model.graph.node if node.op_type == "Conv"][place]
    return [makers[name] for name in conv.input]


def scaled(place: int, operand: int, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], None]:
    """Changes a constant of what is in front of a convolution's input, weights (1) or bias (2)."""

    def tampered(model: onnx.ModelProto) -> None:
        tensor = constants(model)[conv_parts(model)[place].input[operand]]
        put(tensor, change(to_array(tensor)).astype(to_array(tensor).dtype))

    return tampered


def one_flipped(array: np.ndarray) -> np.ndarray:
    """1 becomes -1: in the uint8 weights of the file, 129 becomes 127."""
    array = array.copy()
    array.reshape(-1)[np.argmax(array.reshape(-1) == 129)] = 127
    return array


def swapped_inputs(model: onnx.ModelProto) -> None:
    """Each constant is as it was; two convolutions have each other's weights."""
    convs = [node for node in model.graph.node if node.op_type == "Conv"]
    shapes = {name: to_array(tensor).shape for name, tensor in constants(model).items()}
    makers = {name: node for node in model.graph.node for name in node.output}
    by_shape: dict[tuple[int, ...], onnx.NodeProto] = {}
    for conv in convs:
        shape = shapes[makers[conv.input[1]].input[0]]
        if shape in by_shape:
            other = by_shape[shape]
            conv.input[1], other.input[1] = other.input[1], conv.input[1]
            return
        by_shape[shape] = conv
    raise AssertionError("no two are alike")


def renamed_result(model: onnx.ModelProto) -> None:
    convs = [node for node in model.graph.node if node.op_type == "Conv"]
    old = convs[1].output[0]
    for node in model.graph.node:
        for names in (node.input, node.output):
            for index, name in enumerate(names):
                if name == old:
                    names[index] = "something_else"


ONNX = {
    "the sign of a weight": scaled(1, 0, one_flipped),
    "the scale of an activation": scaled(0, 1, lambda scale: scale * 2),
    "the scale of weights": scaled(1, 1, lambda scale: scale * 2),
    "the scale of a bias": scaled(2, 1, lambda scale: scale * 2),
    "a bias": scaled(2, 0, lambda bias: bias + 1),
    "a zero point": scaled(0, 2, lambda zero: zero + 1),
    "weights of two operators": swapped_inputs,
    "another name": renamed_result,
}


@pytest.mark.parametrize("what", ONNX)
def test_onnx(what: str, pairs: Path, tmp_path: Path) -> None:
    model, path = onnx.load(pairs), tmp_path / "m.onnx"
    ONNX[what](model)
    onnx.save(model, path)
    with pytest.raises(VerificationError) as caught:
        tmconvert.verify(corpus.model(NAME), path)
    assert caught.value.code == "TM4001", caught.value.message


@pytest.mark.parametrize("target", ["tflite", "onnx"])
def test_a_conversion_looks_at_what_it_wrote(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tmconvert.lowering.target_graph import TargetGraph
    from tmconvert.targets.registry import target_named

    def wrong(self: object, graph: TargetGraph, files: Any, names: Any, **options: Any) -> None:
        constant = next(
            value for value in graph.constants() if value.dtype in (np.int8, np.uint8) and value.data.size > 9
        )
        constant.stored, kept = ~constant.data, constant.stored
        write(self, graph, files, names, **options)
        constant.stored = kept

    described = type(target_named(target))
    write = described.write
    monkeypatch.setattr(described, "write", wrong)
    with pytest.raises(VerificationError, match="TM4001"):
        corpus.converted(NAME, target, tmp_path, quantized=True)
    assert not list(tmp_path.iterdir())


# ---- no false alarms


@pytest.mark.parametrize("target", ["tflite", "onnx"])
@pytest.mark.parametrize("name", [name for name in integers.models() if "mobilenet" not in name])
def test_right_files_pass_for_any_input(name: str, target: str, tmp_path: Path) -> None:
    """Three scales of noise: within the range of the inputs' integers, at its ends, and beyond."""
    _, (path,) = corpus.converted(name, target, tmp_path, quantized=True, verify=False)
    random = np.random.default_rng(len(name))
    for scale in (0.3, 1.0, 4.0):
        inputs = [
            (random.standard_normal(array.shape) * scale).astype(array.dtype)
            for array in corpus.golden(name)[0]
        ]
        tmconvert.verify(corpus.model(name), path, inputs)
