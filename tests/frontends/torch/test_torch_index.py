"""The index of PyTorch's adapters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tmconvert.frontends.torch.adapters import index

ROOT = Path(__file__).parents[3]


def test_the_index_is_what_the_families_hold() -> None:
    """If this fails: python tools/make_torch_index.py"""
    script = [sys.executable, "tools/make_torch_index.py", "--print"]
    made = subprocess.run(script, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert made == Path(index.__file__).read_text(encoding="utf-8")
