"""Recognizes code that reads data without an effect on what a module computes: checks and messages.

``if (x < 0).any(): raise ValueError(...)`` and ``assert (x >= 0).all()`` read data, but whenever the module
returns, it has gone on in the same way. The text of a message has no effect either.
"""

from __future__ import annotations

import ast
import itertools
import linecache
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch

_OURS = str(Path(__file__).parents[3])
_TORCH = Path(torch.__file__).parent
# files of torch that stand between a call and the code that makes it
_BETWEEN = tuple(str(_TORCH / name) for name in ("_tensor.py", "_tensor_str.py", "overrides.py", "_ops.py"))
_LOGGERS = frozenset(("warn", "warning", "warning_once", "info", "debug", "error", "log", "print"))
# functions that decide by a text
_DECIDING = frozenset(("getattr", "setattr", "hasattr", "get", "pop", "int", "float", "len", "eval", "exec"))
Position = tuple[int, int]


class Spans(NamedTuple):
    """Source ranges of a file: the conditions of its checks, the messages that it prints or raises, and texts
    that it keeps or passes on, which may be messages.
    """

    checks: tuple[tuple[Position, Position], ...]
    messages: tuple[tuple[Position, Position], ...]
    texts: tuple[tuple[Position, Position], ...]


def is_in_check() -> bool:
    """Whether the code that reads a tensor is the condition of a check, which held for the example."""
    place = _position()
    return place is not None and _contains(_spans(place[0]).checks, place[1])


def is_in_message() -> bool:
    """Whether the code that reads a tensor is part of the text of an exception, a warning or a log."""
    place = _position()
    return place is not None and _contains(_spans(place[0]).messages, place[1])


def is_in_text() -> bool:
    """Whether the code that reads a tensor is part of a text that a name is given, or a function."""
    place = _position()
    return place is not None and _contains(_spans(place[0]).texts, place[1])


def _contains(spans: tuple[tuple[Position, Position], ...], position: Position) -> bool:
    return any(first <= position < last for first, last in spans)


def _position() -> tuple[str, Position] | None:
    """Returns the file and position of the innermost code outside of tmconvert and torch's tensor class."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith((_OURS, *_BETWEEN)):
        frame = frame.f_back
    if frame is None or not hasattr(frame.f_code, "co_positions"):  # Python 3.10 has no columns
        return None
    found = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    line, column = found[0], found[2]
    return None if line is None or column is None else (frame.f_code.co_filename, (line, column))


@cache
def _spans(file: str) -> Spans:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return Spans((), (), ())
    checks: list[tuple[Position, Position]] = []
    messages: list[tuple[Position, Position]] = []
    texts: list[tuple[Position, Position]] = []
    guarded = {id(inner) for node in ast.walk(tree) for inner in _guarded(node)}
    for node in ast.walk(tree):
        if id(node) not in guarded:
            checks += [span for test in _conditions(node) for span in (_span(test), _start(node))]
        messages += map(_span, _messages(node))
        texts += map(_span, _possible_messages(node))
    return Spans(tuple(checks), tuple(messages), tuple(texts))


def _span(node: ast.expr) -> tuple[Position, Position]:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def _start(node: Any) -> tuple[Position, Position]:
    """Returns the position that Python gives the jump of a statement."""
    return (node.lineno, node.col_offset), (node.lineno, node.col_offset + 1)


def _guarded(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the code in a try block, whose exceptions may be handled."""
    if isinstance(node, ast.Try) and node.handlers:
        for statement in node.body:
            yield from ast.walk(statement)


def _conditions(node: ast.AST) -> list[ast.expr]:
    """Returns the conditions of a statement after which a module has only one way to go on."""
    if isinstance(node, ast.Assert) or (isinstance(node, ast.If) and _has_one_way(node)):
        found = [node.test]
    elif isinstance(node, ast.Call) and _is_torch_check(node.func):
        found = node.args[:1]
    else:
        found = []
    return [test for test in found if not any(isinstance(each, ast.NamedExpr) for each in ast.walk(test))]


def _has_one_way(node: ast.If) -> bool:
    return _raises(node.body) or _raises(node.orelse) or (_only_logs(node.body) and not node.orelse)


def _raises(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Raise)


def _only_logs(body: list[ast.stmt]) -> bool:
    return all(
        isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) and _is_logger(each.value.func)
        for each in body
    )


def _is_torch_check(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr.startswith(("_assert", "_check"))
        and isinstance(function.value, ast.Name)
        and function.value.id == "torch"
    )


def _is_logger(function: ast.expr) -> bool:
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in _LOGGERS


def _possible_messages(node: ast.AST) -> list[ast.expr]:
    """Returns the texts that are assigned to a name or passed to a function other than those of _DECIDING."""
    values: list[ast.expr] = []
    if isinstance(node, ast.Assign) and all(isinstance(each, ast.Name) for each in node.targets):
        values = [node.value]
    elif (
        isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) not in _DECIDING
    ):
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
    return [each for each in values if isinstance(each, ast.JoinedStr)]


def _messages(node: ast.AST) -> list[ast.expr]:
    """Returns what becomes the message of an exception, a warning, a log or a check."""
    if isinstance(node, ast.Raise):
        return [node.exc] if node.exc else []
    if isinstance(node, ast.Assert):
        return [node.msg] if node.msg else []
    if isinstance(node, ast.Call) and (_is_logger(node.func) or _is_torch_check(node.func)):
        return [*node.args, *(keyword.value for keyword in node.keywords)]
    return []
