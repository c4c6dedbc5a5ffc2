"""Recognizes code that reads data without an effect on what a module computes: checks and messages.

``if (x < 0).any(): raise ValueError(...)`` and ``assert (x >= 0).all()`` read data, but whenever the module
returns, it has gone on in the same way, unless a caller handles the exception. The text of a message has no
effect either.
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

from tmconvert.frontends.torch.tracing.recording.source_lines import OURS, is_bottom

_TORCH = Path(torch.__file__).parent
# files of torch that stand between a call and the code that makes it
_BETWEEN = tuple(str(_TORCH / name) for name in ("_tensor.py", "_tensor_str.py", "overrides.py", "_ops.py"))
_LOGS = frozenset(("warn", "warning", "warning_once", "info", "debug", "error", "log", "print"))
_LOGGERS = frozenset(("logger", "logging", "log", "warnings"))  # names of objects that have these methods
# functions that decide by a text
_DECIDING = frozenset(("getattr", "setattr", "hasattr", "get", "pop", "int", "float", "len", "eval", "exec"))
_MODULE = str(_TORCH / "nn" / "modules" / "module.py")  # raises what it has handled
Position = tuple[int, int]


class Spans(NamedTuple):
    """Source ranges of a file: the conditions of its checks, the messages that it prints or raises, texts
    that it keeps or passes on, which may be messages, and code whose exceptions it handles.
    """

    checks: tuple[tuple[Position, Position], ...]
    messages: tuple[tuple[Position, Position], ...]
    texts: tuple[tuple[Position, Position], ...]
    guarded: tuple[tuple[Position, Position], ...]


def is_in_check() -> bool:
    """Whether the code that reads a tensor is the condition of a check, which held for the example, and whose
    exception ends the run of the module.
    """
    places = _positions()
    place = next(places, None)
    if place is None or not _contains(_spans(place[0]).checks, place[1]):
        return False
    return not any(_contains(_spans(file).guarded, position) for file, position in (place, *places))


def is_in_message() -> bool:
    """Whether the code that reads a tensor is part of the text of an exception, a warning or a log."""
    place = next(_positions(), None)
    return place is not None and _contains(_spans(place[0]).messages, place[1])


def is_in_text() -> bool:
    """Whether the code that reads a tensor builds a text for a name or a call."""
    place = next(_positions(), None)
    return place is not None and _contains(_spans(place[0]).texts, place[1])


def _contains(spans: tuple[tuple[Position, Position], ...], position: Position) -> bool:
    return any(first <= position < last for first, last in spans)


def _positions() -> Iterator[tuple[str, Position]]:
    """Yields the file and position of the code that runs, innermost first, without tmconvert and torch."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_bottom(frame):
        file = frame.f_code.co_filename
        if not file.startswith((OURS, *_BETWEEN, _MODULE)):
            if not hasattr(frame.f_code, "co_positions"):  # Python 3.10 has no columns
                return
            found = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
            line, column = found[0], found[2]
            if line is not None and column is not None:
                yield file, (line, column)
        frame = frame.f_back


@cache
def _spans(file: str) -> Spans:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return Spans((), (), (), ())
    checks: list[tuple[Position, Position]] = []
    messages: list[tuple[Position, Position]] = []
    texts: list[tuple[Position, Position]] = []
    guarded: list[tuple[Position, Position]] = []
    for node in ast.walk(tree):
        guarded += map(_span, _guarded(node))
        checks += [span for test in _conditions(node) for span in (_span(test), _start(node))]
        inner = (each for test in _conditions(node) for each in ast.walk(test))
        guarded += [_span(each) for each in inner if isinstance(each, ast.Lambda)]  # which may run elsewhere
        messages += map(_span, _messages(node))
        texts += map(_span, _possible_messages(node))
    return Spans(tuple(checks), tuple(messages), tuple(texts), tuple(guarded))


def _span(node: ast.expr | ast.stmt) -> tuple[Position, Position]:
    return (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)


def _start(node: Any) -> tuple[Position, Position]:
    """Returns the position that Python gives the jump of a statement."""
    return (node.lineno, node.col_offset), (node.lineno, node.col_offset + 1)


def _guarded(node: ast.AST) -> list[ast.stmt]:
    """Returns the statements of a block after whose exceptions a module may go on."""
    if isinstance(node, ast.Try) and not all(_raises(handler.body) for handler in node.handlers):
        return node.body
    if isinstance(node, (ast.With, ast.AsyncWith)) and any(map(_suppresses, node.items)):
        return node.body
    return []


def _suppresses(item: ast.withitem) -> bool:
    call = item.context_expr
    return isinstance(call, ast.Call) and _called(call.func) in ("suppress", "raises")


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
    """Whether a function writes a message: ``print``, ``warnings.warn``, ``self.logger.info``."""
    if _called(function) not in _LOGS:
        return False
    return isinstance(function, ast.Name) or (
        isinstance(function, ast.Attribute) and _called(function.value).lower().strip("_") in _LOGGERS
    )


def _called(function: ast.expr) -> str:
    """Returns the last part of the name of a function or object."""
    return getattr(function, "attr", getattr(function, "id", ""))


def _possible_messages(node: ast.AST) -> list[ast.expr]:
    """Returns the texts that are assigned to a name or passed to a function other than those of _DECIDING."""
    values: list[ast.expr] = []
    if isinstance(node, ast.Assign) and all(isinstance(each, ast.Name) for each in node.targets):
        values = [node.value]
    elif isinstance(node, ast.Call) and _called(node.func) not in _DECIDING:
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
