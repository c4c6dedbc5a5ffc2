"""The source location of a graph element: the user's file, line and module."""

from __future__ import annotations

import re
from typing import NamedTuple

# C0 but tab, DEL, C1, and the marks that reorder what a person reads
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Escapes control characters as ``\x1b``: names in a model file may contain terminal commands."""
    if text.isprintable():  # most are
        return text
    return _CONTROL.sub(lambda match: match.group().encode("unicode_escape").decode(), text)


class Source(NamedTuple):
    """A location in the user's model.

    ``file`` is the user's Python file, or the model file for formats that keep no Python lines. For code that
    is not in a file it is Python's name of it (``<stdin>``). It is empty where no line of the user's code
    ran, as for the modules of an ``nn.Sequential``; only the module is known then. ``line`` is the 1-based
    line there, and in a prototxt, and in the "text" of a graph; for other model files it is the id of the
    expression, the ``%7`` that ``tmconvert inspect --graph`` prints. ``scope`` is the dotted module path
    (``layer1.0.conv``, empty at the top) and ``class_name`` the class of that module. Files of named nodes
    have no lines: there, these are the
    name and type of the node.
    """

    file: str
    line: int | None = None
    scope: str = ""
    class_name: str = ""

    def __str__(self) -> str:
        is_text = self.file.endswith((".py", ".prototxt")) or self.file.startswith("<")
        is_text = is_text or self.file == "text"  # of parse_graph
        line = "" if self.line is None else f":{self.line}" if is_text else f":%{self.line}"
        if self.file and self.line is None and self.scope and not is_text:
            kind = f" ({self.class_name})" if self.class_name else ""
            return printable(f"{self.file}: node {self.scope}{kind}")
        module = f"{self.class_name} ({self.scope})" if self.class_name and self.scope else ""
        module = module or self.class_name or self.scope
        return printable(", ".join(part for part in (self.file + line, module and f"in {module}") if part))
