"""``tmconvert check``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.conversion import version_of
from tmconvert.cli.keywords import tracing_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import Line, write, write_json
from tmconvert.cli.violations import violation_lines
from tmconvert.conversion.format_numbers import counted
from tmconvert.conversion.options.conversion import VERSIONS
from tmconvert.targets.options import AUTO

if TYPE_CHECKING:
    from tmconvert.passes.unsupported import UnsupportedGroup

_VERSIONS = tuple(option.name for option in VERSIONS)


@click.command("check", cls=GroupedCommand, example="tmconvert check model.tm --target onnx --opset 13")
@model_argument
@declared_options("check")
@click.pass_context
def command(
    ctx: click.Context, /, model: str, target: str | None, profile: str | None, json: bool, **given: Any
) -> None:
    """List every op of MODEL that would stop a conversion.

    For Caffe the list also has the limits of the dialect that the net would exceed, by rule. The exit status
    is 1 unless the list is empty. With --profile it has the operators that the device would leave to the
    processor, compute wrongly, or not load.
    """
    target = target or _target_of(profile)
    version = version_of(target, given)
    others = {name: value for name, value in given.items() if name not in _VERSIONS}
    tracing, edges = tracing_of("check", others)
    from tmconvert import api
    from tmconvert.conversion.report_text import version_text

    with logging_to_stderr(False), progress(f"checking {model}"):
        requested = None if profile and not _has_version(given) else version
        found = api.findings(api.load(model, **tracing), target, requested, profile=profile, **edges)
    if version == AUTO:
        version = found.version
    groups, broken = found.unsupported, found.violations
    if json:
        write_json(
            {
                "model": model,
                "target": target,
                "version": version,
                "ok": not groups and not broken,
                "unsupported": [group.to_json() for group in groups],
                "sufficient_opset": found.sufficient_version,
                "missing_kernels": list(found.missing_kernels),
                "violations": [violation.to_json() for violation in broken],
            }
        )
    elif groups:
        write(*_lines(groups, version_text(target, version)))
        if found.sufficient_version is not None:
            write("", f"opset {found.sufficient_version} and later can express all of them")
    elif broken:
        write(*violation_lines(broken, f"profile {profile}" if profile else f"dialect {version}"))
    else:
        write([("ok", "bold green"), (": every op can be converted", "")])
        write(*([("note", "bold yellow"), (f": {line}", "")] for line in found.missing_kernels))
    ctx.exit(1 if groups or broken else 0)


def _target_of(profile: str | None) -> str:
    """Returns the target of a profile: its first. Raises UsageError without one."""
    if profile is None:
        raise click.UsageError("missing option '--target', or --profile. Choose from: onnx, tflite, caffe")
    from tmconvert.profiles.registry import profile_named

    return profile_named(profile).targets[0]


def _has_version(given: Mapping[str, Any]) -> bool:
    return any(given.get(name) is not None for name in _VERSIONS)


def _lines(groups: Sequence[UnsupportedGroup], target: str) -> Iterator[Line]:
    calls = sum(group.calls for group in groups)
    yield f"{counted(len(groups), 'op')} in {counted(calls, 'call')} cannot be converted to {target}"
    for group in groups:
        yield ""
        yield [(group.op, "bold red"), (f"  ({counted(group.calls, 'call')})", "")]
        yield _field("reason", group.reason)
        yield _field("in", ", ".join(scope or "the top module" for scope in group.scopes))
        if group.first.source is not None:
            yield _field("first", str(group.first.source))
        if group.help:
            yield _field("help", group.help)


def _field(name: str, text: str) -> Line:
    return [(f"  {name + ':':<8}", "blue"), (text, "")]
