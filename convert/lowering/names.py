"""Unique names within one written file."""

from __future__ import annotations

from collections.abc import Iterable

from tmconvert.errors.source import printable
from tmconvert.lowering.origins import Role

# what the name of a form of a tensor ends in, for people; code reads ``TargetGraph.origins``
_ENDINGS = {
    Role.QUANTIZED: "quantized",
    Role.REQUANTIZED: "requantized",
    Role.DEQUANTIZED: "dequantized",
    Role.COMPUTED: "computed",
}


def name_of_form(name: str, role: Role) -> str:
    """Returns a name for the quantized, requantized or dequantized form of the tensor ``name``."""
    return f"{name}_{_ENDINGS[role]}"


class Names:
    """Generates unique names; ``taken`` are names that are in use already."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._suffixes: dict[str, int] = {}  # the last one that was tried, by name

    def free(self, base: str) -> str:
        """Returns ``base``, or ``base_1``, ``base_2``, ... where that is in use.

        Control characters are escaped, since tools print names.
        """
        name = base = printable(base)
        while name in self._taken:
            self._suffixes[base] = self._suffixes.get(base, 0) + 1
            name = f"{base}_{self._suffixes[base]}"
        self._taken.add(name)
        return name

    def take(self, names: Iterable[str]) -> None:
        """Reserves names."""
        self._taken.update(names)

    def give_back(self, name: str) -> None:
        self._taken.discard(name)
