"""``tmconvert convert``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from tmconvert.cli.option_values import separated
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json, write_message, write_table


@click.command(
    "convert", cls=GroupedCommand, example="tmconvert convert models/ --to onnx --to tflite -o out --jobs 2"
)
@click.argument("models", metavar="[MODEL...]", nargs=-1, type=click.Path())
@declared_options("convert")
def command(
    models: tuple[str, ...],
    config: str | None,
    targets: tuple[str, ...],
    folder: str | None,
    jobs: int | None,
    cluster: str | None,
    again: bool,
    allow_code: bool,
    json: bool,
) -> None:
    """Convert many models to several targets, as tmconvert.toml describes it.

    A MODEL may be a path, a pattern such as 'models/*.onnx', a folder, or MODULE:FACTORY; given here, they
    replace those of the file, whose options hold for them, too. A conversion whose model, options and outputs
    are unchanged is not done again.
    """
    from tmconvert.cli.batch.configuration import FILE, Configuration, read_configuration, work_of
    from tmconvert.cli.batch.executors import executed, prepare
    from tmconvert.cli.batch.finished import Finished, folders_of

    if jobs is not None and jobs < 1:
        raise click.UsageError("--jobs must be at least 1")
    if jobs is not None and jobs > 1 and cluster is None:
        prepare()
    path = Path(config or FILE)
    if config is not None or path.exists():
        configuration = read_configuration(path)
    else:
        configuration = Configuration(path, ".", ("onnx",), {}, {}, ())
    configuration = configuration.with_requested(separated(targets), folder)
    if not allow_code:
        configuration.check_code()
    write_message(*(f"{path} runs {each}" for each in configuration.code()))
    work = work_of(configuration, models)
    for path in folders_of(work):
        path.mkdir(parents=True, exist_ok=True)
    with Finished(is_read=not again) as finished:
        split = [finished.unfinished(each) for each in work]
        outcomes = {(found.target, found.paths): found for _, done in split for found in done}
        left = [each for each, _ in split if each.conversions]
        for each, found in executed(left, jobs=jobs or 1, cluster=cluster):
            finished.add(each, found)
            outcomes[found.target, found.paths] = found
            write_message(f"{_result(found)}: {found.model} to {found.target}", *found.message.splitlines())
    ordered = [outcomes[one.target, one.paths] for each in work for one in each.conversions]
    if json:
        write_json({"conversions": [each.to_json() for each in ordered]})
    else:
        _write_summary(ordered)
    click.get_current_context().exit(max((each.status for each in ordered), default=0))


def _result(outcome: object) -> str:
    from tmconvert.cli.batch.work import Outcome

    assert isinstance(outcome, Outcome)
    if outcome.error is not None:
        return f"error {outcome.error['code']}"
    if outcome.is_unchanged:
        return "unchanged"
    verified = outcome.report is not None and outcome.report.get("verified")
    return "verified" if verified else "not verified"


def _shown(path: str) -> str:
    """Returns a path below the working folder without that folder."""
    return os.path.relpath(path) if Path(path).is_relative_to(Path.cwd()) else path


def _write_summary(outcomes: Iterable[object]) -> None:
    from tmconvert.cli.batch.work import Outcome
    from tmconvert.conversion.format_numbers import counted

    rows, count, failed = [], 0, 0
    for each in outcomes:
        assert isinstance(each, Outcome)
        error = (each.report or {}).get("max_error")
        rows.append(
            [
                each.model,
                each.target,
                _result(each),
                "" if error is None else f"{error:.1e}",
                "" if each.is_unchanged else f"{each.seconds:.1f} s",
                _shown(each.paths[0]) if each.status == 0 else "",
            ]
        )
        count, failed = count + 1, failed + (each.status != 0)
    write_table(["model", "target", "result", "max error", "time", "file"], rows)
    write(f"{counted(count, 'conversion')}, {failed} failed" if failed else counted(count, "conversion"))
