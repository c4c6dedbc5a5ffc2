"""Finds rules for the types of layers with which a file is as close to its model as requested."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import NamedTuple

from tmconvert.conversion.format_numbers import counted
from tmconvert.conversion.prepared_model import traced
from tmconvert.conversion.request import ConversionRequest
from tmconvert.errors import UsageError
from tmconvert.mixed_precision.layers import Layer, short_rules
from tmconvert.mixed_precision.trials import SignalTrials, Trials, with_rules
from tmconvert.symbolics.op import Ops

MOST = 30  # conversions
_log = logging.getLogger("tmconvert")
Rules = Mapping[str, str]
# how good a file is with further rules, more is better; None where it cannot be converted
Measure = Callable[[Rules], "float | None"]
KINDS = ("int16x8", "float")


class FoundRules(NamedTuple):
    """Rules, what was measured with them, and how many conversions it took to find them."""

    rules: dict[str, str]
    value: float
    conversions: int


class Aim(NamedTuple):
    """A measured value of ``wanted`` or more, called ``name``; ``text`` writes a value.

    ``kinds`` are types for all layers, each more exact than the one before, the last that of the model.
    """

    wanted: float
    name: str
    kinds: tuple[str, ...] = KINDS
    text: Callable[[float], str] = "{:.1f} dB".format


def with_found_rules(request: ConversionRequest, catalogue: Ops) -> tuple[ConversionRequest, list[str]]:
    """Returns the request with rules for its ``min_sqnr`` or ``score_bound``, and notes that name them.

    PyTorch modules are traced once. Raises UsageError TM6032 where no rules reach it, and the errors of the
    conversion without further rules.
    """
    request = traced(request)
    trials: Trials
    if request.score_bound is not None:
        from tmconvert.mixed_precision.task_trials import TaskTrials

        trials = TaskTrials(request, catalogue, request.score_bound)
        aim = Aim(trials.wanted, trials.name, trials.kinds, trials.text)
        option = f"--score-margin {request.score_bound.margin:g}"
    else:
        trials, wanted = SignalTrials(request, catalogue), request.min_sqnr
        assert wanted is not None
        aim, option = Aim(wanted, f"every output has {wanted:g} dB"), f"--min-sqnr {wanted:g}"
    try:
        found = search(trials.layers, aim, trials.measured)
    except UsageError as error:
        if trials.refusal:
            also = ("also", f"int16x8 for all layers is refused: {trials.refusal}")
            raise UsageError("TM6032", error.message, notes=[also, *error.notes]) from None
        raise
    took = f"{counted(found.conversions, 'conversion')}, on {trials.about}"
    rules = counted(len(found.rules), "rule")
    reached = f"found for {option}: {rules}, with {aim.text(found.value)} ({took})"
    return with_rules(request, found.rules), [reached, *(f"  {flag}" for flag in _flags(found.rules))]


def _flags(rules: Rules) -> list[str]:
    return [f"--rule '{pattern}={kind}'" for pattern, kind in rules.items()]


def search(layers: list[Layer], aim: Aim, measured: Measure) -> FoundRules:
    """Returns rules with which at least the wanted value is measured.

    All layers begin in the first of the types that suffices, which are int16x8 and float for integers. Parts
    of them, and parts of those, then have no rule where the value holds without. Raises UsageError TM6032
    where that is nowhere.
    """
    return _Search(layers, aim, measured).run()


class _Search:
    def __init__(self, layers: list[Layer], aim: Aim, measured: Measure) -> None:
        self.layers, self.aim, self.measured = layers, aim, measured
        self.types: dict[Layer, str | None] = {}
        self.found: FoundRules | None = None
        self.conversions = 0
        self.best = FoundRules({}, float("-inf"), 0)

    def run(self) -> FoundRules:
        if not self._holds(self._all(None)):
            *others, last = self.aim.kinds
            if self.layers and not any(self._holds(self._all(kind)) for kind in others):
                self.types = self._all(last)  # what the model itself is
            self._reduce()
        if self.found is None:
            raise self._unreachable()
        return self.found._replace(conversions=self.conversions)

    def _all(self, kind: str | None) -> dict[Layer, str | None]:
        return dict.fromkeys(self.layers, kind)

    def _holds(self, types: dict[Layer, str | None]) -> bool:
        """Measures the types of layers, and takes them if the ratio holds."""
        rules = short_rules(types)
        if rules is None:
            return False
        value = self.measured(rules)
        self.conversions += 1
        result = "not converted" if value is None else self.aim.text(value)
        _log.info("conversion %d, with %s: %s", self.conversions, counted(len(rules), "rule"), result)
        if value is None:
            return False
        made = FoundRules(rules, value, 0)
        self.best = max(self.best, made, key=lambda each: each.value)
        if value >= self.aim.wanted:
            self.types, self.found = types, made
        return value >= self.aim.wanted

    def _reduce(self) -> None:
        """Takes rules from parts of the layers where the value holds without: from the largest first, once a
        smaller and smaller part at the end has been found with which it does.
        """
        parts = _parts(self.layers)
        while parts and self.conversions < MOST:
            largest = max(range(len(parts)), key=lambda at: (len(parts[at]), at))
            part = parts.pop(largest if self.found else -1)
            if not self._holds({**self.types, **dict.fromkeys(part)}):
                parts += _parts(part)

    def _unreachable(self) -> UsageError:
        took, value = counted(self.conversions, "conversion"), self.aim.text(self.best.value)
        best = (
            f"the best had {value}" if self.layers else f"those that were given, for all layers, have {value}"
        )
        rules = [("also", f"the best: {' '.join(_flags(self.best.rules))}")] if self.best.rules else []
        return UsageError(
            "TM6032",
            f"no rules were found with which {self.aim.name}, in {took}; {best}",
            notes=[*rules, ("help", "request less, or convert without fewer bits")],
        )


def _parts(layers: list[Layer]) -> list[list[Layer]]:
    """Returns two parts, about halves, that share the least of their paths; nothing for a single layer."""
    count = len(layers)
    ends = range(max(count // 4, 1), count - count // 4)
    if not ends:
        return []
    end = min(ends, key=lambda at: (_shared(layers[at - 1], layers[at]), abs(2 * at - count)))
    return [layers[:end], layers[end:]]


def _shared(one: Layer, other: Layer) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one.path, other.path, strict=False)))
