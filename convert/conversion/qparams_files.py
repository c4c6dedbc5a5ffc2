"""Implements ``tmconvert params``: reads, converts and checks files of quantization parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from tmconvert.conversion.format_numbers import counted as counted_tensors
from tmconvert.conversion.load import load_model
from tmconvert.conversion.lowering import lowered
from tmconvert.errors import UsageError
from tmconvert.errors.source import printable
from tmconvert.formats.mapped_file import open_regular
from tmconvert.frontends.torch.entry import is_factory
from tmconvert.ir import TracedModule
from tmconvert.output.atomic import atomic_output
from tmconvert.qparams.checks import Finding, differences, findings_of, with_model
from tmconvert.qparams.file import counted, encoded, placed_in, read_parameters
from tmconvert.qparams.formats import DEFAULT, format_called
from tmconvert.qparams.records import UNKNOWN, Record, records_of
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import Parameters
from tmconvert.targets.recognize import target_of_file
from tmconvert.targets.registry import target_named
from tmconvert.targets.written_model import written_model


@dataclass(frozen=True)
class ParameterFile:
    """A file of quantization parameters.

    ``records`` has one record for each tensor; ``format_title`` names the format.

    ``str`` of it is a table.

    Example:
        >>> scales = tmconvert.params("scales.json")  # doctest: +SKIP
        >>> scales.records[0].scales  # doctest: +SKIP
        (0.0184,)
    """

    path: Path
    format: str
    format_title: str
    records: tuple[Record, ...]

    @classmethod
    def of(cls, path: Path, format: str | None = None) -> ParameterFile:
        """Reads a file. Raises UsageError TM6042 for one that cannot be read."""
        records, known = read_parameters(path, format)
        return cls(path, known.name, known.title, tuple(records))

    def convert(
        self,
        path: str | PathLike[str],
        to: str,
        *,
        model: str | PathLike[str] | None = None,
        partial: bool = False,
    ) -> str:
        """Writes the parameters in another format.

        Args:
            path: The file to write.
            to: The name of the format; `tmconvert params --help` lists all.
            model: A written model, from which roles, shapes and layers are taken that the file does not
                state.
            partial: Omit tensors whose parameters the format cannot store, instead of failing.

        Returns:
            The lines that the command prints.

        Raises:
            UsageError: TM6041 for a tensor whose parameters the format cannot store.
            WriteError: The file cannot be written.

        Example:
            >>> tmconvert.params("scales.json").convert("net.table", "ncnn")  # doctest: +SKIP
        """
        written = None if model is None else Path(model)
        return convert_parameters(self.path, Path(path), to, self.format, written, partial)

    def check(self, model: str | PathLike[str], target: str | None = None) -> list[Finding]:
        """Compares the file with a model.

        Args:
            model: A written file, or a source model whose quantized tensors and scales are known.
            target: The target that a source model is converted for; None is "onnx".

        Returns:
            Errors (``is_wrong``) and hints; an empty list where the file fits.

        Raises:
            LoadError: The model cannot be read.
            UsageError: TM6040 for a model without quantization.

        Example:
            >>> tmconvert.params("scales.json").check("net.onnx")  # doctest: +SKIP
            []
        """
        return check_parameters(self.path, fspath(model), self.format, target)[1]

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Returns the cells of the table, the header first."""
        yield ("tensor", "role", "type", "scale", "zero point", "range")
        yield from map(_row, self.records)

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON document of ``tmconvert params show --json``."""
        entries = [record.to_json() for record in self.records]
        return {"file": str(self.path), "format": self.format, "tensors": entries}

    def __str__(self) -> str:
        header, *rows = self.rows()
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in (header, *rows)]
        return "\n".join(map(printable, [self.heading(), *lines]))

    def heading(self) -> str:
        """Returns the line above the table."""
        return f"{self.path}: {self.format_title}, {counted_tensors(len(self.records), 'tensor')}"


def _row(record: Record) -> tuple[str, ...]:
    integers = span = "?"
    if record.dtype:
        integers = record.dtype
        span = f"{min(record.minima):.6g} to {max(record.maxima):.6g}"
    return (
        record.name,
        "?" if record.role == UNKNOWN else record.role,
        integers,
        _several([f"{scale:.6g}" for scale in record.scales], record.axis),
        _several([str(zero) for zero in record.zero_points], None),
        span,
    )


def _several(texts: list[str], axis: int | None) -> str:
    text = texts[0] if len(set(texts)) == 1 else f"{texts[0]} ... {texts[-1]}"
    along = "" if axis is None else f" along {axis}"
    is_one = len(texts) == 1 or (len(set(texts)) == 1 and axis is None)
    return text if is_one else f"{text} ({len(texts)}{along})"


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
        with open_regular(model) as file:
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
