"""Decisions: where Python branches on a tensor that depends on an input.

A decision is on the tape as a Record ``tm.decision`` with the tensor and the answer, until both sides are
joined to one call of ``torch.cond`` (``both_sides.py``, ``joining.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch

from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.tape import Forced, Record, Scope, Value
from tmconvert.ir.tree import map_leaves

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

DECISION = "tm.decision"
_RANDOM = (
    "rand",
    "drop",
    "bernoulli",
    "multinomial",
    "normal",
    "poisson",
    "exponential",
    "uniform",
    "cauchy",
)
_FEW = 16  # elements of constants that are compared by value


class Endless(Exception):
    """A run does not end with the answers that it is given."""


class Elsewhere(Exception):
    """The sizes of a run do not lead to the answers that it is given, but to the first ``count`` of them."""

    def __init__(self, count: int) -> None:
        super().__init__("the sizes lead to other answers")
        self.count = count


class Decisions:
    """The decisions of one run: first with the tape's ``forced`` answers, then with those of the data.

    What was asked before, of an equal computation of equal operands, gets the answer that it got.
    """

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self._tape = recorder, recorder.tape
        self._forced: Forced = recorder.tape.forced or Forced()
        self._count, self._rounds = 0, Counter[str]()
        self._answers: dict[int, bool] = {}
        self._numbers: dict[Value, int] = {}  # of equal computations
        self._known: dict[Any, int] = {}
        self._seen: dict[Scope, int] = {}  # items

    def answer(self, tensor: torch.Tensor, outcome: bool, place: Source, choice: Any) -> bool:
        """Returns the answer of a decision, and puts the decision on the tape.

        ``choice`` is the condition as a size, for a decision on sizes.
        """
        value = self._recorder.value_of(tensor)
        number = self._number(value)
        self._count += 1
        if self._forced.most is not None and self._count > self._forced.most:
            raise Endless("the module does not end")
        if number not in self._answers:
            decided = self._tape.decided
            answer = self._given(str(place), outcome) if choice is None else self._of_sizes(outcome)
            size = () if choice is None else (self._recorder.value_of(choice),)
            decided.append(Record(DECISION, False, (value, answer, *size), {}, (), place))
            self._recorder.scope.items.append(decided[-1])
            self._answers[number] = answer
        return self._answers[number]

    def _of_sizes(self, outcome: bool) -> bool:
        """Returns the answer of the sizes. Raises Elsewhere where the run is given the other one, unless it
        takes that.
        """
        number = len(self._tape.decided)
        answer = self._forced.first[number] if number < len(self._forced.first) else outcome
        if answer is not outcome and not self._forced.sizes:
            raise Elsewhere(number)
        return answer

    def _given(self, place: str, outcome: bool) -> bool:
        """Returns the answer that the next decision on data is given, else that of the data."""
        number = len(self._tape.decided)
        if number < len(self._forced.first):
            return self._forced.first[number]
        if place not in self._forced.loops:
            answer = self._forced.others.get(place, outcome)
            return (
                answer if self._forced.otherwise is None or not self._forced.otherwise(number) else not answer
            )
        go, rounds = self._forced.loops[place]
        self._rounds[place] += 1
        return go if self._rounds[place] <= rounds else not go

    def _number(self, value: Value) -> int:
        for record in self._unseen(self._tape.top):
            operands = map_leaves(self._key, (record.args, record.kwargs))
            is_random = any(part in record.name for part in _RANDOM)
            key: object = object() if is_random or record.subgraphs else repr((record.name, operands))
            for index, result in enumerate(record.results()):
                self._numbers.setdefault(result, self._known.setdefault((key, index), len(self._known)))
        key = self._key(value)
        return self._known.setdefault(key, len(self._known))

    def _unseen(self, scope: Scope) -> Iterator[Record]:
        """Yields the records that are new in a scope; its last item may still grow."""
        items = scope.items[self._seen.get(scope, 0) :]
        self._seen[scope] = len(scope.items) - int(bool(items) and isinstance(items[-1], Scope))
        for item in items:
            if isinstance(item, Scope):
                yield from self._unseen(item)
                continue
            yield item
            for body in item.subgraphs:
                yield from body.records()

    def _key(self, leaf: object) -> object:
        if not isinstance(leaf, Value):
            return type(leaf).__name__, leaf
        if leaf in self._numbers:
            return "result", self._numbers[leaf]
        tensor = leaf.captured
        if tensor is not None and tensor.numel() <= _FEW and not tensor.is_meta:
            with torch._C.DisableTorchFunction():
                return "constant", str(tensor.dtype), tuple(tensor.shape), repr(tensor.tolist())
        return "value", id(leaf if tensor is None else tensor)


def answer(
    recorder: Recorder,
    name: str,
    arguments: tuple[tuple[Any, ...], dict[str, object]],
    outcome: bool,
    place: Source,
    *,
    choice: Any = None,
) -> bool | None:
    """Returns the answer to a call that converts data to a bool; None where it cannot be a decision."""
    if name == "equal" and _have_other_shapes(recorder, *arguments[0]):
        return False
    condition = None if why_undecidable(recorder) else condition_of(recorder, name, *arguments)
    if condition is None:
        return None
    decisions: Decisions = recorder.tape.answering or Decisions(recorder)
    recorder.tape.answering = decisions
    return decisions.answer(condition, outcome, place, choice)


def why_undecidable(recorder: Recorder) -> str:
    """Returns why both sides of a decision cannot be recorded at the current place; empty if they can."""
    if recorder.follows_gradients:
        return "both sides cannot be recorded in a module that computes gradients with respect to its inputs"
    if recorder.is_batched:
        return "both sides cannot be recorded in a function that torch.vmap runs"
    pairs = pairwise(recorder.scope.ancestors())
    if not all(outer.items and outer.items[-1] is scope for scope, outer in pairs):
        return "both sides cannot be recorded in a function that is the argument of a call"
    return ""


def _have_other_shapes(recorder: Recorder, one: torch.Tensor, two: torch.Tensor) -> bool:
    """Whether two tensors have other shapes; open sizes are compared as Python does."""
    if one.dim() != two.dim():
        return True
    pairs = zip(recorder.shape_of(one), recorder.shape_of(two), strict=True)
    return any(a != b for a, b in pairs)


def condition_of(
    recorder: Recorder, name: str, args: tuple[Any, ...], kwargs: dict[str, object]
) -> torch.Tensor | None:
    """Returns the condition, of one element, that a call converts to a bool; None for another call."""
    first = args[0]
    if name in ("__bool__", "is_nonzero") or (
        name in ("item", "_local_scalar_dense") and first.dtype == torch.bool
    ):
        return first
    if name == "equal":
        return _reduced(recorder, torch.all, torch.eq, args, kwargs)
    if name == "allclose":
        return _reduced(recorder, torch.all, torch.isclose, args, kwargs)
    if name == "__contains__" and isinstance(args[1], (int, float, torch.Tensor)):
        return _reduced(recorder, torch.any, torch.eq, args, kwargs)
    return None


def _reduced(
    recorder: Recorder,
    reduction: Callable[..., object],
    function: Callable[..., object],
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> Any:
    return recorder.called(reduction, (recorder.called(function, args, kwargs),), {})
