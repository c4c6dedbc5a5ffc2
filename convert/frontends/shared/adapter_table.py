"""Tables of adapters by the source's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tmconvert.errors import InternalError

Adapter = Callable[..., Any]
# What an adapter receives for an argument of a function of the source: a tensor of the emitter (a node or an
# array), a constant, or lists, tuples and dicts of these. It can be passed on, to the emitter and to the
# functions of ``arguments.py``; other operations need the type that one of these or ``isinstance`` gives.
AdapterValue: TypeAlias = object


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

    @classmethod
    def merged(cls, *tables: Table) -> Table:
        """Merges tables into one."""
        result = cls()
        for table in tables:
            for name, adapter in table.items():
                result.add(name)(adapter)
        return result
