"""A profile as data: operators, rules, and where each fact comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from tmconvert.profiles.operation import Operation
from tmconvert.profiles.quantities import Number, values_of

# what becomes of an operator that breaks a rule: it runs on the processor, or is computed wrongly, or the
# file is not loaded
Effect = Literal["elsewhere", "wrong", "refused"]
EFFECTS: tuple[Effect, ...] = ("elsewhere", "wrong", "refused")


class FactSource(NamedTuple):
    """``document`` names a text and its release; ``confirmed`` the tool that confirmed the facts, and its
    release, empty where none did.
    """

    document: str
    confirmed: str = ""


class Limit(NamedTuple):
    """A limit on a quantity: each value lies within ``low`` and ``high``, is ``among`` some or ``not_among``
    others, and is a multiple of ``multiple_of``.
    """

    quantity: str
    low: float | None = None
    high: float | None = None
    among: tuple[Number, ...] = ()
    not_among: tuple[Number, ...] = ()
    multiple_of: int = 0

    def allows(self, value: Number) -> bool:
        if self.among and value not in self.among:
            return False
        if value in self.not_among:
            return False
        if isinstance(value, str):
            return True
        if self.multiple_of and value % self.multiple_of:
            return False
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def text(self) -> str:
        """Returns ``1 to 3``, ``at most 4``, ``int8 or int16``, ``multiples of 4``, ``not 5``."""
        parts = []
        if self.among:
            parts.append(" or ".join(map(_shown, self.among)))
        if self.not_among:
            parts.append("not " + " or ".join(map(_shown, self.not_among)))
        if self.multiple_of:
            parts.append(f"multiples of {self.multiple_of}")
        if self.low is not None and self.high is not None:
            parts.append(f"{self.low:g} to {self.high:g}")
        elif self.low is not None or self.high is not None:
            parts.append(f"at least {self.low:g}" if self.low is not None else f"at most {self.high:g}")
        return ", ".join(parts)


class ProfileRule(NamedTuple):
    """A limit for operators of some types (empty: all but ``without``), where all of ``when`` hold."""

    name: str
    limit: Limit
    operators: frozenset[str]
    without: frozenset[str]
    when: tuple[Limit, ...]
    effect: Effect
    help: str
    source: FactSource

    def breaks(self, operation: Operation) -> list[Number]:
        """Returns the values that the rule does not allow; none where it does not apply."""
        kind = operation.type
        if kind in self.without or (self.operators and kind not in self.operators):
            return []
        for condition in self.when:
            found = values_of(condition.quantity, operation)
            if not found or not all(map(condition.allows, found)):
                return []
        values = values_of(self.limit.quantity, operation)
        return [value for value in values if not self.limit.allows(value)]


class OperatorGroup(NamedTuple):
    """Operators with the element types and ranks in which they run; None allows any."""

    names: frozenset[str]
    types: frozenset[str] | None
    ranks: tuple[int, int] | None
    source: FactSource


@dataclass(frozen=True)
class Profile:
    """The operators that a device, or a small runtime, runs, and its rules.

    ``targets`` are those whose files it reads. ``left_over`` is what becomes of operators that no group has.
    ``operators`` of a type are in a group, or several. ``version`` is that of the target for which
    conversions write by default.

    >>> profile_named("ethos-u55").title  # doctest: +SKIP
    'Arm Ethos-U55'
    """

    name: str
    title: str
    targets: tuple[str, ...]
    left_over: Effect
    operators: tuple[OperatorGroup, ...]
    rules: tuple[ProfileRule, ...]
    sources: Mapping[str, FactSource]
    known: frozenset[str] = frozenset()
    version: str = ""

    @property
    def is_confirmed(self) -> bool:
        """Whether a tool confirmed the list of operators."""
        return all(group.source.confirmed for group in self.operators)

    def has(self, kind: str) -> bool:
        """Whether an operator of this type runs in some form."""
        return not self.known or kind in self.known

    def groups_of(self, kind: str) -> list[OperatorGroup]:
        return [group for group in self.operators if kind in group.names]


def names_in(text: str | Iterable[str]) -> frozenset[str]:
    """Returns the names of a text with spaces, or of a list."""
    return frozenset(text.split() if isinstance(text, str) else text)


def _shown(value: Number) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def shown_values(values: Sequence[Number]) -> str:
    """Returns up to three different values as text."""
    names = list(dict.fromkeys(map(_shown, values)))
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
