"""Where a piece of a graph comes from: the user's file, line and module."""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """A place in the user's model.

    ``file`` is the user's Python file, or the model file for formats that keep no Python lines.
    ``line`` is the 1-based line there; for a model file it is the id of the expression, the
    ``%7`` that ``tmconvert inspect --graph`` prints. ``scope`` is the dotted module path
    (``layer1.0.conv``, empty at the top) and ``class_name`` the class of that module.
    """

    file: str
    line: int | None = None
    scope: str = ""
    class_name: str = ""

    def __str__(self) -> str:
        text = self.file
        if self.line is not None:
            text += f":{self.line}" if self.file.endswith(".py") else f":%{self.line}"
        if self.class_name:
            text += f", in {self.class_name}"
        if self.scope:
            text += f" ({self.scope})" if self.class_name else f", in {self.scope}"
        return text
