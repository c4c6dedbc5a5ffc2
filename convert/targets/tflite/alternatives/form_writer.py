"""Writes the operators of another form: new values with free names, and the parameters of the old ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tmconvert.lowering.names import Names
from tmconvert.lowering.target_graph import Attribute, Operands, Operator, Quantization, Value

INT32 = np.dtype(np.int32)


class FormWriter:
    """Appends operators that stand for ``operator``; the last one has its results."""

    def __init__(self, operator: Operator, names: Names, made_by: Mapping[int, Operator]) -> None:
        self.operator, self.names, self.made_by = operator, names, made_by
        self.operators: list[Operator] = []

    def op(
        self,
        type: str,
        inputs: Operands,
        shape: Sequence[int],
        *,
        like: Value | None = None,
        dtype: np.dtype | None = None,
        quantization: Quantization | None = None,
        options: Mapping[str, Attribute] | None = None,
        **attributes: Attribute,
    ) -> Value:
        """Appends an operator with the attributes and ``options``, and returns its result: of the type and
        the parameters of ``like``, by default the first input.
        """
        model = like if like is not None else next(each for each in inputs if each is not None)
        name = self.names.free(f"{self.operator.outputs[0].name}_{type.lower()}")
        made = Value(name, dtype or model.dtype, tuple(shape))
        if dtype is None:
            made.quantization, made.qparams = model.quantization, model.qparams
        made.quantization = quantization or made.quantization
        self._append(type, inputs, [made], {**(options or {}), **attributes})
        return made

    def last(
        self,
        type: str,
        inputs: Operands,
        number: int = 0,
        options: Mapping[str, Attribute] | None = None,
        **attributes: Attribute,
    ) -> list[Operator]:
        """Appends the operator of result ``number``, and returns all operators."""
        self._append(type, inputs, [self.operator.outputs[number]], {**(options or {}), **attributes})
        return self.operators

    def copy(self, inputs: Operands, shape: Sequence[int], **attributes: Attribute) -> Value:
        """Appends the operator itself with other operands, and returns its result in another shape."""
        result = self.operator.outputs[0]
        kept = {**self.operator.attributes, **attributes}
        return self.op(self.operator.type, inputs, shape, like=result, options=kept)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        if x.shape == tuple(shape):
            return x
        if x.data is not None:
            return self.const(x.data.reshape(shape), x)
        return self.op("RESHAPE", [x, self.ints(shape)], shape, new_shape=[int(each) for each in shape])

    def last_reshape(self, x: Value, number: int = 0) -> list[Operator]:
        shape = [int(each) for each in self.operator.outputs[number].shape]
        # without an axis the operand of the shape would have no elements
        inputs = [x, self.ints(shape)] if shape else [x]
        return self.last("RESHAPE", inputs, number, new_shape=shape)

    def transpose(self, x: Value, order: Sequence[int]) -> Value:
        if list(order) == list(range(len(order))):
            return x
        return self.op("TRANSPOSE", [x, self.ints(order)], [x.shape[axis] for axis in order])

    def slice(self, x: Value, begin: Sequence[int], shape: Sequence[int]) -> Value:
        if x.shape == tuple(shape):
            return x
        return self.op("SLICE", [x, self.ints(begin), self.ints(shape)], shape)

    def pick(self, x: Value, axis: int, places: Iterable[int]) -> Value:
        """Appends slices of one element along an axis, and their concatenation."""
        shape = [1 if at == axis else size for at, size in enumerate(sizes(x) or ())]
        parts = [self.slice(x, [each * (at == axis) for at in range(len(shape))], shape) for each in places]
        if len(parts) == 1:
            return parts[0]
        shape[axis] = len(parts)
        return self.op("CONCATENATION", parts, shape, axis=axis)

    def ints(self, values: Sequence[int]) -> Value:
        array = np.array(values, INT32)
        return Value(self.names.free(f"{self.operator.outputs[0].name}_numbers"), INT32, array.shape, array)

    def const(self, array: np.ndarray, like: Value | None = None) -> Value:
        """Returns a constant; with the parameters of ``like`` where the elements are those of it."""
        name = self.names.free(f"{self.operator.outputs[0].name}_numbers")
        made = Value(name, array.dtype, array.shape, np.ascontiguousarray(array))
        if like is not None:
            made.quantization, made.qparams = like.quantization, like.qparams
        return made

    def quantized(self, array: np.ndarray, scale: float | np.ndarray, zero_point: int = 0) -> Value:
        """Returns a constant of integers with this scale, or one for each element of the first axis."""
        made = self.const(array)
        made.quantization = quantization(scale, zero_point)
        return made

    def _append(
        self, type: str, inputs: Operands, outputs: list[Value], attributes: dict[str, Attribute]
    ) -> None:
        name = f"/{outputs[0].name}/{type}"
        source = self.operator.source
        self.operators.append(Operator(type, list(inputs), outputs, dict(attributes), name, source))


def quantization(scale: float | np.ndarray, zero_point: int = 0) -> Quantization:
    scales = np.atleast_1d(np.asarray(scale, np.float32))
    return Quantization(scales, 0, np.full(scales.shape, zero_point, np.int64))


def sizes(value: Value | None) -> tuple[int, ...] | None:
    """Returns the shape of a value; None where there is none, or it has open sizes."""
    if value is None or not all(isinstance(each, (int, np.integer)) for each in value.shape):
        return None
    return tuple(int(each) for each in value.shape)


def numbers(value: Value | None) -> list[int] | None:
    """Returns the integers of a constant of shapes, axes or indices; None for a computed one."""
    if value is None or value.data is None:
        return None
    return [int(each) for each in np.ravel(value.data)]
