"""Values of the source that are held by name only: nothing of them is ever imported, called or run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GlobalRef:
    """The name of a class or function of the writer's Python; two strings, nothing behind them."""

    module: str
    name: str

    @property
    def qualified_name(self) -> str:
        return f"{self.module}.{self.name}"

    def __str__(self) -> str:
        return self.qualified_name


@dataclass(eq=False, slots=True, repr=False)
class Instance:
    """An object of a class that we know only by name, and its attributes."""

    reference: GlobalRef
    state: dict[str, Any]

    @property
    def class_name(self) -> str:
        """Qualified, such as ``megengine.traced_module.expr.CallMethod``."""
        return self.reference.qualified_name

    @property
    def short_name(self) -> str:
        """The class's own name, such as ``CallMethod``."""
        return self.reference.name.rpartition(".")[2]

    # The default would follow the cycles of a graph.
    def __repr__(self) -> str:
        return f"<{self.class_name} instance>"
