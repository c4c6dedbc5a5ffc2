"""The result of an integer conversion, and its notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tmconvert.ir.types import QParams
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.options import IntegerType


@dataclass(frozen=True)
class FloatFallback:
    """An operator that stays in float, and its tensors without QParams.

    Without such tensors, the reason is a missing integer kernel.
    """

    operator: Operator
    lacking: tuple[Value, ...]


@dataclass
class IntegerGraph:
    """``graph`` in integers, and the data of its notes.

    ``requantized`` counts the tensors that are requantized with other QParams, ``derived`` are weights whose
    scales were computed, ``widened`` those with larger scales for their biases. ``integers`` counts the
    operators on integers by their type. ``stored`` has each constant in integers, next to the float one, and
    its QParams; ``all_qparams`` those of tensors that the float graph has, too. ``not_numbers`` are the names
    of constants with NaN, ``table_entries`` is the size of the largest lookup table.
    """

    graph: TargetGraph
    activations: IntegerType
    integers: Counter[str] = field(default_factory=Counter)
    stored: list[tuple[Value, Value, QParams]] = field(default_factory=list)
    all_qparams: dict[Value, QParams] = field(default_factory=dict)
    fallbacks: list[FloatFallback] = field(default_factory=list)
    requantized: int = 0
    derived: list[str] = field(default_factory=list)
    widened: list[str] = field(default_factory=list)
    clipped: int = 0
    not_numbers: list[str] = field(default_factory=list)
    table_entries: int = 0

    def notes(self) -> list[str]:
        """Returns the notes of a report."""
        counts = [f"{count} operators in {kind}" for kind, count in sorted(self.integers.items())]
        lines = [
            ", ".join(reversed(counts)) or ("no operator computes: the model only quantizes and dequantizes")
        ]
        if self.requantized:
            lines.append(f"{self.requantized} tensors are requantized to another scale")
        if self.clipped:
            lines.append(
                f"{self.clipped} weights of -128 are clipped to -127, since kernels of some processors "
                "overflow for -128: wide_weights keeps them"
            )
        if self.not_numbers:
            lines.append(
                f"integers have no NaN, zero is in its place in constants: {_names(self.not_numbers)}"
            )
        if self.derived:
            lines.append(f"weight scales measured on the weights themselves: {_names(self.derived)}")
        if self.widened:
            lines.append(
                f"weight scales of single channels are larger, so that biases fit: {_names(self.widened)}"
            )
        for is_lacking, why in (
            (True, "without scales in the model"),
            (False, f"without a kernel for {self.activations}"),
        ):
            fallbacks = [fallback for fallback in self.fallbacks if bool(fallback.lacking) == is_lacking]
            names = [fallback.operator.outputs[0].name for fallback in fallbacks]
            if names:
                lines.append(f"operators kept in float, {why}: {_names(names)}")
        return lines


def _names(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
