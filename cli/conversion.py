"""The conversion commands: one per target, their run, and their output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.option_values import with_signatures
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.pass_log import pass_lines
from tmconvert.cli.rendering import sys_stderr, write, write_json, write_message, write_table
from tmconvert.conversion.options.conversion import VERSIONS
from tmconvert.symbolics.target_names import TARGETS

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report


def conversion_command(
    target: str, outputs: Mapping[str, str], optional: Mapping[str, str], text: str, example: str
) -> click.Command:
    """Returns the command that converts MODEL to a target.

    ``outputs`` are the arguments for paths of files: their names, and what help texts call them; ``optional``
    ones may be omitted.
    """

    @click.command(target, cls=GroupedCommand, help=text, example=example, is_long=True)
    @model_argument
    @declared_options(target)
    def command(model: str, **given: Any) -> None:
        paths = [given.pop(name) for name in (*outputs, *optional)]
        run_conversion(target, model, [path for path in paths if path is not None], given)

    for name, metavar in {**outputs, **optional}.items():
        required = name not in optional
        argument = click.Argument([name], metavar=metavar, type=click.Path(), required=required)
        command.params.insert([*outputs, *optional].index(name) + 1, argument)
    return command


def command_of_package(target: str) -> click.Command:
    """Returns the command of a target that an installed package adds."""
    from tmconvert.targets.registry import target_named

    known = target_named(target)
    metavars = [f"OUT{suffix}" for suffix in known.suffixes]
    names = ["out", *(f"out{number}" for number in range(2, len(metavars) + 1))]
    files = dict(zip(names, metavars, strict=True))
    first = {"out": files.pop("out")}
    text = f"Convert MODEL to {known.title}."
    return conversion_command(
        target, first, files, text, f"tmconvert {target} model.tm model{known.suffixes[0]}"
    )


def run_conversion(
    target: str, model: str, paths: Sequence[str], given: Mapping[str, Any], *, function: str = ""
) -> None:
    """Converts ``model`` with the options ``given``, by default by ``to_TARGET``, and prints the report."""
    keywords = keywords_of(target, given)
    source: str | dict[str, str] = model
    if isinstance(keywords.get("signature"), dict):
        source = with_signatures(model, keywords.pop("signature"))
    verify = keywords.setdefault("verify", True)
    check_report(given, verify=verify)
    if verify and target in TARGETS:
        from tmconvert.verification.processes import worker

        worker.start_process()
    with (
        logging_to_stderr(given["verbose"] > 0),
        progress(f"converting {model}", enabled=not given["verbose"]),
    ):
        from tmconvert import api_convert as api

        own = getattr(api, function or f"to_{target}", None) if target in TARGETS else None
        convert, leading = (api.to_target, (target,)) if own is None else (own, ())
        report: Report = convert(source, *leading, *paths, **keywords)
        if given.get("report") is not None and not report.stopped:
            report.write_layers(given["report"])
            write_message(f"wrote the quantization report to {given['report']}")
    if given.get("firmware") and not report.stopped:
        from tmconvert.inspection.firmware import npu_of, write_firmware

        npu = npu_of(given.get("profile") or "")
        write_message(*write_firmware(Path(report.paths[0]), Path(given["firmware"]), npu))
    options = keywords.get("pass_options")
    if options is not None and options.dump_after:
        folder = options.dump_folder or options.next_to(report.paths[0]).dump_folder
        write_message(f"wrote the graphs to {folder}")
    if given["verbose"]:
        write_message(*pass_lines(report.passes, shows_all=given["verbose"] > 1))
    if given["time_passes"]:
        _write_times(report.seconds)
    from tmconvert.conversion.report_text import remarks, results

    write_message(*remarks(report, "" if verify else "--no-verify was given"))
    usage = report.usage(given["usage"]) if given["usage"] else ""
    if given["usage"] and not usage and not report.stopped:
        write_message(f"there is no program for {target} files in {given['usage']}")
    if given["json"]:
        write_json({**report.to_json(), **({"usage": usage} if usage else {})})
    elif not report.stopped:
        write(*results(report), *(["", *usage.splitlines()] if usage else []))


def check_report(given: Mapping[str, Any], *, verify: bool) -> None:
    """Raises UsageError before a long conversion, for a report that could not be written."""
    report, data = given.get("report"), given.get("report_data")
    if report is None and data is None:
        return
    if report is None:
        if given.get("min_sqnr") is None:
            raise click.UsageError("--report-data requires --report or --min-sqnr")
        return
    if not (given["quantized"] and verify):
        raise click.UsageError("--report requires --quantized and verification")
    from tmconvert.verification.quantization_report.report_file import check_report_file

    check_report_file(Path(report))


def _write_times(seconds: list[tuple[str, float]]) -> None:
    total = sum(time for _, time in seconds)
    rows = [[f"{time * 1000:.1f}", name] for name, time in [*seconds, ("all passes", total)]]
    width = max(len(row[0]) for row in rows)
    write_table(
        ["ms".rjust(width), "pass"], [[time.rjust(width), name] for time, name in rows], to=sys_stderr()
    )


def version_of(target: str, given: Mapping[str, Any]) -> int | str:
    """Returns the requested version as text. Raises UsageError for the version option of another target."""
    own = None
    for option in VERSIONS:
        value = given.get(option.name)
        if option.applies_to(target):
            own = value
        elif value is not None:
            raise click.UsageError(f"{option.spelling} applies to --target {option.targets[0]}, not {target}")
    from tmconvert.targets.registry import target_named

    known = target_named(target)
    return known.version_name(known.version_number(None)) if own is None else own
