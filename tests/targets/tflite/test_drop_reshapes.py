"""A RESHAPE goes before another, and stays where a layer takes rows; what is left runs in LiteRT."""

from __future__ import annotations

import numpy as np

from tests.passes.graphs import Net, run
from tests.symbolics.ops.harness import normal, run_lowered
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TFLITE_RUNTIME
from tmconvert.targets.registry import lower
from tmconvert.targets.tflite.passes.drop_reshapes import drop_reshapes


def test_flattened_for_a_matrix_of_rows() -> None:
    net = Net()
    x = net("aten::reshape", net("aten::relu", net.input(2, 3, 4)), [2, 12])
    graph = net.give(net("aten::linear", net("aten::reshape", x, [1, 2, 12]), net.constant(5, 12), None))
    reference = graph.copy()
    lowering = lower(graph, catalogue(), "tflite", TFLITE_RUNTIME)
    assert len(drop_reshapes(lowering.graph).done) == 1  # the other gives the layer its rank
    flat = Net()
    x = flat("aten::reshape", flat("aten::relu", flat.input(2, 3, 4)), [2, 12])
    graph = flat.give(flat("aten::linear", x, flat.constant(5, 12), None), flat("aten::relu", x))
    assert not drop_reshapes(lower(graph, catalogue(), "tflite", TFLITE_RUNTIME).graph)  # it has another user
    array = normal(0, 2, 3, 4)
    (actual,) = run_lowered(lowering, {"x": array})
    np.testing.assert_allclose(actual, run(reference, [array])[0], rtol=1e-5, atol=1e-6)


def test_rows_of_an_image_keep_their_reshape() -> None:
    net = Net()
    x = net("aten::reshape", net("aten::relu", net.input(2, 3, 4, 1)), [2, 12])
    graph = net.give(net("aten::linear", x, net.constant(5, 12), net.constant(5)))
    reference, array = graph.copy(), normal(0, 2, 3, 4, 1)
    lowering = lower(graph, catalogue(), "tflite", TFLITE_RUNTIME)
    drop_reshapes(lowering.graph)
    assert [operator.type for operator in lowering.graph.operators] == ["RELU", "RESHAPE", "FULLY_CONNECTED"]
    (actual,) = run_lowered(lowering, {"x": array})
    np.testing.assert_allclose(actual, run(reference, [array])[0], rtol=1e-5, atol=1e-6)
