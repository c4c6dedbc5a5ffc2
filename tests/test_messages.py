"""What messages must not print: methods where a value was meant."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.source_tree import FILES, ROOT, parsed

# methods of texts, numbers and containers: without a call, an attribute of this name is one of them
METHODS = frozenset(
    name
    for kind in (str, bytes, list, tuple, dict, set, int, float)
    for name in dir(kind)
    if not name.startswith("_") and callable(getattr(kind, name))
)

# fields of records that have such a name
FIELDS = frozenset(
    {
        "RECORDS[dialect].title",
        "described.title",
        "dialect.title",
        "explanation.title",
        "first.title",
        "format.title",
        "known.title",
        "lot.count",
        "other.title",
        "candidates.count",
        "profile.title",
        "self.profile.title",
        "second.title",
        "self.format",
        "side.title",
        "target.title",
        "trusted.title",
        "words.title",
        "words_of(each).title",
        "words_of(target).title",
    }
)


def _printed(tree: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes that f-strings put into a text as they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and isinstance(node.value, ast.Attribute):
            yield node.value


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.AST]:
    """The files with such an attribute at the end of a field of a text; to walk through all takes seconds."""
    attribute = re.compile(rf"\.({'|'.join(sorted(METHODS))})\s*[}}!:=]")
    return {path: parsed(path) for path in FILES if attribute.search(path.read_text(encoding="utf-8"))}


def test_no_method_is_printed(trees: dict[Path, ast.AST]) -> None:
    """``f"{group.count}"`` of a tuple is ``<built-in method count of ...>``: a field may not be called so.

    mypy cannot tell, as a method may be printed.
    """
    wrong = [
        f"{path.relative_to(ROOT)}:{each.lineno}: {ast.unparse(each)}"
        for path, tree in trees.items()
        for each in _printed(tree)
        if each.attr in METHODS and ast.unparse(each) not in FIELDS
    ]
    assert wrong == []
