"""The registry of frontends: built-in ones and those of plugins are found in one way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tmconvert.conversion.load import is_traced
from tmconvert.errors import UsageError
from tmconvert.frontends import registry
from tmconvert.frontends.aten.vocabulary import VOCABULARY as ATEN
from tmconvert.frontends.frontend import Frontend, LoadRequest
from tmconvert.frontends.shared.multi_source import vocabulary_of_call
from tmconvert.frontends.shared.vocabulary import AdapterVocabulary
from tmconvert.ir import CallFunction, TracedModule

DIGITS = Path(__file__).parents[2] / "samples" / "digits.tm"
RECOGNITION = """
import sys
from tmconvert.frontends.registry import known_frontends
heads = (b"", b"PK\\x03\\x04", b"\\x80\\x04", b"\\x08\\x07\\x12", b"0000TFL3", b"name: 'net'")
known = [each.recognizes(head) for each in known_frontends() for head in heads]
assert any(known)
heavy = {"torch", "onnx", "google.protobuf", "flatbuffers", "tflite", "ml_dtypes"}
print(sorted(heavy & set(sys.modules)), [name for name in sys.modules if ".adapters" in name])
"""


class TinyVocabulary(AdapterVocabulary):
    identifier = "tiny"


class TinyFrontend(Frontend):
    name = "tiny"
    title = "Tiny"
    has_graph = False
    prefixes = ("tiny.",)
    words = TinyVocabulary()
    made: Any = None

    def recognizes(self, head: bytes) -> bool:
        return head == b"TINY"

    def load(self, path: str, request: LoadRequest) -> TracedModule:
        self.request = request
        return tmconvert.load(DIGITS) if self.made is None else self.made

    def vocabulary(self, identifier: str) -> AdapterVocabulary | None:
        return self.words if identifier == self.name else None


@pytest.fixture
def tiny() -> Iterator[TinyFrontend]:
    with registry.temporary_frontends():
        frontend = TinyFrontend()
        registry.register_frontend(frontend)
        yield frontend


def test_recognition_imports_no_format_or_framework() -> None:
    found = subprocess.run([sys.executable, "-c", RECOGNITION], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[] []"


def test_a_frontend_of_a_plugin_may_trace(tiny: TinyFrontend, tmp_path: Path) -> None:
    (tmp_path / "net").write_text("TINY")
    assert not is_traced(tmp_path / "net")
    inputs = np.zeros(3, np.float32)
    module = tmconvert.load(tmp_path / "net", example_inputs=(inputs,))
    assert module.name == "DigitsNet"
    assert tiny.request.tracing.args[0] is inputs and tiny.request.head == b"TINY"


def test_a_frontend_that_loads_no_model_is_named(tiny: TinyFrontend, tmp_path: Path) -> None:
    (tmp_path / "net").write_text("TINY")
    tiny.made = 3
    with pytest.raises(UsageError, match=r"the reader load of a plugin returned int \(3\)"):
        tmconvert.load(tmp_path / "net")


def test_functions_with_its_prefix_are_a_frontend_s_in_every_model(tiny: TinyFrontend) -> None:
    assert vocabulary_of_call(ATEN, CallFunction("tiny.relu", ()), ()) is tiny.words
    assert registry.vocabulary_named("tiny") is tiny.words


def test_names_are_unique(tiny: TinyFrontend) -> None:
    for name in ("tiny", "onnx"):
        with pytest.raises(UsageError, match=f"the frontend '{name}' is already registered"):
            registry.register_frontend(type("Other", (TinyFrontend,), {"name": name})())


def test_registrations_of_prefixes_are_undone() -> None:
    with registry.temporary_frontends():
        registry.register_frontend(TinyFrontend())
        assert registry.frontend_of_function("tiny.relu") is not None
    assert registry.frontend_of_function("tiny.relu") is None


@pytest.mark.parametrize("identifier", ["torch", "aten", "megengine-1.6", "onnx-13", "tflite", "caffe"])
def test_each_vocabulary_is_found_by_its_identifier(identifier: str) -> None:
    found = registry.vocabulary_named(identifier)
    assert found is not None and found.identifier == identifier


def test_the_runtime_of_a_source_is_that_of_a_target() -> None:
    from tmconvert.targets.registry import target_names

    runtimes = [each.source_runtime for each in registry.known_frontends() if each.source_runtime]
    assert runtimes and set(runtimes) <= set(target_names())
