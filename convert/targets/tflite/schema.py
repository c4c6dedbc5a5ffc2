"""TFLite's schema, as far as the writer needs it: codes, and the slots of the options tables.

The schema only ever appends, so codes and slots are stable. Left out: variables shared between calls,
strings, StableHLO. Source: LiteRT's schema.fbs.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

# By name, since ml_dtypes' bfloat16 has no other handle that every NumPy understands.
TENSOR_TYPES = {
    "float32": 0,
    "float16": 1,
    "int32": 2,
    "uint8": 3,
    "int64": 4,
    "bool": 6,
    "int16": 7,
    "complex64": 8,
    "int8": 9,
    "float64": 10,
    "complex128": 11,
    "uint64": 12,
    "uint32": 15,
    "uint16": 16,
    "bfloat16": 18,
}

ENUMS: dict[str, dict[str, int]] = {
    "type": {name.upper(): code for name, code in TENSOR_TYPES.items()},
    "padding": {"SAME": 0, "VALID": 1},
    "activation": {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3, "TANH": 4, "SIGN_BIT": 5},
    "mirror": {"REFLECT": 0, "SYMMETRIC": 1},
    "weights_format": {"DEFAULT": 0, "SHUFFLED4x16INT8": 1},
    "lstm_kernel": {"FULL": 0, "BASIC": 1},
}


class OptionField(NamedTuple):
    """A field of an options table. ``kind`` is a number's type, "int32s", "graph" or a key of ENUMS.

    ``required`` marks a field whose default in the schema would be a silent mistake: a stride of 0,
    a softmax's beta of 0. ``default`` is the stored number; such a value is not written.
    """

    slot: int
    name: str
    kind: str
    default: float
    required: bool


# Name of the table: its number in the union BuiltinOptions, and its fields in the order of their
# slots, each "name:kind", with "!" when required, or "=" and a default other than 0. "-" is a slot
# that the schema gave up.
_TABLES = {
    "Conv2DOptions": (
        1,
        "padding:padding! stride_w:int32! stride_h:int32! fused_activation_function:activation"
        " dilation_w_factor:int32=1 dilation_h_factor:int32=1 quantized_bias_type:type",
    ),
    "DepthwiseConv2DOptions": (
        2,
        "padding:padding! stride_w:int32! stride_h:int32! depth_multiplier:int32!"
        " fused_activation_function:activation dilation_w_factor:int32=1 dilation_h_factor:int32=1",
    ),
    "Pool2DOptions": (
        5,
        "padding:padding! stride_w:int32! stride_h:int32! filter_width:int32! filter_height:int32!"
        " fused_activation_function:activation",
    ),
    "SVDFOptions": (
        6,
        "rank:int32! fused_activation_function:activation asymmetric_quantize_inputs:bool",
    ),
    "RNNOptions": (7, "fused_activation_function:activation asymmetric_quantize_inputs:bool"),
    "FullyConnectedOptions": (
        8,
        "fused_activation_function:activation weights_format:weights_format keep_num_dims:bool"
        " asymmetric_quantize_inputs:bool quantized_bias_type:type",
    ),
    "SoftmaxOptions": (9, "beta:float32!"),
    "ConcatenationOptions": (10, "axis:int32 fused_activation_function:activation"),
    "AddOptions": (11, "fused_activation_function:activation pot_scale_int16:bool=1"),
    "L2NormOptions": (12, "fused_activation_function:activation"),
    "LocalResponseNormalizationOptions": (13, "radius:int32! bias:float32 alpha:float32! beta:float32!"),
    "LSTMOptions": (
        14,
        "fused_activation_function:activation cell_clip:float32 proj_clip:float32"
        " kernel_type:lstm_kernel asymmetric_quantize_inputs:bool",
    ),
    "ResizeBilinearOptions": (15, "- - align_corners:bool half_pixel_centers:bool"),
    "ReshapeOptions": (17, "new_shape:int32s"),
    "SpaceToDepthOptions": (19, "block_size:int32!"),
    "MulOptions": (21, "fused_activation_function:activation"),
    "PadOptions": (22, ""),
    "GatherOptions": (23, "axis:int32 batch_dims:int32"),
    "BatchToSpaceNDOptions": (24, ""),
    "SpaceToBatchNDOptions": (25, ""),
    "TransposeOptions": (26, ""),
    "ReducerOptions": (27, "keep_dims:bool"),
    "SubOptions": (28, "fused_activation_function:activation pot_scale_int16:bool=1"),
    "DivOptions": (29, "fused_activation_function:activation"),
    "SqueezeOptions": (30, "squeeze_dims:int32s"),
    "SequenceRNNOptions": (
        31,
        "time_major:bool fused_activation_function:activation asymmetric_quantize_inputs:bool",
    ),
    "StridedSliceOptions": (
        32,
        "begin_mask:int32 end_mask:int32 ellipsis_mask:int32 new_axis_mask:int32"
        " shrink_axis_mask:int32 offset:bool",
    ),
    "ExpOptions": (33, ""),
    "TopKV2Options": (34, ""),
    "SplitOptions": (35, "num_splits:int32!"),
    "LogSoftmaxOptions": (36, ""),
    "CastOptions": (37, "in_data_type:type out_data_type:type"),
    "DequantizeOptions": (38, ""),
    "MaximumMinimumOptions": (39, ""),
    "ArgMaxOptions": (40, "output_type:type!"),
    "LessOptions": (41, ""),
    "NegOptions": (42, ""),
    "PadV2Options": (43, ""),
    "GreaterOptions": (44, ""),
    "GreaterEqualOptions": (45, ""),
    "LessEqualOptions": (46, ""),
    "SelectOptions": (47, ""),
    "SliceOptions": (48, ""),
    "TransposeConvOptions": (
        49,
        "padding:padding! stride_w:int32! stride_h:int32! fused_activation_function:activation"
        " quantized_bias_type:type",
    ),
    "SparseToDenseOptions": (50, "validate_indices:bool"),
    "TileOptions": (51, ""),
    "ExpandDimsOptions": (52, ""),
    "EqualOptions": (53, ""),
    "NotEqualOptions": (54, ""),
    "ShapeOptions": (55, "out_type:type!"),
    "PowOptions": (56, ""),
    "ArgMinOptions": (57, "output_type:type!"),
    "FakeQuantOptions": (58, "min:float32 max:float32 num_bits:int32! narrow_range:bool"),
    "PackOptions": (59, "values_count:int32! axis:int32"),
    "LogicalOrOptions": (60, ""),
    "OneHotOptions": (61, "axis:int32"),
    "LogicalAndOptions": (62, ""),
    "LogicalNotOptions": (63, ""),
    "UnpackOptions": (64, "num:int32! axis:int32"),
    "FloorDivOptions": (65, ""),
    "SquareOptions": (66, ""),
    "ZerosLikeOptions": (67, ""),
    "FillOptions": (68, ""),
    "BidirectionalSequenceLSTMOptions": (
        69,
        "fused_activation_function:activation cell_clip:float32 proj_clip:float32"
        " merge_outputs:bool time_major:bool=1 asymmetric_quantize_inputs:bool",
    ),
    "BidirectionalSequenceRNNOptions": (
        70,
        "time_major:bool fused_activation_function:activation merge_outputs:bool"
        " asymmetric_quantize_inputs:bool",
    ),
    "UnidirectionalSequenceLSTMOptions": (
        71,
        "fused_activation_function:activation cell_clip:float32 proj_clip:float32 time_major:bool"
        " asymmetric_quantize_inputs:bool diagonal_recurrent_tensors:bool",
    ),
    "FloorModOptions": (72, ""),
    "RangeOptions": (73, ""),
    "ResizeNearestNeighborOptions": (74, "align_corners:bool half_pixel_centers:bool"),
    "LeakyReluOptions": (75, "alpha:float32!"),
    "SquaredDifferenceOptions": (76, ""),
    "MirrorPadOptions": (77, "mode:mirror!"),
    "AbsOptions": (78, ""),
    "SplitVOptions": (79, "num_splits:int32!"),
    "UniqueOptions": (80, "idx_out_type:type=2"),
    "ReverseV2Options": (81, ""),
    "AddNOptions": (82, ""),
    "GatherNdOptions": (83, ""),
    "CosOptions": (84, ""),
    "WhereOptions": (85, ""),
    "RankOptions": (86, ""),
    "ReverseSequenceOptions": (87, "seq_dim:int32 batch_dim:int32"),
    "MatrixDiagOptions": (88, ""),
    "QuantizeOptions": (89, ""),
    "MatrixSetDiagOptions": (90, ""),
    "HardSwishOptions": (91, ""),
    "IfOptions": (92, "then_subgraph_index:graph! else_subgraph_index:graph!"),
    "WhileOptions": (93, "cond_subgraph_index:graph! body_subgraph_index:graph!"),
    "DepthToSpaceOptions": (94, "block_size:int32!"),
    "NonMaxSuppressionV4Options": (95, ""),
    "NonMaxSuppressionV5Options": (96, ""),
    "ScatterNdOptions": (97, ""),
    "SelectV2Options": (98, ""),
    "SegmentSumOptions": (100, ""),
    "BatchMatMulOptions": (101, "adj_x:bool adj_y:bool asymmetric_quantize_inputs:bool"),
    "CumsumOptions": (102, "exclusive:bool reverse:bool"),
    "BroadcastToOptions": (104, ""),
    "Rfft2dOptions": (105, ""),
    "Conv3DOptions": (
        106,
        "padding:padding! stride_d:int32! stride_w:int32! stride_h:int32!"
        " fused_activation_function:activation dilation_d_factor:int32=1 dilation_w_factor:int32=1"
        " dilation_h_factor:int32=1",
    ),
    "GeluOptions": (116, "approximate:bool"),
    "DynamicUpdateSliceOptions": (117, ""),
    "UnsortedSegmentProdOptions": (118, ""),
    "UnsortedSegmentMaxOptions": (119, ""),
    "UnsortedSegmentMinOptions": (120, ""),
    "UnsortedSegmentSumOptions": (121, ""),
    "ATan2Options": (122, ""),
    "SignOptions": (123, ""),
    "BitcastOptions": (124, ""),
    "BitwiseXorOptions": (125, ""),
    "RightShiftOptions": (126, ""),
}

# Operator: its code, and its options table if it has one.
OPERATORS: dict[str, tuple[int, str | None]] = {
    "ADD": (0, "AddOptions"),
    "AVERAGE_POOL_2D": (1, "Pool2DOptions"),
    "CONCATENATION": (2, "ConcatenationOptions"),
    "CONV_2D": (3, "Conv2DOptions"),
    "DEPTHWISE_CONV_2D": (4, "DepthwiseConv2DOptions"),
    "DEPTH_TO_SPACE": (5, "DepthToSpaceOptions"),
    "DEQUANTIZE": (6, "DequantizeOptions"),
    "EMBEDDING_LOOKUP": (7, None),
    "FLOOR": (8, None),
    "FULLY_CONNECTED": (9, "FullyConnectedOptions"),
    "L2_NORMALIZATION": (11, "L2NormOptions"),
    "L2_POOL_2D": (12, "Pool2DOptions"),
    "LOCAL_RESPONSE_NORMALIZATION": (13, "LocalResponseNormalizationOptions"),
    "LOGISTIC": (14, None),
    "LSTM": (16, "LSTMOptions"),
    "MAX_POOL_2D": (17, "Pool2DOptions"),
    "MUL": (18, "MulOptions"),
    "RELU": (19, None),
    "RELU_N1_TO_1": (20, None),
    "RELU6": (21, None),
    "RESHAPE": (22, "ReshapeOptions"),
    "RESIZE_BILINEAR": (23, "ResizeBilinearOptions"),
    "RNN": (24, "RNNOptions"),
    "SOFTMAX": (25, "SoftmaxOptions"),
    "SPACE_TO_DEPTH": (26, "SpaceToDepthOptions"),
    "SVDF": (27, "SVDFOptions"),
    "TANH": (28, None),
    "PAD": (34, "PadOptions"),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (35, "SequenceRNNOptions"),
    "GATHER": (36, "GatherOptions"),
    "BATCH_TO_SPACE_ND": (37, "BatchToSpaceNDOptions"),
    "SPACE_TO_BATCH_ND": (38, "SpaceToBatchNDOptions"),
    "TRANSPOSE": (39, "TransposeOptions"),
    "MEAN": (40, "ReducerOptions"),
    "SUB": (41, "SubOptions"),
    "DIV": (42, "DivOptions"),
    "SQUEEZE": (43, "SqueezeOptions"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (44, "UnidirectionalSequenceLSTMOptions"),
    "STRIDED_SLICE": (45, "StridedSliceOptions"),
    "BIDIRECTIONAL_SEQUENCE_RNN": (46, "BidirectionalSequenceRNNOptions"),
    "EXP": (47, "ExpOptions"),
    "TOPK_V2": (48, "TopKV2Options"),
    "SPLIT": (49, "SplitOptions"),
    "LOG_SOFTMAX": (50, "LogSoftmaxOptions"),
    "BIDIRECTIONAL_SEQUENCE_LSTM": (52, "BidirectionalSequenceLSTMOptions"),
    "CAST": (53, "CastOptions"),
    "PRELU": (54, None),
    "MAXIMUM": (55, "MaximumMinimumOptions"),
    "ARG_MAX": (56, "ArgMaxOptions"),
    "MINIMUM": (57, "MaximumMinimumOptions"),
    "LESS": (58, "LessOptions"),
    "NEG": (59, "NegOptions"),
    "PADV2": (60, "PadV2Options"),
    "GREATER": (61, "GreaterOptions"),
    "GREATER_EQUAL": (62, "GreaterEqualOptions"),
    "LESS_EQUAL": (63, "LessEqualOptions"),
    "SELECT": (64, "SelectOptions"),
    "SLICE": (65, "SliceOptions"),
    "SIN": (66, None),
    "TRANSPOSE_CONV": (67, "TransposeConvOptions"),
    "SPARSE_TO_DENSE": (68, "SparseToDenseOptions"),
    "TILE": (69, "TileOptions"),
    "EXPAND_DIMS": (70, "ExpandDimsOptions"),
    "EQUAL": (71, "EqualOptions"),
    "NOT_EQUAL": (72, "NotEqualOptions"),
    "LOG": (73, None),
    "SUM": (74, "ReducerOptions"),
    "SQRT": (75, None),
    "RSQRT": (76, None),
    "SHAPE": (77, "ShapeOptions"),
    "POW": (78, "PowOptions"),
    "ARG_MIN": (79, "ArgMinOptions"),
    "FAKE_QUANT": (80, "FakeQuantOptions"),
    "REDUCE_PROD": (81, "ReducerOptions"),
    "REDUCE_MAX": (82, "ReducerOptions"),
    "PACK": (83, "PackOptions"),
    "LOGICAL_OR": (84, "LogicalOrOptions"),
    "ONE_HOT": (85, "OneHotOptions"),
    "LOGICAL_AND": (86, "LogicalAndOptions"),
    "LOGICAL_NOT": (87, "LogicalNotOptions"),
    "UNPACK": (88, "UnpackOptions"),
    "REDUCE_MIN": (89, "ReducerOptions"),
    "FLOOR_DIV": (90, "FloorDivOptions"),
    "REDUCE_ANY": (91, "ReducerOptions"),
    "SQUARE": (92, "SquareOptions"),
    "ZEROS_LIKE": (93, "ZerosLikeOptions"),
    "FILL": (94, "FillOptions"),
    "FLOOR_MOD": (95, "FloorModOptions"),
    "RANGE": (96, "RangeOptions"),
    "RESIZE_NEAREST_NEIGHBOR": (97, "ResizeNearestNeighborOptions"),
    "LEAKY_RELU": (98, "LeakyReluOptions"),
    "SQUARED_DIFFERENCE": (99, "SquaredDifferenceOptions"),
    "MIRROR_PAD": (100, "MirrorPadOptions"),
    "ABS": (101, "AbsOptions"),
    "SPLIT_V": (102, "SplitVOptions"),
    "UNIQUE": (103, "UniqueOptions"),
    "CEIL": (104, None),
    "REVERSE_V2": (105, "ReverseV2Options"),
    "ADD_N": (106, "AddNOptions"),
    "GATHER_ND": (107, "GatherNdOptions"),
    "COS": (108, "CosOptions"),
    "WHERE": (109, "WhereOptions"),
    "RANK": (110, "RankOptions"),
    "ELU": (111, None),
    "REVERSE_SEQUENCE": (112, "ReverseSequenceOptions"),
    "MATRIX_DIAG": (113, "MatrixDiagOptions"),
    "QUANTIZE": (114, "QuantizeOptions"),
    "MATRIX_SET_DIAG": (115, "MatrixSetDiagOptions"),
    "ROUND": (116, None),
    "HARD_SWISH": (117, "HardSwishOptions"),
    "IF": (118, "IfOptions"),
    "WHILE": (119, "WhileOptions"),
    "NON_MAX_SUPPRESSION_V4": (120, "NonMaxSuppressionV4Options"),
    "NON_MAX_SUPPRESSION_V5": (121, "NonMaxSuppressionV5Options"),
    "SCATTER_ND": (122, "ScatterNdOptions"),
    "SELECT_V2": (123, "SelectV2Options"),
    "SEGMENT_SUM": (125, "SegmentSumOptions"),
    "BATCH_MATMUL": (126, "BatchMatMulOptions"),
    "CUMSUM": (128, "CumsumOptions"),
    "BROADCAST_TO": (130, "BroadcastToOptions"),
    "RFFT2D": (131, "Rfft2dOptions"),
    "CONV_3D": (132, "Conv3DOptions"),
    "IMAG": (133, None),
    "REAL": (134, None),
    "COMPLEX_ABS": (135, None),
    "REDUCE_ALL": (140, "ReducerOptions"),
    "CONV_3D_TRANSPOSE": (141, "Conv3DOptions"),
    "BROADCAST_ARGS": (145, None),
    "GELU": (150, "GeluOptions"),
    "DYNAMIC_UPDATE_SLICE": (151, "DynamicUpdateSliceOptions"),
    "RELU_0_TO_1": (152, None),
    "UNSORTED_SEGMENT_PROD": (153, "UnsortedSegmentProdOptions"),
    "UNSORTED_SEGMENT_MAX": (154, "UnsortedSegmentMaxOptions"),
    "UNSORTED_SEGMENT_SUM": (155, "UnsortedSegmentSumOptions"),
    "ATAN2": (156, "ATan2Options"),
    "UNSORTED_SEGMENT_MIN": (157, "UnsortedSegmentMinOptions"),
    "SIGN": (158, "SignOptions"),
    "BITCAST": (159, "BitcastOptions"),
    "BITWISE_XOR": (160, "BitwiseXorOptions"),
    "RIGHT_SHIFT": (161, "RightShiftOptions"),
}

# Inputs that hold an operator's state: variable tensors, zero at first, which no operator computes.
STATE_INPUTS = {
    "LSTM": (18, 19),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (18, 19),
    "BIDIRECTIONAL_SEQUENCE_LSTM": (35, 36, 37, 38),
    "RNN": (4,),
    "UNIDIRECTIONAL_SEQUENCE_RNN": (4,),
    "BIDIRECTIONAL_SEQUENCE_RNN": (4, 8),
    "SVDF": (4,),
}


def options_code(table: str) -> int:
    """The table's number in the union BuiltinOptions."""
    return _TABLES[table][0]


@cache
def options_fields(table: str) -> dict[str, OptionField]:
    """The table's fields by name."""
    words = _TABLES[table][1].split()
    fields = (_field(slot, word) for slot, word in enumerate(words) if word != "-")
    return {field.name: field for field in fields}


def _field(slot: int, word: str) -> OptionField:
    name, kind = word.split(":")
    kind, _, default = kind.partition("=")
    return OptionField(slot, name, kind.rstrip("!"), int(default or 0), kind.endswith("!"))
