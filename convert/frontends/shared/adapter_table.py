"""Tables of adapters by the source's names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from tmconvert.errors import InternalError

Adapter = Callable[..., Any]


class Table(dict[str, Adapter]):
    """Adapters by qualified name. ``prefix`` is prepended to the names passed to ``add``."""

    def __init__(self, prefix: str = "") -> None:
        super().__init__()
        self.prefix = prefix

    def add(self, *names: str) -> Callable[[Adapter], Adapter]:
        """Declares the decorated function as the adapter of these names."""

        def register(adapter: Adapter) -> Adapter:
            for name in names:
                if self.prefix + name in self:
                    raise InternalError("TM3005", f"two adapters for {self.prefix}{name}")
                self[self.prefix + name] = adapter
            return adapter

        return register


def read_index(package: str) -> dict[str, dict[str, str]]:
    """Reads which family of adapters has which names, by table, from the ``index.json`` of a package."""
    index: dict[str, dict[str, str]] = json.loads(Path(package).with_name("index.json").read_bytes())
    return index


class IndexedTable(Mapping[str, Any]):
    """The tables of a package's families as one; a family is imported on first use of one of its names.

    ``index`` has the names of each family, which are in its tables called ``tables``.
    """

    def __init__(self, package: str, index: Mapping[str, str], *tables: str) -> None:
        self._package = package
        self._families = {name: family for family, names in index.items() for name in names.split()}
        self._tables = tables
        self._found: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._found:
            self._found[name] = self._imported(name)
        return self._found[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Returns an adapter, or ``default``, faster than Mapping, which raises and catches KeyError."""
        return self[name] if name in self._families else default

    def _imported(self, name: str) -> Any:
        family = import_module(f"{self._package}.{self._families[name]}")
        held = (getattr(family, table, {}) for table in self._tables)
        return next(table[name] for table in held if name in table)

    def __iter__(self) -> Iterator[str]:
        return iter(self._families)

    def __len__(self) -> int:
        return len(self._families)
