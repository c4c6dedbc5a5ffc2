"""Adapters: torch's functions, tensor methods and ATen ops in aten-style ops.

An adapter is ``name(g, *arguments)`` with ATen's parameter names and defaults. ``ATEN`` has them by the name
of the op, for the function and the method alike; ``FUNCTIONS`` (by qualified name) and ``METHODS`` have the
exceptions: functions that torch implements in Python, and methods that take sizes as separate arguments.
``COMPLEX`` has the adapters of calls with complex operands. Each family is a file with its own tables of
these names; ``index.py`` maps names to families.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from tmconvert.frontends.shared.adapter_table import Adapter
from tmconvert.frontends.torch.adapters import index


class Adapters(Mapping[str, Adapter]):
    """The adapter tables of all families. A family is imported on first use of one of its adapters."""

    def __init__(self, kind: str, index: dict[str, str]) -> None:
        self._kind = kind
        self._families = {name: family for family, names in index.items() for name in names.split()}

    def __getitem__(self, name: str) -> Adapter:
        family = import_module(f".{self._families[name]}", __name__)
        adapter: Adapter = getattr(family, self._kind)[name]
        return adapter

    def __iter__(self) -> Iterator[str]:
        return iter(self._families)

    def __len__(self) -> int:
        return len(self._families)


ATEN = Adapters("ATEN", index.ATEN)
FUNCTIONS = Adapters("FUNCTIONS", index.FUNCTIONS)
METHODS = Adapters("METHODS", index.METHODS)
COMPLEX = Adapters("COMPLEX", index.COMPLEX)
