"""Runs a command on candidates, each in a process of its own, and compares how it fails."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tmconvert.errors import UsageError

LONGEST = 1e6  # seconds, which systems can wait for
PLACE = "{}"  # what the command has for the path of a candidate
_CODE = re.compile(r"\bTM\d{4}\b")
_OP = re.compile(r"\b[a-z]\w*::\w+|\btorch(?:\.\w+)+|\b[A-Z][A-Z0-9_]{2,}\b|'(\w+)'")
_TEXTS = re.compile(r"(?m)^\w*(?:Error|Exception|Exit)\b[^\n]*|^[^\n]*\berror\b[^\n]*", re.IGNORECASE)


class Failure(NamedTuple):
    """How a command fails: its exit status, the code of tmconvert, and the operators that the message names.

    For other programs ``text`` is the kind of exception, such as ``ValueError``.
    """

    status: int
    code: str = ""
    ops: frozenset[str] = frozenset()
    text: str = ""

    def is_like(self, other: Failure | None) -> bool:
        """Whether another failure is of the same cause: same code, and no operator that this one lacks."""
        if other is None or self.code != other.code:
            return False
        if self.code:
            return other.ops <= self.ops and bool(other.ops) == bool(self.ops)
        return (self.status, self.text) == (other.status, other.text)

    def __str__(self) -> str:
        ops = f" ({', '.join(sorted(self.ops))})" if self.ops else ""
        return f"{self.code or self.text or f'exit status {self.status}'}{ops}"


class Trials:
    """Runs ``command``, in which ``{}`` stands for a candidate, with a time limit in seconds.

    >>> Trials(["tmconvert", "onnx", "{}", "out.onnx"], 60).failure(Path("net.tm"))  # doctest: +SKIP
    Failure(status=1, code='TM2003', ops=frozenset({'aten::polygamma'}), text='')
    """

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        if not any(PLACE in each for each in command):
            raise UsageError(
                "TM6002",
                "the command has no {} for the path of the model",
                notes=[("help", "write {} in it")],
            )
        self.command, self.seconds, self.count = list(command), min(seconds, LONGEST), 0

    def failure(self, path: Path | str, *inputs: str, folder: Path | None = None) -> Failure | None:
        """Returns how the command fails for a candidate; None if it does not.

        ``path`` may be a factory in ``folder``, with ``inputs`` as arguments.
        """
        self.count += 1
        command = [each.replace(PLACE, str(path)) for each in self.command] + list(inputs)
        if command[0] == "tmconvert":
            command = [sys.executable, "-m", "tmconvert", *command[1:]]
        try:
            done = subprocess.run(command, capture_output=True, timeout=self.seconds, check=False, cwd=folder)
        except subprocess.TimeoutExpired:
            return Failure(-1, text=f"no end in {self.seconds:g} s")
        except OSError as error:
            raise UsageError("TM6002", f"{command[0]} cannot be run: {error.strerror}") from error
        if done.returncode == 0:
            return None
        said = done.stderr.decode("utf-8", "replace") + done.stdout.decode("utf-8", "replace")
        return _failure(done.returncode, said)


def _failure(status: int, said: str) -> Failure:
    code = _CODE.search(said)
    if code is not None:
        line = said[code.start() :].partition("\n")[0]
        ops = {found[1] or found[0] for found in _OP.finditer(line) if not _CODE.fullmatch(found[0])}
        return Failure(status, code[0], frozenset(ops))
    texts = _TEXTS.findall(said)
    kind = re.match(r"[\w.]*(?:Error|Exception|Exit)\b", texts[-1]) if texts else None
    return Failure(status, text="" if kind is None else kind[0])
