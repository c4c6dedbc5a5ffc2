"""``tmconvert verify``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.keywords import tracing_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import write, write_json

if TYPE_CHECKING:
    from tmconvert.ir import TracedModule


@click.command("verify", cls=GroupedCommand, example="tmconvert verify model.tm model.onnx")
@model_argument
@click.argument("out", metavar="[OUT]", type=click.Path(), required=False)
@declared_options("verify")
def command(model: str, out: str | None, json: bool, **given: Any) -> None:
    """Compare the written file OUT with its source MODEL.

    OUT is run in the runtime for its format; for Caffe it is the prototxt. The exit status is 1 when the
    outputs of OUT differ from those of MODEL; a comparison that shows nothing does not count as verified. A
    file alone, without MODEL, is compared with itself on the accelerators that --on names, or with the
    outputs of its source that --lock recorded.
    """
    tracing, keywords = tracing_of("verify", given)
    inputs = keywords.pop("inputs", None)
    from tmconvert import api
    from tmconvert.verification.input_files import read_inputs

    if out is None and not (keywords.get("on") or keywords.get("lock")):
        raise click.UsageError("Missing argument 'OUT'.")
    with logging_to_stderr(False), progress(f"verifying {out or model}"):
        if out is None and keywords.get("lock"):
            verification = api.verify(model, lock=keywords["lock"])
        elif out is None:
            from tmconvert.inspection.run_file import FileRunner

            arrays = None if inputs is None else FileRunner(Path(model)).arrays(inputs)
            verification = api.verify(model, None, arrays, on=keywords["on"])
        else:
            if "signature" in tracing and _has_signatures(out):
                keywords["signature"] = tracing["signature"]
                if not _has_signatures(model):
                    del tracing["signature"]
            module = api.load(model, **tracing)
            arrays = None if inputs is None else read_inputs(inputs, *_input_names(module, out, keywords))
            verification = api.verify(module, out, arrays, **keywords)
    if json:
        known = {"model": model, "file": out or model, "ok": True, "verified": verification.tells}
        write_json({**known, **verification.to_json()})
        return
    from tmconvert.conversion.report_text import verified

    if verification.comparisons:
        mark = ("ok", "bold green") if verification.tells else ("note", "bold yellow")
        write([mark, (f": {out or model} {verified(verification)}", "")])
    for said in verification.accelerators:
        write([("ok", "bold green"), (f": {out or model}: {said}", "")])


def _has_signatures(file: str) -> bool:
    from tmconvert.targets.recognize import written_target

    target = written_target(file)
    return target is not None and bool(target.signature_names(Path(file)))


def _input_names(module: TracedModule, out: str, keywords: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Returns the names of the inputs in the model, and in the file OUT."""
    from tmconvert.conversion.io_overrides import names_of_file
    from tmconvert.targets.recognize import target_of_file

    whole = [] if module.graph is None else [node.name for node in module.graph.inputs[1:]]
    named = keywords.get("input_nodes") or whole
    path = Path(out)
    rename = keywords.get("rename") or names_of_file(target_of_file(path).stored_options(path)).rename
    return named, [rename.get(name, name) for name in named]
