"""The README is short, its examples run, and its two commands are those that .ci/run reads."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.runner import environment
from tests.docs.pages import ROOT
from tools import record_terminal

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readme_is_short() -> None:
    assert len(TEXT.splitlines()) < 80


@pytest.mark.parametrize("word", ["convert_digits.sh", "python -m pytest"])
def test_a_command_of_ci(word: str) -> None:
    """``readme_command`` of .ci/run takes the first line of a block of code that contains the word."""
    found = re.findall(rf"^    (.*{re.escape(word)}.*)$", TEXT, re.MULTILINE)
    assert len(found) == 1
    assert found[0].startswith("python3 -m venv .venv && .venv/bin/pip install -q ")


@pytest.mark.slow
def test_the_first_result_takes_three_lines(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (code,) = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert len([line for line in code.splitlines() if line]) == 3
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr
    assert (tmp_path / "net.onnx").exists()


def test_the_picture_shows_what_the_commands_print() -> None:
    """Numbers differ between machines and releases of runtimes; words do not."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("ai_edge_litert")
    pytest.importorskip("PIL")

    def words(lines: list[str]) -> list[str]:
        return [re.sub(r"[0-9][0-9.e-]*", "#", line) for line in lines if line]

    shown = record_terminal.text_of(record_terminal.PICTURE.read_text(encoding="utf-8"))
    assert words(shown) == words(record_terminal.recorded_lines())
