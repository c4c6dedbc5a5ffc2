"""The table of PyTorch's tests of torch.fx, and the page with the table of names."""

from __future__ import annotations

import importlib
import re

import pytest

torch = pytest.importorskip("torch")

import tmconvert  # noqa: E402
from tests.docs.pages import ROOT  # noqa: E402
from tests.frontends.torch.fx_cases import traced  # noqa: E402
from tests.frontends.torch.fx_suite import DONE, NAMES, NOT_DONE  # noqa: E402

PAGE = (ROOT / "docs" / "from-torch-fx.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("place", sorted(set(DONE.values())))
def test_each_test_exists(place: str) -> None:
    module, _, name = place.partition(".")
    assert callable(getattr(importlib.import_module(f"tests.frontends.torch.test_fx_{module}"), name))


def test_the_page_has_the_counts_and_the_reasons() -> None:
    total = len(DONE) + len(NOT_DONE)
    assert len(DONE) >= 0.9 * total and not set(DONE) & set(NOT_DONE)
    assert f"{len(DONE)} of {total} work" in PAGE
    assert f" {total} of these tests" in PAGE
    for name, reason in NOT_DONE.items():
        assert f"| `{name}` | {reason} |" in PAGE


def holders() -> dict[str, object]:
    tm, graph = traced(torch.nn.Sequential(torch.nn.Linear(4, 4)))
    interpreter, transformer = tmconvert.Interpreter(tm), tmconvert.Transformer(tm)
    return {
        "graph": graph,
        "node": list(graph.nodes)[1],
        "tm": tm,
        "tmconvert": tmconvert,
        "interpreter": interpreter,
        "transformer": transformer,
    }


def test_the_page_names_what_is_there() -> None:
    """Each of our names in the tables exists."""
    found = holders()
    rows = [line.split("|") for line in PAGE.splitlines() if line.startswith("| `") and line.count("|") == 4]
    names = [name for row in rows for name in re.findall(r"`(\w+)\.(\w+)`", row[2])]
    assert len(names) > 80
    assert [f"{holder}.{name}" for holder, name in names if not hasattr(found[holder], name)] == []


def test_names_that_pytorch_tests_are_on_the_page() -> None:
    """Each public name of torch.fx that PyTorch's tests use exists, and has a row."""
    found = holders()
    for holder, names in NAMES.items():
        for name in names:
            assert hasattr(found[holder], name), f"{holder}.{name}"
            assert f"`{holder}.{name}`" in PAGE, f"{holder}.{name}"
