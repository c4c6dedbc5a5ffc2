"""What conversions with symbolic sizes have taken for granted.

While a SizeJournal is open (``with journal:``), comparisons of sizes that only an example can decide,
and the places that need a plain number, are noted in it. Nothing else decides them:

- an inequality goes as in the example, and becomes an ``assumption``;
- sizes that are equal in the example only count as different, since that may be chance. Where the
  operation then fails, ``retried`` runs it again with ``guided`` set: they count as equal, and the
  symbols as bound to each other;
- a number that is needed freezes the symbols in it.

Bound and frozen symbols are no longer free: ``settled`` gives their sizes, with which the conversion
starts again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .dims import Dim, Size

T = TypeVar("T")


class SizeJournal:
    """Notes on the sizes of one attempt at a conversion.

    ``place`` is where the conversion is at: the expression for messages. ``reasons`` has, by symbol,
    the sentence of a report.
    """

    def __init__(self) -> None:
        self.place = ""
        self.reason = ""
        self.guided = False
        self.coincidences = 0
        self.settled: dict[str, Size] = {}
        self.reasons: dict[str, str] = {}
        self.assumptions: dict[str, None] = {}
        self._token: Token[SizeJournal] | None = None

    def __enter__(self) -> SizeJournal:
        self._token = _CURRENT.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _CURRENT.reset(self._token)

    # ---- questions of Dims

    def holds(self, difference: Dim, wanted: set[int]) -> bool:
        """Whether the sign of ``difference`` is one of ``wanted``, in the example."""
        value = _trial(difference)
        answer = ((value > 0) - (value < 0)) in wanted
        relation = {
            frozenset({-1}): "<",
            frozenset({-1, 0}): "<=",
            frozenset({1}): ">",
            frozenset({0, 1}): ">=",
        }[frozenset(wanted if answer else {-1, 0, 1} - wanted)]
        self.assumptions[_relation(difference, relation)] = None
        return answer

    def equal(self, difference: Dim) -> bool:
        """Whether two sizes are equal, of which ``difference`` may be zero."""
        if difference.example != 0:
            return False
        if not self.guided:
            self.coincidences += 1
            return False
        self._bind(difference)
        return True

    def number(self, size: Dim) -> int:
        """The size in the example, where a number is needed."""
        self.freeze(size, self.reason or "needs a number")
        return size.example

    # ---- notes

    def freeze(self, size: Dim, reason: str) -> None:
        """Fixes all symbols of ``size`` to their examples; ``reason`` follows the place in a sentence."""
        for name, symbol in size.symbols.items():
            self._settle(
                name, symbol.example, f"{name} is fixed to {symbol.example}: {self._sentence(reason)}"
            )

    def _bind(self, difference: Dim) -> None:
        """Makes ``difference`` zero: one symbol becomes an expression of the others, or all are frozen."""
        from .dims import of

        symbols = difference.symbols
        for name, symbol in reversed(symbols.items()):
            factor = dict(difference.terms).get((symbol,), 0)
            rest = difference - factor * of(symbol)
            names = set() if isinstance(rest, int) else set(rest.symbols)
            if factor in (1, -1) and names and name not in names:
                size = -rest * factor
                self._settle(name, size, f"{name} is {size}: {self._sentence('needs them to be equal')}")
                return
        self.freeze(difference, f"needs {difference} to be 0")

    def _settle(self, name: str, size: Size, sentence: str) -> None:
        if name not in self.settled:
            self.settled[name] = size
            self.reasons[name] = sentence

    def _sentence(self, reason: str) -> str:
        return f"{self.place or 'the conversion'} {reason}"

    @contextlib.contextmanager
    def because(self, reason: str) -> Iterator[None]:
        """Numbers needed in here are needed for ``reason``."""
        outer, self.reason = self.reason, reason
        try:
            yield
        finally:
            self.reason = outer


_NONE = SizeJournal()
_CURRENT: ContextVar[SizeJournal] = ContextVar("size_journal", default=_NONE)


def current_journal() -> SizeJournal:
    """The journal that is open; one that nobody reads where none is."""
    return _CURRENT.get()


def retried(function: Callable[[], T], *errors: type[Exception]) -> T:
    """``function()``; where that fails after chance equalities, once more with these taken for real."""
    journal = current_journal()
    before = journal.coincidences
    try:
        return function()
    except errors:
        if journal.coincidences == before or journal.guided:
            raise
    journal.guided = True
    try:
        return function()
    finally:
        journal.guided = False


def _trial(difference: Dim) -> int:
    from .dims import LEAST

    return int(difference.at(lambda symbol: max(symbol.example, LEAST)))


def _relation(difference: Dim, relation: str) -> str:
    """``height >= 7`` for height - 7 >= 0."""
    constant = dict(difference.terms).get((), 0)
    rest: Any = difference - constant
    if all(factor < 0 for _, factor in rest.terms):
        mirrored = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
        rest, constant, relation = -rest, -constant, mirrored[relation]
    return f"{rest} {relation} {-constant}"
