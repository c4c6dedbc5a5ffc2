"""Predicates for operator versions, shared by several operators.

A rule is ``(version, test)``; the first rule whose test is true gives the version, which is 1 otherwise.
Types that the writer cannot store (float8, strings, ...) have no rules. Source: LiteRT's op_version.cc
and runtime_version.cc, August 2026.
"""

from __future__ import annotations

from tmconvert.ir.types import name_of
from tmconvert.lowering.target_graph import Operator, Value
from tmconvert.targets.tflite.operators.record import Rules, Test


def scales(value: Value) -> tuple[float, ...]:
    """Returns a tensor's quantization scales; none for an unquantized tensor."""
    return () if value.quantization is None else tuple(value.quantization.scale.tolist())


def _dtype(operator: Operator, index: int) -> str:
    """Returns the type of an input, empty for an omitted one."""
    value = operator.inputs[index] if index < len(operator.inputs) else None
    return "" if value is None else name_of(value.dtype)


def _rank(value: Value | None) -> int:
    return 0 if value is None else len(value.shape)


def is_type(*dtypes: str, input: int = 0) -> Test:
    return lambda operator: _dtype(operator, input) in dtypes


def output_is(*dtypes: str) -> Test:
    return lambda operator: name_of(operator.outputs[0].dtype) in dtypes


def pair(first: str, second: str, *, at: int = 1) -> Test:
    """Tests the types of the first input (often the activation) and of input ``at`` (often the weight)."""
    return lambda operator: (_dtype(operator, 0), _dtype(operator, at)) == (first, second)


def differs(name: str, default: object) -> Test:
    """Whether the attribute is given, and differs from the schema's default."""
    return lambda operator: operator.attributes.get(name, default) != default


def both(*tests: Test) -> Test:
    return lambda operator: all(test(operator) for test in tests)


def always(operator: Operator) -> bool:
    return True


def either(*tests: Test) -> Test:
    return lambda operator: any(test(operator) for test in tests)


def rank_above(limit: int) -> Test:
    return lambda operator: _rank(operator.inputs[0]) > limit


def broadcasts_above_rank_4(operator: Operator) -> bool:
    x, y = operator.inputs[:2]
    if x is None or y is None or x.shape == y.shape:
        return False
    return max(_rank(x), _rank(y)) > 4


def rank_is_not_4(operator: Operator) -> bool:
    return _rank(operator.inputs[0]) != 4


def any_rank_5(operator: Operator) -> bool:
    return any(_rank(value) == 5 for value in operator.inputs)


def is_grouped(operator: Operator) -> bool:
    x, weight = operator.inputs[:2]
    return x is not None and weight is not None and x.shape[-1:] != weight.shape[-1:]


def has_two_inputs(operator: Operator) -> bool:
    return len(operator.inputs) == 2


def has_fourth_input(operator: Operator) -> bool:
    return _dtype(operator, 3) != ""


def quantized(operator: Operator) -> bool:
    x = operator.inputs[0]
    return x is not None and bool(scales(x))


def per_channel(index: int) -> Test:
    def test(operator: Operator) -> bool:
        value = operator.inputs[index]
        return value is not None and len(scales(value)) > 1

    return test


def output_per_channel(operator: Operator) -> bool:
    return len(scales(operator.outputs[0])) > 1


def is_plain_int16(operator: Operator) -> bool:
    return _dtype(operator, 0) == "int16" and not quantized(operator)


def product_is_scaled_up(operator: Operator) -> bool:
    """Whether the inputs' scales over the output's are at least 1, which older kernels do not support."""
    x, y = operator.inputs[:2]
    if x is None or y is None:
        return False
    each = [scales(x), scales(y), scales(operator.outputs[0])]
    return all(each) and each[0][0] * each[1][0] / each[2][0] >= 1


FLOAT_BY_INT8 = pair("float32", "int8")
HYBRID_LSTM = pair("float32", "int8", at=2)
ASYMMETRIC = differs("asymmetric_quantize_inputs", False)
BIAS_TYPE = differs("quantized_bias_type", "FLOAT32")
POT_SCALE = differs("pot_scale_int16", True)
HALF_PIXEL = differs("half_pixel_centers", False)

V2_INT8: Rules = ((2, is_type("int8")),)
V2_INT8_V3_INT16: Rules = ((3, is_type("int16")), *V2_INT8)
V2_INT8_INT16: Rules = ((2, is_type("int8", "int16")),)
HYBRID_RNN: Rules = tuple(
    (version, both(is_type("int8", input=1), output_is("float32"), test))
    for version, test in ((3, ASYMMETRIC), (2, always))
)
MAXIMUM_MINIMUM: Rules = ((4, is_type("int16")), (3, broadcasts_above_rank_4), *V2_INT8)
PADDING: Rules = ((5, is_type("bool")), (4, rank_above(4)), *V2_INT8_V3_INT16)
SPACE_AND_BATCH: Rules = ((4, is_type("int16")), (3, rank_is_not_4), *V2_INT8)
ARG_MAX_MIN: Rules = ((3, is_type("bool")), *V2_INT8)
