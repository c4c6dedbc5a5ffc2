"""The records of TFLite's operators against the tables that they take the place of."""

from __future__ import annotations

from types import CodeType, FunctionType
from typing import Any

import pytest

from tmconvert.lowering import element_types
from tmconvert.targets.tflite import (
    compress_weights,
    dynamic_range,
    pad_empty_dims,
    runtimes,
    schema,
    versions,
)
from tmconvert.targets.tflite.integer import graph, infer_int16, kernels, lookup_tables, qparams
from tmconvert.targets.tflite.operators import SPECS, spec
from tmconvert.targets.tflite.passes import fuse_activations, narrow_integers, own_biases

BUILTIN = {name: each for name, each in SPECS.items() if each.code is not None}
INTEGER = {name: each.integer for name, each in SPECS.items() if each.integer is not None}


def test_schema() -> None:
    assert {name: (each.code, each.options) for name, each in BUILTIN.items()} == schema.OPERATORS
    assert {name: each.states for name, each in BUILTIN.items() if each.states} == schema.STATE_INPUTS


def code(function: CodeType) -> Any:
    constants = [code(each) if isinstance(each, CodeType) else each for each in function.co_consts]
    return function.co_code, function.co_names, [each for each in constants if not isinstance(each, str)]


def shape(test: Any) -> Any:
    """What a test of a version does: its code and what it closes over."""
    if isinstance(test, FunctionType):
        cells = [shape(cell.cell_contents) for cell in test.__closure__ or ()]
        return code(test.__code__), cells
    return [shape(each) for each in test] if isinstance(test, tuple) else test


def test_versions_and_releases() -> None:
    assert {name: each.releases for name, each in SPECS.items() if each.releases} == runtimes._RELEASES
    assert {name for name, each in SPECS.items() if each.versions} == set(versions.RULES)
    for name, rules in versions.RULES.items():
        assert shape(spec(name).versions) == shape(rules), name


def test_types() -> None:
    assert {name: each.types for name, each in SPECS.items() if each.types} == element_types._TFLITE
    measured = {
        (name, types): each.measured[types] for name, each in SPECS.items() for types in each.measured
    }
    assert measured == runtimes._types()
    for name in element_types._OPERAND:
        assert spec(name).typed == (2 if name == "TRANSPOSE_CONV" else element_types._OPERAND[name])
    assert all(spec(name).moves for name in element_types._CHOOSING)


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_integer_kernels(name: str) -> None:
    kernel, found = kernels.KERNELS[name], INTEGER[name]
    assert (found.relation, found.types, found.results) == (kernel.relation, kernel.types, kernel.results)
    for count in (2, 3, 4):
        wanted = kernel.operands(count if kernel.numbers or name in ("CONCATENATION", "PACK") else 2)
        assert spec(name).data_of(count) == wanted
    fixed = {kind: table[name] for kind, table in kernels.FIXED.items() if name in table}
    assert found.fixed == fixed


def test_results_of_integer_kernels() -> None:
    assert set(INTEGER) == set(kernels.KERNELS)
    assert {name for name, each in INTEGER.items() if each.is_within} == kernels.WITHIN
    assert {name for name in INTEGER if spec(name).moves_one} == kernels.MOVING
    chosen = {name for name in INTEGER if spec(name).moves and not spec(name).moves_one}
    assert chosen == infer_int16._CHOOSING
    ranges = {name for name in INTEGER if spec(name).result_range or name in chosen}
    assert ranges == set(infer_int16._SPANS)
    assert {name for name, each in INTEGER.items() if each.keeps_sign} == qparams._KEEP_SIGN
    assert {name for name, each in INTEGER.items() if each.aligns_summands} == graph._SUMS
    assert {name for name, each in INTEGER.items() if each.is_rough} == lookup_tables._ROUGH
    assert {name for name, each in INTEGER.items() if each.parts} == {
        "MEAN",
        "RESIZE_BILINEAR",
        "AVERAGE_POOL_2D",
    }


def test_activations_and_weights() -> None:
    activations = {name: each.activation for name, each in SPECS.items() if each.activation}
    assert activations == infer_int16._ACTIVATIONS
    assert set(activations) == qparams._CLAMPS == set(fuse_activations.FUSABLE)
    assert {name for name, each in SPECS.items() if each.fuses_activation} == fuse_activations.PRODUCERS
    weighted = {name: each.weights for name, each in SPECS.items() if each.weights}
    assert set(weighted) == set(kernels.WEIGHTED) == graph._PER_CHANNEL
    for name, place in kernels.WEIGHTED.items():
        found = weighted[name]
        assert (found.x, found.weight, found.bias, found.axis) == (
            place.x,
            place.weight,
            place.bias,
            place.axis,
        )
        assert compress_weights._CHANNELS[name] == (found.weight, found.axis)
        assert own_biases.BIAS_INPUTS[name] == found.bias
    for name, known in dynamic_range.OPERATORS.items():
        made = spec(name).dynamic_range
        assert made is not None and vars(made) == vars(known)
    assert {name for name, each in SPECS.items() if each.dynamic_range} == set(dynamic_range.OPERATORS)
    filled = {
        name: (each.not_empty.operands, each.not_empty.axes, each.not_empty.filled_with)
        for name, each in SPECS.items()
        if each.not_empty
    }
    assert filled == pad_empty_dims._FILLED


def test_ranges_of_integers() -> None:
    for name, places in narrow_integers._MOVING.items():
        assert spec(name).moves and spec(name).data == places
    for name, places in {**narrow_integers._ARITHMETIC, **narrow_integers._COMPARING}.items():
        assert spec(name).data == places
    floats = {"BATCH_MATMUL", "LEAKY_RELU", "EXP", "TABLE"}
    assert {name for name, each in SPECS.items() if each.result_range} - floats == set(
        narrow_integers._COMPUTED
    )
    assert {name for name, each in SPECS.items() if each.compares} == set(narrow_integers._COMPARING)
    assert {name for name, each in SPECS.items() if each.keeps_all} == set(narrow_integers._KEEPING)
    assert {
        name: each.index for name, each in SPECS.items() if each.index is not None
    } == narrow_integers._INDEX
