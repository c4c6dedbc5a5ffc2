"""The examples of docs/pytorch.md run as they are written there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.runner import command_line, environment, run
from tests.frontends.torch.harness import run_onnx

PAGE = Path(__file__).parents[3] / "docs/pytorch.md"
BLOCK = re.compile(r"^```(?P<kind>\w+) (?P<role>\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page(tmp_path: Path) -> None:
    ran = 0
    root = str(PAGE.parent.parent)
    for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
        kind, role, text = match["kind"], match["role"], match["text"]
        if role.startswith("file="):
            (tmp_path / role.removeprefix("file=")).write_text(text)
            continue
        (tmp_path / "example.py").write_text(text)
        programs = [[sys.executable, "example.py"]]
        if kind == "sh":
            words = [shlex.split(line, comments=True) for line in text.splitlines()]
            assert all(line[0] == "tmconvert" for line in words)
            programs = [command_line(*line[1:]) for line in words]
        for program in programs:
            done = subprocess.run(
                program,
                cwd=tmp_path,
                env=environment(PYTHONPATH=root),
                capture_output=True,
                text=True,
                timeout=200,
                check=False,
            )
            assert done.returncode == 0, (program, done.stdout, done.stderr)
            ran += 1
    assert ran == 10


def test_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = PAGE.parent.parent / "samples"
    monkeypatch.chdir(samples)
    path = tmp_path / "digits.onnx"
    outcome = run("onnx", "digits_torch:make", path, "--dynamic", "image:0=batch")
    assert outcome.status == 0, outcome.stderr
    assert outcome.stderr.startswith("verified in ONNX Runtime")
    with np.load("digits_test.npz") as data:
        images, labels = data["images"], data["labels"]
    logits = run_onnx(path, [(images[:, None] / 16).astype(np.float32)])[0]
    np.testing.assert_allclose(logits, np.load("digits_torch_logits.npy"), atol=1e-4)
    assert (logits.argmax(1) == labels).mean() >= 0.98


@pytest.mark.parametrize("code", re.findall(r"TM\d{4}", PAGE.read_text(encoding="utf-8")))
def test_codes_of_the_page(code: str) -> None:
    from tmconvert.errors.explanations import EXPLANATIONS

    assert code in EXPLANATIONS
