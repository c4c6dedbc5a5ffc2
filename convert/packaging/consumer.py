"""Programs that open packages: each runs in a process of its own, by a script in ``programs``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tmconvert.errors import VerificationError
from tmconvert.output.atomic import temporary_folder
from tmconvert.verification.processes.worker import seconds_for

_PROGRAMS = Path(__file__).with_name("programs")
_SHOWN = 300  # characters of what a program says


class Consumer(NamedTuple):
    """A program that opens packages, and the script that runs it: in Python, or in Node for .cjs."""

    name: str
    script: str
    install: str

    @property
    def variable(self) -> str:
        """Returns the variable of the environment that names where the consumer is installed."""
        kind = "MODULES" if self._is_node else "PYTHON"
        return f"TMCONVERT_{self.name.upper().replace('-', '_').replace('.', '_')}_{kind}"

    @property
    def _is_node(self) -> bool:
        return self.script.endswith(".cjs")

    def ask(self, question: Mapping[str, Any], package: Path, source: Path) -> dict[str, Any] | str:
        """Returns the answer of the script to a question; or a text, why the consumer is not available.

        Raises VerificationError TM4008 for a consumer that refuses the package or ends.
        """
        where = os.environ.get(self.variable)
        if self._is_node:
            where = where or os.fspath(Path.cwd())
            if Path(where).resolve().is_relative_to(source.resolve()):
                return "packages of Node in the folder of the model are not run"
        program = shutil.which("node") if self._is_node else where or sys.executable
        if program is None:
            return "node is not installed"
        with temporary_folder() as folder:
            given = {**question, "folder": os.fspath(package.resolve()), "modules": where}
            (folder / "question.json").write_text(json.dumps(given), encoding="utf-8")
            said = self._said(
                [program, os.fspath(_PROGRAMS / self.script), os.fspath(folder)], folder, package
            )
            with suppress(OSError, ValueError):
                answer = json.loads((folder / "answer.json").read_text("utf-8"))
                if "missing" in answer:
                    how = f"{self.install}, or name where it is installed: {self.variable}"
                    return f"{answer['missing']!s:.{_SHOWN}} ({how})"
                if "error" not in answer:
                    return dict(answer)
                said = answer["error"]
        raise self.refuses(str(said))

    def _said(self, command: list[str], folder: Path, package: Path) -> str:
        """Runs the script, and returns the end of what it wrote, or how it ended."""
        seconds = seconds_for(sum(each.stat().st_size for each in package.rglob("*") if each.is_file()))
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"it did not finish within {seconds:g} s (TMCONVERT_RUNTIME_SECONDS=N allows N seconds)"
        except OSError as error:
            return f"{command[0]}: {error}"
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
        return f"exit status {done.returncode}: {lines[-1] if lines else ''}"

    def refuses(self, reason: str) -> VerificationError:
        return VerificationError(
            "TM4008",
            f"{self.name} does not run the package: {reason:.{_SHOWN}}",
            notes=[("help", "nothing was written; --no-verify writes the package without opening it")],
        )
