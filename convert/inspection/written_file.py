"""Describes a written file: ONNX, TFLite, or Caffe's prototxt with its caffemodel."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from tmconvert.inspection.inspection import Inspection, Sizes
from tmconvert.inspection.liveness import Step, activation_sizes
from tmconvert.targets.recognize import target_of_file
from tmconvert.targets.target import Target
from tmconvert.targets.written_model import TensorInfo, TensorInfos, WrittenModel, with_examples

_BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4e2m1": 4, "bfloat16": 16}


def inspect_file(path: Path, signature: str = "") -> Inspection:
    """Returns what is in a written file, or in a signature of it.

    Raises LoadError TM1001, TM1009, TM1016; UsageError TM6014, TM6016.
    """
    target = target_of_file(path)
    names = () if signature else target.signature_names(path)
    if names:
        return _with_signatures(target, path, names)
    return _inspected(target, path, target.signature_model(path, signature), signature)


def _with_signatures(target: Target, path: Path, names: Sequence[str]) -> Inspection:
    """Returns what is in a file with several signatures, which share constants."""
    models = [target.signature_model(path, name) for name in names]
    whole = replace(models[0], input_tensors=[], output_tensors=[], tensors={}, types={}, constants=set())
    whole.layers = [layer for model in models for layer in model.layers]
    for model in models:
        whole.tensors |= model.tensors
        whole.types |= model.types
        whole.constants |= model.constants
    found = _inspected(target, path, whole, "")
    found.signatures = {
        name: _inspected(target, path, model, name) for name, model in zip(names, models, strict=True)
    }
    found.sizes, found.macs, found.operators = Sizes(*found.sizes[:2]), None, {}
    return found


def _inspected(target: Target, path: Path, model: WrittenModel, name: str) -> Inspection:
    inputs, outputs = tensors_of(target, model)
    return Inspection(
        model=str(path),
        format=target.title,
        version=model.version,
        producer=model.producer,
        inputs=inputs,
        outputs=outputs,
        operators={f"{target.operator_word}s": Counter(layer.type for layer in model.layers)},
        parameters=_parameters(model),
        sizes=_sizes(target, path, model),
        macs=_macs(target, model),
        target="" if name else target.name,
        metadata=model.metadata,
    )


def tensors_of(target: Target, model: WrittenModel) -> tuple[list[TensorInfo], list[TensorInfo]]:
    """Returns inputs and outputs with their layouts: those that the file records, or that operators imply."""
    layouts, count = _layouts(target, model), len(model.input_tensors)
    tensors = with_examples([*model.input_tensors, *model.output_tensors], model.ranges)
    return (
        _with_layouts(tensors[:count], model.inputs, layouts),
        _with_layouts(tensors[count:], model.outputs, layouts),
    )


def _parameters(model: WrittenModel) -> int:
    """Counts the elements of trained constants."""
    biases = _biases(model) if model.target == "tflite" else set()
    weights = (name for name in model.constants if _is_weight(model, name, biases))
    return sum(math.prod(model.tensors[name] or ()) for name in weights)


def _is_weight(model: WrittenModel, name: str, biases: set[str]) -> bool:
    """Whether a constant is trained, rather than a scalar, a shape or indices."""
    dtype = model.types.get(name, "")
    is_index = dtype in ("int32", "int64", "bool", "str", "string")
    return bool(model.tensors.get(name)) and (not is_index or name in biases)


def _biases(model: WrittenModel) -> set[str]:
    """Integer biases of quantized layers: constants of rank 1 at the third place, after weights."""
    return {
        layer.inputs[2]
        for layer in model.layers
        if len(layer.inputs) > 2
        and layer.inputs[1] in model.constants
        and model.types.get(layer.inputs[1]) in ("int8", "uint8", "int4")
        and len(model.tensors.get(layer.inputs[2]) or ()) == 1
    }


def _bytes(model: WrittenModel, name: str) -> int:
    shape, dtype = model.tensors.get(name), model.types.get(name, "")
    if shape is None:
        return 0
    bits = _BITS.get(dtype)
    if bits is None:
        try:
            bits = np.dtype(dtype or "float32").itemsize * 8
        except TypeError:
            bits = 8
    return (math.prod(max(extent, 1) for extent in shape) * bits + 7) // 8


def _sizes(target: Target, path: Path, model: WrittenModel) -> Sizes:
    files = 0
    written = target.output_paths([path])
    for each in (*written, *target.further_paths(written)):
        with suppress(OSError):
            files += each.stat().st_size
    weights = sum(_bytes(model, name) for name in model.constants)
    computed = {name for layer in model.layers for name in layer.outputs}
    if any(model.tensors.get(name) is None for name in computed):
        return Sizes(files, weights)
    sizes = {name: _bytes(model, name) for name in (*model.inputs, *computed)}
    steps = [
        Step([name for name in layer.inputs if name not in model.constants], layer.outputs)
        for layer in model.layers
    ]
    return Sizes(files, weights, *activation_sizes(steps, sizes, model.inputs, model.outputs))


def _macs(target: Target, model: WrittenModel) -> int | None:
    """Returns the multiply-accumulates; None where a shape that counts is not known."""
    total = 0
    for layer in model.layers:
        rule = target.macs.get(layer.type)
        if rule is None:
            continue
        inputs, outputs = (
            [shape for name in names if (shape := model.tensors.get(name)) is not None]
            for names in (layer.inputs, layer.outputs)
        )
        if len(inputs) < len(layer.inputs) or len(outputs) < len(layer.outputs):
            return None
        try:
            total += rule(inputs, outputs)
        except (IndexError, ZeroDivisionError):  # of an operator that is not valid
            return None
    return total


_PADDING = ("PAD", "PADV2", "MIRROR_PAD")


def _layouts(target: Target, model: WrittenModel) -> dict[str, str]:
    """Returns the layout of image tensors: operands and results of spatial operators, and what elementwise
    operators, padding and transposes make of them.
    """
    layout = "NHWC" if target.default_io_layout == "nhwc" else "NCHW"
    known: dict[str, str] = {}
    for layers in (model.layers, list(reversed(model.layers))) * 2:
        for layer in layers:
            names = [name for name in (*layer.inputs, *layer.outputs) if _is_image(model, name)]
            shapes = {model.tensors.get(name) for name in names}
            is_spatial = layer.type in target.spatial_operators
            is_elementwise = len(shapes) == 1 and layer.type.upper() != "TRANSPOSE"
            is_elementwise |= layer.type.upper() in _PADDING and len(names) == 2
            if is_spatial:
                known.update(dict.fromkeys(names, layout))
            elif is_elementwise:
                found = [known[name] for name in names if name in known]
                for name in names if found else ():
                    known.setdefault(name, found[0])
            elif layer.type.upper() == "TRANSPOSE" and len(names) == 2:
                known.update(_transposed(model, names, known))
    return known


def _transposed(model: WrittenModel, names: Sequence[str], known: Mapping[str, str]) -> dict[str, str]:
    """Returns the layout of the operand or result of a transpose, where that of the other one is known."""
    for name, other in (names, reversed(names)):
        order = {"NCHW": (0, 2, 3, 1), "NHWC": (0, 3, 1, 2)}.get(known.get(name, ""))
        shape, found = model.tensors.get(name), model.tensors.get(other)
        if order and shape and found and tuple(shape[axis] for axis in order) == tuple(found):
            return {other: "NHWC" if known[name] == "NCHW" else "NCHW"}
    return {}


def _is_image(model: WrittenModel, name: str) -> bool:
    return name not in model.constants and len(model.tensors.get(name) or ()) == 4


def _with_layouts(tensors: TensorInfos, names: Sequence[str], layouts: Mapping[str, str]) -> list[TensorInfo]:
    """Adds layouts, by the names within the graph; those that the file records are kept."""
    return [
        tensor if tensor.layout else tensor._replace(layout=layouts.get(name, ""))
        for tensor, name in zip(tensors, names, strict=False)  # subgraphs have further names
    ]
