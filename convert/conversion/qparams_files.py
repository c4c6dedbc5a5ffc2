"""Implements ``tmconvert params``: reads, converts and checks files of quantization parameters."""

from __future__ import annotations

from pathlib import Path

from tmconvert.conversion.load import load_model
from tmconvert.conversion.lowering import lowered
from tmconvert.errors import UsageError
from tmconvert.frontends.torch.entry import is_factory
from tmconvert.ir import TracedModule
from tmconvert.output.atomic import atomic_output
from tmconvert.qparams.checks import Finding, differences, findings_of, with_model
from tmconvert.qparams.file import counted, encoded, placed_in, read_parameters
from tmconvert.qparams.formats import DEFAULT, format_called
from tmconvert.qparams.records import Record, records_of
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import Parameters
from tmconvert.targets.recognize import target_of_file
from tmconvert.targets.registry import target_named
from tmconvert.targets.written_model import written_model

_SOURCES = (b"\x80", b"PK\x03\x04")  # pickles, and the archives of containers and of PyTorch


def convert_parameters(
    path: Path, out: Path, to: str, given: str | None = None, model: Path | None = None, partial: bool = False
) -> str:
    """Writes the records of a file in the format called ``to``; returns notes.

    ``model`` is a written model, from which roles, shapes and layers are taken that the file does not state.
    Raises UsageError TM6041 for a tensor whose parameters the format cannot store; with ``partial`` it is
    omitted.
    """
    format = format_called(to)
    records = read_parameters(path, given)[0]
    if model is not None:
        records = with_model(records, written_model(model))
    placed, left = placed_in(format, records, partial)
    data = encoded(placed, format)
    with atomic_output(out) as file:
        file.write(data)
    text = f"{out}  ({format.title}, {counted(placed)})"
    return f"{text}; left out: {counted(left)}" if left else text


def check_parameters(
    path: Path, model: str, given: str | None = None, target: str | None = None
) -> tuple[list[Record], list[Finding]]:
    """Returns the records of a file, and findings from a comparison with a model.

    ``model`` is a written file, or a source model, which is converted for ``target`` (ONNX by default).
    """
    records, format = read_parameters(path, given)
    if is_source(model):
        expected = expected_records(load_model(model), target or "onnx")
        if not expected:
            raise UsageError("TM6040", "the model has no quantization: there is nothing to check")
        as_written = encoded(format.placed(expected), format).decode()
        return records, differences(records, format.read(as_written))
    if target is not None:
        raise UsageError("TM6002", f"target is {target!r}, but applies only to a model to convert")
    return records, findings_of(records, written_model(Path(model)), by_layer=format.by_layer)


def is_source(model: str) -> bool:
    """Whether a path is that of a source model, not of a written file."""
    if is_factory(model):
        return True
    try:
        with Path(model).open("rb") as file:
            head = file.read(4)
    except OSError:
        target_of_file(Path(model))  # says why it cannot be read
        return False
    return head.startswith(_SOURCES)


def expected_records(module: TracedModule, target: str) -> list[Record]:
    """Returns the records that a conversion of ``module`` would write."""
    parameters = Parameters(Path("parameters"), DEFAULT)
    options = target_named(target).default_options()._replace(parameters=parameters)
    return records_of(lowered(module, options, catalogue()).graph)
