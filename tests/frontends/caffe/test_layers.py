"""Single layers of Caffe: what tmconvert computes of a net is what the definition of the layer computes.

The definitions are proved in ``tests/formats/caffe/test_recorded_outputs.py``. For layers without one, the
reference is what OpenCV computed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.formats.caffe.layer_nets import NETS
from tests.formats.caffe.records import load
from tests.frontends.caffe.nets import arrays, declared, layer, written
from tmconvert.formats.caffe.layers import LAYERS
from tmconvert.targets.caffe.runtimes import NumpyCaffeRuntime

RECORDS = load()[0]["opencv"]


@pytest.mark.parametrize("name", NETS)
def test_layer(name: str, tmp_path: Path) -> None:
    net = NETS[name]
    is_defined = LAYERS[net.kind].run is not None
    expected = net.run(NumpyCaffeRuntime()) if is_defined else RECORDS.outputs[name]
    found = tmconvert.load(net.written(tmp_path)[0])(*net.feeds.values())
    found = list(found) if isinstance(found, list | tuple) else [found]
    if net.outputs:
        found = found[:1]
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("kind", "groups"), [("ConvolutionDepthwise", ""), ("DepthwiseConvolution", "group: 4")]
)
def test_depthwise_convolutions_of_forks(kind: str, groups: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    x, weight, bias = arrays([(2, 4, 7, 6), (4, 1, 3, 3), (4,)])
    settings = f"convolution_param {{ num_output: 4 kernel_size: 3 stride: 2 {groups} }}"
    text = declared({"x": x.shape}) + layer(kind, settings)
    found = tmconvert.load(written(tmp_path, text, {kind: [weight, bias]}))(x)
    wanted = torch.nn.functional.conv2d(*map(torch.from_numpy, (x, weight, bias)), stride=2, groups=4)
    np.testing.assert_allclose(found, wanted.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 4), (2, 4, 1, 1)], ids=str)
def test_axpy(shape: tuple[int, ...], tmp_path: Path) -> None:
    factor, x, y = arrays([shape, (2, 4, 7, 6), (2, 4, 7, 6)])
    text = declared({"a": shape, "x": x.shape, "y": y.shape}) + layer("Axpy", "", ["a", "x", "y"], ["z"])
    found = tmconvert.load(written(tmp_path, text, {}))(factor, x, y)
    np.testing.assert_allclose(found, factor.reshape(2, 4, 1, 1) * x + y, rtol=1e-6)
