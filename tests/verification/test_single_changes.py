"""A sample of benchmarks/single_changes.py: files of each kind in which one thing is changed are refused."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.models import corpus

from .single_changes import changed_files, verdict

KINDS = {
    "ONNX": ("onnx", "op_mha_rnncell", {}),
    "ONNX in integers": ("onnx", "qat_small_ema", {"quantized": True}),
    "TFLite": ("tflite", "op_pooling", {}),
    "TFLite in integers": ("tflite", "qat_small_ema", {"quantized": True, "io_type": "float32"}),
    "Caffe": ("caffe", "op_pooling", {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_single_changes(kind: str, tmp_path: Path):
    pytest.importorskip("ai_edge_litert")
    target, name, options = KINDS[kind]
    model = tmconvert.load(corpus.model(name))
    _, paths = corpus.converted(name, target, tmp_path, **options)
    random, found = np.random.default_rng(1), []
    changed = [tmp_path / f"changed{path.suffix}" for path in paths]
    for change in islice(changed_files(paths, target, random), 8):
        change.write(changed)
        found.append((change.what, verdict(model, target, paths, changed)))
    assert not [each for each in found if each[1].startswith("slipped")]
    assert any(each[1].startswith("refused") for each in found)
