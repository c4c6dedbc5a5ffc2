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
MOST_FIELDS = 2_000_000
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|[xX]([\da-fA-F]{1,2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|(.))", re.DOTALL
)
_ESCAPED = dict(zip("abfnrtv\\'\"?", b"\a\b\f\n\r\t\v\\'\"?", strict=True))


class ProtobufTextError(Exception):
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
        """Returns the first string field ``name``, without quotes; escape sequences stay."""
        return next((entry.text[1:-1] for entry in self.called(name) if entry.text), "")

    def strings(self, name: str) -> list[str]:
        """Returns the values of the string fields ``name``. Raises ProtobufTextError."""
        return [_unescape(entry.text[1:-1], entry.line) for entry in self.called(name) if entry.text]


def _unescape(text: str, line: int) -> str:
    """Replaces escape sequences, which may be single bytes of UTF-8 or halves of UTF-16 pairs."""
    if "\\" not in text:
        return text
    pieces, end = [], 0
    try:
        for match in _ESCAPE.finditer(text):
            octal, hexadecimal, short, long, letter = match.groups()
            pieces.append(text[end : match.start()].encode())
            if octal or hexadecimal:
                pieces.append(bytes([int(octal, 8) if octal else int(hexadecimal, 16)]))
            elif short or long:
                pieces.append(chr(int(short or long, 16)).encode("utf-8", "surrogatepass"))
            else:
                pieces.append(bytes([_ESCAPED[letter]]))
            end = match.end()
        data = b"".join((*pieces, text[end:].encode()))
        return data.decode("utf-8", "surrogatepass").encode("utf-16", "surrogatepass").decode("utf-16")
    except (LookupError, OverflowError, ValueError):
        raise ProtobufTextError("the string has an invalid escape sequence", line) from None


def parse_protobuf_text(text: str) -> Entry:
    """Parses the text to the entries of one nameless Entry. Raises ProtobufTextError.

    >>> net = parse_protobuf_text('layer { name: "fc" param { dim: [2, 3] } }')
    >>> next(net.called("layer")).string("name")
    'fc'
    """
    return Entry("", 1, None, tuple(_Reader(text).entries("", 0)))


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ProtobufTextError(f"unexpected {text[position]!r}", line)
        if match.lastgroup != "space":
            yield match.group(), line
        line += match.group().count("\n")
        position = match.end()
    yield "", line


class _Reader:
    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.fields = 0

    def next(self) -> tuple[str, int]:
        """Returns the next token and its line. The last token is empty, and is read once."""
        return next(self.tokens)

    def entries(self, closing: str, depth: int) -> Iterator[Entry]:
        while True:
            name, line = self.next()
            if name == closing:
                return
            if not re.fullmatch(r"[A-Za-z_]\w*", name):
                wanted = f"a field or {closing!r}" if closing else "a field"
                raise ProtobufTextError(f"expected {wanted}, found {name or 'the end of the file'!r}", line)
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
            raise ProtobufTextError(f"expected ':' or '{{' after {name}, found {mark or 'the end'!r}", line)
        yield self.value(name, line, mark, depth)

    def value(self, name: str, line: int, token: str, depth: int) -> Entry:
        self.fields += 1
        if self.fields > MOST_FIELDS:
            raise ProtobufTextError(f"the text has more than {MOST_FIELDS} fields", line)
        if token in _CLOSES:
            if depth > DEEPEST:
                raise ProtobufTextError(f"messages are nested more than {DEEPEST} deep", line)
            return Entry(name, line, None, tuple(self.entries(_CLOSES[token], depth + 1)))
        if token in ("", "]", "}", ">", ":"):
            raise ProtobufTextError(f"{name} has no value", line)
        return Entry(name, line, token)
