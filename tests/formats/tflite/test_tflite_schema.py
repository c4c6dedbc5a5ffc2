"""The writer's table of operators and options against LiteRT's generated schema."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from tmconvert.errors import InternalError
from tmconvert.formats.tflite.schema import ENUMS, TENSOR_TYPES
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.tflite.operators import SPECS, spec
from tmconvert.targets.tflite.writer import write_tflite

ENUM_CLASSES = {
    "type": schema.TensorType,
    "padding": schema.Padding,
    "activation": schema.ActivationFunctionType,
    "mirror": schema.MirrorPadMode,
    "weights_format": schema.FullyConnectedOptionsWeightsFormat,
    "lstm_kernel": schema.LSTMKernelType,
}

# Operators whose options table is not named after them.
SHARED_TABLES = {
    **dict.fromkeys(["AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"], "Pool2DOptions"),
    **dict.fromkeys(["MEAN", "SUM"], "ReducerOptions"),
    **dict.fromkeys([f"REDUCE_{how}" for how in ("PROD", "MAX", "MIN", "ANY", "ALL")], "ReducerOptions"),
    **dict.fromkeys(["MAXIMUM", "MINIMUM"], "MaximumMinimumOptions"),
    **dict.fromkeys(["RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"], "RandomOptions"),
    "L2_NORMALIZATION": "L2NormOptions",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
    "CONV_3D_TRANSPOSE": "Conv3DOptions",
}

ROOT = Path(__file__).parents[3]
BUILTIN = [name for name, each in SPECS.items() if each.code is not None]
INSIDE = TargetGraph("tflite", 20, "inside")

# Fields that the schema has and the writer does not offer.
NOT_OFFERED = {"quantSpec"}


def options_of(operator: Operator) -> tuple[Any, Any]:
    """The operator's code and its options, read back through the generated schema."""
    file = io.BytesIO()
    inputs = [value for value in operator.inputs if value is not None]
    names = [value.name for value in inputs]
    write_tflite(TargetGraph("tflite", 20, "net", inputs, operators=[operator], input_names=names), file)
    model = schema.ModelT.InitFromPackedBuf(file.getvalue())
    (written,) = model.subgraphs[0].operators
    table = spec(operator.type).options
    assert written.builtinOptionsType == (getattr(schema.BuiltinOptions, table) if table else 0)
    return model.operatorCodes[written.opcodeIndex], written.builtinOptions


def operator_of(type: str, attributes: dict[str, Any]) -> Operator:
    """An operator of four inputs: enough for the version rules of any type."""
    inputs = [Value(f"x{index}", np.dtype(np.float32), (2, 3, 5, 7)) for index in range(4)]
    return Operator(type, [*inputs], [Value("y", np.dtype(np.float32), (2, 3, 5, 7))], attributes, "/head/op")


def camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


def other_value(kind: str, default: float) -> tuple[Any, Any]:
    """An attribute that is not the field's default, and the number or bytes it is stored as."""
    if kind in ENUMS:
        name, number = next((n, v) for n, v in ENUMS[kind].items() if v != default)
        return name, number
    if kind == "bool":
        return not default, not default
    if kind == "graph":  # both attributes of an operator have the same one, behind the model's own
        return INSIDE, 1
    return {
        "int32": (-7, -7),
        "int64": (-7, -7),
        "float32": (0.625, 0.625),
        "int32s": ([3, 5], [3, 5]),
        "float32s": ([0.5, 3.0], [0.5, 3.0]),
        "text": ("other", b"other"),
    }[kind]


@pytest.mark.parametrize("type", BUILTIN)
def test_every_option_is_read_back(type: str) -> None:
    table = spec(type).options
    fields = spec(type).option_fields
    values = {name: other_value(field.kind, field.default) for name, field in fields.items()}
    code, options = options_of(operator_of(type, {name: value for name, (value, _) in values.items()}))
    assert code.builtinCode == getattr(schema.BuiltinOperator, type)
    assert code.deprecatedBuiltinCode == min(code.builtinCode, 127)
    if table is None:
        assert options is None
        return
    assert options.__class__.__name__ == table + "T"
    assert {camel(name) for name in fields} == set(vars(options)) - NOT_OFFERED
    for name, (_, number) in values.items():
        assert np.array_equal(getattr(options, camel(name)), number), name


@pytest.mark.parametrize("type", BUILTIN)
def test_defaults_are_the_schemas(type: str) -> None:
    table = spec(type).options
    if table is None:
        return
    required = {
        name: other_value(field.kind, field.default)[0]
        for name, field in spec(type).option_fields.items()
        if field.required
    }
    _, options = options_of(operator_of(type, required))
    wanted = getattr(schema, table + "T")()
    for name in spec(type).option_fields:
        if name not in required:
            assert getattr(options, camel(name)) == getattr(wanted, camel(name)), name


@pytest.mark.parametrize("type", BUILTIN)
def test_tables_are_named_after_their_operators(type: str) -> None:
    table = spec(type).options
    if type in SHARED_TABLES:
        assert table == SHARED_TABLES[type]
        return
    plain = type.replace("_", "").lower()
    named = {name.removesuffix("Options").lower(): name for name in vars(schema.BuiltinOptions)}
    assert table == named.get(plain)


@pytest.mark.slow
def test_the_tables_are_those_of_litert() -> None:
    """If this fails: python tools/make_tflite_schema.py"""
    script = [sys.executable, "tools/make_tflite_schema.py", "--print"]
    made = subprocess.run(script, capture_output=True, text=True, check=True, cwd=ROOT)
    assert made.stdout == (ROOT / "convert/formats/tflite/data/option_tables.txt").read_text(encoding="utf-8")


def test_enums_are_the_schemas() -> None:
    for kind, names in ENUMS.items():
        for name, number in names.items():
            assert getattr(ENUM_CLASSES[kind], name) == number
    assert len(set(TENSOR_TYPES.values())) == len(TENSOR_TYPES)


@pytest.mark.parametrize(
    ("type", "attributes", "message"),
    [
        ("MISH", {}, "TFLite has no operator MISH"),
        ("RELU", {"alpha": 0.5}, "RELU has no attribute 'alpha'"),
        ("CONCATENATION", {"axes": 1}, "CONCATENATION has no attribute 'axes'"),
        ("SOFTMAX", {}, "SOFTMAX needs the attribute 'beta'"),
        ("SOFTMAX", {"beta": "1"}, "attribute 'beta' of SOFTMAX is a float, not '1'"),
        ("SOFTMAX", {"beta": True}, "attribute 'beta' of SOFTMAX is a float, not True"),
        ("CONCATENATION", {"axis": 1.0}, "attribute 'axis' of CONCATENATION is an int32, not 1.0"),
        ("CONCATENATION", {"axis": 2**31}, "is an int32, not 2147483648"),
        ("MEAN", {"keep_dims": 1}, "attribute 'keep_dims' of MEAN is a bool, not 1"),
        ("RESHAPE", {"new_shape": 5}, "attribute 'new_shape' of RESHAPE is a list of int32, not 5"),
        ("MIRROR_PAD", {"mode": "WRAP"}, "attribute 'mode' of MIRROR_PAD is one of REFLECT, SYMMETRIC"),
    ],
)
def test_refusals(type: str, attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(InternalError) as caught:
        options_of(operator_of(type, attributes))
    assert caught.value.code == "TM9001"
    assert message in str(caught.value)
    assert "/head/op" in str(caught.value)
