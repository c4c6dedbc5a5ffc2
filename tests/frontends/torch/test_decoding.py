"""A sample of ``benchmarks/decoding.py``: greedy decoding with the cache of the file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
STEPS = 12


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "suffix"), [("llama", ".onnx"), ("gemma3", ".onnx"), ("llama", ".tflite"), ("whisper", ".onnx")]
)
def test_the_tokens_of_a_decoder(
    name: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("ai_edge_litert" if suffix == ".tflite" else "onnxruntime")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import decoding

    assert Path(sys.modules["decoding"].__file__ or "").parent == BENCHMARKS
    assert decoding.compared(name, tmp_path, STEPS, suffix) == ""
