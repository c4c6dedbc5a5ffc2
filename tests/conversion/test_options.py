"""Options are declared once: signatures, help and docstrings are made from the declarations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

import pytest

import tmconvert
from tmconvert import api
from tmconvert.calibration.ranges import METHODS
from tmconvert.calibration.settings import KINDS, LAYOUTS, Settings
from tmconvert.conversion.options.calibration import SETTINGS
from tmconvert.conversion.options.commands import COMMAND_OPTIONS
from tmconvert.conversion.options.conversion import QPARAMS_FORMATS
from tmconvert.conversion.output_paths import CONTAINER_SUFFIXES, MODEL_SUFFIXES
from tmconvert.passes.manager import PassOptions
from tmconvert.qparams.formats import DEFAULT, FORMATS
from tmconvert.symbolics.target_names import TARGETS
from tmconvert.targets.option import HEADINGS, REPEATED, Option
from tmconvert.targets.registry import target_named
from tmconvert.targets.tflite.quantize_weights import BITS

FUNCTIONS = {**{f"to_{target}": target for target in TARGETS}, "calibrate": "calibrate", "save": "save"}
ALL = [(command, option) for command, options in COMMAND_OPTIONS.items() for option in options]


def keyword_only(function: Any) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}


def declared(options: Iterable[Option]) -> dict[str, Any]:
    return {option.name: option.default for option in options if option.is_keyword}


def positional(function: Any) -> set[str]:
    return set(inspect.signature(function).parameters) - set(keyword_only(function))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_have_the_declared_names_and_defaults(name: str) -> None:
    function = getattr(api, name)
    options = declared(COMMAND_OPTIONS[FUNCTIONS[name]])
    expected = {key: value for key, value in options.items() if key not in positional(function)}
    assert keyword_only(function) == expected


def test_help_describes_each_keyword_with_its_values() -> None:
    text = " ".join((tmconvert.to_onnx.__doc__ or "").split())
    assert 'weights: Type of large weights in the file; computations stay float32. One of "float16", ' in text
    assert "integer_weights: Form of the model's integer weights and of ``weights`` int4." in text
    assert "lists them. By default mgeconvert." in text
    annotation = inspect.signature(tmconvert.to_onnx).parameters["opset"].annotation
    assert annotation == "int | Literal['auto'] | None"


def test_every_keyword_named_in_a_docstring_is_one() -> None:
    for target in TARGETS:
        options = {option.name for option in COMMAND_OPTIONS[target] if option.is_keyword}
        for option in COMMAND_OPTIONS[target]:
            for flag in re.findall("`[^`]*`|--([a-z0-9-]+)", "" if option.meaning else option.help):
                assert not flag or not option.is_keyword or flag.replace("-", "_") in options


@pytest.mark.parametrize("name", ["check", "verify"])
def test_keywords_of_other_functions_are_options_of_their_commands(name: str) -> None:
    options = declared(COMMAND_OPTIONS[name])
    for keyword, default in keyword_only(getattr(api, name)).items():
        assert options[keyword] == default


def test_parts_of_keywords_are_the_fields_of_their_records() -> None:
    for target in TARGETS:
        parts = [option for option in COMMAND_OPTIONS[target] if option.part_of == "pass_options"]
        fields = [name for name in PassOptions._fields if name != "requested"]  # it is the keyword ``passes``
        assert [option.name for option in parts] == fields
    assert {option.name for option in SETTINGS} == set(Settings._fields)
    for option in SETTINGS:
        if option.name != "rules":
            assert option.default == Settings._field_defaults[option.name]


def test_choices_are_those_of_what_reads_them() -> None:
    choices = {option.name: option.choices for option in SETTINGS}
    assert (sorted(choices["method"]), choices["layout"]) == (sorted(METHODS), LAYOUTS)
    assert all(kind in next(each.help for each in SETTINGS if each.name == "rules") for kind in KINDS)
    weights = next(option for option in COMMAND_OPTIONS["tflite"] if option.name == "weights")
    assert sorted(weights.choices) == sorted(["float16", *BITS])
    assert (list(QPARAMS_FORMATS), QPARAMS_FORMATS[0]) == (list(FORMATS), DEFAULT)


@pytest.mark.parametrize("target", TARGETS)
def test_default_versions(target: str) -> None:
    (version,) = [option for option in COMMAND_OPTIONS[target] if option.is_version]
    known = target_named(target)
    assert version.default_text == str(known.version_name(known.version_number(None)))


@pytest.mark.parametrize(("command", "option"), ALL, ids=[f"{name}-{each.name}" for name, each in ALL])
def test_records_are_consistent(command: str, option: Option) -> None:
    options = {each.name: each for each in COMMAND_OPTIONS[command]}
    assert option.group in HEADINGS
    assert option.help.endswith(".") and option.help[0].isupper()
    assert set(option.targets) <= set(TARGETS)
    assert not option.needs or option.needs in options
    assert not option.part_of or options[option.part_of].only == "python"
    takes_text = option.is_flag and option.kind in ("text", "numbers", *REPEATED)
    assert not takes_text or option.metavar or option.choices or option.value_name != "TYPE"


@pytest.mark.parametrize("command", COMMAND_OPTIONS)
def test_flags_and_names_are_unique_in_a_command(command: str) -> None:
    options = COMMAND_OPTIONS[command]
    flags = [flag for each in options if each.is_flag for flag in (each.spelling, each.short_flag) if flag]
    assert len(set(flags)) == len(flags)
    assert len({option.name for option in options}) == len(options)


def test_suffixes_of_targets_are_known() -> None:
    known = {suffix for target in TARGETS for suffix in target_named(target).suffixes}
    assert known | set(CONTAINER_SUFFIXES) <= MODEL_SUFFIXES
