"""Scans of many steps, which TFLite does in turns."""

from __future__ import annotations

from typing import Any

import pytest

from tests.symbolics.ops.harness import assert_target_matches, normal, prepared, reference
from tests.symbolics.ops.samples.control_flow import body
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.registry import lower


def decayed(g: Emitter, carry: Any, row: Any) -> Any:
    after = g.call("aten::add", g.call("aten::mul", carry, g.constant(0.5, "float32")), row)
    return after, after


@pytest.mark.parametrize(("count", "loops"), [(8, 0), (9, 1), (13, 1), (256, 1), (512, 2), (1100, 3)])
def test_scans_of_many_steps_in_tflite(count: int, loops: int) -> None:
    """Written out, in turns with some left, in turns that are scans of their own."""
    rows = normal(1, count, 2)
    attributes = {"carried": 1, "scanned": 1, "step": body(decayed, rows[0], rows[0])}
    graph = prepared("tflite", TFLITE_RUNTIME, "tm::scan", [[rows[0], rows]], attributes)
    operators = list(lower(graph, catalogue(), "tflite", TFLITE_RUNTIME).graph.all_operators())
    assert sum(operator.type == "WHILE" for operator in operators) == loops
    assert len(operators) < 100
    expected = reference("tm::scan", [[rows[0], rows]], attributes)
    assert_target_matches("tflite", TFLITE_RUNTIME, "tm::scan", [[rows[0], rows]], attributes, expected)
