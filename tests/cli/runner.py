"""Runs command lines, in this process or in one of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from tmconvert.cli import main

# click 8.1 puts stderr into stdout unless told not to
APART: dict[str, Any] = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}
DATA = Path(__file__).parent.parent / "data"


@dataclass(frozen=True)
class Outcome:
    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.stdout)


def run(*args: str | Path, env: dict[str, str] | None = None) -> Outcome:
    """``tmconvert *args`` in this process, piped."""
    result = CliRunner(env={"TMCONVERT_DEBUG": None, **(env or {})}, **APART).invoke(
        main, list(map(str, args))
    )
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Outcome(result.exit_code, result.stdout, result.stderr)


def command_line(*args: str | Path) -> list[str]:
    return [sys.executable, "-c", "from tmconvert.cli import main; main()", *map(str, args)]


def environment(**extra: str) -> dict[str, str]:
    """This process's environment without what changes outputs."""
    left_out = ("TMCONVERT_DEBUG", "NO_COLOR", "FORCE_COLOR", "COLUMNS")
    return {**{name: value for name, value in os.environ.items() if name not in left_out}, **extra}


def spawn(*args: str | Path, **env: str) -> Outcome:
    """``tmconvert *args`` in a process of its own, piped."""
    done = subprocess.run(
        command_line(*args), capture_output=True, text=True, env=environment(**env), timeout=60, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def model(name: str) -> Path:
    return DATA / f"{name}.tm"
