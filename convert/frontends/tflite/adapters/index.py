"""Maps names to adapter families, so that a family is imported on first use.

Made by tools/make_adapter_indexes.py; do not edit.
"""

OPERATORS = {
    "activations": """
tflite.RELU tflite.RELU6 tflite.LOGISTIC tflite.TANH tflite.HARD_SWISH tflite.ELU tflite.RELU_N1_TO_1
tflite.RELU_0_TO_1 tflite.LEAKY_RELU tflite.GELU tflite.PRELU tflite.SOFTMAX tflite.LOG_SOFTMAX
""",
    "complex_numbers": """
tflite.RFFT2D tflite.REAL tflite.IMAG tflite.COMPLEX_ABS
""",
    "control_flow": """
tflite.CALL tflite.IF tflite.WHILE
""",
    "convolutions": """
tflite.CONV_2D tflite.DEPTHWISE_CONV_2D tflite.CONV_3D tflite.TRANSPOSE_CONV
tflite.custom.Convolution2DTransposeBias
""",
    "elementwise": """
tflite.MAXIMUM tflite.MINIMUM tflite.POW tflite.FLOOR_DIV tflite.FLOOR_MOD tflite.ATAN2 tflite.EQUAL
tflite.NOT_EQUAL tflite.LESS tflite.LESS_EQUAL tflite.GREATER tflite.GREATER_EQUAL tflite.LOGICAL_AND
tflite.LOGICAL_OR tflite.BITWISE_XOR tflite.RIGHT_SHIFT tflite.ADD tflite.SUB tflite.MUL tflite.ABS tflite.NEG
tflite.EXP tflite.LOG tflite.SQRT tflite.RSQRT tflite.SQUARE tflite.SIN tflite.COS tflite.FLOOR tflite.CEIL
tflite.ROUND tflite.SIGN tflite.LOGICAL_NOT tflite.DIV tflite.SQUARED_DIFFERENCE tflite.ADD_N tflite.SELECT
tflite.SELECT_V2 tflite.CAST tflite.DEQUANTIZE tflite.QUANTIZE tflite.DENSIFY tflite.ZEROS_LIKE tflite.BITCAST
""",
    "gathering": """
tflite.GATHER tflite.GATHER_ND tflite.SCATTER_ND tflite.EMBEDDING_LOOKUP tflite.ONE_HOT tflite.WHERE
""",
    "images": """
tflite.RESIZE_BILINEAR tflite.RESIZE_NEAREST_NEIGHBOR tflite.DEPTH_TO_SPACE tflite.SPACE_TO_DEPTH
tflite.SPACE_TO_BATCH_ND tflite.BATCH_TO_SPACE_ND
""",
    "matrices": """
tflite.FULLY_CONNECTED tflite.BATCH_MATMUL
""",
    "pooling": """
tflite.MAX_POOL_2D tflite.AVERAGE_POOL_2D tflite.L2_POOL_2D
""",
    "recurrent": """
tflite.UNIDIRECTIONAL_SEQUENCE_LSTM
""",
    "reductions": """
tflite.MEAN tflite.SUM tflite.REDUCE_PROD tflite.REDUCE_MAX tflite.REDUCE_MIN tflite.REDUCE_ANY
tflite.REDUCE_ALL tflite.ARG_MAX tflite.ARG_MIN tflite.TOPK_V2 tflite.CUMSUM tflite.L2_NORMALIZATION
tflite.LOCAL_RESPONSE_NORMALIZATION
""",
    "shapes": """
tflite.RESHAPE tflite.SQUEEZE tflite.EXPAND_DIMS tflite.TRANSPOSE tflite.SHAPE tflite.RANK
tflite.CONCATENATION tflite.PACK tflite.UNPACK tflite.TILE tflite.BROADCAST_TO tflite.BROADCAST_ARGS
tflite.FILL tflite.RANGE
""",
    "slicing": """
tflite.SLICE tflite.STRIDED_SLICE tflite.SPLIT tflite.SPLIT_V tflite.PAD tflite.PADV2 tflite.MIRROR_PAD
tflite.REVERSE_V2 tflite.DYNAMIC_UPDATE_SLICE
""",
}
