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
