"""Conversions on a cluster of Dask, where it is installed: the same bytes as without one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cli.runner import run
from tests.docs.pages import ROOT
from tmconvert.calibration.measuring import CHUNK

CONFIGURATION = """
targets = ["onnx", "tflite"]
[options]
quantized = true
calibration = "data.npz"
[[models]]
model = "digits.tm"
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_writes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    Path("digits.tm").write_bytes((ROOT / "samples/digits.tm").read_bytes())
    np.savez("data.npz", x=np.random.default_rng(0).random((2 * CHUNK + 1, 1, 8, 8), np.float32))
    Path("tmconvert.toml").write_text(CONFIGURATION, encoding="utf-8")
    assert run("convert", "-o", "here").status == 0
    local = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=tmp_path
    )
    with local as cluster:
        outcome = run("convert", "-o", "there", "--cluster", cluster.scheduler_address)
    assert outcome.status == 0, outcome.stderr
    for name in ("digits.onnx", "digits.tflite"):
        assert Path("there", name).read_bytes() == Path("here", name).read_bytes()
