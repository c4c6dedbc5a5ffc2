"""``tmconvert evaluate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json

if TYPE_CHECKING:
    from tmconvert.inspection.evaluation import Evaluation
    from tmconvert.inspection.score import Scores

_DIFFERENCES = ("min_sqnr", "min_agreement")
_TASKS = ("tokenizer", "window", "sampling_rate", "required_score")


@click.command(
    "evaluate",
    cls=GroupedCommand,
    example="tmconvert evaluate model.onnx int8.tflite --data images/ --std 1 --min-agreement 0.98",
)
@click.argument("files", metavar="A [B]...", nargs=-1, required=True, type=click.Path())
@declared_options("evaluate")
@click.pass_context
def command(ctx: click.Context, /, files: tuple[str, ...], json: bool, **given: Any) -> None:
    """Measure how far two models or written files differ on the samples of a folder.

    A and B are source models, ONNX or TFLite files or prototxts, in float or in integers. For each output:
    signal-to-noise ratio, largest difference, cosine similarity, and for scores of classes how often the best
    one is the same; then the worst samples. The exit status is 1 when --min-sqnr or --min-agreement is not
    reached.

    With --task any number of files is scored on labelled data: float, int8 and int4 side by side. A folder
    of `tmconvert package` stands for its model files.
    """
    keywords = keywords_of("evaluate", given)
    data = keywords.pop("data")
    from tmconvert import api

    is_task = "task" in keywords
    wrong = [name for name in keywords if name in (_DIFFERENCES if is_task else _TASKS)]
    if wrong:
        how = "without" if is_task else "with"
        raise click.UsageError(f"--{wrong[0].replace('_', '-')} applies {how} --task")
    if not is_task and len(files) != 2:
        raise click.UsageError(f"two models are compared, got {len(files)}: use --task to score files")
    found: Scores | Evaluation
    with logging_to_stderr(False), progress(f"evaluating {files[-1]}"):
        if is_task:
            found = api.score(*files, data=data, **keywords)
        else:
            found = api.evaluate(files[0], files[1], data, **keywords)
    if json:
        write_json(found.to_json())
    else:
        write(*found.lines())
    ctx.exit(0 if found.ok else 1)
