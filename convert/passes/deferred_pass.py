"""A pass whose module is imported for the first graph that calls the ops of its patterns."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

from tmconvert.ir import InternalGraph
from tmconvert.passes.rewriting import PassRecord
from tmconvert.symbolics.registry import op_has
from tmconvert.symbolics.traits import Trait

# whether the pattern of a pass has an op of this name
Condition = Callable[[str], bool]


def calls(*names: str) -> Condition:
    """Returns the condition of the ops with these names."""
    return frozenset(names).__contains__


def has(*kinds: type[Trait]) -> Condition:
    """Returns the condition of the ops with one of these traits."""
    return lambda name: op_has(name, *kinds)


class DeferredPass:
    """Runs the pass of a module on graphs that meet each of ``conditions`` by some call.

    ``place`` is ``module:Class``; the last part of the module is the name of the pass. On other graphs the
    pass would change nothing and refuse nothing, and it is not imported.

    >>> DeferredPass("tmconvert.passes.fuse_rsqrt:FuseRsqrt", [calls("aten::sqrt")], catalogue).name
    'fuse_rsqrt'
    """

    def __init__(self, place: str, conditions: list[Condition], *args: object, **kwargs: object) -> None:
        self._module, _, self._class = place.partition(":")
        self._conditions, self._args, self._kwargs = conditions, args, kwargs
        self.name = self._module.rpartition(".")[2]

    @cached_property
    def loaded(self) -> Any:
        """The pass itself, whose module is imported."""
        return getattr(import_module(self._module), self._class)(*self._args, **self._kwargs)

    def is_needed(self, graph: InternalGraph) -> bool:
        """Whether each condition is met by a call of ``graph``."""
        return all(any(map(condition, graph.functions)) for condition in self._conditions)

    def run(self, graph: InternalGraph) -> PassRecord:
        if not self.is_needed(graph):
            return PassRecord(self.name)
        record = self.loaded.run(graph)
        assert isinstance(record, PassRecord)
        return record
