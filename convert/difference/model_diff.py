"""The result of ``tmconvert diff``: changes, totals, outputs and latency, as text, Markdown and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tmconvert.difference.changes import KINDS, Change
from tmconvert.difference.limits import Limit
from tmconvert.errors.source import printable

if TYPE_CHECKING:
    from tmconvert.inspection.comparison import ModelComparison

SHOWN = 12  # changes of one kind in the text
_UNITS = {"size": "bytes", "weights": "bytes"}


@dataclass
class ModelDiff:
    """All differences of two models.

    ``changes`` are those of nodes, tensors and weights; ``totals`` has for ``operators``, ``parameters``,
    ``macs``, ``size`` and ``weights`` (in bytes) the numbers of both, None where one is not known;
    ``properties`` are texts that differ, such as the opset. ``outputs`` compares both on the same inputs, and
    ``latency`` has milliseconds, where these were requested. ``reordered`` is how many operators stand
    elsewhere in the file, and ``defaults`` has attributes that one file leaves out and the other states as
    what is taken then; both leave the models equal. ``broken`` are the conditions that do not hold.

    >>> print(tmconvert.diff("old.onnx", "new.onnx"))  # doctest: +SKIP
    """

    first: str
    second: str
    changes: list[Change]
    totals: dict[str, tuple[float | None, float | None]]
    properties: dict[str, tuple[str, str]] = field(default_factory=dict)
    operators: dict[str, tuple[int, int]] = field(default_factory=dict)
    outputs: ModelComparison | None = None
    latency: tuple[float, float] | None = None
    reordered: int = 0
    defaults: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether all conditions hold."""
        return not self.broken

    @property
    def is_equal(self) -> bool:
        """Whether nothing but names of files differs."""
        totals = (one == other for name, (one, other) in self.totals.items() if name != "size")
        return not self.changes and not self.properties and all(totals)

    def of_kind(self, *kinds: str) -> list[Change]:
        """Returns the changes of these kinds."""
        return [each for each in self.changes if each.kind in kinds]

    def check(self, limits: Sequence[Limit]) -> None:
        """Sets ``broken`` to the texts of the conditions that do not hold."""
        self.broken = [each.text for each in limits if self._is_broken(each)]

    def _is_broken(self, limit: Limit) -> bool:
        if limit.name == "changed-outputs":
            return self.outputs is None or not self.outputs.has_equal_outputs
        if limit.growth is None:
            return bool(self.of_kind(*limit.kinds()))
        pair = self.latency if limit.name == "latency" else self.totals.get(limit.name)
        one, other = pair or (None, None)
        return one is not None and other is not None and other > one * (1 + limit.growth)

    def __str__(self) -> str:
        return "\n".join(map(printable, self.lines()))

    def lines(self) -> Iterator[str]:
        """Returns the text of the command."""
        yield f"{self.first} -> {self.second}"
        if self.is_equal:
            yield "no difference in operators, weights, types and names"
        yield from (f"  {name}: {one} -> {other}" for name, (one, other) in self.properties.items())
        yield from (f"  {line}" for line in self._totals())
        for kind in KINDS:
            found = self.of_kind(kind)
            if found:
                yield f"{kind}: {len(found)}"
                yield from (f"  {each.text}" for each in found[:SHOWN])
                if len(found) > SHOWN:
                    yield f"  and {len(found) - SHOWN} more (--json lists all)"
        if self.reordered:
            yield f"operators that stand elsewhere in the file: {self.reordered}"
        if self.defaults:
            shown = ", ".join(self.defaults[:3]) + (", ..." if len(self.defaults) > 3 else "")
            yield f"attributes stated by one file alone, as their defaults: {len(self.defaults)} ({shown})"
        yield from self._measured()
        yield from (f"the condition {each} does not hold" for each in self.broken)

    def _totals(self) -> Iterator[str]:
        for name, (one, other) in self.totals.items():
            if one != other:
                unit = f" {_UNITS[name]}" if name in _UNITS else ""
                yield f"{name}: {_number(one)} -> {_number(other)}{unit}{_growth(one, other)}"
        for type, (count, its) in self.operators.items():
            yield f"{type}: {count} -> {its}"

    def _measured(self) -> Iterator[str]:
        if self.outputs is not None:
            worst = max((each.difference.largest for each in self.outputs.outputs), default=0.0)
            state = "within the limit" if self.outputs.has_equal_outputs else "differ"
            yield f"outputs: {state}, largest difference {worst:.2g}"
            if self.outputs.first is not None:
                yield f"first layer that differs: {self.outputs.first.name}"
        if self.latency is not None:
            one, other = self.latency
            yield f"latency: {one:.3g} -> {other:.3g} ms{_growth(one, other)}"

    def markdown(self) -> str:
        """Returns the text of ``--markdown``, for the description of a pull request."""
        lines = [f"### `{self.first}` → `{self.second}`", ""]
        if self.is_equal:
            lines += ["No difference in operators, weights, types and names.", ""]
        rows = [(name, one, other) for name, (one, other) in self.properties.items()]
        rows += [
            (name, _number(one), f"{_number(other)}{_growth(one, other)}")
            for name, (one, other) in self.totals.items()
            if one != other
        ]
        if rows:
            lines += [
                "| | before | after |",
                "|---|---|---|",
                *(f"| {a} | {b} | {c} |" for a, b, c in rows),
                "",
            ]
        for kind in KINDS:
            if found := self.of_kind(kind):
                lines += [f"<details><summary>{kind}: {len(found)}</summary>", ""]
                lines += [*(f"- `{each.text}`" for each in found), "", "</details>", ""]
        lines += [f"- {each}" for each in self._measured()]
        lines += [f"- **the condition `{each}` does not hold**" for each in self.broken]
        return "\n".join(map(printable, lines)).rstrip() + "\n"

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON document of the command."""
        return {
            "first": self.first,
            "second": self.second,
            "ok": self.ok,
            "equal": self.is_equal,
            "broken": self.broken,
            "counts": dict(Counter(each.kind for each in self.changes)),
            "changes": [each.to_json() for each in self.changes],
            "totals": {name: list(pair) for name, pair in self.totals.items()},
            "properties": {name: list(pair) for name, pair in self.properties.items()},
            "reordered": self.reordered,
            "defaults": self.defaults,
            "operators": {name: list(pair) for name, pair in self.operators.items()},
            "outputs": None if self.outputs is None else self.outputs.to_json(),
            "latency": None if self.latency is None else list(self.latency),
        }


def counts_that_differ(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Returns the types of operators whose counts differ."""
    names = sorted({*one, *other})
    return {
        each: (one.get(each, 0), other.get(each, 0)) for each in names if one.get(each) != other.get(each)
    }


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"


def _growth(one: float | None, other: float | None) -> str:
    return f" ({other / one - 1:+.1%})" if one and other is not None else ""
