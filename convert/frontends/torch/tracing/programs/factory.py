"""Resolves ``package.module:factory`` to a module and its inputs."""

from __future__ import annotations

import difflib
import importlib
import inspect
import random
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tmconvert.errors import LoadError
from tmconvert.frontends.torch.request import no_module
from tmconvert.frontends.torch.tracing.recording.state_guard import same_folder
from tmconvert.frontends.torch.tracing.recording.users_code import users_code

SEED = 0


@contextmanager
def importable_folder() -> Iterator[None]:
    """Adds the current folder to the import path, like ``python -m``, and keeps it the current folder."""
    try:
        folder = str(Path.cwd())
    except FileNotFoundError:  # it was removed
        yield
        return
    sys.path.insert(0, folder)
    try:
        with same_folder():
            yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)


def made_by(name: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Returns the model, and the inputs that the factory returned with it, if any.

    The generators of torch, NumPy and Python are seeded before, so that random weights are always the same.
    Raises LoadError TM1022, TM1023.
    """
    _seed()
    module_name, _, attribute = name.partition(":")
    found = _imported(module_name, name)
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = _public(found)
            near = difflib.get_close_matches(part, names, n=3)
            notes = [("help", f"did you mean {' or '.join(near)}?")] if near else []
            raise LoadError(
                "TM1022",
                f"{module_name} has no {attribute}",
                notes=[("it has", ", ".join(names) or "nothing"), *notes],
            )
        found = getattr(found, part)
    if inspect.isclass(found) or inspect.isroutine(found):
        _check_parameters(found, name)
        _seed()
        with users_code(name):
            found = found()
    return _parts(found, name)


def _public(found: object) -> list[str]:
    return [
        name
        for name, value in inspect.getmembers(found)
        if not name.startswith("_") and not inspect.ismodule(value)
    ]


def _seed() -> None:
    torch.manual_seed(SEED)
    random.seed(SEED)
    np.random.seed(SEED)


def _imported(module_name: str, name: str) -> Any:
    try:
        with users_code(f"importing {module_name}"):
            return importlib.import_module(module_name)
    except LoadError as error:
        missing = error.__cause__
        if isinstance(missing, ModuleNotFoundError) and f"{module_name}.".startswith(f"{missing.name}."):
            raise no_module(missing.name or module_name, name) from missing
        raise


def _check_parameters(found: Any, name: str) -> None:
    try:
        inspect.signature(found).bind()
    except TypeError as error:
        raise LoadError(
            "TM1022",
            f"{name} cannot be called without arguments: {error}",
            notes=[("help", "write a function without arguments that returns the module, and name that")],
        ) from error
    except ValueError:  # it has no signature
        pass


def _parts(made: object, name: str) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Splits ``module``, ``(module, inputs)`` or ``(module, args, kwargs)`` into three."""
    module: Any = made
    inputs: Any = ()
    keywords: Any = {}
    if isinstance(made, tuple) and 2 <= len(made) <= 3:
        module, inputs, *rest = made
        keywords = rest[0] if rest else {}
        if isinstance(inputs, Mapping):
            inputs, keywords = (), {**inputs, **keywords}
        elif not isinstance(inputs, (tuple, list)):
            inputs = (inputs,)
    if not isinstance(keywords, Mapping):
        raise LoadError(
            "TM1022",
            f"{name} returns {type(keywords).__name__} as the third element of (module, args, kwargs); "
            "it must be a dict",
            notes=[("help", "return the module, (module, inputs) or (module, args, kwargs)")],
        )
    is_program = type(module).__name__ == "ExportedProgram"
    if not isinstance(module, torch.nn.Module) and not is_program:
        raise LoadError(
            "TM1022",
            f"{name} returns a {type(module).__name__}, which is not a torch.nn.Module",
            notes=[("help", "return the module, or (module, inputs)")],
        )
    return module, tuple(inputs), dict(keywords)
