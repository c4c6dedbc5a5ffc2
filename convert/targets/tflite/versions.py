"""The version of each TFLite operator: which of its kernel's features a use of it needs.

A rule is ``(version, test)``; the first whose test holds gives the version, and 1 is for the rest.
Types that the writer cannot store (int4, float8, strings, ...) have no rules. Source: LiteRT's
op_version.cc and runtime_version.cc, August 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tmconvert.ir.types import name_of
from tmconvert.lowering.target_graph import Operator, Value

Test = Callable[[Operator], bool]
Rules = tuple[tuple[int, Test], ...]


def scales(value: Value) -> tuple[float, ...]:
    """A tensor's quantization scales; none of a tensor that is not quantized."""
    return () if value.quantization is None else tuple(value.quantization.scale.tolist())


def _dtype(operator: Operator, index: int) -> str:
    """The type of an input, empty for one left out."""
    value = operator.inputs[index] if index < len(operator.inputs) else None
    return "" if value is None else name_of(value.dtype)


def _rank(value: Value | None) -> int:
    return 0 if value is None else len(value.shape)


def is_type(*dtypes: str, input: int = 0) -> Test:
    return lambda operator: _dtype(operator, input) in dtypes


def output_is(*dtypes: str) -> Test:
    return lambda operator: name_of(operator.outputs[0].dtype) in dtypes


def pair(first: str, second: str, *, at: int = 1) -> Test:
    """The first input (often the activation) and the one ``at`` an index (often the weight)."""
    return lambda operator: (_dtype(operator, 0), _dtype(operator, at)) == (first, second)


def differs(name: str, default: object) -> Test:
    """The attribute is given, and is not the schema's default."""
    return lambda operator: operator.attributes.get(name, default) != default


def both(*tests: Test) -> Test:
    return lambda operator: all(test(operator) for test in tests)


def always(operator: Operator) -> bool:
    return True


def either(*tests: Test) -> Test:
    return lambda operator: any(test(operator) for test in tests)


def rank_above(limit: int) -> Test:
    return lambda operator: _rank(operator.inputs[0]) > limit


def _broadcasts_above_rank_4(operator: Operator) -> bool:
    x, y = operator.inputs[:2]
    if x is None or y is None or x.shape == y.shape:
        return False
    return max(_rank(x), _rank(y)) > 4


def _rank_is_not_4(operator: Operator) -> bool:
    return _rank(operator.inputs[0]) != 4


def _any_rank_5(operator: Operator) -> bool:
    return any(_rank(value) == 5 for value in operator.inputs)


def _grouped(operator: Operator) -> bool:
    x, weight = operator.inputs[:2]
    return x is not None and weight is not None and x.shape[-1:] != weight.shape[-1:]


def _two_inputs(operator: Operator) -> bool:
    return len(operator.inputs) == 2


def _has_fourth_input(operator: Operator) -> bool:
    return _dtype(operator, 3) != ""


def quantized(operator: Operator) -> bool:
    x = operator.inputs[0]
    return x is not None and bool(scales(x))


def per_channel(index: int) -> Test:
    def test(operator: Operator) -> bool:
        value = operator.inputs[index]
        return value is not None and len(scales(value)) > 1

    return test


def _output_per_channel(operator: Operator) -> bool:
    return len(scales(operator.outputs[0])) > 1


def _plain_int16(operator: Operator) -> bool:
    return _dtype(operator, 0) == "int16" and not quantized(operator)


def _product_scaled_up(operator: Operator) -> bool:
    """The inputs' scales over the output's are at least 1, which older kernels cannot apply."""
    x, y = operator.inputs[:2]
    if x is None or y is None:
        return False
    each = [scales(x), scales(y), scales(operator.outputs[0])]
    return all(each) and each[0][0] * each[1][0] / each[2][0] >= 1


_FLOAT_BY_INT8 = pair("float32", "int8")
_HYBRID_LSTM = pair("float32", "int8", at=2)
_ASYMMETRIC = differs("asymmetric_quantize_inputs", False)
_BIAS_TYPE = differs("quantized_bias_type", "FLOAT32")
_POT_SCALE = differs("pot_scale_int16", True)
_HALF_PIXEL = differs("half_pixel_centers", False)

_INT8: Rules = ((2, is_type("int8")),)
_INT8_INT16: Rules = ((3, is_type("int16")), *_INT8)
_NARROW: Rules = ((2, is_type("int8", "int16")),)
_HYBRID_RNN: Rules = tuple(
    (version, both(is_type("int8", input=1), output_is("float32"), test))
    for version, test in ((3, _ASYMMETRIC), (2, always))
)
_EXTREME: Rules = ((4, is_type("int16")), (3, _broadcasts_above_rank_4), *_INT8)
_PAD: Rules = ((5, is_type("bool")), (4, rank_above(4)), *_INT8_INT16)
_BLOCK_ND: Rules = ((4, is_type("int16")), (3, _rank_is_not_4), *_INT8)
_ARG: Rules = ((3, is_type("bool")), *_INT8)

RULES: dict[str, Rules] = {
    "ABS": (
        (5, is_type("int32")),
        (4, _plain_int16),
        (3, is_type("int16")),
        (2, is_type("int8", "uint8")),
    ),
    "ADD": (
        (6, is_type("float16")),
        (5, _plain_int16),
        (4, is_type("int64")),
        (3, both(is_type("int16"), _POT_SCALE)),
        *_INT8,
    ),
    "ARG_MAX": _ARG,
    "ARG_MIN": _ARG,
    "AVERAGE_POOL_2D": _INT8_INT16,
    "BATCH_MATMUL": (*_INT8_INT16, (4, both(_FLOAT_BY_INT8, _ASYMMETRIC))),
    "BATCH_TO_SPACE_ND": _BLOCK_ND,
    "BIDIRECTIONAL_SEQUENCE_LSTM": _HYBRID_RNN,
    "BIDIRECTIONAL_SEQUENCE_RNN": _HYBRID_RNN,
    # Version 1 was withdrawn together with its first code.
    "BROADCAST_TO": ((3, is_type("int8", "int16")), (2, always)),
    "CAST": (
        (7, either(is_type("bfloat16"), output_is("bfloat16"))),
        (5, either(is_type("float16", "float64"), output_is("float16", "float64"))),
        (4, either(is_type("uint16"), output_is("uint16"))),
        (3, either(is_type("int8"), output_is("int8"))),
        (2, either(is_type("uint32"), output_is("uint32"))),
    ),
    "CONCATENATION": ((6, is_type("float16")), (4, is_type("uint32")), *_INT8_INT16),
    "CONV_2D": (
        (8, both(pair("int16", "int8"), _BIAS_TYPE)),
        (6, _grouped),
        (4, pair("int16", "int16")),
        (3, pair("int8", "int8")),
        (5, both(_FLOAT_BY_INT8, per_channel(1))),
        (2, _FLOAT_BY_INT8),
    ),
    "COS": ((2, is_type("float16")),),
    "DEPTHWISE_CONV_2D": (
        (5, pair("int16", "int16")),
        (6, both(_FLOAT_BY_INT8, per_channel(1))),
        (4, _FLOAT_BY_INT8),
        (3, pair("int8", "int8")),
        (2, either(differs("dilation_w_factor", 1), differs("dilation_h_factor", 1))),
    ),
    "DEPTH_TO_SPACE": _INT8,
    "DEQUANTIZE": (
        (3, is_type("int16", "float16")),
        (5, both(is_type("int8"), per_channel(0))),
        *_INT8,
    ),
    "DIV": ((2, _broadcasts_above_rank_4),),
    "DYNAMIC_UPDATE_SLICE": (
        (6, is_type("bfloat16")),
        (4, is_type("int16")),
        (3, is_type("float16")),
        (2, is_type("int64", input=2)),
    ),
    "EMBEDDING_LOOKUP": ((4, per_channel(1)),),
    "EQUAL": ((5, is_type("int16")), *_INT8),
    "EXP": _NARROW,
    "FAKE_QUANT": ((2, differs("narrow_range", False)),),
    "FILL": (
        (4, is_type("float16", input=1)),
        (3, is_type("int8", "int16", input=1)),
        (2, is_type("bool", input=1)),
    ),
    "FLOOR_DIV": ((3, is_type("int8", "int16")), (2, is_type("float32"))),
    "FLOOR_MOD": _NARROW,
    "FULLY_CONNECTED": (
        (12, both(_FLOAT_BY_INT8, per_channel(1))),
        (11, both(pair("int16", "int8"), _BIAS_TYPE)),
        (7, pair("int16", "int16")),
        (6, _two_inputs),
        (5, differs("keep_num_dims", False)),
        (4, pair("int8", "int8")),
        (9, both(_FLOAT_BY_INT8, _ASYMMETRIC)),
        (3, _FLOAT_BY_INT8),
        (2, differs("weights_format", "DEFAULT")),
    ),
    "GATHER": (
        (6, is_type("int16", input=1)),
        (5, differs("batch_dims", 0)),
        (4, is_type("int16")),
        (3, is_type("bool")),
        *_INT8,
    ),
    "GATHER_ND": ((5, is_type("bool")), (4, is_type("int16", input=1)), (3, is_type("int16"))),
    "GELU": ((3, is_type("float16")), (2, is_type("int8", "uint8"))),
    "GREATER": _INT8,
    "GREATER_EQUAL": _INT8_INT16,
    "L2_NORMALIZATION": ((2, output_is("int8")),),
    "LEAKY_RELU": ((2, is_type("int16")),),
    "LESS": _INT8_INT16,
    "LESS_EQUAL": _INT8,
    "LOG": _NARROW,
    "LOGISTIC": _INT8_INT16,
    "LOG_SOFTMAX": _INT8,
    "LSTM": (
        (2, differs("kernel_type", "FULL")),
        (5, pair("int16", "int8", at=2)),
        (4, both(_HYBRID_LSTM, _ASYMMETRIC)),
        (3, _HYBRID_LSTM),
    ),
    "MAXIMUM": _EXTREME,
    "MAX_POOL_2D": _INT8_INT16,
    "MEAN": _INT8_INT16,
    "MINIMUM": _EXTREME,
    "MIRROR_PAD": _INT8_INT16,
    "MUL": (
        (8, is_type("float16")),
        (7, either(_plain_int16, is_type("uint32"))),
        (6, is_type("complex64")),
        (5, is_type("int64")),
        (4, is_type("int16")),
        (3, _product_scaled_up),
        *_INT8,
    ),
    "NOT_EQUAL": ((4, is_type("int16")), *_INT8),
    "PACK": ((4, is_type("uint32")), *_INT8_INT16),
    "PAD": _PAD,
    "PADV2": _PAD,
    "QUANTIZE": ((3, _output_per_channel), (2, output_is("int16"))),
    "RANGE": ((2, is_type("int64")),),
    "REDUCE_MAX": _INT8_INT16,
    "REDUCE_MIN": _INT8_INT16,
    "REDUCE_PROD": _NARROW,
    "RELU": ((3, is_type("int16")), (2, is_type("int8", "uint8"))),
    "RELU6": _INT8_INT16,
    "RESIZE_BILINEAR": ((4, is_type("int16")), (3, _HALF_PIXEL), *_INT8),
    "RESIZE_NEAREST_NEIGHBOR": (
        (4, is_type("int16")),
        (3, either(_HALF_PIXEL, differs("align_corners", False))),
        *_INT8,
    ),
    "REVERSE_V2": ((3, is_type("int8")), (2, is_type("bool"))),
    "RNN": _HYBRID_RNN,
    "RSQRT": _INT8_INT16,
    # Input 0 is the condition; LiteRT looks at its type all the same.
    "SELECT": ((4, is_type("uint32")), (3, _any_rank_5), *_INT8),
    "SELECT_V2": ((2, is_type("uint32")),),
    "SIGN": ((2, is_type("int32")),),
    "SIN": ((2, is_type("float16")),),
    "SLICE": (
        (8, is_type("float16")),
        (6, is_type("uint32")),
        (5, rank_above(4)),
        (4, is_type("int16")),
        *_INT8,
    ),
    "SOFTMAX": ((4, is_type("float16")), *_INT8_INT16),
    "SPACE_TO_BATCH_ND": _BLOCK_ND,
    "SPACE_TO_DEPTH": _INT8,
    "SPARSE_TO_DENSE": ((3, is_type("int8", "uint8", input=2)), (2, is_type("int64", input=2))),
    # Input 0 is the axis.
    "SPLIT": tuple((version, is_type(f"int{bits}", input=1)) for version, bits in ((4, 16), (3, 32), (2, 8))),
    "SPLIT_V": _INT8,
    "SQRT": _NARROW,
    "SQUARED_DIFFERENCE": _INT8,
    "STRIDED_SLICE": (
        (8, differs("offset", False)),
        (7, is_type("uint32")),
        (6, either(differs("ellipsis_mask", 0), differs("new_axis_mask", 0))),
        (4, rank_above(4)),
        (3, is_type("bool")),
        *_INT8,
    ),
    "SUB": (
        (5, both(is_type("int16"), _POT_SCALE)),
        (4, is_type("int64")),
        (3, _broadcasts_above_rank_4),
        *_INT8,
    ),
    "SUM": _INT8,
    "SVDF": (
        (3, is_type("int8")),
        (4, both(_FLOAT_BY_INT8, _ASYMMETRIC)),
        (2, _FLOAT_BY_INT8),
    ),
    "TANH": _INT8_INT16,
    "TILE": ((3, is_type("int8")),),
    "TOPK_V2": ((3, either(is_type("int16"), is_type("int16", input=1))), *_INT8),
    "TRANSPOSE": (
        (9, is_type("float16")),
        (8, either(rank_above(6), is_type("bfloat16"))),
        (6, rank_above(5)),
        (5, is_type("int16")),
        (4, rank_above(4)),
        (3, is_type("bool")),
        *_INT8,
    ),
    # Inputs are the output's shape, the weight, the image, the bias.
    "TRANSPOSE_CONV": (
        (5, both(is_type("int16", input=2), is_type("int8", input=1), _BIAS_TYPE)),
        (4, differs("fused_activation_function", "NONE")),
        (3, _has_fourth_input),
        (2, is_type("int8", input=1)),
    ),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (
        (5, pair("int16", "int8", at=2)),
        (4, differs("diagonal_recurrent_tensors", False)),
        (3, both(_HYBRID_LSTM, _ASYMMETRIC)),
        (2, _HYBRID_LSTM),
    ),
    "UNIDIRECTIONAL_SEQUENCE_RNN": _HYBRID_RNN,
    "UNPACK": (
        (5, is_type("float16", "bfloat16")),
        (4, is_type("int16")),
        (3, is_type("bool")),
        (2, is_type("int8", "uint8")),
    ),
    "WHERE": ((1, is_type("bool")), (2, always)),
}


def operator_version(operator: Operator) -> int:
    """The oldest version of the operator that has all that this use of it needs."""
    rules = RULES.get(operator.type, ())
    return next((version for version, test in rules if test(operator)), 1)


def model_versions(operators: Iterable[Operator]) -> dict[str, int]:
    """For each operator type, in the order of first use, the newest version that a use needs."""
    versions: dict[str, int] = {}
    for operator in operators:
        versions[operator.type] = max(versions.get(operator.type, 1), operator_version(operator))
    return versions
