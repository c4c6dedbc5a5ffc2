"""The catalogue: (target, op, version) -> symbolic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from ..errors import InternalError
from .op import TARGETS, Op


class Catalogue(Mapping[str, Op]):
    """All ops by name. Frozen: built once from the list of ops, in that order."""

    def __init__(self, ops: Sequence[Op]) -> None:
        table: dict[str, Op] = {}
        for op in ops:
            if op.name in table:
                raise InternalError("TM3005", f"{op.name} is registered twice")
            table[op.name] = op
        self._ops = MappingProxyType(table)

    def __getitem__(self, name: str) -> Op:
        return self._ops[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ops)

    def __len__(self) -> int:
        return len(self._ops)

    def incomplete(self) -> list[tuple[str, str]]:
        """(op, target) pairs with neither a symbolic, nor a decomposition, nor a reason."""
        return [
            (op.name, target)
            for op in self.values()
            for target in TARGETS
            if not op.symbolics.get(target) and op.decomposition is None and target not in op.reasons
        ]


_default: Catalogue | None = None


def catalogue() -> Catalogue:
    """The catalogue of the ops that tmconvert ships."""
    global _default
    if _default is None:
        from .ops import OPS

        _default = Catalogue(OPS)
    return _default
