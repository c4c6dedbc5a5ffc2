"""Format-independent records of quantization parameters, one per tensor of a lowered graph.

A record has the name of the tensor in the written model. Blobs of a Caffe layer do not have names; they are
named after their layer: ``conv1_weight``, ``conv1_bias``, ``conv1_blob_2``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from tmconvert.ir.types import QParams
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.registry import target_named
from tmconvert.targets.target import Target

ACTIVATION, WEIGHT, BIAS = "activation", "weight", "bias"
UNKNOWN = "unknown"  # of a file that does not tell weights from activations
ROLES = (ACTIVATION, WEIGHT, BIAS)


@dataclass(frozen=True)
class Record:
    """Quantization of one tensor: real = scale * (q - zero_point), q from ``quant_min`` to ``quant_max``.

    ``scales`` and ``zero_points`` have one entry, or one for each index of ``axis``, an axis in the layout of
    the file; None if a file does not state the channel axis. ``symmetric`` states that the zero points are in
    the middle of the range by definition. ``shape`` is None where it is not known. ``producer`` and
    ``consumers`` are names of layers; the consumers of a weight are the layers that have it. ``operator`` is
    the type of the layer that computes the tensor, or has it as its weight. They are empty if they are not
    known.
    """

    name: str
    role: str
    dtype: str
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    quant_min: int
    quant_max: int
    axis: int | None = None
    symmetric: bool = False
    shape: tuple[int, ...] | None = None
    producer: str = ""
    consumers: tuple[str, ...] = ()
    operator: str = ""
    source: str = field(default="", compare=False)

    @property
    def bits(self) -> int:
        return (self.quant_max - self.quant_min).bit_length()

    @property
    def is_signed(self) -> bool:
        return self.quant_min < 0

    @property
    def is_full(self) -> bool:
        """Whether the range uses all values of its bits."""
        return self.quant_max - self.quant_min == 2**self.bits - 1

    @property
    def is_narrow(self) -> bool:
        """Whether the range is narrow: a signed integer's without its lowest value, such as -127 to 127."""
        return self.is_signed and self.quant_min == -self.quant_max == 1 - 2 ** (self.bits - 1)

    @property
    def minima(self) -> tuple[float, ...]:
        """Returns the smallest real value for each scale."""
        return self._ends(self.quant_min)

    @property
    def maxima(self) -> tuple[float, ...]:
        return self._ends(self.quant_max)

    def _ends(self, end: int) -> tuple[float, ...]:
        pairs = zip(self.scales, self.zero_points, strict=True)
        return tuple((end - zero) * scale for scale, zero in pairs)

    def shifted(self, quant_min: int) -> Record:
        """Returns the same parameters with the integer range starting at ``quant_min``."""
        shift = quant_min - self.quant_min
        low, high = quant_min, self.quant_max + shift
        return replace(
            self,
            dtype=integer_name(low, high),
            zero_points=tuple(zero + shift for zero in self.zero_points),
            quant_min=low,
            quant_max=high,
        )

    def to_json(self) -> dict[str, Any]:
        derived = {"bits": self.bits, "signed": self.is_signed, "min": self.minima, "max": self.maxima}
        return {**asdict(self), **derived}


def integer_name(quant_min: int, quant_max: int) -> str:
    """Returns ``int8``, ``uint8``, ``int8_narrow``: the name of the range ``quant_min`` to ``quant_max``."""
    bits = (quant_max - quant_min).bit_length()
    name = f"{'int' if quant_min < 0 else 'uint'}{bits}"
    return f"{name}_narrow" if quant_min < 0 and quant_max - quant_min == 2**bits - 2 else name


def records_of(graph: TargetGraph) -> list[Record]:
    """Returns a record per quantized tensor of ``graph``: inputs, then constants and results of each layer.

    The tensors between two of the source's, such as a padded input, are quantized with the QParams of one of
    them.
    """
    target, operators = target_named(graph.target), list(graph.all_operators())
    qparams_by_id = _all_qparams(graph, target)
    consumers: dict[int, list[str]] = {}
    for operator in operators:
        for value in operator.inputs:
            if value is not None and operator.name not in consumers.setdefault(id(value), []):
                consumers[id(value)].append(operator.name)
    found: dict[str, Record] = {}
    for value in graph.inputs:
        _add(found, value, value.name, None, consumers, qparams_by_id)
    for operator in operators:
        for name, value in target.named_constants(operator):
            used = consumers if target.names_constants else {id(value): [operator.name]}
            _add(found, value, name, operator, used, qparams_by_id)
        for value in operator.outputs:
            _add(found, value, value.name, operator, consumers, qparams_by_id)
    return list(found.values())


def _add(
    found: dict[str, Record],
    value: Value,
    name: str,
    operator: Operator | None,
    consumers: dict[int, list[str]],
    qparams_by_id: dict[int, QParams],
) -> None:
    qparams = qparams_by_id.get(id(value))
    if qparams is None or name in found:
        return
    role = ACTIVATION if not value.is_constant else BIAS if qparams.dtype == "int32" else WEIGHT
    found[name] = Record(
        name,
        role,
        qparams.dtype,
        qparams.scale,
        qparams.zero_point,
        qparams.quant_min,
        qparams.quant_max,
        qparams.channel_axis,
        qparams.symmetric,
        value.shape if all(type(extent) is int for extent in value.shape) else None,
        "" if operator is None or value.is_constant else operator.name,
        tuple(consumers.get(id(value), ())),
        "" if operator is None else operator.type,
        qparams.source if value.qparams is not None else "carried",
    )


def _all_qparams(graph: TargetGraph, target: Target) -> dict[int, QParams]:
    """Returns the QParams of each value by id, including those that operators propagate."""
    operators = list(graph.all_operators())
    values = [*graph.inputs, *graph.constants(), *(value for each in operators for value in each.outputs)]
    qparams_by_id = {id(value): value.qparams for value in values if value.qparams is not None}
    for operator in operators:
        given = operator.inputs[0] if operator.inputs else None
        if given is None or given.is_constant or not _is_single(qparams_by_id.get(id(given))):
            continue
        if operator.type in target.keeps_qparams:
            for value in operator.outputs:
                if value.dtype == given.dtype:
                    qparams_by_id.setdefault(id(value), qparams_by_id[id(given)])
    uses = graph.use_counts()
    for operator in reversed(operators):
        given = operator.inputs[0] if operator.inputs else None
        if operator.type not in target.clamps_at_zero or given is None or uses.get(id(given)) != 1:
            continue
        made = qparams_by_id.get(id(operator.outputs[0]))
        if made is not None and _is_single(made):
            qparams_by_id.setdefault(id(given), made)
    return qparams_by_id


def _is_single(qparams: QParams | None) -> bool:
    return qparams is not None and len(qparams.scale) == 1
