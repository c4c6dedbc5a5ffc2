"""Parses the subset of protobuf's text format that parameter files use: messages, strings and numbers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

import numpy as np

from tmconvert.qparams.formats.format import Unreadable
from tmconvert.qparams.formats.json_text import as_integer, as_number

_TOKEN = re.compile(r'\s*(?:#[^\n]*|(?P<token>"(?:[^"\\\n]|\\.)*"|[{}:;,]|[^\s{}:;,"#]+))')
_DEEPEST = 8
_MOST_TOKENS = 2_000_000


@dataclass
class Message:
    """Fields by name, each with its values in order: messages, or tokens."""

    place: str
    fields: dict[str, list[Message | str]] = field(default_factory=dict)

    def text(self, name: str) -> str:
        value = self._one(name)
        if not isinstance(value, str) or not value.startswith('"'):
            raise Unreadable(f"{name!r} of {self.place} must be a string")
        try:
            return str(json.loads(value))
        except ValueError:
            raise Unreadable(f"{name!r} of {self.place} has an invalid escape sequence") from None

    def inner(self, name: str) -> Message:
        value = self._one(name)
        if isinstance(value, str):
            raise Unreadable(f"{name!r} of {self.place} must be a message")
        return value

    def numbers(self, name: str) -> tuple[float, ...]:
        """Returns float32 values."""
        place = f"{name!r} of {self.place}"
        with np.errstate(over="ignore", under="ignore"):
            return tuple(
                as_number(float(np.float32(_number(value, place))), place)
                for value in self.fields.get(name, [])
            )

    def integers(self, name: str) -> tuple[int, ...]:
        place = f"{name!r} of {self.place}"
        found = []
        for value in self.fields.get(name, []):
            if not isinstance(value, str) or not re.fullmatch(r"-?\d{1,10}", value):
                raise Unreadable(f"{place} must be an integer")
            found.append(as_integer(int(value), place, -(2**31), 2**31 - 1))
        return tuple(found)

    def _one(self, name: str) -> Message | str:
        values = self.fields.get(name, [])
        if len(values) != 1:
            raise Unreadable(f"{self.place} must have {name!r} once, but has it {len(values)} times")
        return values[0]


def _number(value: Message | str, place: str) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # a message raises, too
    except (TypeError, ValueError):
        raise Unreadable(f"{place} must be a number") from None


def parsed_messages(text: str, name: str) -> list[Message]:
    """Parses the messages of the one repeated field ``name`` of the file. Raises Unreadable."""
    tokens = _tokens(text)
    root = Message("the file")
    stack, position = [root], 0
    while position < len(tokens):
        token = tokens[position]
        if token == "}" and len(stack) > 1:
            stack.pop()
            position += 1
            continue
        if not re.fullmatch(r"\w+", token):
            raise Unreadable(f"expected the name of a field, found {token!r} in {stack[-1].place}")
        position += 1
        if position < len(tokens) and tokens[position] == ":":
            position += 1
        if position == len(tokens) or tokens[position] in ("}", ":", ";", ","):
            raise Unreadable(f"{token!r} of {stack[-1].place} has no value")
        value = tokens[position]
        position += 1
        if value == "{":
            number = len(stack[-1].fields.get(token, [])) + 1
            inner = Message(f"{token} {number}" if len(stack) == 1 else f"{token} of {stack[-1].place}")
            stack[-1].fields.setdefault(token, []).append(inner)
            stack.append(inner)
            if len(stack) > _DEEPEST:
                raise Unreadable("it is nested too deeply")
        else:
            stack[-1].fields.setdefault(token, []).append(value)
        while position < len(tokens) and tokens[position] in (";", ","):
            position += 1
    if len(stack) > 1:
        raise Unreadable(f"{stack[-1].place} has no end")
    others = sorted(set(root.fields) - {name})
    messages = [each for each in root.fields.get(name, []) if isinstance(each, Message)]
    if others or len(messages) != len(root.fields.get(name, [])):
        raise Unreadable(f"it contains fields other than {name!r}")
    return messages


def _tokens(text: str) -> list[str]:
    found, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.end() == position:
            raise Unreadable(f"{text[position : position + 20]!r} is not valid in a record")
        if match["token"]:
            found.append(match["token"])
            if len(found) > _MOST_TOKENS:
                raise Unreadable(f"it has more than {_MOST_TOKENS} tokens")
        position = match.end()
    return found
