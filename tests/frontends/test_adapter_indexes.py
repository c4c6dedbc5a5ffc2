"""The indexes of adapters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("frontend", ["torch", "megengine", "onnx", "tflite", "caffe"])
def test_the_index_is_what_the_families_hold(frontend: str) -> None:
    """If this fails: python tools/make_adapter_indexes.py"""
    script = [sys.executable, "tools/make_adapter_indexes.py", "--print", frontend]
    made = subprocess.run(script, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    index = ROOT / "convert/frontends" / frontend / "adapters/index.json"
    assert made == index.read_text(encoding="utf-8")
