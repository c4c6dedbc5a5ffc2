"""What the three conversion commands share: options, the run, and what is said of the result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.calibration_options import chosen
from tmconvert.cli.io_options import boundary_arguments
from tmconvert.cli.messages import counting, logging_to_stderr, progress
from tmconvert.cli.pass_log import pass_lines
from tmconvert.cli.rendering import sys_stderr, write, write_json, write_message, write_table
from tmconvert.cli.tracing_options import tracing_arguments
from tmconvert.cli.wording import counted, quantity, size
from tmconvert.symbolics.dialects import DIALECTS
from tmconvert.targets.options import DEFAULT_OPSET, DEFAULT_TFLITE_RUNTIME

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report
    from tmconvert.passes.manager import PassOptions
    from tmconvert.verification.report import Verification


def run_conversion(
    convert: Callable[..., Report],
    model: str,
    *,
    as_json: bool,
    verbose: int,
    verify: bool,
    dump_after: str | None,
    dump_folder: str | None,
    stop_after: str | None,
    time_passes: bool,
    examples: tuple[str, ...],
    freeze_control_flow: bool,
    allow_code: bool,
    dynamic: tuple[str, ...],
    calibration: str | None,
    layers: str | None = None,
    report_data: str | None = None,
    **others: Any,
) -> None:
    """Runs ``convert`` and prints what came of it.

    ``layers`` is the file of a report on ``report_data``; ``others`` are settings of a calibration, and
    options of ``conversion/io_overrides.py``.
    """
    settings = chosen(others)
    edges = boundary_arguments(**others)
    edges |= tracing_arguments(examples, freeze_control_flow, allow_code, dynamic)
    options = _pass_options(dump_after, dump_folder, stop_after)
    with logging_to_stderr(verbose > 0), _heard(model, calibration, verbose) as counted:
        if counted is not None:
            settings["progress"] = counted
        data = {"calibration": calibration, "report_data": report_data}
        edges |= {name: given for name, given in data.items() if given is not None}
        if settings:
            edges["calibration_settings"] = settings
        report = convert(pass_options=options, **edges)
        if layers is not None and not report.stopped:
            report.write_layers(layers)
    if options.dump_after:
        where = options.dump_folder or options.beside(report.paths[0]).dump_folder
        write_message(f"wrote the graphs to {where}")
    if verbose:
        write_message(*pass_lines(report.passes, shows_all=verbose > 1))
    if time_passes:
        _write_times(report.seconds)
    write_message(*_remarks(report, verify))
    if as_json:
        write_json(report.to_json())
    elif not report.stopped:
        write(*_results(report))


@contextlib.contextmanager
def _heard(model: str, calibration: str | None, verbose: int) -> Iterator[Callable[[int, int], None] | None]:
    """What a terminal hears meanwhile; what counts samples, where there are some to count."""
    if calibration is None:
        with progress(f"converting {model}", enabled=not verbose):
            yield None
        return
    with counting(f"calibrating {model}", f"converting {model}") as counted:
        yield counted


def _pass_options(dump_after: str | None, dump_folder: str | None, stop_after: str | None) -> PassOptions:
    if dump_folder is not None and dump_after is None:
        raise click.UsageError("--dump-folder goes with --dump-after")
    from tmconvert.passes.manager import PassOptions

    names = tuple(name.strip() for name in (dump_after or "").split(",") if name.strip())
    return PassOptions(names, dump_folder, stop_after)


def _write_times(seconds: list[tuple[str, float]]) -> None:
    total = sum(time for _, time in seconds)
    rows = [[f"{time * 1000:.1f}", name] for name, time in [*seconds, ("all passes", total)]]
    width = max(len(row[0]) for row in rows)
    write_table(
        ["ms".rjust(width), "pass"], [[time.rjust(width), name] for time, name in rows], to=sys_stderr()
    )


def _remarks(report: Report, verify: bool) -> Iterator[str]:
    if report.stopped:
        yield f"stopped after {report.seconds[-1][0]}: no model was written"
        return
    if report.verification is not None:
        yield verified(report.verification)
    elif not verify:
        yield "not verified: --no-verify was given"
    yield from report.notes


def verified(verification: Verification) -> str:
    """``verified in ONNX Runtime 1.31.1: max error 3.1e-07 (limit 1e-04)``."""
    if not verification.tells:
        return f"not verified in {verification.runtime}: no output tells anything of the inputs tried"
    left_out = f"; not compared: {', '.join(verification.vacuous)}" if verification.vacuous else ""
    worst = max(verification.comparisons, key=lambda each: (each.max_error, each.tolerance), default=None)
    if worst is None or worst.max_error == 0:
        return f"verified in {verification.runtime}: equal outputs{left_out}"
    error = f"max error {worst.max_error:.1e} (limit {worst.tolerance:.0e})"
    return f"verified in {verification.runtime}: {error}{left_out}"


def _results(report: Report) -> Iterator[str]:
    """One line for each written file."""
    first, *others = report.paths
    unit = "layer" if report.target == "caffe" else "operator"
    about = [
        version_text(report.target, report.version),
        counted(report.operators, unit),
        quantity(report.parameters, "parameter"),
    ]
    yield f"{first}  ({', '.join(about)})"
    for path in others:
        with contextlib.suppress(OSError):
            yield f"{path}  (weights, {size(path.stat().st_size)})"


def version_text(target: str, version: object) -> str:
    """``ONNX opset 17``, ``TFLite 2.23`` or ``Caffe, dialect bvlc``."""
    return {"onnx": "ONNX opset {}", "tflite": "TFLite {}", "caffe": "Caffe, dialect {}"}[target].format(
        version
    )


_VERSION_OPTIONS = {"onnx": "opset", "tflite": "runtime", "caffe": "dialect"}
_DEFAULT_VERSIONS: dict[str, int | str] = {
    "onnx": DEFAULT_OPSET,
    "tflite": f"2.{DEFAULT_TFLITE_RUNTIME}",
    "caffe": DIALECTS[0],
}


def version_of(target: str, **versions: int | str | None) -> int | str:
    """The version as reports name it, of ``opset``, ``runtime`` and ``dialect``.

    Raises UsageError where one of another target was given.
    """
    own = versions.pop(_VERSION_OPTIONS[target], None)
    for other, option in _VERSION_OPTIONS.items():
        if versions.get(option) is not None:
            raise click.UsageError(f"--{option} goes with --target {other}, not {target}")
    return _DEFAULT_VERSIONS[target] if own is None else own
