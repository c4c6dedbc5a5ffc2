"""The way in for models of PyTorch: files, modules named on a command line, objects. Torch is imported
only when one of them is to be traced."""

from __future__ import annotations

import re
import sys
from importlib.machinery import PathFinder
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmconvert.errors import LoadError, UsageError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.archives import Kind
from tmconvert.frontends.torch.request import Tracing
from tmconvert.ir import TracedModule

if TYPE_CHECKING:
    from types import ModuleType

_FACTORY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_IN_FILE = re.compile(r"[^:]+\.py:[^\W\d]\w*(\.[^\W\d]\w*)*")  # which is told how to write it
INSTALL = "pip install torch (the CPU build is enough: pytorch.org says how to install it)"


def is_factory(model: str | PathLike[str]) -> bool:
    """Whether it names something in Python, as ``package.module:factory``, and no file."""
    return (
        isinstance(model, str)
        and bool(_FACTORY.fullmatch(model) or _IN_FILE.fullmatch(model))
        and not Path(model).exists()
    )


def trace_factory(name: str, tracing: Tracing) -> TracedModule:
    """The model that ``package.module:factory`` makes. Raises LoadError, UnsupportedError."""
    file, _, factory = name.rpartition(":")
    if file.endswith(".py"):
        raise LoadError(
            "TM1022",
            f"{file} names a file, and a factory is named by its module",
            notes=[("help", f"write {module_of(file)}:{factory}")],
        )
    top, _, _ = name.partition(":")[0].partition(".")
    is_loaded = top in sys.modules or top in sys.builtin_module_names
    if not is_loaded and PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is None:
        raise no_module(top, name)  # before torch is imported, which takes seconds
    return _doors().trace_factory(name, tracing)


def no_module(missing: str, name: str) -> LoadError:
    """For a factory ``name`` in a module that is not there."""
    module = name.partition(":")[0]
    return LoadError(
        "TM1022",
        f"there is no module {missing}",
        notes=[
            ("looked in", f"{Path.cwd()}, and where this Python has its packages"),
            ("help", f"write {name} as `import {module}` would work in the current folder"),
        ],
    )


def module_of(file: str) -> str:
    """The module of Python that a file in the current folder is: ``models/net.py`` is ``models.net``."""
    path = Path(file).resolve().with_suffix("")
    within = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else Path(path.name)
    return ".".join(within.parts)


def factories_of(file: str) -> list[str]:
    """What may make a model in a Python file, as ``module:factory``: functions and classes. It is not run."""
    import ast

    try:
        body = ast.parse(Path(file).read_bytes()).body
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    kinds = (ast.FunctionDef, ast.ClassDef)
    return [f"{module_of(file)}:{each.name}" for each in body if isinstance(each, kinds)]


def trace_object(model: Any, tracing: Tracing) -> TracedModule:
    """A module, a function of tensors, or an ExportedProgram. Raises UnsupportedError."""
    return _doors().trace_object(model, tracing)


def trace_file(path: str, kind: Kind, tracing: Tracing) -> TracedModule:
    """The model in a file of PyTorch. Raises LoadError TM1021, TM1024 to TM1026, UnsupportedError."""
    if kind is Kind.CHECKPOINT:
        raise LoadError(
            "TM1024",
            "this is a checkpoint of torch.save: it has weights, but not what is computed with them",
            source=Source(path),
            notes=[
                (
                    "help",
                    "write a function that makes the module and calls module.load_state_dict(torch.load("
                    f"{path!r})), and give it as PACKAGE.MODULE:FUNCTION in the place of the file",
                )
            ],
        )
    if kind is Kind.MODULE:
        raise LoadError(
            "TM1024",
            "this is a whole module that torch.save has pickled: it runs the code of its classes to be read",
            source=Source(path),
            notes=[
                (
                    "help",
                    f"if you trust its origin, write a function that returns torch.load({path!r}, "
                    "weights_only=False), and give it as PACKAGE.MODULE:FUNCTION in the place of the file",
                )
            ],
        )
    if kind is Kind.SCRIPT and not tracing.allow_code:
        raise LoadError(
            "TM1025",
            "this is a TorchScript file: a program, parts of which run while torch loads it",
            source=Source(path),
            notes=[("help", "if you trust its origin, use --allow-code (allow_code=True) and --input")],
        )
    doors = _doors()
    return doors.trace_exported(path, tracing) if kind is Kind.EXPORTED else doors.trace_script(path, tracing)


def inputs_needed(signature: str = "") -> UsageError:
    """``signature`` is that of the model, such as ``forward(x, mask=None)``, where it is known."""
    return UsageError(
        "TM6008",
        "a PyTorch module needs example inputs to be traced with",
        notes=[
            *([("it has", signature)] if signature else []),
            (
                "help",
                "give example_inputs=(x, ...) or example_kwargs={'x': x}; on the command line "
                "--input 'float32[1,3,224,224]'",
            ),
        ],
    )


def _doors() -> ModuleType:
    try:
        from tmconvert.frontends.torch.tracing import entry as doors
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise LoadError(
            "TM1021", "PyTorch is needed to trace a model, and is not installed", notes=[("help", INSTALL)]
        ) from error
    return doors
