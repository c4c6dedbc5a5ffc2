"""What can be wrong in a file in integers, one number at a time, for each of its layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx.numpy_helper import from_array, to_array

from tmconvert.targets.tflite.operators import SPECS, spec


@dataclass(frozen=True)
class Tampering:
    """``apply`` changes a model in place, ``undo`` makes it what it was."""

    what: str
    apply: Callable[[], None]
    undo: Callable[[], None]


# ---- TFLite


def of_tflite(model: Any) -> Iterator[Tampering]:
    """Of the object form of a file: weights, scales, biases, zero points and constants of each operator."""
    from tflite import BuiltinOperator

    codes = {BuiltinOperator.__dict__[name]: name for name, each in SPECS.items() if each.weights}
    all = model.subgraphs[0].tensors
    done: set[tuple[int, str]] = set()
    for number, call in enumerate(model.subgraphs[0].operators):
        type = codes.get(model.operatorCodes[call.opcodeIndex].builtinCode)
        place = spec(type or "").weights
        for at, index in [*enumerate(call.inputs), *((-1, index) for index in call.outputs)]:
            if index < 0:
                continue
            role = "result" if at < 0 else "operand"
            if place is not None and at in (place.weight, place.bias):
                role = "weight" if at == place.weight else "bias"
            for each in _of_tensor(
                model, all[index], f"{type or 'operator'} {number}, {role} {all[index].name.decode()}"
            ):
                key = int(index), each.what.split(": ")[1]
                if key not in done:
                    done.add(key)
                    yield each


def _of_tensor(model: Any, tensor: Any, where: str) -> Iterator[Tampering]:
    quantization, buffer = tensor.quantization, model.buffers[tensor.buffer]
    if quantization is None or quantization.scale is None or not len(quantization.scale):
        return
    scale = np.array(quantization.scale, np.float32)
    zero = np.array(quantization.zeroPoint)
    for at in {0, len(scale) - 1}:
        yield _attribute(
            quantization, "scale", scale, _changed(scale, at, scale[at] * 2), f"{where}: scale {at} twice"
        )
    yield _attribute(quantization, "zeroPoint", zero, _changed(zero, 0, zero[0] + 1), f"{where}: zero point")
    if buffer.data is None or not len(buffer.data):
        return
    data = np.array(buffer.data, np.uint8)
    dtype = {3: np.uint8, 2: np.int32, 4: np.int64, 7: np.int16, 9: np.int8}[tensor.type]
    for what, changed in wrong_numbers(data.view(dtype)):
        yield _attribute(buffer, "data", data, changed.view(np.uint8), f"{where}: {what}")


def _attribute(owner: Any, name: str, old: Any, new: Any, what: str) -> Tampering:
    return Tampering(what, lambda: setattr(owner, name, new), lambda: setattr(owner, name, old))


def _changed(array: np.ndarray, at: int, number: Any) -> np.ndarray:
    array = array.copy()
    array.reshape(-1)[at] = number
    return array


def wrong_numbers(data: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The sign of the smallest number but 0, of the largest, and one number one more."""
    data = np.asarray(data)
    if data.dtype.kind == "V":  # of four bits
        given = data.astype(np.int8)
        for what, array in wrong_numbers(given):
            if not np.array_equal(array.astype(data.dtype).astype(np.int8), given):  # 8 is -8
                yield what, array.astype(data.dtype)
        return
    flat = data.reshape(-1)
    sizes = np.abs(flat.astype(np.int64))
    if sizes.any() and data.dtype.kind == "i":
        small = int(np.argmin(np.where(sizes, sizes, sizes.max() + 1)))
        for name, at in (("smallest", small), ("largest", int(np.argmax(sizes)))):
            if flat[at] != np.iinfo(data.dtype).min:
                yield f"sign of the {name}", _changed(data, at, -flat[at])
    at = flat.size // 2
    yield (
        "one number",
        _changed(data, at, flat[at] + 1 if flat[at] < np.iinfo(data.dtype).max else flat[at] - 1),
    )


# ---- ONNX


def of_onnx(model: onnx.ModelProto) -> Iterator[Tampering]:
    """Of each constant of QuantizeLinear and DequantizeLinear."""
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    roles = ("integers", "scale", "zero point")
    done: set[str] = set()
    for node in model.graph.node:
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
            continue
        for role, name in zip(roles, node.input, strict=True):
            if name not in constants or name in done:
                continue
            done.add(name)
            old = to_array(constants[name])
            if role == "scale":
                changes = [
                    (f"{at} twice", _changed(old, at, old.reshape(-1)[at] * 2)) for at in {0, old.size - 1}
                ]
            elif role == "zero point":
                other = _changed(old.astype(np.int64), 0, int(old.reshape(-1)[0]) + 1)
                changes = [("one more", other)]
            else:
                changes = list(wrong_numbers(old))
            for what, new in changes:
                yield _constant(constants[name], old, new.astype(old.dtype), f"{role} {name}: {what}")


def _constant(tensor: onnx.TensorProto, old: np.ndarray, new: np.ndarray, what: str) -> Tampering:
    def put(array: np.ndarray) -> None:
        tensor.CopyFrom(from_array(array, tensor.name))

    return Tampering(what, lambda: put(new), lambda: put(old))
