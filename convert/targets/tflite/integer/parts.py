"""The integer graph under construction: operators, constants and names."""

from __future__ import annotations

import numpy as np

from tmconvert.ir.fake_quant import quantize
from tmconvert.ir.types import QParams
from tmconvert.lowering.names import Names
from tmconvert.lowering.target_graph import Operator, Value
from tmconvert.targets.tflite.integer.model import IntegerGraph
from tmconvert.targets.tflite.integer.qparams import BIAS_LIMITS, quantization, weight_steps
from tmconvert.targets.tflite.passes.narrow_weights import clipped_weights

FLOAT, INT32 = np.dtype(np.float32), np.dtype(np.int32)


class Parts:
    """Appends operators to ``made``. Names in ``names`` are in use."""

    def __init__(self, made: IntegerGraph) -> None:
        self.made = made
        self.names = Names()
        self.constant_names: set[str] = set()
        self.computed_names: set[str] = set()  # of the float graph's tensors
        self.constants: dict[tuple[int, QParams], Value] = {}
        self.ones: dict[int, Value] = {}  # shared by all that multiply by one, by its steps

    def _constant(self, value: Value, qparams: QParams) -> Value:
        key = id(value), qparams
        if key not in self.constants:
            assert value.data is not None
            numbers = value.data
            if np.isnan(numbers).any():
                self.made.not_numbers.append(value.name)
                numbers = np.nan_to_num(numbers, nan=0.0, posinf=np.inf, neginf=-np.inf)
            steps = quantize(numbers, qparams).astype(qparams.dtype)
            self.constants[key] = self._stored(value, steps, qparams)
        return self.constants[key]

    def _weight(self, value: Value, qparams: QParams) -> Value:
        key = id(value), qparams
        if key not in self.constants:
            if value.qparams is not None and value.data is not None:
                self.made.clipped += clipped_weights(value.data, value.qparams)
            self.constants[key] = self._stored(value, weight_steps(value, qparams), qparams)
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
        key = id(value), qparams
        if key not in self.constants:
            assert value.data is not None
            steps = value.data.astype(np.float64) / np.array(qparams.scale)
            steps = np.clip(np.trunc(steps + np.copysign(0.5, steps)), qparams.quant_min, qparams.quant_max)
            self.constants[key] = self._stored(value, steps.astype(qparams.dtype), qparams)
        return self.constants[key]

    def _stored(self, value: Value, steps: np.ndarray, qparams: QParams) -> Value:
        is_taken = value.name in self.constant_names or value.name in self.computed_names
        name = self.names.free(f"{value.name}_again") if is_taken else value.name
        self.constant_names.add(name)
        made = Value(name, steps.dtype, value.shape, steps, quantization(qparams))
        self.made.stored.append((made, value, qparams))
        return made

    # ---- names and operators

    def _append(
        self, type: str, inputs: list[Value | None] | list[Value], outputs: list[Value], name: str
    ) -> None:
        self.made.graph.operators.append(Operator(type, list(inputs), outputs, {}, f"/{name}/{type}"))

    def _one(self, ratio: float) -> Value:
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

    def _counted(self, type: str, value: Value, number: np.ndarray, name: str) -> Value:
        """Returns an integer and a constant."""
        constant = Value(self.names.free(f"{name}_number"), INT32, (), number)
        made = Value(self.names.free(name), INT32, value.shape)
        self._append(type, [value, constant], [made], made.name)
        return made
