"""Every name of MegEngine 1.6 to 1.13 that a file may hold has an adapter, or a reason why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tmconvert.frontends.megengine.adapters import FUNCTIONS, METHODS, MODULES
from tmconvert.frontends.megengine.refused import REASONS, refusal_of

# by tools/megengine_data/make_names.py
NAMES: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parents[2] / "data/made/vocabulary.json").read_text()
)
PREFIXES = {"functions": "", "methods": "Tensor.", "modules": "", "operators": "opdef."}
ALL = [PREFIXES[kind] + name for kind, names in NAMES.items() for name in names]
ADAPTERS = {*FUNCTIONS, *MODULES, *(f"Tensor.{name}" for name in METHODS)}


def test_the_lists_are_whole() -> None:
    assert {kind: len(names) > 80 for kind, names in NAMES.items()} == dict.fromkeys(PREFIXES, True)


def test_every_name_is_known() -> None:
    assert [name for name in ALL if name not in ADAPTERS and refusal_of(name) is None] == []


def test_nothing_is_both_known_and_refused() -> None:
    assert [name for name in ADAPTERS if refusal_of(name) is not None] == []


@pytest.mark.parametrize("reason", REASONS, ids=lambda each: each.names[0])
def test_every_reason_reads_well(reason: object) -> None:
    refusal = refusal_of(REASONS[REASONS.index(reason)].names[0].replace("*", "X"))  # type: ignore[arg-type]
    assert refusal is not None
    assert refusal.help
    assert not refusal.reason.endswith(".")
