"""The examples of the pages run as they are written there."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.cli.runner import command_line, environment
from tests.docs.pages import PAGES, ROOT, Example, examples

WITH_EXAMPLES = [page for page in PAGES if any(examples(page))]
MOST_PROGRAMS = 3  # of a page whose test is no slow one


def programs(example: Example) -> list[list[str]]:
    if example.kind == "python":
        return [[sys.executable, example.title or "example.py"]]
    lines = example.text.replace("\\\n", " ").splitlines()
    words = list(filter(None, (shlex.split(line, comments=True) for line in lines)))
    assert all(line[0] == "tmconvert" for line in words), "only tmconvert's commands can be run here"
    return [command_line(*line[1:]) for line in words]


def _parameter(page: Path) -> ParameterSet:
    """A page, marked slow where it has more programs than run in a few seconds."""
    count = sum(len(programs(example)) for example in examples(page))
    return pytest.param(page, marks=[pytest.mark.slow] if count > MOST_PROGRAMS else [])


@pytest.mark.parametrize(
    "page", [*map(_parameter, WITH_EXAMPLES)], ids=lambda page: str(page.relative_to(ROOT))
)
def test_the_examples_of_a_page(page: Path, tmp_path: Path) -> None:
    if "torch" in page.read_text(encoding="utf-8"):
        pytest.importorskip("torch")
    pytest.importorskip("PIL")
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    (tmp_path / "out").mkdir()
    for example in examples(page):
        if example.kind == "python":
            (tmp_path / (example.title or "example.py")).write_text(example.text)
        for program in programs(example):
            done = subprocess.run(
                program,
                cwd=tmp_path,
                env=environment(PYTHONPATH=str(ROOT)),
                capture_output=True,
                text=True,
                timeout=200,
                check=False,
            )
            assert done.returncode == 0, (program, done.stdout, done.stderr)


def test_pages_have_examples() -> None:
    """A rule for examples that finds none must not pass."""
    assert len(WITH_EXAMPLES) >= 2


def test_twenty_tasks_take_one_command_each() -> None:
    tasks = list(examples(ROOT / "docs/tutorial/twenty-tasks.md"))
    assert [len(programs(task)) for task in tasks] == [1] * 20
