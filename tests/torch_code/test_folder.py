"""A package on disk: it runs without tmconvert, and appears as a whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tests.models import corpus
from tests.torch_code.canonical import canonical
from tmconvert.errors import UnsupportedError, UsageError, WriteError

pytest.importorskip("torch")

RUN = """
import sys
sys.meta_path = [finder for finder in sys.meta_path if "tmconvert" not in getattr(finder, "__module__", "")]
import numpy, torch
from net import Net
with torch.no_grad():
    result = Net()(torch.from_numpy(numpy.load("x.npy")))
numpy.save("y.npy", result.numpy())
assert not [name for name in sys.modules if name.split(".")[0] == "tmconvert"]
"""
DIGITS = Path(__file__).parents[2] / "samples" / "digits.tm"


def test_the_package_needs_torch_only(tmp_path: Path) -> None:
    tmconvert.load(corpus.model("mobilenet_v1")).to_folder(tmp_path / "net", "Net")
    inputs, expected = corpus.golden("mobilenet_v1")
    np.save(tmp_path / "x.npy", inputs[0])
    subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, check=True, timeout=120)
    assert corpus.relative_error(np.load(tmp_path / "y.npy"), expected[0]) < 1e-5
    assert sorted(path.name for path in (tmp_path / "net").iterdir() if path.is_file()) == [
        "__init__.py",
        "module.py",
        "weights.safetensors",
    ]


def test_the_package_traces_to_the_same_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmconvert.load(DIGITS)
    module.to_folder(tmp_path / "digits_net")
    monkeypatch.syspath_prepend(tmp_path)
    import torch
    from digits_net import DigitsNet

    again = tmconvert.trace(DigitsNet(), torch.zeros(1, 1, 8, 8))
    assert canonical(again) == canonical(module)


def test_command(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    done = run("code", DIGITS, "-o", folder, "--class-name", "Net")
    assert (done.status, done.stdout) == (0, f"{folder}  (class Net, 35.0 k parameters)\n")
    done = run("code", DIGITS, "-o", folder)
    assert done.status != 0
    assert "TM5001" in done.stderr and "exists already" in done.stderr


@pytest.mark.parametrize("name", ["my net", "class", "", "1st", "torch", '"); import os', "__Net"])
def test_class_names_are_identifiers(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="TM6071"):
        tmconvert.load(DIGITS).to_folder(tmp_path / "net", name)
    assert not (tmp_path / "net").exists()


def test_nothing_is_half_written(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError):
        tmconvert.load(corpus.model("custom_user_function")).to_folder(tmp_path / "net")
    with pytest.raises(WriteError, match="TM5001"):
        tmconvert.load(DIGITS).to_folder(tmp_path / "no" / "net")
    (tmp_path / "old").mkdir()
    with pytest.raises(WriteError, match="exists already"):
        tmconvert.load(DIGITS).to_folder(tmp_path / "old")
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
