"""The parser of protobuf's text format."""

from __future__ import annotations

import json

import pytest

from tmconvert.formats import protobuf_text
from tmconvert.formats.protobuf_text import ProtobufTextError, parse_protobuf_text


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a {\n b: 1\n", 3, "expected a field or '}', found 'the end of the file'"),
        ("a\n", 1, "expected ':' or '{' after a, found 'the end'"),
        ("a: \n}", 1, "a has no value"),
        ("a: [1,\n", 1, "a has no value"),
        ("\n$", 2, "unexpected '$'"),
        ("a {" * 99, 1, "messages are nested more than 64 deep"),
    ],
)
def test_malformed_text(text: str, line: int, message: str) -> None:
    with pytest.raises(ProtobufTextError) as caught:
        parse_protobuf_text(text)
    assert (caught.value.line, caught.value.message) == (line, message)


def test_the_number_of_fields_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protobuf_text, "MOST_FIELDS", 3)
    assert len(parse_protobuf_text("a: [1, 2, 3]").entries) == 3
    with pytest.raises(ProtobufTextError, match="more than 3 fields"):
        parse_protobuf_text("a: [1, 2, 3]\nb: 4")


@pytest.mark.parametrize("text", ["plain", "\u00e4\u20ac", "\U0001f600", 'quotes " and \\', "\n\t\x7f"])
def test_escape_sequences_of_json_and_protobuf(text: str) -> None:
    octal = "".join(f"\\{byte:03o}" for byte in text.encode())
    for written in (json.dumps(text), json.dumps(text, ensure_ascii=False), f'"{octal}"'):
        assert parse_protobuf_text(f"name: {written}").strings("name") == [text]


@pytest.mark.parametrize("text", [r"\q", r"\ud800", r"\777", r"\xff", r"\Uffffffff", r"\u12"])
def test_invalid_escape_sequences(text: str) -> None:
    with pytest.raises(ProtobufTextError, match="invalid escape sequence") as caught:
        parse_protobuf_text(f'\n\nname: "{text}"').strings("name")
    assert caught.value.line == 3
