"""Values of the source that are stored by name only: never imported, called or run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class GlobalRef:
    """The qualified name of a Python class or function of the source, as two strings."""

    module: str
    name: str

    @property
    def qualified_name(self) -> str:
        return f"{self.module}.{self.name}"

    def __str__(self) -> str:
        return self.qualified_name


@dataclass(frozen=True, slots=True, repr=False)
class Opaque:
    """An object of the user's own class, of which only the identity is stored.

    ``arguments`` are those that it was made with, if they are plain values; objects without arguments differ
    by ``number``.
    """

    reference: GlobalRef
    arguments: tuple[Any, ...] = ()
    number: int = 0

    def __repr__(self) -> str:
        name = self.reference.qualified_name
        if self.arguments:
            return f"<{name}({', '.join(map(repr, self.arguments))})>"
        return f"<{name} object {self.number}>"


@dataclass(eq=False, slots=True, repr=False)
class Instance:
    """The attributes of an object, and the name of its class, which is never imported."""

    reference: GlobalRef
    state: dict[str, Any]

    @property
    def class_name(self) -> str:
        """Returns the qualified class name, such as ``megengine.traced_module.expr.CallMethod``."""
        return self.reference.qualified_name

    @property
    def short_name(self) -> str:
        """Returns the class's own name, such as ``CallMethod``."""
        return self.reference.name.rpartition(".")[2]

    # The default would follow the cycles of a graph.
    def __repr__(self) -> str:
        return f"<{self.class_name} instance>"
