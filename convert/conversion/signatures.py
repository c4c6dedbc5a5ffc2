"""Converts several models to one TFLite file, as signatures that share weights.

Each model goes its own way to the graph that is written, and each signature is verified on its own. Weights
of the same memory or with the same content are stored once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from tmconvert.conversion.options.commands import conversion_options
from tmconvert.conversion.pipeline import EncodedModel, encode_model, finish_files
from tmconvert.conversion.report import Report, weights_of
from tmconvert.conversion.request import ConversionRequest, Model
from tmconvert.errors import UsageError
from tmconvert.errors.values import shown_value, type_and_value
from tmconvert.output.atomic import commit_together, staged_outputs
from tmconvert.output.copies import Copies
from tmconvert.output.metadata import OPTIONS, SOURCE
from tmconvert.progress import begin
from tmconvert.symbolics.op import Ops
from tmconvert.targets.registry import target_named
from tmconvert.targets.target import SharedWeights

# options that apply to all signatures alike; others describe one model, or a file with one
_SHARED = frozenset((
    *("weights", "weight_scales", "rules", "float_type", "keep_int64", "io_layout", "runtime"),
    *("profile", "metadata", "verify", "verification", "require_verified", "passes", "progress"),
    *("accept_range", "freeze_control_flow", "roll_loops", "allow_code", "training"),
))  # fmt: skip
_TRACED = "trace each model with its own options first: tmconvert.trace(module, *inputs, dynamic_shapes=...)"


def convert_signatures(
    target: str,
    models: Mapping[str, Model],
    paths: Sequence[str | PathLike[str] | None],
    arguments: Mapping[str, Any],
    catalogue: Ops,
) -> Report:
    """Writes a file with a signature for each model, by name, and verifies each signature.

    A model is what ``to_tflite`` takes, or a pair of a module or a bound method and its example inputs: a
    tuple, or a dict by argument. On failure no file is left. Raises UsageError TM6017 for names and options
    that do not fit; otherwise what a conversion raises.
    """
    _check_names(models)
    _check_options(target, arguments)
    requests = [_request(target, name, model, paths, arguments) for name, model in models.items()]
    weights: SharedWeights = {}
    made = [encode_model(request, catalogue, weights) for request in requests]
    graphs = [each.graph for each in made]
    if len(graphs) > 1:
        graphs[0].metadata = _common_metadata(graphs[0].metadata, models)
    with staged_outputs(*requests[0].paths) as outputs:
        begin("write")
        target_named(target).write_signatures(graphs, outputs[0].file)
        staged = finish_files(outputs)
        for each in made:
            each.verify(catalogue, staged)
        commit_together(outputs)
    return _report(dict(zip(models, made, strict=True)))


def _check_names(models: Mapping[str, Model]) -> None:
    if not models:
        raise _misfit("there is no signature: the dict of models is empty", "name at least one model")
    for name in models:
        if not isinstance(name, str) or not name or "\0" in name:
            raise _misfit(
                f"the name of a signature must be a text without NUL, got {type_and_value(name)}",
                'write {"prefill": (model, inputs), "decode": (model, inputs)}',
            )


def _check_options(target: str, arguments: Mapping[str, Any]) -> None:
    for option in conversion_options(target):
        value = arguments.get(option.name, option.default)
        is_default = value is None or (type(value) is type(option.default) and value == option.default)
        if option.is_keyword and not is_default and option.name not in _SHARED:
            shown = shown_value(value)
            reason = f"{option.name} is {shown}, but applies to a file with one signature"
            raise _misfit(reason, _TRACED if option.group in ("shapes", "tracing") else "omit it")


def _request(
    target: str,
    name: str,
    model: Model,
    paths: Sequence[str | PathLike[str] | None],
    arguments: Mapping[str, Any],
) -> ConversionRequest:
    examples: dict[str, Any] = {}
    if isinstance(model, tuple):
        if len(model) != 2:
            raise _misfit(
                f"the signature {name!r} must be a model, or a pair (model, inputs), got {len(model)} values",
                f'write {{"{name}": (model, (x, y))}}',
            )
        model, inputs = model
        examples = {"example_kwargs" if isinstance(inputs, Mapping) else "example_inputs": inputs}
    request = ConversionRequest.of(target, model, paths, {**arguments, **examples})
    return replace(request, signature=name)


def _common_metadata(metadata: Mapping[str, str], models: Mapping[str, Model]) -> dict[str, str]:
    """Returns the entries that hold for all signatures, with the names of these among the options."""
    options = {**json.loads(metadata[OPTIONS]), "signatures": list(models)}
    return {SOURCE: metadata[SOURCE], OPTIONS: json.dumps(options, sort_keys=True)}


def _report(made: Mapping[str, EncodedModel]) -> Report:
    """Returns the report of the file, with those of its signatures."""
    reports = {name: each.report for name, each in made.items()}
    first = next(iter(reports.values()))
    report = Report(first.target, first.version, first.paths, notes=_notes(reports), signatures=reports)
    report.operators = sum(each.operators for each in reports.values())
    report.parameters = _parameters(made.values())
    report.seconds = [
        (f"{name}: {step}", time) for name, each in reports.items() for step, time in each.seconds
    ]
    report.settings = dict(first.settings)
    return report


def _notes(reports: Mapping[str, Report]) -> list[str]:
    """Returns the notes, with the names of the signatures where they are not for all."""
    names: dict[str, list[str]] = {}
    for name, report in reports.items():
        for note in dict.fromkeys(report.notes):
            names.setdefault(note, []).append(name)
    return [
        note if len(each) == len(reports) else f"{', '.join(each)}: {note}" for note, each in names.items()
    ]


def _parameters(made: Iterable[EncodedModel]) -> int:
    """Counts the elements of weights before they were compressed; equal ones are in the file once."""
    weights = (value.stored for each in made for value in weights_of(each.lowered.graph))
    copies = Copies()
    sizes = {copies.key(each): math.prod(each.shape) for each in weights if each is not None}
    return sum(sizes.values())


def _misfit(reason: str, help: str) -> UsageError:
    return UsageError("TM6017", reason, notes=[("help", help)])
