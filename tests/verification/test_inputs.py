"""Random inputs that are valid indices where a model uses them as such."""

from __future__ import annotations

import numpy as np
import pytest

from tmconvert.ir.parser import parse_graph
from tmconvert.symbolics.registry import catalogue
from tmconvert.verification.inputs import all_indices, drawn_inputs

ONE_HOT = """\
graph net(%x: i32[4,64]) -> (%y) {
  %classes = aten::constant() {value=VALUES} : i32[5]   loc("net.py":1)
  %column = aten::reshape(%x) {shape=[4, 64, 1]} : i32[4,64,1]   loc("net.py":2)
  %y = aten::eq(%column, %classes) : bool[4,64,5]   loc("net.py":3)
}
"""


@pytest.mark.parametrize(
    ("values", "limit"), [("[0, 1, 2, 3, 4]", 5), ("[4, 2, 0, 1, 3]", 5), ("[0, 1, 2, 3, 7]", 2)]
)
def test_indices_that_are_compared_with_all_classes_have_each_of_them(values: str, limit: int) -> None:
    graph = parse_graph(ONE_HOT.replace("VALUES", values))
    (drawn,) = drawn_inputs(graph, catalogue())
    assert set(drawn.reshape(-1).tolist()) == set(range(limit))
    sets = [array for (array,) in all_indices(graph, catalogue(), 2)]
    assert not sets or set(np.concatenate(sets).reshape(-1).tolist()) == set(range(limit))
