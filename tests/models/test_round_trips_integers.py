"""Integer TFLite files that are read and written in integers once more compute the same in LiteRT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.models import corpus
from tmconvert.symbolics.layouts import NCHW_TO_NHWC

# sorting; products of computed matrices; a part in float
NAMES = ("op_sort_gather_onehot", "op_linear_matmul", "qat_small_minmax_nostub")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_same_integers(name: str, tmp_path: Path) -> None:
    has_scales = name.startswith("qat")
    samples = None if has_scales else [tuple(corpus.golden(name)[0])]
    options = {"quantized": True, "calibration": samples, "verify": False}
    first = corpus.converted(name, "tflite", tmp_path, **options)[1][0]
    again = tmp_path / "again.tflite"
    loaded = tmconvert.load(first)
    tmconvert.to_tflite(loaded, again, quantized=True, io_layout="source", verify=False)
    nodes = loaded.graph.inputs[1:]
    fed = [stored(array, node) for array, node in zip(corpus.golden(name)[0], nodes, strict=True)]
    expected, found = (tmconvert.load(path).original.run(fed) for path in (first, again))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(other, one)


def stored(array: np.ndarray, node: object) -> np.ndarray:
    """An input as the file has it: channels last, in integers."""
    given = array.transpose(NCHW_TO_NHWC) if array.shape != node.type.shape else array
    if node.qparams is None or given.dtype.kind != "f":
        return given
    steps = np.rint(given / node.qparams.scale[0]) + node.qparams.zero_point[0]
    return steps.clip(node.qparams.quant_min, node.qparams.quant_max).astype(node.qparams.dtype)
