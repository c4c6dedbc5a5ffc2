"""Parses protobuf's text format to a tree with line numbers, for any field names.

protobuf's own parser needs the messages, stops at the first error, and does not keep line numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>[\s,;]+|\#[^\n]*)
      | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | (?P<word>[-+]?[\w.]+(?:[-+]\w+)?)
      | (?P<mark>[{}<>\[\]:])""",
    re.VERBOSE,
)
_CLOSES = {"{": "}", "<": ">"}
DEEPEST = 64


class PrototxtError(Exception):
    """The text is malformed; ``line`` is where the parser noticed."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class Entry(NamedTuple):
    """``name: text`` or ``name { entries }``; a list of values becomes several entries."""

    name: str
    line: int
    text: str | None
    entries: tuple[Entry, ...] = ()

    def called(self, name: str) -> Iterator[Entry]:
        return (entry for entry in self.entries if entry.name == name)

    def string(self, name: str) -> str:
        """Returns the first string field ``name``, without quotes."""
        return next((entry.text[1:-1] for entry in self.called(name) if entry.text), "")

    def strings(self, name: str) -> list[str]:
        """Returns the values of the string fields ``name``."""
        return [_unescaped(entry.text[1:-1]) for entry in self.called(name) if entry.text]


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    from google.protobuf.text_encoding import CUnescape

    return CUnescape(text).decode("utf-8")


def parse_prototxt(text: str) -> Entry:
    """Parses the text to the entries of one nameless Entry. Raises PrototxtError."""
    reader = _Reader(list(_tokens(text)))
    return Entry("", 1, None, tuple(reader.entries("", 0)))


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise PrototxtError(f"unexpected {text[position]!r}", line)
        if match.lastgroup != "space":
            yield match.group(), line
        line += match.group().count("\n")
        position = match.end()
    yield "", line


class _Reader:
    def __init__(self, tokens: list[tuple[str, int]]) -> None:
        self.tokens = tokens
        self.position = 0

    def next(self) -> tuple[str, int]:
        token = self.tokens[self.position]
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def entries(self, closing: str, depth: int) -> Iterator[Entry]:
        while True:
            name, line = self.next()
            if name == closing:
                return
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                wanted = f"a field or {closing!r}" if closing else "a field"
                raise PrototxtError(f"expected {wanted}, found {name or 'the end of the file'!r}", line)
            yield from self.values(name, line, depth)

    def values(self, name: str, line: int, depth: int) -> Iterator[Entry]:
        mark, _ = self.next()
        if mark == ":":
            mark, _ = self.next()
            if mark == "[":
                while (mark := self.next()[0]) != "]":
                    yield self.value(name, line, mark, depth)
                return
        elif mark not in _CLOSES:
            raise PrototxtError(f"expected ':' or '{{' after {name}, found {mark or 'the end'!r}", line)
        yield self.value(name, line, mark, depth)

    def value(self, name: str, line: int, token: str, depth: int) -> Entry:
        if token in _CLOSES:
            if depth > DEEPEST:
                raise PrototxtError(f"messages are nested more than {DEEPEST} deep", line)
            return Entry(name, line, None, tuple(self.entries(_CLOSES[token], depth + 1)))
        if token in ("", "]", "}", ">", ":"):
            raise PrototxtError(f"{name} has no value", line)
        return Entry(name, line, token)
