"""A blob is what the last layer that writes it left: names of values, outputs, and written files."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import tmconvert
from tests.frontends.caffe.nets import arrays, declared, written
from tmconvert.targets.registry import runtime_for


def a_layer(name, kind, bottoms, top, parameters=""):
    ends = " ".join(f'bottom: "{each}"' for each in bottoms)
    return f'layer {{ name: "{name}" type: "{kind}" {ends} top: "{top}" {parameters} }}\n'


WEIGHTS = {
    "c": arrays([(4, 3, 3, 3), (4,)]),
    "bn": [*map(np.abs, arrays([(4,), (4,)])), np.ones(1, np.float32)],
    "scale": arrays([(4,), (4,)]),
    "early": arrays([(4, 4, 1, 1), (4,)]),
}
NET = (
    declared({"x": (1, 3, 6, 5)})
    + a_layer("c", "Convolution", ["x"], "c", "convolution_param { num_output: 4 kernel_size: 3 }")
    + a_layer("bn", "BatchNorm", ["c"], "c")
    + a_layer("early", "Convolution", ["c"], "d", "convolution_param { num_output: 4 kernel_size: 1 }")
    + a_layer("scale", "Scale", ["c"], "c", "scale_param { bias_term: true }")
    + a_layer("relu", "ReLU", ["c"], "c")
    + a_layer("d", "ReLU", ["d"], "d")  # a layer with the name of the blob
    + a_layer("sum", "Eltwise", ["c", "d"], "sum")
    + a_layer("sum_act", "TanH", ["sum"], "sum")
    + a_layer("drop", "Dropout", ["sum"], "sum")
)


def runtime_value(path, blob, x):
    files = [path, path.with_suffix(".caffemodel")]
    return runtime_for("caffe", path).run(files, {"x": x}, [blob])[0]


@pytest.mark.parametrize("blob", ["c", "d", "sum"])
@pytest.mark.parametrize("target", ["onnx", "caffe"])
def test_an_output_is_the_last_value_of_its_blob(tmp_path, blob, target):
    path, x = written(tmp_path, NET, WEIGHTS), arrays([(1, 3, 6, 5)], 3)[0]
    made = tmp_path / ("made.onnx" if target == "onnx" else "made.prototxt")
    assert getattr(tmconvert, f"to_{target}")(path, made, outputs=[blob]).verified
    expected = runtime_value(path, blob, x)
    found = tmconvert.run(made, {"x": x})
    assert list(found) == [blob]
    np.testing.assert_allclose(found[blob], expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(tmconvert.run(path, {"x": x}, watch=[blob])[blob], expected)


def test_the_names_in_a_written_file_are_those_of_the_blobs(tmp_path):
    path = written(tmp_path, NET, WEIGHTS)
    tmconvert.to_onnx(path, tmp_path / "made.onnx")
    names = [name for node in onnx.load(tmp_path / "made.onnx").graph.node for name in node.output]
    assert {"c", "d", "sum"} <= set(names) and not any(name.endswith("_1") for name in names)
    found = tmconvert.compare(path, tmp_path / "made.onnx")
    assert {"c", "d", "sum"} <= set(str(found).split())


def test_an_input_that_a_layer_replaces(tmp_path):
    net = declared({"x": (1, 3, 6, 5)}) + a_layer("act", "Sigmoid", ["x"], "x")
    path = written(tmp_path, net + a_layer("twice", "Power", ["x"], "y", "power_param { scale: 2 }"), {})
    x = arrays([(1, 3, 6, 5)], 3)[0]
    assert tmconvert.to_onnx(path, tmp_path / "made.onnx", outputs=["x", "y"]).verified
    found = tmconvert.run(tmp_path / "made.onnx", {"x": x})
    np.testing.assert_allclose(found["x_output"], 1 / (1 + np.exp(-x)), rtol=1e-5)
    np.testing.assert_allclose(found["y"], 2 / (1 + np.exp(-x)), rtol=1e-5)
    assert tmconvert.to_onnx(written(tmp_path, net, {}), tmp_path / "whole.onnx").verified
    assert list(tmconvert.run(tmp_path / "whole.onnx", {"x": x})) == ["x_output"]
