"""Converts command line values to keywords of the Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.option_values import (
    counts,
    dynamic_shapes,
    fixed_sizes,
    input_qparams,
    input_shapes,
    layouts,
    metadata,
    names,
    numbers,
    renamed,
    rules,
    signatures,
)
from tmconvert.conversion.options.commands import options_of
from tmconvert.conversion.options.tracing import TRACING
from tmconvert.targets.option import Option

if TYPE_CHECKING:
    from tmconvert.passes.manager import PassOptions

# what options that may be repeated stand for together
_ENTRIES: dict[str, Callable[[Any], Any]] = {
    "dynamic_shapes": dynamic_shapes,
    "fix": fixed_sizes,
    "input_shapes": input_shapes,
    "io_layout": layouts,
    "metadata": metadata,
    "passes": list,
    "prefill_lengths": counts,
    "on": list,
    "preprocess": list,
    "rename": renamed,
    "reports": list,
    "rules": rules,
    "signature": signatures,
    "sizes": partial(fixed_sizes, flag="--size"),
    "state": list,
    "verify_on": list,
    "watch": list,
}


def keywords_of(command: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the keywords for the options that were given. Raises UsageError."""
    options = [option for option in options_of(command) if _is_given(option, given)]
    found: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    for option in options:
        into = parts.setdefault(option.part_of, {}) if option.part_of else found
        into[option.name] = _value(option, given[option.name])
        if option.part_of and option.needs and option.needs not in into:
            raise click.UsageError(f"{option.spelling} requires --{option.needs.replace('_', '-')}")
    for keyword, values in parts.items():
        found[keyword] = _COMPOSED[keyword](values)
    if "example_inputs" in found:
        found |= _examples(found.pop("example_inputs"))
    return found


def tracing_of(command: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits keywords into those of tracing, which ``load`` takes, and the others."""
    found = keywords_of(command, given)
    tracing = {option.name: found.pop(option.name) for option in TRACING if option.name in found}
    return tracing, found


def inputs_of(texts: Sequence[str]) -> str | list[str] | None:
    """Returns the inputs of a run as its function takes them: a text or a path, several texts, or None."""
    return texts[0] if len(texts) == 1 else list(texts) or None


def _is_given(option: Option, given: Mapping[str, Any]) -> bool:
    value = given.get(option.name)
    return option.only == "" and not (value is None or value is False or value == ())


def _value(option: Option, value: Any) -> Any:
    if option.kind == "switch":
        return not option.default
    if option.kind == "names":
        return names(value, option.spelling)
    if option.kind == "numbers":
        return numbers(value, option.spelling)
    return _ENTRIES[option.name](value) if option.name in _ENTRIES else value


def _input_qparams(parts: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, float, int]]:
    texts = (parts.get(name, ()) for name in ("input_type", "input_scale", "input_zero_point"))
    return input_qparams(*texts)


def _pass_options(parts: Mapping[str, str]) -> PassOptions:
    from tmconvert.passes.manager import PassOptions

    after = tuple(name.strip() for name in parts.get("dump_after", "").split(",") if name.strip())
    return PassOptions(after, parts.get("dump_folder"), parts.get("stop_after"))


_COMPOSED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "calibration_settings": dict,
    "input_qparams": _input_qparams,
    "pass_options": _pass_options,
}


def _examples(texts: Sequence[str]) -> dict[str, Any]:
    from tmconvert.conversion.example_text import parse_examples

    inputs, by_name = parse_examples(texts)
    found = {"example_inputs": inputs, "example_kwargs": by_name}
    return {name: value for name, value in found.items() if value}
