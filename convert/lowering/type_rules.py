"""Rules that choose the type of weights or computations by patterns of modules and tensors."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from tmconvert.errors import UsageError
from tmconvert.ir import Constant
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value

Rules = Sequence[tuple[str, str]]


class TypeRules:
    """Patterns, as of fnmatch, each with a type; the last match applies.

    An operator is matched by the paths of its module and of those around it, of the modules of its constants,
    and by the names of its results.
    """

    def __init__(self, rules: Rules, graph: TargetGraph) -> None:
        self.rules, self.graph = rules, graph

    def type_of(self, operators: Iterable[Operator], default: str) -> str:
        """Returns the type for what ``operators`` have in common."""
        if not self.rules:
            return default
        names = {name for operator in operators for name in self.names_of(operator)}
        found = [type for pattern, type in self.rules if any(fnmatchcase(name, pattern) for name in names)]
        return found[-1] if found else default

    def check(self) -> None:
        """Raises UsageError TM6032 for a pattern that matches nothing."""
        if not self.rules:
            return
        names = dict.fromkeys(name for each in self.graph.all_operators() for name in self.names_of(each))
        for pattern, _ in self.rules:
            if not any(fnmatchcase(name, pattern) for name in names):
                near = difflib.get_close_matches(pattern, names, 3)
                help = f"similar names: {', '.join(near)}" if near else "`tmconvert inspect MODEL` lists them"
                message = f"the rule {pattern} matches no module and no tensor"
                raise UsageError("TM6032", message, notes=[("help", help)])

    def names_of(self, operator: Operator) -> Iterator[str]:
        """Yields the names by which rules match an operator."""
        yield from _around(operator.source.scope if operator.source else "")
        yield from (value.name for value in operator.outputs)
        for value in operator.inputs:
            if value is not None and value.is_constant:
                yield from _around(self._path(value).rpartition(".")[0])

    def _path(self, value: Value) -> str:
        """Returns the path of a constant in the source; empty if it has none."""
        origin = self.graph.origins.get(value)
        expr = None if origin is None else origin.node.expr
        return expr.name or "" if isinstance(expr, Constant) else ""


def _around(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition(".")[0]
