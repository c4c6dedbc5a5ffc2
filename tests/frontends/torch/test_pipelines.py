"""Whole pipelines of ``benchmarks/pipelines.py``: an image and a waveform made by files equal PyTorch's."""

from __future__ import annotations

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.mark.parametrize("name", ["own-unet", "speech"])
def test_the_result_of_a_pipeline(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("onnxruntime")
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import pipelines

    assert max(pipelines.differences(name, tmp_path)) < pipelines.TOLERANCE
