"""``tmconvert verify``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.keywords import tracing_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import write, write_json
from tmconvert.errors import UsageError
from tmconvert.frontends.shared.array_files import UNREADABLE

if TYPE_CHECKING:
    import numpy as np

    from tmconvert.ir import TracedModule


@click.command("verify", cls=GroupedCommand, example="tmconvert verify model.tm model.onnx")
@model_argument
@click.argument("out", metavar="OUT", type=click.Path())
@declared_options("verify")
def command(model: str, out: str, json: bool, **given: Any) -> None:
    """Compare the written file OUT with its source MODEL.

    OUT is run in the runtime for its format; for Caffe it is the prototxt. The exit status is 1
    when OUT computes something else than MODEL.
    """
    tracing, keywords = tracing_of("verify", given)
    inputs = keywords.pop("inputs", None)
    from tmconvert import api

    with logging_to_stderr(False), progress(f"verifying {out}"):
        module = api.load(model, **tracing)
        arrays = None if inputs is None else read_inputs(inputs, *_input_names(module, out, keywords))
        verification = api.verify(module, out, arrays, **keywords)
    if json:
        write_json({"model": model, "file": out, "ok": True, **verification.to_json()})
    else:
        from tmconvert.conversion.report_text import verified

        write([("ok", "bold green"), (f": {out} {verified(verification)}", "")])


def _input_names(module: TracedModule, out: str, keywords: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Returns the names of the inputs in the model, and in the file OUT."""
    from tmconvert.conversion.io_overrides import names_of_file
    from tmconvert.targets.recognize import target_of_file

    whole = [] if module.graph is None else [node.name for node in module.graph.inputs[1:]]
    named = keywords.get("input_nodes") or whole
    path = Path(out)
    rename = keywords.get("rename") or names_of_file(target_of_file(path).stored_options(path)).rename
    return named, [rename.get(name, name) for name in named]


def read_inputs(path: str, names: list[str], renamed: list[str]) -> list[np.ndarray]:
    """Reads the arrays of an npz for inputs of these names, or of those of the file, in that order.

    Raises UsageError TM6011.
    """
    import numpy as np

    with _faults(path), Path(path).open("rb") as file:
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise _unusable(path, "it is one array (.npy)")
        with archive:
            numbered = [f"in{index}" for index in range(len(names))]
            choices = (each for each in (names, renamed) if set(each) & set(archive.files))
            keys = next(choices, numbered)
            missing = [
                name if key == name else f"{name} ({key})"
                for name, key in zip(names, keys, strict=True)
                if key not in archive.files
            ]
            if missing:
                has = ", ".join(archive.files) or "nothing"
                raise _unusable(path, f"no array for the input {', '.join(missing)}; it has {has}")
            return [archive[key] for key in keys]


@contextlib.contextmanager
def _faults(path: str) -> Iterator[None]:
    """Converts errors of NumPy and zipfile for a missing or malformed file to UsageError."""
    try:
        yield
    except UNREADABLE as error:
        reason = getattr(error, "strerror", None)
        if reason is None and "allow_pickle" in str(error):
            reason = "it holds Python objects, which are never loaded, or is not an .npz file"
        raise _unusable(path, reason or str(error) or type(error).__name__) from error


def _unusable(path: str, reason: str) -> UsageError:
    return UsageError(
        "TM6011",
        f"cannot use the inputs in {path}: {reason}",
        notes=[
            ("help", "pass an .npz file of numpy.savez, with arrays named as the inputs, or in0, in1, ...")
        ],
    )
