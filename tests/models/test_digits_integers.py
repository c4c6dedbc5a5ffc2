"""The sample of the documentation: models trained for integers lose no accuracy as integer files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_integer_files_read_as_many_digits() -> None:
    pytest.importorskip("ai_edge_litert")
    script = ROOT / "samples/quantize_digits.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MegEngine" in done.stdout and "PyTorch" in done.stdout
