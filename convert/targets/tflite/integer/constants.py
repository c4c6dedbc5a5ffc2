"""The constants of an integer graph: each constant of the float graph, by the QParams that it gets."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.fake_quant import quantize
from tmconvert.ir.types import QParams
from tmconvert.lowering.names import Names
from tmconvert.lowering.target_graph import TargetGraph, Value
from tmconvert.targets.tflite.integer.model import IntegerGraph
from tmconvert.targets.tflite.integer.qparams import (
    BIAS_LIMITS,
    is_derived,
    quantization,
    quantize_weight,
    weight_qparams,
    widen_for_bias,
)
from tmconvert.targets.tflite.passes.narrow_weights import clipped_weights

FLOAT, INT32 = np.dtype(np.float32), np.dtype(np.int32)


class Constants:
    """Makes integer constants for ``made``, and records them there; ``names`` are those in
    use, among them those of the float graph ``source``."""

    def __init__(self, source: TargetGraph, made: IntegerGraph) -> None:
        self.source, self.made = source, made
        self.names = Names()
        self.constant_names: set[str] = set()
        self.computed_names: set[str] = set()  # of the float graph's tensors
        self.constants: dict[tuple[Value, QParams], Value] = {}
        self.ones: dict[int, Value] = {}  # shared by all that multiply by one, by its steps
        self._reserve_names()

    def _reserve_names(self) -> None:
        """Reserves the names of the source's tensors; tensors of rewritings get other names."""
        origins, added = self.source.origins, []
        for value in self.source.values():
            if value.is_constant:
                self.names.take([value.name])
                continue
            if value in origins and origins[value].is_inner:
                added.append(value)
                continue
            self.names.take([value.name])
            self.computed_names.add(value.name)
        for value in added:
            value.name = self.names.free(value.name)
            self.computed_names.add(value.name)

    def constant(self, value: Value, qparams: QParams) -> Value:
        key = value, qparams
        if key not in self.constants:
            assert value.data is not None
            numbers = value.data
            if np.isnan(numbers).any():
                self.made.not_numbers.append(value.name)
                numbers = np.nan_to_num(numbers, nan=0.0, posinf=np.inf, neginf=-np.inf)
            steps = quantize(numbers, qparams).astype(qparams.dtype)
            self.constants[key] = self._store(value, steps, qparams)
        return self.constants[key]

    def product_constants(
        self, weight: Value, bias: Value | None, axis: int, x: QParams, result: QParams | None
    ) -> tuple[Value, Value | None]:
        """Returns weights and bias of a product with an operand and a result with these QParams.

        ``axis`` is the channel axis of the weights, whose scales are those of the source if these hold the
        bias.
        """
        assert weight.data is not None
        own = weight_qparams(weight, axis)
        if is_derived(weight, own) and weight.name not in self.made.derived:
            self.made.derived.append(weight.name)
        terms = weight.data.size // weight.data.shape[axis]
        scales = widen_for_bias(own, x, None if bias is None else bias.data, terms, result)
        if scales != own and weight.name not in self.made.widened:
            self.made.widened.append(weight.name)
        made = self._weight(weight, scales)
        return made, None if bias is None else self._bias(bias, x, scales)

    def _weight(self, value: Value, qparams: QParams) -> Value:
        key = value, qparams
        if key not in self.constants:
            if value.qparams is not None and value.data is not None:
                self.made.clipped += clipped_weights(value.data, value.qparams)
            self.constants[key] = self._store(value, quantize_weight(value, qparams), qparams)
        return self.constants[key]

    def _bias(self, value: Value, x: QParams, weight: QParams) -> Value:
        """Returns an int32 bias with scale = that of the input times that of the weights."""
        scales = np.float64(x.scale[0]) * np.array(weight.scale, np.float64)
        qparams = QParams(
            "int32" if x.dtype == "int8" else "int64",
            tuple(map(float, scales.astype(np.float32))),
            (0,) * len(scales),
            *BIAS_LIMITS[x.dtype],
            None if len(scales) == 1 else 0,
        )
        key = value, qparams
        if key not in self.constants:
            assert value.data is not None
            steps = value.data.astype(np.float64) / np.array(qparams.scale)
            steps = np.clip(np.trunc(steps + np.copysign(0.5, steps)), qparams.quant_min, qparams.quant_max)
            self.constants[key] = self._store(value, steps.astype(qparams.dtype), qparams)
        return self.constants[key]

    def _store(self, value: Value, steps: np.ndarray, qparams: QParams) -> Value:
        is_taken = value.name in self.constant_names or value.name in self.computed_names
        name = self.names.free(f"{value.name}_again") if is_taken else value.name
        self.constant_names.add(name)
        made = Value(name, steps.dtype, value.shape, steps, quantization(qparams))
        self.made.stored.append((made, value, qparams))
        return made

    def one(self, ratio: float) -> Value:
        """Returns a one, for a product that multiplies the number of steps by ``ratio``.

        LiteRT's own kernel rounds a product with a number from 0.5 to 1, then halves that so many times, and
        rounds again: one in small steps makes the first rounding small.
        """
        count = 1 if ratio >= 0.5 else 64
        if count not in self.ones:
            qparams = QParams("int8", (1 / count,), (0,), -128, 127)
            steps = np.array(count, np.int8)
            name = self.names.free("one")
            self.ones[count] = Value(name, steps.dtype, (), steps, quantization(qparams))
            self.made.stored.append((self.ones[count], Value(name, FLOAT, (), np.array(1, FLOAT)), qparams))
        return self.ones[count]
