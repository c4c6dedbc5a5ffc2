"""Recorded models that are written in each format and read back compute the same, and convert again.

``benchmarks/round_trips.py`` does this with all of them.
"""

from __future__ import annotations

import numpy as np
import pytest

import tmconvert
from tests.models import corpus
from tmconvert.formats.tflite.metadata import tflite_layouts
from tmconvert.symbolics.layouts import NCHW_TO_NHWC

NAMES = ("op_s_conv_bn_relu", "op_pooling")


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
@pytest.mark.parametrize("name", NAMES)
def test_round_trip(tmp_path, name, target):
    path = corpus.converted(name, target, tmp_path, verify=False)[1][0]
    inputs = corpus.golden(name)[0]
    layouts = tflite_layouts(path) if target == "tflite" else None
    fed = [
        array.transpose(NCHW_TO_NHWC) if is_last else array
        for array, is_last in zip(inputs, layouts[0] if layouts else [False] * len(inputs), strict=True)
    ]
    loaded = tmconvert.load(path)
    expected, found = (
        sorted(map(_summary, made if isinstance(made, tuple | list) else [made]))
        for made in (tmconvert.load(corpus.model(name))(*inputs), loaded(*fed))
    )
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)
    for other in corpus.SUFFIXES:
        again = tmp_path / f"again{corpus.SUFFIXES[other]}"
        assert getattr(tmconvert, f"to_{other}")(loaded, again, verify=False).operators


def _summary(array: np.ndarray) -> tuple[float, ...]:
    """What is the same in each layout: outputs are in other orders and layouts in some formats."""
    values = np.sort(np.asarray(array, np.float64).ravel())
    return float(values.size), float(values[0]), float(values[-1]), float(np.abs(values).mean())
