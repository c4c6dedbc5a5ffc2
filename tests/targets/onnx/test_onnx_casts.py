"""Which casts stand around an ONNX operator, and the table that says so."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

from tmconvert.errors import Refusal
from tmconvert.targets.onnx.passes.casts import cast_plan

ROOT = Path(__file__).parents[3]


def test_the_table_is_current() -> None:
    """If this fails: python tools/make_onnx_types.py"""
    table = (ROOT / "convert/targets/onnx/data/element_types.txt").read_text(encoding="utf-8")
    versions = table.partition("\n")[0].replace(",", "").split()
    if [importlib.metadata.version(name) for name in ("onnx", "onnxruntime")] != [versions[1], versions[-1]]:
        pytest.skip("the table was made with other versions of onnx and onnxruntime")
    script = [sys.executable, "tools/make_onnx_types.py", "--print"]
    made = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert made == table


@pytest.mark.parametrize(
    ("operator", "opset", "given", "computed"),
    [
        ("Add", 7, ["float32", "float32"], ["float32", "float32"]),
        ("Add", 13, ["int8", "int8"], ["int32", "int32"]),
        ("Add", 14, ["int8", "int8"], ["int32", "int32"]),  # which ONNX Runtime 1.17 cannot add
        ("Clip", 12, ["int8", "int8"], ["int8", "int8"]),
        ("Max", 8, ["int32", "int32", "int32"], ["float64"] * 3),
        ("Where", 9, ["bool", "int16", "int16"], ["bool", "int32", "int32"]),
        ("TopK", 10, ["int32", "int64"], ["float64", "int64"]),
        ("Conv", 11, ["float16", "float16", None], ["float16", "float16", None]),
        ("Conv", 11, ["float64", "float64"], ["float64", "float64"]),
        ("Gather", 13, ["bool", "int32"], ["bool", "int32"]),
        ("Reshape", 13, ["uint8", "int64"], ["uint8", "int64"]),
    ],
)
def test_inputs(operator: str, opset: int, given: list[str | None], computed: list[str | None]) -> None:
    plan = cast_plan(operator, tuple(given), opset)
    assert plan is not None
    assert list(plan.inputs) == computed


@pytest.mark.parametrize(
    ("operator", "opset", "given", "computed", "wanted"),
    [
        ("Max", 8, ["int32", "int32"], ["float64"], ["int32"]),
        ("Equal", 11, ["float32", "float32"], ["bool"], ["bool"]),
        ("TopK", 10, ["int32", "int64"], ["float64", "int64"], ["int32", "int64"]),
        ("ArgMax", 13, ["int16"], ["int64"], ["int64"]),
        ("Split", 13, ["bool", "int64"], ["bool"] * 3, ["bool"] * 3),
        ("Shape", 13, ["float32"], ["int64"], ["int64"]),
    ],
)
def test_outputs(operator: str, opset: int, given: list[str], computed: list[str], wanted: list[str]) -> None:
    plan = cast_plan(operator, tuple(given), opset)
    assert plan is not None
    outputs = [plan.output(i) for i in range(len(computed))]
    assert [(each.computed, each.wanted) for each in outputs if each] == list(
        zip(computed, wanted, strict=True)
    )


@pytest.mark.parametrize(
    ("operator", "opset", "given", "dtype", "later"),
    [
        ("Max", 8, ["int64"], "int64", 12),
        ("MatMul", 8, ["int32", "int32"], "int32", 9),
        ("Sqrt", 13, ["int32"], "int32", None),
        ("Celu", 13, ["float64"], "float64", 28),
        ("QuantizeLinear", 13, ["float32", "float32", "int16"], "int16", 21),
        ("Equal", 7, ["float32", "float32"], "float32", 11),
    ],
)
def test_refuses_what_no_type_holds(
    operator: str, opset: int, given: list[str], dtype: str, later: int | None
) -> None:
    with pytest.raises(Refusal) as caught:
        cast_plan(operator, tuple(given), opset)
    reason = f"ONNX's {operator} does not support {dtype}"
    if later is None:
        assert (caught.value.reason, caught.value.help) == (reason, "")
    else:
        assert caught.value.reason == f"{reason} at opset {opset}"
        assert caught.value.help == f"use --opset {later} or later"


def test_an_operator_that_is_not_in_the_table_is_left_alone() -> None:
    assert cast_plan("Loop", ("int64", "bool"), 13) is None
