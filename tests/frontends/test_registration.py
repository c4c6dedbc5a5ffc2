"""Frontends of other packages and plugins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tmconvert.errors import LoadError, Refusal, UsageError
from tmconvert.frontends import registry
from tmconvert.frontends.aten.vocabulary import VOCABULARY
from tmconvert.frontends.shared import registration
from tmconvert.frontends.shared.vocabulary import AdapterVocabulary
from tmconvert.ir import CallFunction, Expr, TensorNode, TensorType
from tmconvert.ir.emitter import EagerEmitter
from tmconvert.symbolics.registry import catalogue

DIGITS = Path(__file__).parents[2] / "samples" / "digits.tm"


class OtherWords(AdapterVocabulary):
    identifier = "other"


@pytest.fixture
def undone() -> Iterator[None]:
    with registry.temporary_frontends():
        yield


def test_a_registered_reader_loads_its_files(undone: None, tmp_path: Path) -> None:
    path = tmp_path / "net.other"
    path.write_text("OTHER")
    with pytest.raises(LoadError, match="this is not a model file that tmconvert reads"):
        tmconvert.load(path)
    registration.register_reader(lambda head: head == b"OTHER", lambda path: tmconvert.load(DIGITS))
    module = tmconvert.load(path)
    assert module.name == "DigitsNet"
    numbers = [expr.id for _, each in module.modules() for graph in each.graphs.values() for expr in graph]
    assert len(set(numbers)) == len(numbers)


def test_built_in_kinds_come_first(undone: None) -> None:
    registration.register_reader(lambda head: True, lambda path: pytest.fail(path))
    assert tmconvert.load(DIGITS).name == "DigitsNet"


def test_registrations_are_undone() -> None:
    with registry.temporary_frontends():
        registration.register_reader(lambda head: True, tmconvert.load)
        registration.register_vocabulary(OtherWords())
        assert registry.vocabulary_named("other") is not None
        with pytest.raises(UsageError, match="the vocabulary 'other' is already registered"):
            registration.register_vocabulary(OtherWords())
    assert registry.frontend_of_file("", b"") is None
    assert registry.vocabulary_named("other") is None


def test_a_model_in_unknown_words_names_plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmconvert.normalize(tmconvert.load(DIGITS))
    monkeypatch.setattr(VOCABULARY, "identifier", "others")
    tmconvert.save(module, tmp_path / "net.tm")
    with pytest.raises(LoadError, match="uses the vocabulary 'others'") as caught:
        tmconvert.load(tmp_path / "net.tm")
    assert "the package or plugin that registers it" in str(caught.value.notes)


PLUGIN = """
from tmconvert.frontends.shared.registration import register_reader
from tmconvert.ir.extract import by_matching_name

def recognized(head):
    return b"TINY" in head

def load(path):
    FAILURE

register_reader(recognized, load)
"""


@pytest.mark.parametrize(
    ("failure", "status", "said"),
    [
        (
            "{}['nothing']",
            2,
            "error[TM6020]: the plugin tiny.py failed: KeyError: 'nothing'\n  --> tiny.py:9",
        ),
        (
            "return 3",
            2,
            "the reader load of a plugin returned int (3), not a TracedModule\n  --> tiny.py:8",
        ),
        ("by_matching_name(3, 4)", 3, "   = called by: tiny.py:9 of a plugin"),
    ],
)
def test_an_exception_in_a_plugin_names_its_line(
    failure: str, status: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.py").write_text(PLUGIN.replace("FAILURE", failure))
    Path("net.tiny").write_text("TINY")
    outcome = run("inspect", "net.tiny", "--plugin", "tiny.py")
    assert outcome.status == status and said in outcome.stderr, outcome.stderr


def test_an_error_in_an_adapter_is_told_with_its_line() -> None:
    class Fails(OtherWords):
        def find(self, expr: Expr, args: tuple[object, ...]) -> tuple[str, Any]:
            return "other.f", lambda g, x: len(3)  # type: ignore[arg-type]

    node = TensorNode("x", (2,), np.float32)  # type: ignore[arg-type]
    assert node.type == TensorType(np.dtype("float32"), (2,))
    call = CallFunction("other.f", (node,), result=TensorNode("y"))
    with pytest.raises(
        Refusal, match=r"its adapter fails at test_registration.py:\d+ \(TypeError: object of"
    ):
        Fails().converted(EagerEmitter(catalogue()), call, (np.zeros(2),), {})
