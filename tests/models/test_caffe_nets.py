"""Caffe nets as users run them: each output asked for by its name, and inputs that nothing reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.passes.graphs import Net, random_inputs, run
from tests.symbolics.ops.harness import run_lowered
from tmconvert.ir import InternalGraph
from tmconvert.passes.unsupported import unsupported_error
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.caffe.writer import write_caffe
from tmconvert.targets.registry import lower, runtime_for


def forward(graph: InternalGraph, inputs: list[np.ndarray], folder: Path) -> list[np.ndarray]:
    """What the runtime gives for the names of the outputs."""
    lowered = lower(graph, catalogue(), "caffe", 0).graph
    paths = [folder / "net.prototxt", folder / "net.caffemodel"]
    with paths[0].open("wb") as prototxt, paths[1].open("wb") as caffemodel:
        write_caffe(lowered, prototxt, caffemodel)
    feeds = dict(zip(lowered.input_names, inputs, strict=True))
    return runtime_for("caffe", paths[0]).run(paths, feeds, lowered.output_names)


def test_slices_that_are_outputs(tmp_path: Path) -> None:
    """They are later tops of Slice layers, and a layer behind one of them could overwrite it."""
    net = Net()
    x = net.input(2, 7, 3, 5)
    parts = [net("aten::slice", x, 1, start, start + 2, 1) for start in (0, 2, 4)]
    graph = net.give(*parts, net("aten::mul", parts[1], net.constant(2, 1, 1)), net("aten::relu", parts[2]))
    inputs = random_inputs(graph)
    for actual, expected in zip(forward(graph, inputs, tmp_path), run(graph, inputs), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_an_input_that_nothing_reads(tmp_path: Path) -> None:
    net = Net()
    x, _ = net.input(2, 3), net.input(2, 4)
    graph = net.give(net("aten::relu", x))
    inputs = random_inputs(graph)
    (actual,) = forward(graph, inputs, tmp_path)
    np.testing.assert_array_equal(actual, np.maximum(inputs[0], 0))


def test_a_constant_output(tmp_path: Path) -> None:
    """OpenCV has no layer for it, BVLC Caffe does."""
    net = Net()
    graph = net.give(net("aten::relu", net.input(2, 3)), net.constant(2, 3))
    refused = unsupported_error(lower(graph, catalogue(), "caffe", 1).unsupported, "caffe")
    assert str(refused).startswith("error[TM2003]: OpenCV dnn 4 has no Parameter layer")
    lowered = lower(graph, catalogue(), "caffe", 0)
    inputs = random_inputs(graph)
    fed = dict(zip(lowered.graph.input_names, inputs, strict=True))
    for actual, expected in zip(run_lowered(lowered, fed), run(graph, inputs), strict=True):
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("extents", [(1, 1), (1, 5), (5, 1)], ids=str)
@pytest.mark.parametrize("stride", [1, 2])
def test_depthwise_on_axes_of_one_element(extents: tuple[int, int], stride: int, tmp_path: Path) -> None:
    net = Net()
    x, weight = net.input(2, 4, *extents), net.constant(4, 1, 3, 3)
    graph = net.give(net("aten::conv2d", x, weight, None, [stride] * 2, [1, 1], [1, 1], 4))
    inputs = random_inputs(graph)
    (actual,), (expected,) = forward(graph, inputs, tmp_path), run(graph, inputs)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)
