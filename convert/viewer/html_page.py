"""A finished page: its text, to be saved or shown in a notebook."""

from __future__ import annotations

import html
from os import PathLike

from tmconvert.errors.values import checked_path
from tmconvert.output.atomic import atomic_output

LARGEST_IN_NOTEBOOK = 8_000_000  # characters
HEIGHT = 620  # pixels


class HtmlPage:
    """A self-contained page.

    ``text`` is its HTML. In a notebook it is shown in a frame that may run the scripts of the page, and
    nothing else.

    >>> tmconvert.view("model.onnx").save("model.html")  # doctest: +SKIP
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the page to a file. Raises WriteError."""
        with atomic_output(checked_path(path)) as file:
            file.write(self.text.encode())

    def __repr__(self) -> str:
        return f"HtmlPage({len(self.text)} characters)"

    def _repr_html_(self) -> str | None:
        return framed(self.text)


def framed(text: str) -> str | None:
    """Returns a frame with a page for a notebook; None for a page that is too large for it."""
    if len(text) > LARGEST_IN_NOTEBOOK:
        return None
    return (
        f'<iframe srcdoc="{html.escape(text)}" sandbox="allow-scripts allow-downloads" '
        f'style="width:100%;height:{HEIGHT}px;border:1px solid #8888;border-radius:8px"></iframe>'
    )
