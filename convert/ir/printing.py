"""How expressions show nodes and arguments in MegEngine's format, for people."""

from __future__ import annotations

from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.node import Node
from tmconvert.ir.tree import Tree, map_leaves


class Printing:
    """Shows trees of arguments; ``spec`` is how nodes are shown, see ``Node.__format__``."""

    def __init__(self, spec: str = "") -> None:
        self.spec = spec

    def text(self, value: Tree) -> str:
        """Returns the text of an argument or result."""
        if isinstance(value, GlobalRef):
            return f"<class '{value}'>"
        if not self.spec:
            return str(value)
        return str(map_leaves(self._leaf, value))

    def arguments(self, args: tuple[Tree, ...], kwargs: dict[str, Tree]) -> str:
        """Returns the arguments of a call; a comma ends the positional ones."""
        positional = ", ".join(map(self.text, args))
        keywords = ", ".join(f"{key}={self.text(value)}" for key, value in kwargs.items())
        return f"{positional}, {keywords}"

    def _leaf(self, leaf: object) -> object:
        return _Word(format(leaf, self.spec)) if isinstance(leaf, Node) else leaf


class _Word(str):
    """A text that shows itself without quotes in a list."""

    __slots__ = ()
    __repr__ = str.__str__
