"""``tmconvert bench``."""

from __future__ import annotations

from typing import Any

import click

from tmconvert.cli.keywords import inputs_of, keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options
from tmconvert.cli.rendering import write, write_json, write_table


@click.command("bench", cls=GroupedCommand, example="tmconvert bench float.tflite int8.tflite --threads 2")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@declared_options("bench")
def command(files: tuple[str, ...], inputs: tuple[str, ...], json: bool, **given: Any) -> None:
    """Measure the latency of written files in their runtimes.

    Each FILE, an ONNX or TFLite file or a prototxt, runs in a process of its own. Several run by turns of
    some milliseconds, with one thread on the same core, so that a load of the machine meets all alike, and
    in five processes one after the other. The ratio is the median of those of such turns.
    """
    keywords = keywords_of("bench", given)
    from tmconvert import api
    from tmconvert.conversion.format_numbers import size

    with logging_to_stderr(False), progress(f"measuring {', '.join(files)}"):
        found = api.bench(*files, inputs=inputs_of(inputs), **keywords)
    if json:
        write_json({"files": [each.to_json() for each in found]})
        return
    rows = [
        [
            str(each.path),
            f"{each.median:.3f}",
            f"{each.low:.3f} to {each.high:.3f}",
            f"{each.best:.3f}",
            f"{each.ratio:.2f}",
            str(each.runs),
            "?" if each.memory is None else size(each.memory),
            each.runtime,
        ]
        for each in found
    ]
    write_table(("file", "median ms", "10 % to 90 %", "best", "ratio", "runs", "memory", "runtime"), rows)
    write(f"{found[0].threads} thread{'s' if found[0].threads > 1 else ''}")
    texts = [
        ", ".join(f"{name}[{','.join(map(str, shape))}]" for name, shape in each.shapes.items())
        for each in found
    ]
    if len(set(texts)) == 1:
        write(f"inputs: {texts[0]}")
    else:
        write_table(
            ("file", "inputs"), [[str(each.path), text] for each, text in zip(found, texts, strict=True)]
        )
