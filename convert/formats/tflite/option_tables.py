"""The fields of TFLite's options tables, and the names of its operators; see schema.py.

Made by tools/make_tflite_schema.py; do not edit.
"""

# in the order of their codes
OPERATOR_NAMES = """
ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC
LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH
SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN
GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM
STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM
CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN
TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN
FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV
REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE
MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG
QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND
SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO
RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE
RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX
UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC
STABLEHLO_ADD STABLEHLO_DIVIDE STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP
STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL
STABLEHLO_REDUCE STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR
STABLEHLO_LOG STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER
STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE
STABLEHLO_CONVERT STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA
STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER
STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT
STABLEHLO_CBRT STABLEHLO_CASE
"""

# The name of a table and its number in the union BuiltinOptions; behind it the fields, by slot: "slot
# name:kind", with "!" when required, or "=" and a default other than 0.
OPTION_TABLES = """
Conv2DOptions 1
  0 padding:padding!
  1 stride_w:int32!
  2 stride_h:int32!
  3 fused_activation_function:activation
  4 dilation_w_factor:int32=1
  5 dilation_h_factor:int32=1
  6 quantized_bias_type:type
DepthwiseConv2DOptions 2
  0 padding:padding!
  1 stride_w:int32!
  2 stride_h:int32!
  3 depth_multiplier:int32!
  4 fused_activation_function:activation
  5 dilation_w_factor:int32=1
  6 dilation_h_factor:int32=1
ConcatEmbeddingsOptions 3
  0 num_channels:int32
  1 num_columns_per_channel:int32s
  2 embedding_dim_per_channel:int32s
LSHProjectionOptions 4
  0 type:int8
Pool2DOptions 5
  0 padding:padding!
  1 stride_w:int32!
  2 stride_h:int32!
  3 filter_width:int32!
  4 filter_height:int32!
  5 fused_activation_function:activation
SVDFOptions 6
  0 rank:int32!
  1 fused_activation_function:activation
  2 asymmetric_quantize_inputs:bool
RNNOptions 7
  0 fused_activation_function:activation
  1 asymmetric_quantize_inputs:bool
FullyConnectedOptions 8
  0 fused_activation_function:activation
  1 weights_format:weights_format
  2 keep_num_dims:bool
  3 asymmetric_quantize_inputs:bool
  4 quantized_bias_type:type
SoftmaxOptions 9
  0 beta:float32!
ConcatenationOptions 10
  0 axis:int32
  1 fused_activation_function:activation
AddOptions 11
  0 fused_activation_function:activation
  1 pot_scale_int16:bool=1
L2NormOptions 12
  0 fused_activation_function:activation
LocalResponseNormalizationOptions 13
  0 radius:int32!
  1 bias:float32
  2 alpha:float32!
  3 beta:float32!
LSTMOptions 14
  0 fused_activation_function:activation
  1 cell_clip:float32
  2 proj_clip:float32
  3 kernel_type:lstm_kernel
  4 asymmetric_quantize_inputs:bool
ResizeBilinearOptions 15
  2 align_corners:bool
  3 half_pixel_centers:bool
CallOptions 16
  0 subgraph:uint32
ReshapeOptions 17
  0 new_shape:int32s
SkipGramOptions 18
  0 ngram_size:int32
  1 max_skip_size:int32
  2 include_all_ngrams:bool
SpaceToDepthOptions 19
  0 block_size:int32!
EmbeddingLookupSparseOptions 20
  0 combiner:int8
MulOptions 21
  0 fused_activation_function:activation
PadOptions 22
GatherOptions 23
  0 axis:int32
  1 batch_dims:int32
BatchToSpaceNDOptions 24
SpaceToBatchNDOptions 25
TransposeOptions 26
ReducerOptions 27
  0 keep_dims:bool
SubOptions 28
  0 fused_activation_function:activation
  1 pot_scale_int16:bool=1
DivOptions 29
  0 fused_activation_function:activation
SqueezeOptions 30
  0 squeeze_dims:int32s
SequenceRNNOptions 31
  0 time_major:bool
  1 fused_activation_function:activation
  2 asymmetric_quantize_inputs:bool
StridedSliceOptions 32
  0 begin_mask:int32
  1 end_mask:int32
  2 ellipsis_mask:int32
  3 new_axis_mask:int32
  4 shrink_axis_mask:int32
  5 offset:bool
ExpOptions 33
TopKV2Options 34
SplitOptions 35
  0 num_splits:int32!
LogSoftmaxOptions 36
CastOptions 37
  0 in_data_type:type
  1 out_data_type:type
DequantizeOptions 38
MaximumMinimumOptions 39
ArgMaxOptions 40
  0 output_type:type!
LessOptions 41
NegOptions 42
PadV2Options 43
GreaterOptions 44
GreaterEqualOptions 45
LessEqualOptions 46
SelectOptions 47
SliceOptions 48
TransposeConvOptions 49
  0 padding:padding!
  1 stride_w:int32!
  2 stride_h:int32!
  3 fused_activation_function:activation
  4 quantized_bias_type:type
SparseToDenseOptions 50
  0 validate_indices:bool
TileOptions 51
ExpandDimsOptions 52
EqualOptions 53
NotEqualOptions 54
ShapeOptions 55
  0 out_type:type!
PowOptions 56
ArgMinOptions 57
  0 output_type:type!
FakeQuantOptions 58
  0 min:float32
  1 max:float32
  2 num_bits:int32!
  3 narrow_range:bool
PackOptions 59
  0 values_count:int32!
  1 axis:int32
LogicalOrOptions 60
OneHotOptions 61
  0 axis:int32
LogicalAndOptions 62
LogicalNotOptions 63
UnpackOptions 64
  0 num:int32!
  1 axis:int32
FloorDivOptions 65
SquareOptions 66
ZerosLikeOptions 67
FillOptions 68
BidirectionalSequenceLSTMOptions 69
  0 fused_activation_function:activation
  1 cell_clip:float32
  2 proj_clip:float32
  3 merge_outputs:bool
  4 time_major:bool=1
  5 asymmetric_quantize_inputs:bool
BidirectionalSequenceRNNOptions 70
  0 time_major:bool
  1 fused_activation_function:activation
  2 merge_outputs:bool
  3 asymmetric_quantize_inputs:bool
UnidirectionalSequenceLSTMOptions 71
  0 fused_activation_function:activation
  1 cell_clip:float32
  2 proj_clip:float32
  3 time_major:bool
  4 asymmetric_quantize_inputs:bool
  5 diagonal_recurrent_tensors:bool
FloorModOptions 72
RangeOptions 73
ResizeNearestNeighborOptions 74
  0 align_corners:bool
  1 half_pixel_centers:bool
LeakyReluOptions 75
  0 alpha:float32!
SquaredDifferenceOptions 76
MirrorPadOptions 77
  0 mode:mirror!
AbsOptions 78
SplitVOptions 79
  0 num_splits:int32!
UniqueOptions 80
  0 idx_out_type:type=2
ReverseV2Options 81
AddNOptions 82
GatherNdOptions 83
CosOptions 84
WhereOptions 85
RankOptions 86
ReverseSequenceOptions 87
  0 seq_dim:int32
  1 batch_dim:int32
MatrixDiagOptions 88
QuantizeOptions 89
MatrixSetDiagOptions 90
HardSwishOptions 91
IfOptions 92
  0 then_subgraph_index:graph!
  1 else_subgraph_index:graph!
WhileOptions 93
  0 cond_subgraph_index:graph!
  1 body_subgraph_index:graph!
DepthToSpaceOptions 94
  0 block_size:int32!
NonMaxSuppressionV4Options 95
NonMaxSuppressionV5Options 96
ScatterNdOptions 97
SelectV2Options 98
DensifyOptions 99
SegmentSumOptions 100
BatchMatMulOptions 101
  0 adj_x:bool
  1 adj_y:bool
  2 asymmetric_quantize_inputs:bool
CumsumOptions 102
  0 exclusive:bool
  1 reverse:bool
CallOnceOptions 103
  0 init_subgraph_index:graph!
BroadcastToOptions 104
Rfft2dOptions 105
Conv3DOptions 106
  0 padding:padding!
  1 stride_d:int32!
  2 stride_w:int32!
  3 stride_h:int32!
  4 fused_activation_function:activation
  5 dilation_d_factor:int32=1
  6 dilation_w_factor:int32=1
  7 dilation_h_factor:int32=1
HashtableOptions 107
  0 table_id:int32
  1 key_dtype:int8
  2 value_dtype:int8
HashtableFindOptions 108
HashtableImportOptions 109
HashtableSizeOptions 110
VarHandleOptions 111
  0 container:text
  1 shared_name:text
ReadVariableOptions 112
AssignVariableOptions 113
RandomOptions 114
  0 seed:int64
  1 seed2:int64
BucketizeOptions 115
  0 boundaries:float32s
GeluOptions 116
  0 approximate:bool
DynamicUpdateSliceOptions 117
UnsortedSegmentProdOptions 118
UnsortedSegmentMaxOptions 119
UnsortedSegmentMinOptions 120
UnsortedSegmentSumOptions 121
ATan2Options 122
SignOptions 123
BitcastOptions 124
BitwiseXorOptions 125
RightShiftOptions 126
"""
