"""Runs a command on candidates, each in a process of its own, and compares how it fails."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tmconvert.errors import UsageError
from tmconvert.reduction.fork_server import TIMED_OUT, ForkServer

LONGEST = 1e6  # seconds, which systems can wait for
PLACE = "{}"  # what the command has for the path of a candidate
TORCH = ("torch", "tmconvert.frontends.torch.tracing.sources", "tmconvert.frontends.torch.vocabulary")
_CODE = re.compile(r"\bTM\d{4}\b")
_OP = re.compile(r"\b[a-z]\w*::\w+|\btorch(?:\.\w+)+|\b[A-Z][A-Z0-9_]{2,}\b|'(\w+)'")
_KIND = re.compile(r"[\w.]*(?:Error|Exception|Exit|Interrupt)\b")
_TEXTS = re.compile(r"(?m)^[\w.]*(?:Error|Exception|Exit)\b[^\n]*|^[^\n]*\berror\b[^\n]*", re.IGNORECASE)
_LINE = re.compile(r"\breduced\.py:(\d+)")
_WRONG = "TM4"  # codes of wrong files, whose messages name outputs
_DEFECT = "TM9"  # codes of exceptions, whose message matters
_EXCERPT = re.compile(r"(?m)^ +\|  (.+ = .+)")
_VARIABLE = re.compile(r"\d+|'[^']*'")  # what depends on sizes and names
USAGE = 2  # exit status


class Candidate(NamedTuple):
    """Text in the place of the model in a command, and the arguments after it."""

    model: str
    inputs: Sequence[str] = ()

    def words(self) -> list[str]:
        return [part for text in self.inputs for part in ("--input", text)]


class Failure(NamedTuple):
    """How a command fails: its exit status, the code of tmconvert, and the operators that the message names.

    For other programs ``text`` is the kind of exception, such as ``ValueError``, for defects the message.
    ``line`` is the line of a candidate that the message names, 0 for none.
    """

    status: int
    code: str = ""
    ops: frozenset[str] = frozenset()
    text: str = ""
    line: int = 0

    def is_like(self, other: Failure | None) -> bool:
        """Whether another failure is of the same cause: same code, and no operator that this one lacks."""
        if other is None or (self.code, self.text) != (other.code, other.text):
            return False
        if self.code:
            return other.ops <= self.ops and bool(other.ops) == bool(self.ops)
        return self.status == other.status

    def __str__(self) -> str:
        ops = f" ({', '.join(sorted({self.text} - {''} or self.ops))})" if self.ops or self.text else ""
        return f"{self.code}{ops}" if self.code else self.text or f"exit status {self.status}"

    def to_json(self) -> dict[str, object]:
        return {"status": self.status, "code": self.code, "ops": sorted(self.ops), "text": self.text}


class Trials:
    """Runs ``command``, in which ``{}`` stands for a candidate, with a time limit in seconds.

    >>> Trials(["tmconvert", "onnx", "{}", "out.onnx"], 60).failure(Candidate("net.tm"))  # doctest: +SKIP
    Failure(status=1, code='TM2003', ops=frozenset({'aten::polygamma'}), text='', line=0)
    """

    def __init__(self, command: Sequence[str], seconds: float) -> None:
        if not any(PLACE in each for each in command):
            raise UsageError(
                "TM6002",
                "the command has no {} for the path of the model",
                notes=[("help", "write {} in it")],
            )
        self.command, self.seconds, self.count = list(command), min(seconds, LONGEST), 0
        self.message = ""  # of the last run
        self._server: ForkServer | None = None

    @property
    def is_ours(self) -> bool:
        return self.command[0] == "tmconvert"

    def failure(self, candidate: Candidate, folder: Path | None = None) -> Failure | None:
        """Returns how the command fails for a candidate in ``folder``; None if it does not."""
        self.count += 1
        command = [each.replace(PLACE, candidate.model) for each in self.command]
        status, self.message = self._run([*command, *(candidate.words() if self.is_ours else ())], folder)
        if status == TIMED_OUT:
            return Failure(-1, text=f"no end in {self.seconds:g} s")
        return _failure(status, self.message) if status else None

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    def _run(self, command: Sequence[str], folder: Path | None) -> tuple[int, str]:
        if self.is_ours:  # it imports candidates from the current folder
            words = [str(Path(each).resolve()) if Path(each).is_file() else each for each in command[1:]]
            if hasattr(os, "fork"):
                if self._server is None:
                    self._server = ForkServer(TORCH if any(":" in each for each in words) else ())
                return self._server.run(words, self.seconds, folder)
            command = [sys.executable, "-m", "tmconvert", *words]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                timeout=self.seconds,
                check=False,
                cwd=folder if self.is_ours else None,
            )
        except subprocess.TimeoutExpired:
            return TIMED_OUT, ""
        except OSError as error:
            raise UsageError("TM6002", f"{command[0]} cannot be run: {error.strerror}") from error
        return done.returncode, (done.stderr + b"\n" + done.stdout).decode("utf-8", "replace")


def _failure(status: int, said: str) -> Failure:
    code, place = _CODE.search(said), _LINE.search(said)
    line = int(place[1]) if place else 0
    if code is None:
        texts = _TEXTS.findall(said)
        kind = _KIND.match(texts[-1]) if texts else None
        return Failure(status, text="" if kind is None else kind[0], line=line)
    message = said[code.start() :].partition("\n")[0]
    if code[0].startswith(_DEFECT):
        text = _VARIABLE.sub("", message.partition(": ")[2])
        return Failure(status, code[0], _ops(*_EXCERPT.findall(said)), text, line)
    if code[0].startswith(_WRONG):
        return Failure(status, code[0], line=line)
    return Failure(status, code[0], _ops(message) or _ops(*_EXCERPT.findall(said)), line=line)


def _ops(*texts: str) -> frozenset[str]:
    found = [each for text in texts for each in _OP.finditer(text)]
    return frozenset(each[1] or each[0] for each in found if not _CODE.fullmatch(each[0]))
