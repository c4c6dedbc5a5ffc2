"""The index of PyTorch's adapters."""

from __future__ import annotations

from .make_torch_index import OUTPUT, made


def test_the_index_is_what_the_families_hold() -> None:
    assert OUTPUT.read_text(encoding="utf-8") == made(), "run python tests/frontends/make_torch_index.py"
