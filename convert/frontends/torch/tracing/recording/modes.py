"""Evaluation mode: modules are traced as after ``eval()``, and have their own modes again afterwards."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from tmconvert.frontends.torch.tracing.recording.objects import held_objects
from tmconvert.frontends.torch.tracing.recording.state_guard import StateGuard

_MOST_NAMES = 3
_MOST_OBJECTS = 10_000
_BASE = torch.nn.Module
_READERS: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


@contextmanager
def in_evaluation(model: Callable[..., Any], training: bool) -> Iterator[list[str]]:
    """Puts the modules of a model in evaluation mode within the context, unless ``training`` keeps theirs.

    The modules of a function are those that it captured, or names in its file. Yields notes for a report:
    which classes compute something else in their own mode.
    """
    roots = [] if training else [*_roots(model)]
    modules = _modules(roots)
    modes = [(each, each.training) for each in modules if hasattr(each, "training")]
    changed = [each for each, mode in modes if mode]
    if not changed:
        yield []
        return
    guard, data = StateGuard(), []
    if any(_has_own_modes(each) for each in modules):  # eval() may do anything, such as merge weights
        data = [(tensor, tensor.data) for tensor in guard.add_modules(modules)]
        for tensor, own in data:
            tensor.data = own.clone()  # which the trace may share
    try:
        for root in roots:
            with contextlib.suppress(NotImplementedError):  # a program of torch.export has no modes
                root.eval()
        still = {id(each) for each in changed if each.training}
        yield _notes([each for each in changed if id(each) not in still])
    finally:
        for each, mode in modes:
            if each.training != mode:
                each.training = mode
        guard.restore()
        for tensor, own in data:
            tensor.data = own


def modules_of(model: Callable[..., Any]) -> list[torch.nn.Module]:
    """Returns a module and its submodules, or those that a function captured or names in its file."""
    return _modules(_roots(model))


def _modules(roots: Iterable[torch.nn.Module]) -> list[torch.nn.Module]:
    return list({id(each): each for root in roots for each in root.modules()}.values())


def _has_own_modes(module: torch.nn.Module) -> bool:
    own = vars(module)
    return type(module).train is not _BASE.train or type(module).eval is not _BASE.eval or "train" in own


def _notes(changed: list[torch.nn.Module]) -> list[str]:
    named = ((getattr(each, "original_name", type(each).__name__), each) for each in changed)
    names = sorted({name for name, each in named if _reads_mode(each)})
    if not names:
        return []
    shown = ", ".join(names[:_MOST_NAMES]) + ", ..." * (len(names) > _MOST_NAMES)
    return [
        f"{shown}: in training mode, and traced as after eval(); --training (training=True) keeps the mode"
    ]


def _reads_mode(module: torch.nn.Module) -> bool:
    """Whether the code of a module names the attribute ``training``, or it has modes of its own."""
    if isinstance(module, torch.jit.ScriptModule):
        return hasattr(module, "graph") and '"training"' in str(module.graph)
    cls: Any = type(module)
    if cls not in _READERS:
        bases = [base for base in cls.__mro__ if base is not _BASE]
        functions = [each for base in bases for each in vars(base).values() if isinstance(each, FunctionType)]
        _READERS[cls] = cls.train is not _BASE.train or any(_names_mode(each.__code__) for each in functions)
    return _READERS[cls]


def _names_mode(code: CodeType) -> bool:
    inner = (const for const in code.co_consts if isinstance(const, CodeType))
    return "training" in (*code.co_names, *code.co_consts) or any(map(_names_mode, inner))


def _roots(model: Callable[..., Any]) -> Iterator[torch.nn.Module]:
    """Returns a module, or the modules that a function captured, holds as defaults or names in its file."""
    own: dict[str, Any] | None = None
    waiting, seen = [model], set[int]()
    while waiting and len(seen) < _MOST_OBJECTS:
        held = waiting.pop()
        if id(held) in seen or isinstance(held, (type, ModuleType, torch.Tensor)):
            continue
        seen.add(id(held))
        if isinstance(held, _BASE):
            yield held
            continue
        waiting += held_objects(held)
        if isinstance(held, FunctionType) and (own is None or own is held.__globals__):
            own = held.__globals__
            waiting += [own[name] for name in held.__code__.co_names if name in own]
