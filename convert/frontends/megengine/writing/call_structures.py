"""Formal arguments of a graph from the key of its call structure, the inverse of ``ir.call_structure``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from tmconvert.errors import WriteError
from tmconvert.frontends.megengine.writing.pickle_writer import CANNOT_SAVE
from tmconvert.ir import InternalGraph, Node

_TEXT = r"b?(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_CONSTANT = re.compile(rf"(?:bool|bytes|ellipsis|float|int|NoneType|str) ({_TEXT}|[^\s,:()\[\]{{}}]+)")
_KEY = re.compile(rf"({_TEXT}|[^\s,:()\[\]{{}}]+):")
_WORDS = {"inf": float("inf"), "-inf": float("-inf"), "nan": float("nan"), "Ellipsis": ...}

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def formal_arguments(structure: str, graph: InternalGraph) -> Arguments:
    """Returns (args, kwargs) with the formal inputs of ``graph`` at the positions of tensors and modules.

    Inputs that were added to the graph follow the positional arguments; where inputs were removed, all
    are positional. Raises WriteError TM5005 for a constant argument that is not a literal.
    """
    parser = _Parser(structure, graph.inputs)
    args, kwargs = parser.value()
    if parser.missing:
        return tuple(graph.inputs), {}
    return (*args, *parser.inputs), kwargs


class _Parser:
    """Reads ``((M,[T,T,],float 1.5,),{'mask':T,})``: M a module, T a tensor, else a type and a literal."""

    def __init__(self, structure: str, inputs: list[Node]) -> None:
        self.structure = structure
        self.position = 0
        self.inputs: Iterator[Node] = iter(inputs)
        self.missing = 0  # tensors and modules without an input

    def value(self) -> Any:
        start = self.structure[self.position]
        if start in "([{":
            return self._container(start)
        if self.structure.startswith("slice(", self.position):
            self.position += len("slice")
            return slice(*self._container("("))
        if start in "MT":
            self.position += 1
            node = next(self.inputs, None)
            self.missing += node is None
            return node
        return self._literal(self._match(_CONSTANT))

    def _container(self, start: str) -> Any:
        self.position += 1
        items: list[Any] = []
        while self.structure[self.position] not in ")]}":
            key = self._literal(self._match(_KEY)) if start == "{" else None
            items.append((key, self.value()) if start == "{" else self.value())
            self.position += self.structure.startswith(",", self.position)
        self.position += 1
        return dict(items) if start == "{" else items if start == "[" else tuple(items)

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.structure, self.position)
        if found is None:
            what = self.structure[self.position :][:40]
            raise WriteError(CANNOT_SAVE, f"an argument of the trace is not a literal: {what}")
        self.position = found.end()
        return found[1]

    def _literal(self, text: str) -> Any:
        return _WORDS[text] if text in _WORDS else ast.literal_eval(text)
