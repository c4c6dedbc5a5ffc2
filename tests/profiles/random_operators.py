"""Random files of one operator, among which a rule of a profile finds one that breaks it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tmconvert.formats.tflite.schema import ENUMS
from tmconvert.lowering.target_graph import Operator, Quantization, TargetGraph, Value
from tmconvert.profiles.operation import Operation, Tensor, operation_of, with_neighbours
from tmconvert.profiles.profile import Profile, ProfileRule
from tmconvert.targets.registry import write
from tmconvert.targets.tflite.operators import SPECS

_TYPES = ("int8", "int8", "float32", "int16", "int32", "int64", "bool", "float16", "float64")
_EXTENTS = [1, 1, 2, 3, 4, 5, 6, 8]
_MOST = 1 << 19  # elements
_TRIES = 30_000
_ONNX_OPTIONS: dict[str, tuple[Any, ...]] = {
    "kernel_shape": ([3, 3], [1, 1], [9, 9], [3], [300, 300], [2, 2, 2]),
    "strides": ([1, 1], [4, 4], [9, 9], [2, 2, 2]),
    "dilations": ([1, 1], [3, 3], [2, 2, 2]),
    "group": (1, 2, 3),
    "axis": (0, 1, -1, 2),
    "mode": ("nearest", "linear", "cubic", "bilinear", "reflect", "constant", "DCR", "CRD"),
    "coordinate_transformation_mode": ("half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"),
    "auto_pad": ("NOTSET", "SAME_UPPER"),
    "ceil_mode": (0, 1),
    "to": (1, 7, 10),
    "direction": ("forward", "bidirectional"),
    "count_include_pad": (0, 1),
    "keepdims": (0, 1),
    "layout": (0, 1),
    "reduction": ("none", "add"),
    "largest": (0, 1),
    "sorted": (0, 1),
    "exclusive": (0, 1),
    "padding_mode": ("zeros", "border"),
    "align_corners": (0, 1),
}


def breaking(rule: ProfileRule, profile: Profile, target: str, path: Path, seed: int) -> bool:
    """Writes a file whose operator breaks the rule; returns False where none was found."""
    random = np.random.default_rng(seed)
    known = sorted(rule.operators or profile.known - rule.without)
    types = [each for each in known if target == "onnx" or (each in SPECS and SPECS[each].code is not None)]
    near = [int(each) + 1 for each in (rule.limit.low, rule.limit.high) if each is not None and each < 1e5]
    sizes = [*_EXTENTS, *near, *near, 300, 70000 if near and near[0] > 300 else 130]
    if rule.limit.high is not None and rule.limit.high > 1e5:
        sizes = [2, 300, 300, 2, 300, 300, 1, 3]
    makers = [str(each) for each in rule.limit.not_among if "maker" in rule.limit.quantity]
    for operator in islice(_operators(types, target, random, sizes), _TRIES):
        if rule.limit.quantity == "outputs":
            operator.outputs.append(_value("other", random, 4, _EXTENTS))
        before = [_maker(str(random.choice(makers)), operator, random)] if makers else []
        judged = operation_of(operator) if target == "tflite" else _of_onnx(operator)
        if before:
            *_, judged = with_neighbours([operation_of(before[0]), judged], ("out", "in0"))
        if rule.breaks(judged):
            _write(operator, target, path, before)
            return True
    return False


def unknown_operator(profile: Profile, target: str, path: Path) -> bool:
    """Writes a file with an operator that the profile lacks; False where it has all of the sampled ones."""
    names = (
        ("WHERE", "BITCAST", "BITWISE_XOR", "RIGHT_SHIFT")
        if target == "tflite"
        else ("Det", "Hardmax", "Adagrad")
    )
    for name in names:
        if not profile.has(name):
            _write(next(_operators([name], target, np.random.default_rng(1))), target, path)
            return True
    return False


def _maker(type: str, operator: Operator, random: np.random.Generator) -> Operator:
    """Returns an operator that computes the first operand, which is an output, too."""
    value = operator.inputs[0]
    assert value is not None
    value.stored = None
    return Operator(
        type,
        [_value("x", random, 4, _EXTENTS)],
        [value],
        _options(type, "tflite", random, _EXTENTS),
        "before",
    )


def _operators(
    types: list[str], target: str, random: np.random.Generator, sizes: list[int] = _EXTENTS
) -> Iterator[Operator]:
    while types:
        type = types[int(random.integers(len(types)))]
        least = 2 if type == "MUL" else 1  # the version of MUL is that of both factors
        count, rank = int(random.integers(least, 5)), int(random.choice([0, 1, 2, 3, 4, 4, 5, 6, 9]))
        values = [
            _value(f"in{i}", random, rank, sizes, is_constant=random.random() < (0.6 if i else 0.1))
            for i in range(count)
        ]
        if count > 1 and random.random() < 0.2:
            values[1] = values[0]
        if random.random() < 0.3:
            for each in values:
                each.dtype = values[0].dtype if each.stored is None else each.dtype
        out = _value("out", random, rank if random.random() < 0.8 else 2, sizes)
        if random.random() < 0.5:
            out.shape = values[0].shape
        yield Operator(type, list(values), [out], _options(type, target, random, sizes), "op")


def _value(
    name: str, random: np.random.Generator, rank: int, sizes: list[int], *, is_constant: bool = False
) -> Value:
    rank = rank if random.random() < 0.8 else int(random.integers(0, 6))
    shape = tuple(int(random.choice(sizes[: 8 if random.random() < 0.6 else None])) for _ in range(rank))
    while np.prod(shape, dtype=np.int64) > _MOST:
        shape = (*shape[:-1], 1) if shape[-1] > 1 else (1, *shape[1:-1])[: max(rank - 1, 0)]
        rank = len(shape)
    dtype = np.dtype(str(random.choice(_TYPES)))
    made = Value(name, dtype, shape)
    if dtype.name in ("int8", "int16", "int32") and random.random() < 0.7:
        count = int(random.choice([1, 1, 1, 2]))
        zero = np.full(count, int(random.integers(-3, 4)) if random.random() < 0.5 else 0, np.int64)
        scale = np.full(count, random.choice([0.5, 0.1, 1e-40]), np.float32)
        made.quantization = Quantization(scale, 0, zero)
    if is_constant:
        high = 100 if random.random() < 0.5 else max(rank, 1)
        shape = (0,) if random.random() < 0.02 else shape
        made.shape, made.stored = shape, random.integers(0, high, shape).astype(dtype)
    return made


def _options(type: str, target: str, random: np.random.Generator, sizes: list[int]) -> dict[str, Any]:
    if target == "onnx":
        chosen = {name: values[int(random.integers(len(values)))] for name, values in _ONNX_OPTIONS.items()}
        return {name: value for name, value in chosen.items() if random.random() < 0.7}
    found: dict[str, Any] = {}
    for name, field in SPECS[type].option_fields.items():
        if field.kind == "padding":
            found[name] = str(random.choice(["SAME", "VALID"]))
        elif field.kind == "bool":
            found[name] = bool(random.integers(2))
        elif field.kind in ("int32", "int8", "uint32"):
            found[name] = int(random.choice([0, *sizes]))
        elif field.kind == "type":
            found[name] = "INT32"
        elif field.kind in ENUMS:
            found[name] = str(random.choice(list(ENUMS[field.kind])))
        elif field.kind == "float32":
            found[name] = 0.5
    return found


def _of_onnx(operator: Operator) -> Operation:
    made = operation_of(operator)
    inputs = [None if each is None else _plain(each) for each in made.inputs]
    return Operation(
        made.type, made.place, inputs, [_plain(each) for each in made.outputs], made.attributes, 23
    )


def _plain(tensor: Tensor) -> Tensor:
    return Tensor(tensor.name, tensor.dtype, tensor.shape, read=tensor.read)


def _write(operator: Operator, target: str, path: Path, before: Sequence[Operator] = ()) -> None:
    made = [each.outputs[0].name for each in before]
    given = list({each.name: each for each in operator.inputs if each is not None}.values())
    inputs = [each for each in given if each.stored is None and each.name not in made]
    if target == "tflite":
        inputs += [each.inputs[0] for each in before if each.inputs[0] is not None]
        outputs = [*operator.outputs, *(each.outputs[0] for each in before)]
        graph = TargetGraph("tflite", 23, "bad", inputs, outputs, [*before, operator])
        graph.input_names = [each.name for each in inputs]
        graph.output_names = ["out", *(each.name for each in operator.outputs[1:]), *made]
        with path.open("wb") as file:
            write(graph, [file])
        return
    names = [each.name for each in operator.inputs if each is not None]
    results = [each.name for each in operator.outputs]
    node = onnx.helper.make_node(operator.type, names, results, "op", **operator.attributes)
    infos = {
        each.name: onnx.helper.make_tensor_value_info(
            each.name, onnx.helper.np_dtype_to_tensor_dtype(each.dtype), each.shape
        )
        for each in (*inputs, *operator.outputs)
    }
    constants = [onnx.numpy_helper.from_array(each.data, each.name) for each in given if each.is_constant]
    sides = [infos[each.name] for each in inputs], [infos["out"]]
    graph_ = onnx.helper.make_graph([node], "bad", *sides, constants)
    model = onnx.helper.make_model(graph_, opset_imports=[onnx.helper.make_opsetid("", 23)])
    path.write_bytes(model.SerializeToString())
