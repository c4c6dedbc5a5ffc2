"""Names of the functions and classes that users name by the object itself."""

from __future__ import annotations

from collections.abc import Callable

_namers: list[Callable[[object], str | None]] = []


def register_namer(namer: Callable[[object], str | None]) -> None:
    """Registers a function from a framework's function to its recorded name, or None."""
    _namers.append(namer)


def name_of_function(function: object) -> str:
    """Returns the name of a function or class; a text is a name already.

    >>> name_of_function("nn.relu")
    'nn.relu'
    >>> import fractions
    >>> name_of_function(fractions.Fraction)
    'fractions.Fraction'
    """
    if isinstance(function, str):
        return function
    for namer in _namers:
        name = namer(function)
        if name is not None:
            return name
    own = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(function)
    home = getattr(function, "__module__", None)
    return f"{home}.{own}" if home else str(own)


class FunctionName(str):
    """The name of a called function, which also equals the function itself.

    >>> import fractions
    >>> FunctionName("fractions.Fraction") == fractions.Fraction
    True
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return str.__eq__(self, name_of_function(other) if callable(other) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    @property
    def __name__(self) -> str:
        return self.rpartition(".")[2].rpartition("::")[2]
