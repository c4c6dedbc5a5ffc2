"""Converts one model to several targets, and describes the results."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from tmconvert import signals
from tmconvert.cli.failures import as_tmconvert_error
from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr
from tmconvert.conversion.options.tracing import TRACING
from tmconvert.lock.opened_files import OpenedFiles
from tmconvert.signals import Ended, ending_by_signals
from tmconvert.symbolics.target_names import TARGETS

Traces = dict[tuple[Any, ...], Any]


class Conversion(NamedTuple):
    """A conversion as the arguments of its command: ``tmconvert TARGET MODEL *paths *flags``."""

    target: str
    paths: tuple[str, ...]
    flags: tuple[str, ...] = ()

    def command(self, model: str) -> list[str]:
        """Returns the command line.

        >>> Conversion("onnx", ("a.onnx",), ("--opset", "18")).command("a.tm")
        ['tmconvert', 'onnx', 'a.tm', 'a.onnx', '--opset', '18']
        """
        return ["tmconvert", self.target, model, *self.paths, *self.flags]


class ModelWork(NamedTuple):
    """A model and its conversions; relative paths are below ``folder``."""

    model: str
    conversions: tuple[Conversion, ...]
    folder: str


class Outcome(NamedTuple):
    """The result of a conversion: its exit status, the report as JSON, or the error as JSON and text."""

    model: str
    target: str
    paths: tuple[str, ...]
    status: int
    seconds: float
    report: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    message: str = ""
    is_unchanged: bool = False  # it was finished before
    sources: tuple[str, ...] = ()  # the files that were opened

    def to_json(self) -> dict[str, Any]:
        """Returns the entry in the document of ``tmconvert convert --json``."""
        entry = {
            name: value
            for name, value in self._asdict().items()
            if name not in ("message", "report", "sources")
        }
        return {**entry, "paths": list(self.paths), **(self.report or {})}


def parsed(conversion: Conversion, model: str) -> click.Context:
    """Parses the arguments of a conversion as its command does. Raises click.UsageError."""
    if conversion.target in TARGETS:
        command = importlib.import_module(f"tmconvert.cli.commands.{conversion.target}").command
    else:
        from tmconvert.cli.conversion import command_of_package

        command = command_of_package(conversion.target)
    from tmconvert.cli.options import plugin_option

    if plugin_option not in command.params:
        command.params.append(plugin_option)
    arguments = [model, *conversion.paths, *conversion.flags]
    from tmconvert.cli import main

    made: click.Context = command.make_context(
        f"tmconvert {conversion.target}", arguments, **main.context_settings
    )
    return made


def outcomes_of(work: ModelWork) -> Iterator[Outcome]:
    """Converts the model to each of its targets; a PyTorch model is traced once for equal tracing options."""
    traces: Traces = {}
    opened = OpenedFiles()  # of all targets, since they share what is traced
    for conversion in work.conversions:
        start = time.perf_counter()
        try:
            with opened, logging_to_stderr(False), parsed(conversion, work.model) as context:
                report = _converted(conversion, work.model, context.params, traces)
            sources = opened.paths(report["paths"])
            found = Outcome(work.model, conversion.target, conversion.paths, 0, 0.0, report, sources=sources)
        except (KeyboardInterrupt, Ended):
            raise
        except (Exception, SystemExit) as error:
            known = as_tmconvert_error(error)
            found = Outcome(
                *(work.model, conversion.target, conversion.paths, known.exit_status, 0.0),
                error=known.to_json(),
                message=known.render(),
            )
        yield found._replace(seconds=time.perf_counter() - start)


def outcomes_in_process(work: ModelWork) -> list[Outcome]:
    """Does ``outcomes_of`` in a worker process, in the folder of the work."""
    os.chdir(work.folder)
    signals.is_worker = True
    with ending_by_signals():
        return list(outcomes_of(work))


def _converted(
    conversion: Conversion, model: str, given: Mapping[str, Any], traces: Traces
) -> dict[str, Any]:
    from tmconvert import api
    from tmconvert.conversion.load import is_traced

    keywords, source = keywords_of(conversion.target, given), model
    if not is_traced(model):
        names = [*(option.name for option in TRACING), "dynamic_shapes", "fix"]
        key = tuple(given.get(name) or None for name in names)  # an option may be absent, or empty
        tracing = {name: keywords.pop(name) for name in names if name in keywords}
        if key not in traces:
            traces[key] = api.load(model, **tracing)
        source = traces[key]
    leading = () if conversion.target in TARGETS else (conversion.target,)
    convert = getattr(api, f"to_{conversion.target}" if conversion.target in TARGETS else "to_target")
    document: dict[str, Any] = convert(source, *leading, *map(Path, conversion.paths), **keywords).to_json()
    return document
