"""How notebooks show objects of tmconvert: a function of a higher layer makes the HTML text."""

from __future__ import annotations

from collections.abc import Callable

_makers: list[Callable[[object], str | None]] = []


def register_notebook_form(make: Callable[[object], str | None]) -> None:
    """Registers the function that returns the HTML text of an object, None for one that it does not show."""
    _makers[:] = [make]


def notebook_form(shown: object) -> str | None:
    """Returns the HTML text of an object; None where a notebook is to print it."""
    return _makers[0](shown) if _makers else None


class NotebookForm:
    """Shows an object in notebooks as a page: models, graphs and reports."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        """Returns the page in a frame; Jupyter calls this."""
        return notebook_form(self)
