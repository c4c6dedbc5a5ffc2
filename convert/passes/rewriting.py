"""Rewrite rules (pattern, check, rewrite), and the record of what passes did and refused."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from tmconvert.errors.source import Source
from tmconvert.ir import CallFunction, InternalGraph
from tmconvert.ir.emitter import Definitions, GraphEmitter
from tmconvert.symbolics.op import Ops

M = TypeVar("M")


class _Named(Protocol):
    @property
    def name(self) -> str: ...


class Step(Protocol):
    """The subject of a record: an expression of a graph, or an operator of a lowered one."""

    @property
    def outputs(self) -> Sequence[_Named]: ...

    @property
    def source(self) -> Source | None: ...


class PassEvent(NamedTuple):
    """A change at a node, or the reason of a refusal; ``text`` continues the sentence that the name begins.

    >>> str(PassEvent("bn", "was folded into `conv`", Source("model.py", 31)))
    '`bn` was folded into `conv` (model.py:31)'
    """

    node: str
    text: str
    source: Source | None = None

    def __str__(self) -> str:
        place = "" if self.source is None else str(self.source)
        return f"`{self.node}` {self.text}" + (f" ({place})" if place else "")


@dataclass
class PassRecord:
    """The changes and refusals of a pass on a graph; true if it changed anything.

    ``notes`` are part of every report, not only of the log of passes.
    """

    name: str
    done: list[PassEvent] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _refused: dict[str, dict[PassEvent, None]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.done)

    @property
    def refused(self) -> list[PassEvent]:
        """Returns the refusals, except at nodes that the pass changed later, such as by another rule."""
        return [event for events in self._refused.values() for event in events]

    def did(self, step: Step, text: str) -> None:
        """Records a change at ``step``: ``was folded into `conv```."""
        event = _event(step, text)
        self.done.append(event)
        self._refused.pop(event.node, None)

    def refuse(self, step: Step, reason: str) -> None:
        """Records why ``step`` stays as it is: ``its input is used twice``."""
        event = _event(step, f"stays: {reason}")
        self._refused.setdefault(event.node, {})[event] = None

    def add(self, other: PassRecord) -> None:
        """Adds the records of a run on another graph."""
        self.done += other.done
        self.notes += other.notes
        for node, events in other._refused.items():
            self._refused.setdefault(node, {}).update(events)


def _event(step: Step, text: str) -> PassEvent:
    return PassEvent(step.outputs[0].name if step.outputs else "", text, step.source)


class Rule(ABC, Generic[M]):
    """One rewriting of calls. ``M`` is the type of a match, which the other two methods receive."""

    def takes(self, function: str) -> bool:
        """Whether the rule rewrites calls of a function; it is not tried at calls of others.

        A run asks once for each function, so the answer depends on nothing but the name.
        """
        return True

    @abstractmethod
    def match(self, graph: InternalGraph, call: CallFunction) -> M | None:
        """Returns the match of the pattern that ends in ``call``, of a function that it takes, or None."""

    def check(self, graph: InternalGraph, call: CallFunction, match: M) -> str | None:
        """Returns why the pattern has to stay, as a sentence's end, ``its input is used twice``, or None."""
        return None

    @abstractmethod
    def rewrite(self, graph: InternalGraph, call: CallFunction, match: M) -> str:
        """Rewrites the pattern; returns the change of ``call`` in words: ``was folded into `conv```."""


class RewritePass(Rule[M]):
    """A pass of one rule, which is tried at each call in order of execution."""

    name: str

    def run(self, graph: InternalGraph) -> PassRecord:
        record = PassRecord(self.name)
        apply_rules(record, graph, (self,))
        return record


def apply_rules(
    record: PassRecord, graph: InternalGraph, rules: Sequence[Rule[Any]], *, backwards: bool = False
) -> None:
    """Applies the first of ``rules`` that matches at each call of ``graph``; records changes and refusals.

    Calls that a rule makes are not visited.
    """
    takers = {function: [rule for rule in rules if rule.takes(function)] for function in graph.functions}
    if not any(takers.values()):
        return
    exprs = list(graph)
    for call in reversed(exprs) if backwards else exprs:
        if isinstance(call, CallFunction) and call.graph is graph and takers.get(call.function):
            _try(record, graph, takers[call.function], call)


def _try(record: PassRecord, graph: InternalGraph, rules: Sequence[Rule[Any]], call: CallFunction) -> None:
    for rule in rules:
        match = rule.match(graph, call)
        if match is None:
            continue
        reason = rule.check(graph, call, match)
        if reason is not None:
            record.refuse(call, reason)
            continue
        record.did(call, rule.rewrite(graph, call, match))
        return


class Emits:
    """A pass that adds calls: it has the ops that it may call, and emitters of calls."""

    name: str

    def __init__(self, catalogue: Ops) -> None:
        self.catalogue = catalogue

    def emitter(self, call: CallFunction) -> GraphEmitter:
        """Returns an emitter of calls before ``call``, which are recorded as made by this pass."""
        return emitter_before(call, self.catalogue, self.name)


P = TypeVar("P", bound=Emits)


class PassRule(Rule[M], Generic[M, P]):
    """One of the rules of a pass, ``owner``."""

    def __init__(self, owner: P) -> None:
        self.owner = owner


def emitter_before(call: CallFunction, catalogue: Definitions, made_by: str) -> GraphEmitter:
    """Returns an emitter of calls before ``call``, named after its first result."""
    assert call.graph is not None
    return GraphEmitter(
        call.graph, catalogue, source=call.source, made_by=made_by, name=call.outputs[0].name, before=call
    )
