"""The sample that docs/pytorch.md names converts; each error code of the page exists."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.runner import run
from tests.frontends.torch.harness import run_onnx

PAGE = Path(__file__).parents[3] / "docs/pytorch.md"


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
