"""Casts to float8e8m0, whose numbers are powers of two."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import tmconvert
from tmconvert.errors import UnsupportedError

NUMBERS = [
    0.0,
    1.0,
    1.25,
    1.5,
    1.75,
    2.0,
    3.0,
    2.0**-127,
    2.0**-130,
    2.0**127,
    1.5 * 2.0**127,
    -1.0,
    math.nan,
]


def saved(path: Path, **attributes: object) -> Path:
    nodes = [
        helper.make_node("Cast", ["x"], ["narrow"], to=24, **attributes),
        helper.make_node("Cast", ["narrow"], ["y"], to=1),
    ]
    values = [helper.make_tensor_value_info(name, 1, [len(NUMBERS)]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "net", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)]), path)
    return path


def rounded(number: float, mode: str, saturate: bool) -> float:
    """The nearest power of two, halves up; or that in a direction. From the table in ONNX's "Float stored in
    8 bits".
    """
    if math.isnan(number) or number < 0:
        return math.nan
    low = 2.0 ** max(math.floor(math.log2(number)), -127) if number else 2.0**-127
    near = {
        "down": low,
        "up": low if number <= low else 2 * low,
        "nearest": low if number < 1.5 * low else 2 * low,
    }
    if near[mode] <= 2.0**127:
        return near[mode]
    return 2.0**127 if saturate else math.nan


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_powers_of_two(mode: str, saturate: int, tmp_path: Path) -> None:
    path = saved(tmp_path / "m.onnx", round_mode=mode, saturate=saturate)
    found = tmconvert.load(path)(np.array(NUMBERS, np.float32))
    np.testing.assert_array_equal(found, [rounded(each, mode, bool(saturate)) for each in NUMBERS])


def test_other_rounding_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="float8e8m0 that round 'sideways'"):
        tmconvert.to_onnx(saved(tmp_path / "m.onnx", round_mode="sideways"), tmp_path / "made.onnx")
