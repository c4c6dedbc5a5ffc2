"""The result of an evaluation: how far two models differ on the samples of a data set."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tmconvert.conversion.format_numbers import counted
from tmconvert.errors.source import printable

SHOWN = 5  # of the worst samples


class OutputEvaluation(NamedTuple):
    """An output of the first model, compared with that of the second one over all samples.

    ``decibels`` is the signal-to-noise ratio, None for integers, which have no noise. ``agreement`` is the
    share of ``rows`` whose largest value is at the same index in both models; for integers, of those that
    are equal. It is None where the output does not look like scores of classes.
    """

    name: str
    decibels: float | None
    max_difference: float
    cosine: float
    agreement: float | None
    rows: int

    def to_json(self) -> dict[str, Any]:
        return {name: _finite(value) for name, value in self._asdict().items()}


class SampleEvaluation(NamedTuple):
    """A sample: its lowest ratio and largest difference over outputs, and whether all best classes agree."""

    name: str
    decibels: float | None
    max_difference: float
    agrees: bool

    def to_json(self) -> dict[str, Any]:
        return {name: _finite(value) for name, value in self._asdict().items()}


@dataclass
class Evaluation:
    """The result of ``tmconvert.evaluate``: ``outputs``, and the ``worst`` of the ``samples``, first
    those in which the best class differs. ``failures`` are the limits that are not reached.
    """

    first_model: str
    second_model: str
    samples: int
    outputs: list[OutputEvaluation] = field(default_factory=list)
    worst: list[SampleEvaluation] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.failures

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON document of ``tmconvert evaluate --json``; infinite numbers are null."""
        return {
            "first": self.first_model,
            "second": self.second_model,
            "ok": self.ok,
            "samples": self.samples,
            "outputs": [each.to_json() for each in self.outputs],
            "worst": [each.to_json() for each in self.worst],
            "failures": self.failures,
        }

    def __str__(self) -> str:
        return "\n".join(map(printable, self.lines()))

    def lines(self) -> Iterator[str]:
        """Returns the text of ``tmconvert evaluate``."""
        yield f"{self.second_model} compared with {self.first_model} on {counted(self.samples, 'sample')}"
        for each in self.outputs:
            parts = [] if each.decibels is None else [f"signal to noise {_decibels(each.decibels)}"]
            parts += [f"max difference {each.max_difference:.2g}", f"cosine {each.cosine:.6f}"]
            if each.agreement is not None:
                what = "equal" if each.decibels is None else "same best class"
                right = round(each.agreement * each.rows)
                parts.append(f"{what} {100 * each.agreement:.1f} % ({right} of {each.rows})")
            yield f"output {each.name}: {', '.join(parts)}"
        yield "worst samples" if self.samples > 1 else "the sample"
        width = max(len(each.name) for each in self.worst)
        for one in self.worst:
            ratio = "" if one.decibels is None else f"{_decibels(one.decibels)}, "
            other = "" if one.agrees else ", another best class"
            yield f"  {one.name:<{width}}  {ratio}max difference {one.max_difference:.2g}{other}"
        yield from (f"FAILED: {each}" for each in self.failures)


def _decibels(value: float) -> str:
    if math.isinf(value):
        return "infinite (equal)" if value > 0 else "none (NaN, infinities, or a signal of zeros)"
    return f"{value:.1f} dB"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
