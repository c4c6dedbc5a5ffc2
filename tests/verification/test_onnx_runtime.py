"""ONNX Runtime sends nothing to its makers and stores nothing for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOADED = """
import os
from tmconvert.targets.onnx.runtime import onnx_runtime
runtime = onnx_runtime()
assert runtime is onnx_runtime()
runtime.InferenceSession  # the whole module
print(os.environ.get("ORT_DISABLE_TELEMETRY"))
"""


@pytest.mark.parametrize("own", [None, "1"])
def test_nothing_is_stored(own: str | None, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    env = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    env.pop("ORT_DISABLE_TELEMETRY", None)
    if own is not None:
        env["ORT_DISABLE_TELEMETRY"] = own
    done = subprocess.run([sys.executable, "-c", LOADED], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == f"{own}\n"  # the caller's environment stays as it is
    assert list(tmp_path.iterdir()) == []
