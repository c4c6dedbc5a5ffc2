"""``tmconvert samples``, and that the commands that it prints succeed."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.runner import run

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_copies_the_samples_to_a_new_folder() -> None:
    outcome = run("samples", "some", "--json")
    assert outcome.status == 0
    here = {str(path.relative_to("some")) for path in Path("some").rglob("*") if path.is_file()}
    assert {str(Path(name).relative_to("some")) for name in outcome.json["files"]} == here
    assert {"digits.tm", "README.md"} <= here and not any("__pycache__" in name for name in here)
    outcome = run("samples", "some")
    assert outcome.status == 2 and "some exists already" in outcome.stderr


@pytest.mark.slow
def test_the_printed_commands_work() -> None:
    lines = run("samples", "samples").stdout.splitlines()[1:]
    assert len(lines) == 4
    for line in lines:
        outcome = run(*shlex.split(line)[1:])
        assert outcome.status == 0, outcome.stderr
