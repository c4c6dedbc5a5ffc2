"""Loads models. The kind of a file is detected from its content, never from its name."""

from __future__ import annotations

import os
from os import PathLike, fspath
from pathlib import Path

from tmconvert.errors import LoadError, UsageError
from tmconvert.errors.source import Source
from tmconvert.frontends.frontend import Frontend, LoadRequest
from tmconvert.frontends.registry import frontend_of_file, frontend_of_name, known_frontends, load_with
from tmconvert.frontends.torch.request import Tracing
from tmconvert.ir import TracedModule
from tmconvert.progress import begin

HEAD_BYTES = 4096
HELP = (
    "pass a .tm file (megengine.save writes one from a TracedModule, `tmconvert save` from any "
    "model), an ONNX or TFLite model, the prototxt of a Caffe net, a .pt2 file of torch.export.save, a "
    "folder of transformers, or PACKAGE.MODULE:FACTORY, which returns a PyTorch module"
)


def is_traced(model: str | PathLike[str]) -> bool:
    """Whether the model already has a graph, so that it is not run by its framework."""
    frontend, _ = _recognized(fspath(model))
    return frontend is None or frontend.has_graph


def load_model(path: str | PathLike[str], tracing: Tracing | None = None, check: bool = True) -> TracedModule:
    """Loads a file, or calls a factory. Raises LoadError TM1001 or TM1002, or the loader's errors.

    ``tracing`` is for models that are traced; for others it raises UsageError TM6016. Without ``check`` the
    weights of a container are not compared with their checksums.
    """
    name, request = fspath(path), LoadRequest(tracing or Tracing(), check=check)
    frontend, head = _recognized(name)
    if head is not None:
        begin("read")
    if frontend is None:
        raise _unknown(name, head or b"")
    if request.tracing.signature and not frontend.has_signatures:
        raise UsageError("TM6016", f"{name} has no signatures: signature applies to TFLite files")
    if request.tracing.state and frontend.has_graph and not frontend.has_state:
        raise UsageError("TM6016", "state applies to models that are traced, and to TFLite files")
    if frontend.has_graph and request.tracing._replace(signature="", state=()) != Tracing():
        raise UsageError(
            "TM6016",
            f"{name} has a graph already: it cannot be traced",
            notes=[("help", "omit the example inputs and other tracing options")],
        )
    loaded = load_with(frontend, name, request._replace(head=head or b""))
    if loaded.source is not None:
        from tmconvert.conversion.source_runtime import SourceRuntime

        loaded.module.original = SourceRuntime(frontend.source_runtime, loaded.source)
    return loaded.module


def _recognized(name: str) -> tuple[Frontend | None, bytes | None]:
    """Returns the frontend of a model, or None, and the first bytes of a file. Raises LoadError TM1001."""
    if not os.path.isfile(name):  # noqa: PTH113  (Path.is_file raises for a text that is too long)
        frontend = frontend_of_name(name)
        if frontend is not None:
            return frontend, None
    head = _head(name)
    return frontend_of_file(name, head), head


def _unknown(name: str, head: bytes) -> LoadError:
    known, help = _part_of_model(Path(name), head)
    return LoadError(
        "TM1002",
        "this is not a model file that tmconvert reads",
        source=Source(name),
        notes=[*([("it is", known)] if known else []), ("help", help or HELP)],
    )


def _part_of_model(path: Path, head: bytes) -> tuple[str, str]:
    """Returns what a part of a model is, and what to pass in its place; empty texts for other files."""
    if not head:
        return "empty", ""
    parts = (each.part_of_model(path, head) for each in known_frontends())
    other = "a ZIP archive" if head.startswith(b"PK\x03\x04") else ""
    return next((part for part in parts if part is not None), (other, ""))


def _suggestion_for(name: str) -> str:
    """Suggests what to pass in place of a path that is not a file."""
    try:
        if Path(name).is_dir():
            return f"pass a model in it, or convert all of them: tmconvert convert {name}"
        return next(filter(None, (each.suggestion_for(name) for each in known_frontends())), "")
    except (OSError, ValueError):  # such as a name that is too long
        return ""


def _head(name: str) -> bytes:
    from tmconvert.formats.mapped_file import open_regular

    try:
        with open_regular(name) as file:
            return file.read(HEAD_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        found = _suggestion_for(name)
        raise LoadError(
            "TM1001",
            f"cannot read the model file: {reason}",
            source=Source(name),
            notes=[("help", found)] if found else [],
        ) from error
