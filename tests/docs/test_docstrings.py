"""The docstrings of the Python API have sections, and their arguments are those of the signatures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tmconvert
from tests.docs.pages import ROOT
from tmconvert import api
from tmconvert.conversion.qparams_files import ParameterFile
from tmconvert.conversion.report import Report
from tmconvert.transform.match import Match

SECTIONS = ("Args", "Returns", "Raises", "Example")
NAMES = [*tmconvert.__all__, "findings", "quantization", "to_folder"]
FUNCTIONS = [name for name in NAMES if not inspect.isclass(getattr(api, name))]
CLASSES = [getattr(api, name) for name in NAMES if inspect.isclass(getattr(api, name))]
RESULTS = [ParameterFile, Report, Match]
# a subclass overrides these; what they get is described at the class
HOOK = ["target", "args", "kwargs"]


def sections(text: str) -> dict[str, str]:
    """The sections of a docstring by name, in Google's style; "" is the text before them."""
    parts = re.split(rf"^({'|'.join(SECTIONS)}):$", inspect.cleandoc(text), flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


def arguments(text: str) -> list[str]:
    """The arguments that a docstring describes."""
    return re.findall(r"^    (\*{0,2}\w+): \S", sections(text).get("Args", ""), re.MULTILINE)


def parameters(function: Callable[..., Any]) -> list[str]:
    """The parameters of a function as docstrings write them, without ``self``."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    every = inspect.signature(function).parameters.values()
    return [stars.get(each.kind, "") + each.name for each in every if each.name != "self"]


def methods() -> Iterator[Any]:
    for cls in [*CLASSES, *RESULTS]:
        for base in cls.__mro__:
            for name, each in vars(base).items():
                if not name.startswith("_") and inspect.isfunction(each):
                    yield pytest.param(each, id=f"{cls.__name__}.{name}")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function(name: str) -> None:
    function = getattr(api, name)
    found = sections(function.__doc__)
    expected = [each for each in SECTIONS if each != "Args" or parameters(function)]
    returns_none = inspect.signature(function).return_annotation == "None"
    assert [each for each in found if each] == [
        each for each in expected if each != "Returns" or not returns_none
    ]
    assert all(text.strip() for text in found.values())
    assert arguments(function.__doc__) == parameters(function)
    assert ">>> " in found["Example"]
    for line in filter(None, found["Raises"].splitlines()):
        assert re.match(r"    \w+: \S|        \S", line), line


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_class(cls: type) -> None:
    assert cls.__doc__ is not None
    assert arguments(cls.__doc__) == parameters(cls)
    assert ">>> " in sections(cls.__doc__)["Example"]


@pytest.mark.parametrize("method", list(methods()))
def test_a_method(method: Callable[..., Any]) -> None:
    expected = [each for each in parameters(method) if each != "cls"]
    assert method.__doc__
    if expected != HOOK:
        assert arguments(method.__doc__) == expected
    returned = inspect.signature(method).return_annotation
    first = method.__doc__.split()[0]
    is_said = first in ("Returns", "Yields", "Counts", "Whether", "Inserts") or "eturns" in method.__doc__
    assert returned == "None" or is_said or method.__doc__.count("\n") == 0


def test_a_missing_argument_is_found() -> None:
    assert arguments("A.\n\nArgs:\n    x: X.\n        And more: text.\n    **others: Y.\n") == [
        "x",
        "**others",
    ]
    assert parameters(lambda x, *y, z, **others: None) == ["x", "*y", "z", "**others"]


def test_the_reference_has_every_public_name() -> None:
    page = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^::: tmconvert\..*\.(\w+)$", page, re.MULTILINE))
    assert set(tmconvert.__all__) - listed == set()
