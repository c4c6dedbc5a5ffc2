"""Finds rules for the types of layers with which an integer file is as close to its model as requested."""

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
from tmconvert.mixed_precision.trials import Trials, with_rules
from tmconvert.symbolics.op import Ops

MOST = 30  # conversions
_log = logging.getLogger("tmconvert")
Rules = Mapping[str, str]
# the lowest signal-to-noise ratio of the outputs with further rules; None where they cannot be converted
Measure = Callable[[Rules], "float | None"]


class FoundRules(NamedTuple):
    """Rules, the ratio in dB that was measured with them, and how many conversions it took to find them."""

    rules: dict[str, str]
    decibels: float
    conversions: int


def with_found_rules(request: ConversionRequest, catalogue: Ops) -> tuple[ConversionRequest, list[str]]:
    """Returns the request with rules for its ``min_sqnr``, and notes that name them.

    PyTorch modules are traced once. Raises UsageError TM6032 where no rules reach the ratio, and the errors
    of the conversion without further rules.
    """
    wanted = request.min_sqnr
    assert wanted is not None
    request = traced(request)
    trials = Trials(request, catalogue)
    try:
        found = search(trials.layers, wanted, trials.decibels)
    except UsageError as error:
        if trials.refusal:
            also = ("also", f"int16x8 for all layers is refused: {trials.refusal}")
            raise UsageError("TM6032", error.message, notes=[also, *error.notes]) from None
        raise
    took = f"{counted(found.conversions, 'conversion')}, on {trials.about}"
    rules = counted(len(found.rules), "rule")
    reached = f"found for --min-sqnr {wanted:g}: {rules}, with {found.decibels:.1f} dB ({took})"
    return with_rules(request, found.rules), [reached, *(f"  {flag}" for flag in _flags(found.rules))]


def _flags(rules: Rules) -> list[str]:
    return [f"--rule '{pattern}={kind}'" for pattern, kind in rules.items()]


def search(layers: list[Layer], wanted: float, measured: Measure) -> FoundRules:
    """Returns rules with which every output has a ratio of at least ``wanted`` dB.

    All layers begin in int16x8, if that suffices, else in float. Parts of them, and parts of those, then get
    int8 where the ratio holds with it. Raises UsageError TM6032 where that is nowhere.
    """
    return _Search(layers, wanted, measured).run()


class _Search:
    def __init__(self, layers: list[Layer], wanted: float, measured: Measure) -> None:
        self.layers, self.wanted, self.measured = layers, wanted, measured
        self.types: dict[Layer, str | None] = {}
        self.found: FoundRules | None = None
        self.conversions = 0
        self.best = FoundRules({}, float("-inf"), 0)

    def run(self) -> FoundRules:
        if not self._holds(self._all(None)):
            if self.layers and not self._holds(self._all("int16x8")):
                self.types = self._all("float")  # what the model itself is
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
        decibels = self.measured(rules)
        self.conversions += 1
        result = "not converted" if decibels is None else f"{decibels:.1f} dB"
        _log.info("conversion %d, with %s: %s", self.conversions, counted(len(rules), "rule"), result)
        if decibels is None:
            return False
        made = FoundRules(rules, decibels, 0)
        self.best = max(self.best, made, key=lambda each: each.decibels)
        if decibels >= self.wanted:
            self.types, self.found = types, made
        return decibels >= self.wanted

    def _reduce(self) -> None:
        """Gives parts of the layers int8 where the ratio holds with it: the largest first, once a smaller and
        smaller part at the end has been found with which it does.
        """
        parts = _parts(self.layers)
        while parts and self.conversions < MOST:
            largest = max(range(len(parts)), key=lambda at: (len(parts[at]), at))
            part = parts.pop(largest if self.found else -1)
            if not self._holds({**self.types, **dict.fromkeys(part)}):
                parts += _parts(part)

    def _unreachable(self) -> UsageError:
        took, ratio = counted(self.conversions, "conversion"), f"{self.best.decibels:.1f} dB"
        best = (
            f"the best had {ratio}" if self.layers else f"those that were given, for all layers, have {ratio}"
        )
        rules = [("also", f"the best: {' '.join(_flags(self.best.rules))}")] if self.best.rules else []
        return UsageError(
            "TM6032",
            f"no rules were found with which every output has {self.wanted:g} dB, in {took}; {best} {ratio}",
            notes=[*rules, ("help", "request less, or convert without --quantized")],
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
