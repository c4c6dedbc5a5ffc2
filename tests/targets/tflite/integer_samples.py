"""A call of each of TFLite's integer kernels: operands, attributes, and the shapes of the results."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tmconvert.lowering.target_graph import Attribute, Operator, TargetGraph, Value


@dataclass(eq=False)
class Sample:
    """``operands`` are shapes of inputs (None: left out), or arrays of constants; ``low`` and ``high`` the
    range of the inputs.
    """

    type: str
    operands: list[tuple[int, ...] | np.ndarray | None]
    results: list[tuple[int, ...]]
    attributes: dict[str, Attribute] = field(default_factory=dict)
    low: float = -2.0
    high: float = 3.0
    dtypes: tuple[str, ...] = ()

    def graph(self) -> TargetGraph:
        """The call in float32."""
        graph = TargetGraph("tflite", 23, "sample")
        values: list[Value | None] = []
        for number, given in enumerate(self.operands):
            if isinstance(given, np.ndarray):
                values.append(Value(f"constant{number}", given.dtype, given.shape, given))
            elif given is None:
                values.append(None)
            else:
                dtype = self.dtypes[number] if self.dtypes else "float32"
                value = Value(f"x{number}", np.dtype(dtype), given)
                values.append(value)
                graph.inputs.append(value)
        for number, shape in enumerate(self.results):
            dtype = RESULTS.get(self.type, ("float32",))[number if self.type in RESULTS else 0]
            graph.outputs.append(Value(f"y{number}", np.dtype(dtype), shape))
        made = [*graph.outputs]
        graph.operators.append(Operator(self.type, values, made, dict(self.attributes), "/sample"))
        graph.input_names = [value.name for value in graph.inputs]
        graph.output_names = [value.name for value in graph.outputs]
        return graph


COMPARISONS = ("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL")
RESULTS = {
    **dict.fromkeys(COMPARISONS, ("bool",)),
    **dict.fromkeys(("ARG_MAX", "ARG_MIN"), ("int32",)),
    "TOPK_V2": ("float32", "int32"),
}


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def weights(*shape: int, axis: int) -> np.ndarray:
    """Numbers that int8 holds as they are: each channel reaches to 127 of its steps."""
    random = np.random.default_rng(sum(shape))
    steps = random.integers(-127, 128, shape).astype(np.float32)
    first = [0] * len(shape)
    for channel in range(shape[axis]):
        first[axis] = channel
        steps[tuple(first)] = 127
    scale = 2.0 ** -random.integers(7, 10, shape[axis])
    columns = [1] * len(shape)
    columns[axis] = -1
    return (steps * scale.reshape(columns)).astype(np.float32)


def bias(count: int) -> np.ndarray:
    return np.linspace(-1, 2, count, dtype=np.float32)


CONV = {"padding": "SAME", "stride_w": 2, "stride_h": 1}
DILATED = {"padding": "VALID", "stride_w": 1, "stride_h": 1, "dilation_w_factor": 2, "dilation_h_factor": 1}
POOL = {"padding": "SAME", "stride_w": 2, "stride_h": 2, "filter_width": 3, "filter_height": 2}
X = (1, 5, 7, 3)
PADS = np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32)


def _elementwise(type: str, low: float = -2.0, high: float = 3.0, **attributes: Attribute) -> list[Sample]:
    return [
        Sample(type, [shape], [shape], attributes, low, high) for shape in (X, (3, 11), (9,), (2, 1, 3, 2, 5))
    ]


def _binary(type: str, low: float = -2.0, high: float = 3.0) -> list[Sample]:
    constant = np.linspace(max(low, -1.5), 2, 3, dtype=np.float32)
    return [
        Sample(type, [X, X], [X], {}, low, high),
        Sample(type, [X, (1, 1, 1, 3)], [X], {}, low, high),
        Sample(type, [(5, 1), (1, 7)], [(5, 7)], {}, low, high),
        Sample(type, [X, constant], [X], {}, low, high),
        Sample(type, [np.array(1.25, np.float32), X], [X], {}, low, high),
        Sample(type, [(2, 3, 1, 5, 1), (3, 2, 1, 4)], [(2, 3, 2, 5, 4)], {}, low, high),
    ]


SAMPLES = [
    Sample("CONV_2D", [X, weights(4, 3, 2, 3, axis=0), bias(4)], [(1, 5, 4, 4)], CONV),
    Sample("CONV_2D", [X, weights(4, 2, 3, 3, axis=0), bias(4)], [(1, 4, 3, 4)], DILATED),
    Sample(
        "CONV_2D",
        [(2, 5, 7, 4), weights(6, 1, 1, 2, axis=0), bias(6)],
        [(2, 5, 7, 6)],
        {"padding": "VALID", "stride_w": 1, "stride_h": 1, "fused_activation_function": "RELU6"},
    ),
    Sample(
        "DEPTHWISE_CONV_2D",
        [X, weights(1, 3, 2, 3, axis=3), bias(3)],
        [(1, 5, 4, 3)],
        {**CONV, "depth_multiplier": 1},
    ),
    Sample(
        "DEPTHWISE_CONV_2D",
        [X, weights(1, 2, 3, 6, axis=3), bias(6)],
        [(1, 4, 3, 6)],
        {**DILATED, "depth_multiplier": 2, "fused_activation_function": "RELU"},
    ),
    Sample("FULLY_CONNECTED", [(3, 11), weights(5, 11, axis=0), bias(5)], [(3, 5)]),
    Sample(
        "FULLY_CONNECTED", [(2, 3, 11), weights(5, 11, axis=0), None], [(2, 3, 5)], {"keep_num_dims": True}
    ),
    Sample(
        "TRANSPOSE_CONV",
        [ints(1, 11, 15, 4), weights(4, 3, 3, 3, axis=0), X, bias(4)],
        [(1, 11, 15, 4)],
        {"padding": "VALID", "stride_w": 2, "stride_h": 2},
    ),
    Sample(
        "TRANSPOSE_CONV",
        [ints(1, 5, 7, 4), weights(4, 3, 3, 3, axis=0), X],
        [(1, 5, 7, 4)],
        {"padding": "SAME", "stride_w": 1, "stride_h": 1},
    ),
    *_binary("ADD"),
    *_binary("SUB"),
    *_binary("MUL"),
    *_binary("MAXIMUM"),
    *_binary("MINIMUM"),
    *_binary("SQUARED_DIFFERENCE"),
    Sample("ADD", [X, X], [X], {"fused_activation_function": "RELU"}),
    Sample("SUB", [X, X], [X], {"fused_activation_function": "RELU_N1_TO_1"}),
    Sample("MUL", [X, X], [X], {"fused_activation_function": "RELU6"}),
    *(
        Sample(type, [X, ints(*axes)], [shape], {"keep_dims": len(shape) == 4})
        for type in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
        for axes, shape in (((1, 2), (1, 1, 1, 3)), ((1, 2), (1, 3)), ((3,), (1, 5, 7)), ((0, 1, 2, 3), ()))
    ),
    *(
        sample
        for type in (
            "RELU",
            "RELU6",
            "RELU_N1_TO_1",
            "RELU_0_TO_1",
            "ELU",
            "HARD_SWISH",
            "ABS",
            "EXP",
            "LOGISTIC",
            "TANH",
        )
        for sample in _elementwise(type)
    ),
    *_elementwise("LEAKY_RELU", alpha=0.3),
    *_elementwise("GELU", approximate=False),
    *_elementwise("GELU", approximate=True),
    *_elementwise("LOG", 0.0, 5.0),
    Sample("PRELU", [X, np.float32([0.5, -0.25, 0.1]).reshape(1, 1, 3)], [X]),
    Sample("BATCH_MATMUL", [(2, 3, 5), (2, 5, 4)], [(2, 3, 4)]),
    Sample("BATCH_MATMUL", [(2, 3, 3, 5), (3, 4, 5)], [(2, 3, 3, 4)], {"adj_y": True}),
    Sample("BATCH_MATMUL", [(2, 5, 3), (2, 5, 4)], [(2, 3, 4)], {"adj_x": True}),
    Sample("BATCH_MATMUL", [(2, 3, 5), weights(5, 4, axis=1)], [(2, 3, 4)]),
    Sample("BATCH_MATMUL", [weights(3, 5, axis=0), (5, 4)], [(3, 4)]),
    Sample("RESHAPE", [X, ints(7, 15)], [(7, 15)], {"new_shape": [7, 15]}),
    Sample("TRANSPOSE", [X, ints(0, 3, 1, 2)], [(1, 3, 5, 7)]),
    Sample("TRANSPOSE", [(2, 3, 1, 2, 5), ints(4, 0, 3, 1, 2)], [(5, 2, 2, 3, 1)]),
    Sample("PAD", [X, PADS], [(1, 8, 8, 3)]),
    Sample("PAD", [(3, 5), np.array([[1, 0], [2, 1]], np.int32)], [(4, 8)]),
    Sample("PADV2", [X, PADS, np.array(-1.5, np.float32)], [(1, 8, 8, 3)]),
    Sample("MIRROR_PAD", [X, PADS], [(1, 8, 8, 3)], {"mode": "REFLECT"}),
    Sample("MIRROR_PAD", [X, PADS], [(1, 8, 8, 3)], {"mode": "SYMMETRIC"}),
    Sample("SLICE", [X, ints(0, 1, 2, 0), ints(1, 3, 4, 3)], [(1, 3, 4, 3)]),
    Sample("SLICE", [(2, 3, 1, 2, 5), ints(0, 1, 0, 0, 2), ints(2, 2, 1, 2, 3)], [(2, 2, 1, 2, 3)]),
    Sample("STRIDED_SLICE", [X, ints(0, 0, 6, 0), ints(1, 5, -8, 3), ints(1, 2, -2, 1)], [(1, 3, 4, 3)]),
    Sample("SPLIT", [ints(3).reshape(()), X], [(1, 5, 7, 1)] * 3, {"num_splits": 3}),
    Sample("SPLIT_V", [X, ints(2, 5), ints(2).reshape(())], [(1, 5, 2, 3), (1, 5, 5, 3)], {"num_splits": 2}),
    Sample("UNPACK", [(3, 2, 5)], [(3, 5)] * 2, {"num": 2, "axis": 1}),
    Sample("PACK", [(3, 5), (3, 5)], [(3, 2, 5)], {"values_count": 2, "axis": 1}),
    Sample("CONCATENATION", [X, (1, 5, 7, 2)], [(1, 5, 7, 5)], {"axis": 3}),
    Sample("CONCATENATION", [(2, 3)] * 6, [(12, 3)], {"axis": 0}),
    Sample("CONCATENATION", [(2, 3), np.full((1, 3), 0.75, np.float32)], [(3, 3)], {"axis": 0}),
    Sample("GATHER", [X, ints(2, 0, 6)], [(1, 5, 3, 3)], {"axis": 2}),
    Sample("GATHER_ND", [(3, 5, 2), ints(0, 1, 2, 4).reshape(2, 2)], [(2, 2)]),
    Sample("TILE", [(3, 5), ints(2, 3)], [(6, 15)]),
    Sample("REVERSE_V2", [X, ints(2)], [X]),
    Sample("REVERSE_SEQUENCE", [(3, 5), ints(1, 5, 3)], [(3, 5)], {"seq_dim": 1, "batch_dim": 0}),
    Sample("BROADCAST_TO", [(1, 5, 1), ints(3, 5, 2)], [(3, 5, 2)]),
    Sample("EXPAND_DIMS", [(3, 5), ints(1).reshape(())], [(3, 1, 5)]),
    Sample("SQUEEZE", [(3, 1, 5)], [(3, 5)], {"squeeze_dims": [1]}),
    Sample(
        "RESIZE_BILINEAR",
        [X, ints(9, 11)],
        [(1, 9, 11, 3)],
        {"align_corners": False, "half_pixel_centers": True},
    ),
    Sample(
        "RESIZE_BILINEAR",
        [X, ints(9, 13)],
        [(1, 9, 13, 3)],
        {"align_corners": True, "half_pixel_centers": False},
    ),
    Sample(
        "RESIZE_BILINEAR",
        [X, ints(10, 14)],
        [(1, 10, 14, 3)],
        {"align_corners": False, "half_pixel_centers": False},
    ),
    Sample(
        "RESIZE_NEAREST_NEIGHBOR",
        [X, ints(9, 11)],
        [(1, 9, 11, 3)],
        {"align_corners": False, "half_pixel_centers": True},
    ),
    Sample("SPACE_TO_BATCH_ND", [(1, 4, 6, 3), ints(2, 3), np.zeros((2, 2), np.int32)], [(6, 2, 2, 3)]),
    Sample("BATCH_TO_SPACE_ND", [(6, 2, 2, 3), ints(2, 3), np.zeros((2, 2), np.int32)], [(1, 4, 6, 3)]),
    Sample("SPACE_TO_DEPTH", [(1, 4, 6, 3)], [(1, 2, 3, 12)], {"block_size": 2}),
    Sample("DEPTH_TO_SPACE", [(1, 2, 3, 12)], [(1, 4, 6, 3)], {"block_size": 2}),
    Sample("MAX_POOL_2D", [X], [(1, 3, 4, 3)], POOL),
    Sample("AVERAGE_POOL_2D", [X], [(1, 3, 4, 3)], POOL),
    Sample("SELECT_V2", [(5, 3), (5, 3), (1, 3)], [(5, 3)], dtypes=("bool", "float32", "float32")),
    Sample("DYNAMIC_UPDATE_SLICE", [(5, 3), (2, 3), ints(1, 0)], [(5, 3)]),
    Sample("TOPK_V2", [(3, 11), ints(4).reshape(())], [(3, 4), (3, 4)]),
    Sample("SOFTMAX", [(3, 11)], [(3, 11)], {"beta": 1.0}),
    Sample("SOFTMAX", [X], [X], {"beta": 1.0}),
    Sample("LOG_SOFTMAX", [(3, 11)], [(3, 11)]),
    Sample("L2_NORMALIZATION", [(3, 11)], [(3, 11)]),
    *(
        Sample(type, [(3, 11), ints(1).reshape(())], [(3,)], {"output_type": "INT32"})
        for type in ("ARG_MAX", "ARG_MIN")
    ),
    *(
        Sample(type, [X, shape], [X])
        for type in COMPARISONS
        for shape in (X, (1, 1, 1, 3), np.float32([0.5]), np.float32([0]))
    ),
]
