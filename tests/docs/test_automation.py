"""The notebook of the samples and the GitHub Action, as their readers run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

yaml = pytest.importorskip("yaml")


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "samples")
    notebook = json.loads((ROOT / "samples" / "convert_and_simplify.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(each["source"]) for each in notebook["cells"] if each["cell_type"] == "code"]
    names: dict[str, object] = {}
    for cell in cells:
        exec(compile(cell, "notebook", "exec"), names)
    assert "comparison" in names


def test_the_action_writes_a_table(tmp_path: Path) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert action["runs"]["using"] == "composite"
    script = action["runs"]["steps"][1]["run"]
    command = tmp_path / "tmconvert"
    start = "import sys; from tmconvert.cli import main; main()"
    command.write_text(f"#!/bin/sh\nexec {sys.executable} -c '{start}' \"$@\"\n")
    command.chmod(0o755)
    folder = tmp_path / "converted"
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MODELS": f"{ROOT / 'samples' / 'digits.tm'}\n{tmp_path / 'missing.onnx'}\n",
        "TARGETS": "onnx,tflite",
        "FOLDER": str(folder),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }
    made = subprocess.run(["bash", "-e", "-c", script], env=environment, check=False, cwd=tmp_path)
    assert made.returncode == 1  # for the missing model
    rows = (tmp_path / "summary.md").read_text().splitlines()[2:]
    assert ["yes" in row for row in rows] == [True, True, False, False]
    assert all("TM1001" in row for row in rows[2:])
    assert (folder / "digits.tflite").is_file()
