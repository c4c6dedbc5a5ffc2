"""Seeded failures in architectures of other people become programs of a few lines that fail alike."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.reduction.failures import ROWS

pytestmark = [pytest.mark.torch, pytest.mark.slow]
SEED = Path(__file__).with_name("seed.py")
MOST_LINES = 15


@pytest.mark.parametrize(("architecture", "kind", "what"), ROWS, ids=lambda each: each.replace("aten::", ""))
def test_a_failure_is_reduced(
    architecture: str, kind: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    from tests.reduction import architectures
    from tmconvert import api

    if find_spec(architectures.ROWS[architecture][0].partition(".")[0]) is None:
        pytest.skip("needs the package of the architecture")
    command = ["tmconvert", "onnx", "{}", "{}.out.onnx"]
    name = f"tests.reduction.architectures:{architecture}"
    if kind == "trace":
        name += f"__with_{what}"
    else:
        monkeypatch.setenv("SEED", f"{kind} {what}")
        command += ["--plugin", str(SEED)]
    found = api.reduce(name, tmp_path / "small.py", command=command, time_limit=30.0)
    text = (tmp_path / "small.py").read_text(encoding="utf-8")
    print(f"{architecture} {kind} {what}: {found}\n{text}")
    code = {"refuse": "TM2003", "crash": "TM9004", "wrong": "TM4001", "abort": ""}.get(kind)
    assert not found.has_weights and (code is None or found.failure.code == code)
    if kind in ("refuse", "crash"):
        assert found.failure.ops == {what}
    assert len(text.splitlines()) <= 2 * MOST_LINES and not re.search(r"\d\.\d{3}", text)
