"""The result of a comparison of two models."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tmconvert.errors.source import printable
from tmconvert.inspection.differences import Difference

SHOWN = 8  # layers in the text


class OutputDifference(NamedTuple):
    """An output of the first model, and how far that of the second is off."""

    name: str
    difference: Difference
    limit: float

    @property
    def ok(self) -> bool:
        return self.difference.largest <= self.limit


class LayerDifference(NamedTuple):
    """A tensor that both models compute.

    ``operators`` compute it in the suspected model, from tensors that both have; ``function`` in the other
    one. ``accumulated`` is the difference between the two models; ``local`` what remains where the other
    model's operation gets the operands of the suspected one, None where its graph cannot be read.
    """

    name: str
    operators: tuple[str, ...]
    function: str
    accumulated: Difference
    local: Difference | None
    limit: float
    is_wrong: bool

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "operators": list(self.operators),
            "function": self.function,
            "accumulated": _json(self.accumulated),
            "local": None if self.local is None else _json(self.local),
            "limit": self.limit,
            "wrong": self.is_wrong,
        }


@dataclass
class ModelComparison:
    """The result of ``tmconvert.compare``: outputs, then the tensors that both models have, in order.

    ``suspect`` is the model whose layers are judged. ``first`` is the first layer that goes wrong, None if
    none does; ``ok`` is true if the outputs agree and no layer is wrong.
    """

    first_model: str
    second_model: str
    kind: str
    suspect: str
    outputs: list[OutputDifference] = field(default_factory=list)
    layers: list[LayerDifference] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def first(self) -> LayerDifference | None:
        return next((layer for layer in self.layers if layer.is_wrong), None)

    @property
    def has_equal_outputs(self) -> bool:
        """Whether all outputs are within their limits, whatever the layers are."""
        return all(each.ok for each in self.outputs)

    @property
    def ok(self) -> bool:
        return self.has_equal_outputs and self.first is None

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON document of ``tmconvert compare --json``."""
        return {
            "first": self.first_model,
            "second": self.second_model,
            "ok": self.ok,
            "kind": self.kind,
            "suspect": self.suspect,
            "outputs": [
                {"name": each.name, **_json(each.difference), "limit": each.limit, "ok": each.ok}
                for each in self.outputs
            ],
            "first_wrong_layer": None if self.first is None else self.first.name,
            "layers": [each.to_json() for each in self.layers],
            "notes": self.notes,
        }

    def __str__(self) -> str:
        return "\n".join(map(printable, self.lines()))

    def lines(self) -> Iterator[str]:
        """Returns the text of ``tmconvert compare``."""
        yield from (f"note: {each}" for each in self.notes)
        for each in self.outputs:
            word = "agree" if each.ok else "DIFFER"
            yield f"output {each.name}: {word}, {_text(each.difference)} (limit {each.limit:.0e})"
        if self.layers:
            yield f"{len(self.layers)} layers compared in {self.kind}"
        wrong = self.first
        if wrong is not None:
            yield ""
            yield f"first layer that goes wrong in {self.suspect}: {wrong.name}"
            yield f"  computed by   {', '.join(wrong.operators)}"
            yield f"  compared with {wrong.function}"
            if wrong.local is not None:
                yield f"  local error   {_text(wrong.local)} (limit {wrong.limit:.0e})"
            yield f"  accumulated   {_text(wrong.accumulated)}"
            others = sum(layer.is_wrong for layer in self.layers) - 1
            if others:
                yield f"  {others} further layers go wrong"
        elif self.layers:
            yield "no layer goes wrong; the largest local errors are"
            yield from self._largest()

    def _largest(self) -> Iterator[str]:
        known = [(each, each.local or each.accumulated) for each in self.layers]
        known.sort(key=lambda pair: -pair[1].largest)
        width = max(len(each.name) for each, _ in known[:SHOWN])
        for each, found in known[:SHOWN]:
            yield f"  {each.name:<{width}}  {_text(found)}"


def _text(found: Difference) -> str:
    if math.isinf(found.largest):
        return "other shapes, NaN or infinities"
    if found.largest == 0:
        return "equal"
    return f"max error {found.largest:.1e}, {found.decibels:.1f} dB"


def _json(found: Difference) -> dict[str, float | None]:
    is_known = math.isfinite(found.largest)
    return {
        "max_error": found.largest if is_known else None,
        "noise": found.noise if is_known else None,
        "decibels": found.decibels if math.isfinite(found.decibels) else None,
    }
