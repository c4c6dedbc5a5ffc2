"""Names, docstrings and messages use the field's words; retired words fail with their replacement.

A reader who knows PyTorch and ONNX searches for the words of these projects. ``RETIRED`` lists private words
that this project once used in their place, and what to write instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from tests.source_tree import FILES, ROOT, nodes
from tmconvert.errors.explanations import EXPLANATIONS

# a retired word, as a regular expression of whole words, and what to write instead
RETIRED = {
    r"grids?": "quantization parameters, QParams, quantized with",
    r"whole[ _]numbers?": "integers",
    r"memory[ _]orders?": "layout",
    r"islands?": "float fallback",
    r"told": "reported, known",
    r"asked|asks": "requested, requests",
    r"wish(es)?": "options, arguments",
    r"beside": "compared with, next to, in addition to",
    r"twins?": "copy, counterpart, float reference",
    r"settled?s?|settling": "resolve, infer",
    r"brings?|brought": "convert, align, move",
    r"behind": "after",
    r"in front": "before",
    r"doors?": "entry point",
    r"rooms?": "package, folder, space",
    r"goals?": "options, target options",
    r"boundary": "I/O overrides",
    r"bodies": "subgraphs",
    r"borrowed": "state guard",
    r"truth": "reference",
    r"turned": "transposed, converted, rotated",
    r"freezes?|freezing": "specialize (a dynamic dimension)",
    r"idle": "redundant, unused",
}
# forms of a sentence, in docstrings and messages only
PHRASES = {
    r"and no (str|int|float|bool|list|tuple|dict|name)": "must be ..., got ...",
    r"(?<!there )(is|are) no(?! (longer|more))": "is not a ..., has no ...",
    r"(?<!there )(is|are) (?-i:none)": "expected ..., got ...",
    r"holds what": "a sentence that names what is stored",
    r"in float stay": "N operators kept in float: ...",
    r"says?|said": "states, reports, expresses, lowers, lists",
    r"speaks? of": "describes, belongs to",
    r"anew": "again",
    r"places": "positions, indices, locations",
}
# how a first docstring line must not begin
OPENING = re.compile(r"(What|Those|Of|Such|That)\b")

# names that others gave, by file (or folder) and word, each with whose name it is
NAMED = {
    "convert/garbage_collection.py": {"freeze": "gc.freeze of Python"},
    "convert/frontends/onnx/adapters/standard/detection.py": {"grid": "an input of ONNX's GridSample"},
    "convert/frontends/torch/adapters/layers/images.py": {"grid": "a parameter of PyTorch's grid_sample"},
    "symbolics/ops/sampling/grid_sampler": {"grid": "ATen's parameter of grid_sampler"},
    "convert/torch_code/op_expressions.py": {"places": "a parameter of tm::remap"},
    "convert/torch_code/runtime_functions.py": {"places": "a parameter of tm::remap"},
    "convert/targets/tflite/integer/averages.py": {"places": "the end of a tensor's name in written files"},
    "": {
        "grid_sample": "a function of PyTorch, an operator of ONNX",
        "affine_grid": "a function of PyTorch, an operator of ONNX",
        "input_grids": "an earlier keyword of the public functions, and the name in written files",
        "freeze_control_flow": "a keyword of the public functions",
        "freeze-control-flow": "an option of the command line",
    },
}


class Text(NamedTuple):
    """A name, first docstring paragraph or message of a source file."""

    line: int
    kind: str
    text: str


def _names(nodes: Sequence[ast.AST]) -> Iterator[Text]:
    for node in nodes:
        if isinstance(node, ast.Name):
            yield Text(node.lineno, "name", node.id)
        elif isinstance(node, (ast.arg, ast.keyword)) and node.arg:
            yield Text(node.lineno, "name", node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield Text(node.lineno, "name", node.name)
        elif isinstance(node, ast.Attribute):
            yield Text(node.lineno, "name", node.attr)


def _prose(nodes: Sequence[ast.AST]) -> Iterator[Text]:
    """First docstring paragraphs, and other literals of three words or more: messages and help texts."""
    others: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            statement = node.body[0]
            assert isinstance(statement, ast.Expr)
            others.add(statement.value)
            first = (ast.get_docstring(node) or "").split("\n\n")[0]
            yield Text(statement.lineno, "docstring", first)
        elif isinstance(node, ast.JoinedStr):
            others |= {each for each in ast.walk(node) if each is not node}
    for node in nodes:
        if node in others:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [each.value if isinstance(each, ast.Constant) else "{}" for each in node.values]
            yield Text(node.lineno, "message", "".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.count(" ") >= 2:
            yield Text(node.lineno, "message", node.value)


def _allowed(path: str, word: str, text: str) -> bool:
    return any(
        path.startswith(where) and (word in words or any(name in text for name in words if word in name))
        for where, words in NAMED.items()
    )


def complaints(path: str, nodes: Sequence[ast.AST]) -> list[str]:
    """The retired words of a file, each with its line and its replacement."""
    found = []
    for each in _names(nodes):
        found += [(each, match, RETIRED) for match in _in_name(each.text)]
    for each in _prose(nodes):
        for table in (RETIRED, PHRASES):
            found += [(each, match, table) for match in _matches(table, each.text)]
        if each.kind == "docstring" and OPENING.match(each.text):
            found.append(
                (each, (OPENING.pattern, each.text.split()[0]), {OPENING.pattern: "a verb or a noun"})
            )
    return [
        f"{path}:{each.line}: '{word}' in the {each.kind} {' '.join(each.text.split())!r}: "
        f"use {table[pattern]}"
        for each, (pattern, word), table in found
        if not _allowed(path, word, each.text)
    ]


def _whole_words(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b({pattern})\b", re.IGNORECASE)


WORDS = {pattern: _whole_words(pattern) for pattern in (*RETIRED, *PHRASES)}
ANY_WORD = _whole_words("|".join(WORDS))


@cache
def _in_name(name: str) -> list[tuple[str, str]]:
    return _matches(RETIRED, re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", name))


def _matches(table: dict[str, str], text: str) -> list[tuple[str, str]]:
    if not ANY_WORD.search(text):
        return []
    found = [(pattern, WORDS[pattern].search(text)) for pattern in table]
    return [(pattern, match.group()) for pattern, match in found if match is not None]


def test_no_retired_words_in_explanations() -> None:
    texts = [
        (code, text) for code, each in EXPLANATIONS.items() for text in (each.title, each.cause, each.remedy)
    ]
    found = [
        (code, word)
        for code, text in texts
        for table in (RETIRED, PHRASES)
        for _, word in _matches(table, text)
        if not _allowed("convert/errors/explanations.toml", word, text)
    ]
    assert found == []


def test_no_retired_words() -> None:
    found = [each for path in FILES for each in complaints(str(path.relative_to(ROOT)), nodes(path))]
    assert found == []


def test_the_test_sees_each_kind_of_text() -> None:
    source = (
        '"""What a tensor has."""\ndef is_told(grid):\n    raise Error(f"the method is {grid}, and no str")\n'
    )
    seen = complaints("x.py", [*ast.walk(ast.parse(source))])
    assert [text.split("'")[1] for text in seen] == ["told", "grid", "grid", "What", "and no str"]
    assert seen[0].endswith("use reported, known")
    clean = ast.parse('"""Affine transforms of frozen dataclasses."""\nbehindhand = 1')
    assert complaints("x.py", [*ast.walk(clean)]) == []
