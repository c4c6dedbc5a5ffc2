"""The way in for models of PyTorch: files, modules named on a command line, objects. Torch is imported
only when one of them is to be traced."""

from __future__ import annotations

import re
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import LoadError, UsageError
from ...ir import TracedModule
from ...source import Source
from .archives import Kind
from .request import Tracing

if TYPE_CHECKING:
    from types import ModuleType

_FACTORY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
INSTALL = "pip install torch --index-url https://download.pytorch.org/whl/cpu"


def is_factory(model: str | PathLike[str]) -> bool:
    """Whether it names something in Python, as ``package.module:factory``, and no file."""
    return isinstance(model, str) and bool(_FACTORY.fullmatch(model)) and not Path(model).exists()


def trace_factory(name: str, tracing: Tracing) -> TracedModule:
    """The model that ``package.module:factory`` makes. Raises LoadError, UnsupportedError."""
    return _doors().trace_factory(name, tracing)


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
    if kind is Kind.SCRIPT and not tracing.allow_code:
        raise LoadError(
            "TM1025",
            "this is a TorchScript file: a program, parts of which run while torch loads it",
            source=Source(path),
            notes=[("help", "if you trust its origin, use --allow-code (allow_code=True) and --input")],
        )
    doors = _doors()
    return doors.trace_exported(path, tracing) if kind is Kind.EXPORTED else doors.trace_script(path, tracing)


def inputs_needed() -> UsageError:
    return UsageError(
        "TM6008",
        "a PyTorch module needs example inputs to be traced with",
        notes=[
            (
                "help",
                "give example_inputs=(x, ...) or example_kwargs={'x': x}; on the command line "
                "--input 'float32[1,3,224,224]'",
            )
        ],
    )


def _doors() -> ModuleType:
    try:
        from .tracing import doors
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "torch":
            raise
        raise LoadError(
            "TM1021", "PyTorch is needed to trace a model, and is not installed", notes=[("help", INSTALL)]
        ) from error
    return doors
