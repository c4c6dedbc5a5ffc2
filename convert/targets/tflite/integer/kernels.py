"""What TFLite's integer kernels ask of the grids of their tensors.

``Kernel.relation`` is one of

- "weights": the product with constant weights; input and output have any grid, the bias that of the products;
- "free": operands and results have any grid, the kernel brings one to the other;
- "same": results have the grid of the operands;
- "fixed": the result has a grid of its own, whatever the operand's;
- "compared": operands have any grid (in int16 one for all), results are no numbers on one.

Source: LiteRT's quantization specification and the kernels' Prepare; each row runs in LiteRT in
tests/targets/tflite/test_integer_kernels.py, which measures the error of each on all integers and many grids:
1.6 steps at most, but for those that are named in verify/kernel_error.py. Left out, though LiteRT has
them, are kernels that are wrong: DIV overflows where quotients are large, NEG and SCATTER_ND know no zero
point, SQRT and RSQRT stop at what is not positive, LOG in int16 is hundreds of steps off near 0, PRELU and
GELU in int16 everywhere; EXP in int16 knows 513 places of its range, and is 63 steps off between them. A
product of int8 wraps around where it lies 128 times beyond the range of its result, one of int16 where it
does 32768 times.
"""

from __future__ import annotations

from dataclasses import dataclass

BOTH = frozenset({"int8", "int16"})
INT8, INT16 = frozenset({"int8"}), frozenset({"int16"})


@dataclass(frozen=True)
class Kernel:
    """``numbers`` are the operands that are on a grid (None: all), ``results`` the outputs that are.

    ``types`` are the element types that the kernel exists for.
    """

    relation: str
    numbers: tuple[int, ...] | None = (0,)
    results: tuple[int, ...] | None = None
    types: frozenset[str] = BOTH

    def operands(self, count: int) -> tuple[int, ...]:
        """The places of the operands on a grid, of so many."""
        return tuple(range(count)) if self.numbers is None else tuple(i for i in self.numbers if i < count)

    def outputs(self, count: int) -> tuple[int, ...]:
        return tuple(range(count)) if self.results is None else self.results


@dataclass(frozen=True)
class Weighted:
    """Places of input, weights and bias, and the axis of the weights' output channels."""

    x: int
    weight: int
    bias: int
    axis: int


WEIGHTED = {
    "CONV_2D": Weighted(0, 1, 2, 0),
    "DEPTHWISE_CONV_2D": Weighted(0, 1, 2, 3),
    "FULLY_CONNECTED": Weighted(0, 1, 2, 0),
    "TRANSPOSE_CONV": Weighted(2, 1, 3, 0),
}

# no operators of TFLite: several that look each step up, or two of them (tables.py)
TABLE, TABLE_OF_TWO = TABLES = ("TABLE", "TABLE_OF_TWO")

_same = Kernel("same")
_all = Kernel("same", None)
KERNELS: dict[str, Kernel] = {
    **dict.fromkeys(("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"), Kernel("weights")),
    "TRANSPOSE_CONV": Kernel("weights", (2,)),
    **dict.fromkeys(("ADD", "SUB", "MUL"), Kernel("free", None)),
    **dict.fromkeys(("MEAN", "SUM", "RELU", "RELU6", "LEAKY_RELU", "ABS"), Kernel("free")),
    TABLE: Kernel("free"),
    TABLE_OF_TWO: Kernel("free", (0, 1), types=INT8),
    **dict.fromkeys(("RELU_N1_TO_1", "RELU_0_TO_1", "ELU", "HARD_SWISH"), Kernel("free", types=INT8)),
    **dict.fromkeys(("EXP", "GELU", "LOG"), Kernel("free", types=INT8)),
    **dict.fromkeys(("BATCH_MATMUL",), Kernel("free", (0, 1))),
    **dict.fromkeys(("PRELU", "SQUARED_DIFFERENCE"), Kernel("free", None, types=INT8)),
    **dict.fromkeys(("RESHAPE", "TRANSPOSE", "PAD", "SLICE", "STRIDED_SLICE", "SPLIT_V", "UNPACK"), _same),
    **dict.fromkeys(("GATHER", "GATHER_ND", "TILE", "REVERSE_V2", "BROADCAST_TO", "MIRROR_PAD"), _same),
    **dict.fromkeys(("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_BATCH_ND"), _same),
    **dict.fromkeys(("BATCH_TO_SPACE_ND", "REDUCE_MAX", "REDUCE_MIN", "MAX_POOL_2D"), _same),
    **dict.fromkeys(("AVERAGE_POOL_2D", "EXPAND_DIMS", "SQUEEZE"), _same),
    **dict.fromkeys(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), Kernel("same", types=INT8)),
    "PADV2": Kernel("same", (0, 2)),
    "DYNAMIC_UPDATE_SLICE": Kernel("same", (0, 1)),
    "REVERSE_SEQUENCE": Kernel("same", types=INT16),
    "SPLIT": Kernel("same", (1,)),
    "SELECT_V2": Kernel("same", (1, 2)),
    "TOPK_V2": Kernel("same", (0,), results=(0,)),
    **dict.fromkeys(("CONCATENATION", "PACK", "MAXIMUM", "MINIMUM"), _all),
    **dict.fromkeys(("LOGISTIC", "TANH", "SOFTMAX"), Kernel("fixed")),
    **dict.fromkeys(("LOG_SOFTMAX", "L2_NORMALIZATION"), Kernel("fixed", types=INT8)),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), Kernel("compared", types=INT8)),
    **dict.fromkeys(("LESS", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL"), Kernel("compared", (0, 1))),
    **dict.fromkeys(("GREATER", "LESS_EQUAL"), Kernel("compared", (0, 1))),
}

# (scale, zero point) of the results of "fixed" kernels
FIXED = {
    "int8": {
        "LOGISTIC": (1 / 256, -128),
        "SOFTMAX": (1 / 256, -128),
        "TANH": (1 / 128, 0),
        "L2_NORMALIZATION": (1 / 128, 0),
        "LOG_SOFTMAX": (16 / 256, 127),
    },
    "int16": dict.fromkeys(("LOGISTIC", "SOFTMAX", "TANH"), (1 / 32768, 0)),
}

# Results lie within the range of the operand: its grid holds them, where the source names none.
WITHIN = frozenset({"MEAN", "RELU6", "AVERAGE_POOL_2D", "RESIZE_BILINEAR"})
# They are elements of the first operand, or 0: on its grid.
MOVING = frozenset(
    {
        *("RESHAPE", "TRANSPOSE", "PAD", "SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "UNPACK", "RELU"),
        *("GATHER", "GATHER_ND", "TILE", "REVERSE_V2", "BROADCAST_TO", "MIRROR_PAD", "EXPAND_DIMS"),
        *("RESIZE_NEAREST_NEIGHBOR", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "REDUCE_MAX", "REDUCE_MIN"),
        *("MAX_POOL_2D", "SQUEEZE", "DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "REVERSE_SEQUENCE", "TOPK_V2"),
    }
)
