"""Writes and reads files of quantization parameters, and validates them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tmconvert.errors import UsageError
from tmconvert.errors.source import Source
from tmconvert.formats.mapped_file import open_regular
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.output.atomic import StagedOutput, staged_outputs
from tmconvert.qparams.formats import FORMATS, format_called
from tmconvert.qparams.formats.format import CannotCarry, Format, Unreadable, repeated
from tmconvert.qparams.formats.json_text import parsed
from tmconvert.qparams.records import ACTIVATION, BIAS, UNKNOWN, WEIGHT, Record, records_of
from tmconvert.symbolics.target_names import words_of
from tmconvert.targets.options import Parameters

MOST_BYTES = (
    32 << 20
)  # above all that a model's tensors need; what a hostile file may cost is a multiple of it
MOST_LINES = 500_000  # of what is not JSON, where a line may be a tensor
_PLURALS = {ACTIVATION: "activations", WEIGHT: "weights", BIAS: "biases", UNKNOWN: "tensors"}
_SINGULARS = {UNKNOWN: "tensor"}


@contextlib.contextmanager
def staged_parameters(
    request: Parameters, graph: TargetGraph, notes: list[str]
) -> Iterator[tuple[StagedOutput, ...]]:
    """Stages the parameter file of ``graph`` for commit; returns none without a path.

    Raises UsageError TM6040 for a model without quantization parameters, TM6041 for parameters that the
    format cannot store.
    """
    records = records_of(graph)
    if not records:
        raise UsageError(
            "TM6040",
            "the model has no quantization: there are no parameters to write",
            notes=[("help", "calibrate the model with --calibration DATA, or omit the option")],
        )
    if request.path is None:
        yield ()
        return
    data, note = parameters_of(records, graph.target, request)
    notes += note
    with staged_outputs(request.path) as outputs:
        outputs[0].file.write(data)
        outputs[0].finish()
        yield outputs


def parameters_of(records: Sequence[Record], target: str, request: Parameters) -> tuple[bytes, list[str]]:
    """Returns the file's content, and a note for the report."""
    format = format_called(request.format)
    if target not in format.targets:
        raise UsageError(
            "TM6041",
            f"{format.title}: this format does not support {words_of(target).title} models",
            notes=[("help", f"it supports {' and '.join(words_of(each).title for each in format.targets)}")],
        )
    if request.bakes_weights and format.leaves_out_baked:
        records = [record for record in records if record.role == ACTIVATION]
    placed, left = placed_in(format, records, partial=True)
    note = f"quantization parameters of {counted(placed)} in {request.path} ({format.title})"
    if left:
        names = ", ".join(record.name for record in left)
        note += (f"; {counted(left)} left out, which the format cannot store") + (
            f": {names}" if len(left) <= 3 else ""
        )
    return encoded(placed, format), [note]


def placed_in(format: Format, records: Sequence[Record], partial: bool) -> tuple[list[Record], list[Record]]:
    """Returns the records that ``format`` can store, and those that are omitted.

    Raises UsageError TM6041 for omitted records without ``partial``.
    """
    placed = format.placed(records)
    kept = {record.name for record in placed}
    left = [record for record in records if record.name not in kept]
    if left and not partial:
        more = f" (and {len(left) - 1} more)" if len(left) > 1 else ""
        raise UsageError(
            "TM6041",
            f"{format.title}: this format cannot store the {left[0].role} {left[0].name!r}{more}",
            notes=[("help", "--partial leaves out what cannot be stored, and reports how much that is")],
        )
    return placed, left


def counted(records: Sequence[Record]) -> str:
    """Returns ``13 activations, 5 weights and 4 biases``."""
    counts = {role: sum(record.role == role for record in records) for role in _PLURALS}
    parts = [
        f"{count} {_PLURALS[role] if count > 1 else _SINGULARS.get(role, role)}"
        for role, count in counts.items()
        if count
    ]
    return ", ".join(parts[:-1]) + f" and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def encoded(records: Sequence[Record], format: Format) -> bytes:
    """Encodes the records in the format. Raises UsageError TM6041, which names the tensor."""
    found = [(record, problem) for record in records if (problem := format.problem(record))]
    try:
        if found:
            raise CannotCarry(*found[0])
        return format.write(records).encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(
            "TM6041", (f"{format.title}: names that are not valid Unicode cannot be written")
        ) from None
    except CannotCarry as error:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UsageError(
            "TM6041",
            f"{format.title}: this format cannot carry {error.record.name!r}{more}: {error.reason}",
            notes=[
                (
                    "help",
                    ("choose another format: docs/quantization-parameters.md lists what each can express"),
                )
            ],
        ) from error


def read_parameters(path: Path, format_name: str | None = None) -> tuple[list[Record], Format]:
    """Reads the records of a file, and its format, which is detected from the content unless it is named.

    Nothing of the file is executed. Raises UsageError TM6042 for a file that cannot be read, is damaged or
    above 32 MiB.
    """
    text = _text(path)
    format = _recognised(path, text) if format_name is None else format_called(format_name)
    with _telling(path):
        records = format.read(text)
        for record in records:
            _check(record)
        twice = repeated(record.name for record in records)
        if twice is not None:
            raise Unreadable(f"{twice!r} is defined twice")
        if not records:
            raise Unreadable("it has no tensors")
    return records, format


@contextlib.contextmanager
def _telling(path: Path) -> Iterator[None]:
    try:
        yield
    except Unreadable as error:
        raise _unusable(path, str(error)) from error


def _check(record: Record) -> None:
    scales, zeros = record.scales, record.zero_points
    if not scales or len(scales) != len(zeros):
        raise Unreadable(f"{record.name!r} has {len(scales)} scales and {len(zeros)} zero points")
    if record.quant_min > record.quant_max or (record.dtype and record.quant_min == record.quant_max):
        raise Unreadable(
            f"the integer range of {record.name!r} is not valid: {record.quant_min} to {record.quant_max}"
        )
    bad = next((scale for scale in scales if not 0 <= scale < float("inf")), None)
    if bad is not None:
        raise Unreadable(f"the scale of {record.name!r} is {bad!r}")
    outside = [zero for zero in zeros if not record.quant_min <= zero <= record.quant_max]
    if record.dtype and outside:
        integers = f"{record.quant_min} to {record.quant_max}"
        raise Unreadable(f"the zero point {outside[0]} of {record.name!r} is not within {integers}")


def _text(path: Path) -> str:
    try:
        with open_regular(path) as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    if len(data) > MOST_BYTES:
        raise _unusable(path, "it has more than 32 MiB")
    if not data.lstrip().startswith(b"{") and data.count(b"\n") > MOST_LINES:
        raise _unusable(path, f"it has more than {MOST_LINES} lines")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unusable(path, f"byte {error.start} is not valid UTF-8") from error


def _recognised(path: Path, text: str) -> Format:
    document = None
    if text.lstrip().startswith("{"):
        with _telling(path):
            document = parsed(text)
    given = document if isinstance(document, dict) else {}
    found = next((format for format in FORMATS.values() if format.recognises(text, given)), None)
    if found is None:
        raise _unusable(path, f"its content is not in any of the formats {', '.join(FORMATS)}")
    return found


def _unusable(path: Path, reason: str) -> UsageError:
    return UsageError(
        "TM6042",
        f"cannot read the quantization parameters: {reason}",
        source=Source(str(path)),
        notes=[
            (
                "help",
                (
                    "pass a file in one of the formats of docs/quantization-parameters.md, or name its "
                    "format with --from"
                ),
            )
        ],
    )
