"""Runs torch's own Python functions so that the recorder sees the calls inside.

Such a function first tests for overrides (``has_torch_function``) and hands itself to them, so that its body
does not run. A copy of it with other globals has no overrides; functions of its module that it calls, and
that have no adapter, are copied, too.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]
QUESTIONS = ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic")


class FunctionCopies:
    """Copies of Python functions, made once. Functions for which ``has_meaning`` is true are not copied."""

    def __init__(self, has_meaning: Callable[[Any], bool]) -> None:
        self._has_meaning = has_meaning
        self._copies: dict[Any, Function] = {}
        self._names: dict[int, dict[str, Any]] = {}

    def of(self, function: Any) -> Function:
        """Returns a copy of ``function`` whose inner calls are recorded."""
        copy = self._copies.get(function)
        if copy is None:
            cells = function.__closure__ or ()
            own = tuple(types.CellType() for _ in cells)
            copy = types.FunctionType(
                function.__code__,
                self._globals(function.__globals__),
                function.__name__,
                function.__defaults__,
                own or None,
            )
            copy.__kwdefaults__ = function.__kwdefaults__
            self._copies[function] = copy  # it may close over itself
            for cell, theirs in zip(own, cells, strict=True):
                self._fill(cell, theirs)
        return copy

    def _globals(self, names: dict[str, object]) -> dict[str, Any]:
        """Returns a module's globals without the override checks; functions are copied at first calls."""
        own = self._names.get(id(names))
        if own is None:
            own = self._names[id(names)] = dict(names)
            own.update(dict.fromkeys(QUESTIONS, lambda *args: False))
            for name, value in names.items():
                if self._dispatches(value, names):
                    own[name] = _Later(self, value)
        return own

    def _dispatches(self, value: object, names: dict[str, object]) -> bool:
        """Whether a function of this module dispatches to overrides, and has no adapter."""
        if not isinstance(value, types.FunctionType) or value.__globals__ is not names:
            return False
        return "handle_torch_function" in value.__code__.co_names and not self._has_meaning(value)

    def _fill(self, own: Any, theirs: Any) -> None:
        """Copies the content of a closure cell; functions become copies."""
        try:
            value = theirs.cell_contents
        except ValueError:  # it is empty
            return
        is_function = isinstance(value, types.FunctionType) and not self._has_meaning(value)
        own.cell_contents = self.of(value) if is_function else value


class _Later:
    """A function that is copied at its first call."""

    def __init__(self, copies: FunctionCopies, function: object) -> None:
        self._copies, self._function = copies, function

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self._copies.of(self._function)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)
