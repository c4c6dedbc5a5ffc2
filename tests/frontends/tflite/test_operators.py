"""Single operators of TFLite: what tmconvert computes of a file is what LiteRT computes."""

from __future__ import annotations

import numpy as np
import pytest

import tmconvert
from tests.frontends.tflite.models import (
    Call,
    Fixed,
    assert_same,
    floats,
    in_litert,
    ints,
    listed,
    number,
    saved,
)
from tmconvert.lowering.target_graph import Operator, Quantization, TargetGraph, Value

pytest.importorskip("ai_edge_litert.interpreter")
RNG = np.random.default_rng(0)
IMAGE = floats(1, 7, 6, 4)
TRUTHS = np.array([[True, False, True], [True, True, False]])
SAME, VALID = "SAME", "VALID"


def weights(*shape: int) -> Fixed:
    return Fixed(RNG.standard_normal(shape).astype(np.float32))


def window(padding: str, stride: int, **more: int | str) -> dict[str, int | str]:
    return {"padding": padding, "stride_w": stride, "stride_h": stride, **more}


def pool(padding: str, stride: int, size: int = 3) -> dict[str, int | str]:
    return window(padding, stride, filter_width=size, filter_height=size)


def conv(padding: str, stride: int, size: int = 3, channels: int = 4, **more: int | str) -> Call:
    inputs = [IMAGE, weights(8, size, size, channels), weights(8)]
    return Call("CONV_2D", inputs, window(padding, stride, **more))


def resize(kind: str, **flags: bool) -> Call:
    return Call(kind, [IMAGE, ints(11, 4)], flags)


INT = ("int32",)
CALLS = [
    *(conv(padding, stride, size) for padding in (SAME, VALID) for stride in (1, 2) for size in (2, 3)),
    conv(SAME, 1, dilation_w_factor=2, dilation_h_factor=2, fused_activation_function="RELU6"),
    conv(SAME, 1, 3, 2, fused_activation_function="RELU_N1_TO_1"),
    Call(
        "DEPTHWISE_CONV_2D",
        [IMAGE, weights(1, 3, 3, 8), weights(8)],
        window(SAME, 2, depth_multiplier=2, fused_activation_function="RELU"),
    ),
    *(
        Call(
            "TRANSPOSE_CONV",
            [ints(1, *size, 5), weights(5, 3, 3, 4), IMAGE, weights(5)],
            window(padding, 2),
        )
        for padding, size in ((SAME, (14, 12)), (SAME, (13, 11)), (VALID, (15, 13)))
    ),
    *(
        Call(kind, [IMAGE], pool(padding, stride, size))
        for kind in ("MAX_POOL_2D", "AVERAGE_POOL_2D")
        for padding in (SAME, VALID)
        for stride, size in ((1, 2), (2, 3), (2, 2))
    ),
    Call("L2_POOL_2D", [IMAGE], pool(VALID, 2)),
    Call("FULLY_CONNECTED", [floats(2, 3, 4), weights(5, 4), weights(5)], {"keep_num_dims": True}),
    Call("FULLY_CONNECTED", [floats(2, 3, 4), weights(5, 4), weights(5)], {"keep_num_dims": False}),
    Call("BATCH_MATMUL", [floats(2, 4, 3), floats(2, 5, 4)], {"adj_x": True, "adj_y": True}),
    *(Call(kind, [floats(2, 3), floats(3)]) for kind in ("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM")),
    Call("SUB", [floats(2, 3), floats(3)], {"fused_activation_function": "RELU"}),
    Call("DIV", [np.array([-7, 7], np.int32), np.array([2, -2], np.int32)], results=INT),
    Call("FLOOR_DIV", [np.array([-7, 7], np.int32), np.array([2, -2], np.int32)], results=INT),
    Call("FLOOR_MOD", [np.array([-7, 7], np.int32), np.array([2, -2], np.int32)], results=INT),
    Call("SQUARED_DIFFERENCE", [floats(2, 3), floats(3)]),
    Call("POW", [floats(2, 3, low=0.5), floats(3)]),
    *(
        Call(kind, [floats(2, 3), floats(3)], results=("bool",))
        for kind in ("LESS", "EQUAL", "GREATER_EQUAL")
    ),
    Call("LOGICAL_AND", [TRUTHS, ~TRUTHS], results=("bool",)),
    *(Call(kind, [floats(2, 3)]) for kind in ("ABS", "NEG", "EXP", "SQUARE", "SIN", "COS", "FLOOR", "CEIL")),
    *(Call(kind, [floats(2, 3, low=0.5)]) for kind in ("LOG", "SQRT", "RSQRT")),
    Call("ROUND", [np.array([0.5, 1.5, 2.5, -0.5], np.float32)]),
    *(
        Call(kind, [IMAGE])
        for kind in ("RELU", "RELU6", "RELU_N1_TO_1", "LOGISTIC", "TANH", "HARD_SWISH", "ELU")
    ),
    Call("GELU", [IMAGE], {"approximate": True}),
    Call("LEAKY_RELU", [IMAGE], {"alpha": 0.2}),
    Call("PRELU", [IMAGE, weights(1, 1, 4)]),
    Call("PRELU", [IMAGE, weights(7, 6, 4)]),
    Call("SOFTMAX", [IMAGE], {"beta": 2.0}),
    Call("LOG_SOFTMAX", [IMAGE]),
    *(
        Call(kind, [IMAGE, ints(1, 2)], {"keep_dims": keep})
        for kind in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD")
        for keep in (True, False)
    ),
    Call("ARG_MAX", [IMAGE, number(-1)], {"output_type": "INT32"}, INT),
    Call("TOPK_V2", [floats(2, 5), number(3)], results=("float32", "int32")),
    *(
        Call("CUMSUM", [floats(2, 5), number(1)], {"exclusive": one, "reverse": other})
        for one in (True, False)
        for other in (True, False)
    ),
    Call("L2_NORMALIZATION", [IMAGE]),
    Call("LOCAL_RESPONSE_NORMALIZATION", [IMAGE], {"radius": 1, "alpha": 0.5, "beta": 0.75, "bias": 1.0}),
    Call("RESHAPE", [IMAGE, ints(2, -1)], {"new_shape": [2, -1]}),
    Call("SQUEEZE", [floats(1, 3, 1)], {"squeeze_dims": [0, 2]}),
    Call("EXPAND_DIMS", [floats(2, 3), number(-1)]),
    Call("TRANSPOSE", [IMAGE, ints(0, 3, 1, 2)]),
    Call("SHAPE", [IMAGE], {"out_type": "INT32"}, INT),
    Call("CONCATENATION", [IMAGE, floats(1, 7, 6, 2)], {"axis": -1}),
    Call("PACK", [floats(2, 3), floats(2, 3)], {"values_count": 2, "axis": 1}),
    Call("UNPACK", [floats(2, 3)], {"num": 2, "axis": 0}, ("float32", "float32")),
    Call("TILE", [floats(2, 3), ints(2, 1)]),
    Call("BROADCAST_TO", [floats(2, 1), ints(2, 3)]),
    Call("FILL", [ints(2, 3), Fixed(np.array(1.5, np.float32))]),
    Call("RANGE", [number(1), number(9), number(3)], results=INT),
    Call("SLICE", [IMAGE, ints(0, 1, 2, 0), ints(-1, 3, -1, 2)], shape=(1, 3, 4, 2)),
    Call("STRIDED_SLICE", [IMAGE, ints(0, 1, 5, 0), ints(1, 6, 0, 4), ints(1, 2, -1, 1)], {"begin_mask": 8}),
    Call(
        "STRIDED_SLICE",
        [IMAGE, ints(0, 2), ints(1, 3), ints(1, 1)],
        {"shrink_axis_mask": 2, "begin_mask": 0, "end_mask": 1},
    ),
    Call("SPLIT", [number(3), IMAGE], {"num_splits": 2}, ("float32", "float32")),
    Call("SPLIT_V", [IMAGE, ints(1, 5), number(2)], {"num_splits": 2}, ("float32", "float32")),
    Call("PAD", [IMAGE, Fixed(np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32))]),
    Call(
        "PADV2",
        [floats(2, 3), Fixed(np.array([[1, 0], [0, 2]], np.int32)), Fixed(np.array(-4, np.float32))],
    ),
    *(
        Call("MIRROR_PAD", [floats(3, 4), Fixed(np.array([[1, 2], [2, 0]], np.int32))], {"mode": mode})
        for mode in ("REFLECT", "SYMMETRIC")
    ),
    Call("REVERSE_V2", [floats(2, 3), ints(1)]),
    Call("DYNAMIC_UPDATE_SLICE", [floats(4, 5), floats(2, 3), ints(1, 9)]),
    Call("GATHER", [floats(4, 5), ints(2, 0)], {"axis": 1, "batch_dims": 0}),
    Call(
        "GATHER", [floats(2, 4, 3), Fixed(np.array([[1, 3], [0, 2]], np.int32))], {"axis": 1, "batch_dims": 1}
    ),
    Call("GATHER_ND", [floats(4, 5, 2), Fixed(np.array([[1, 3], [0, 2]], np.int32))]),
    Call("SCATTER_ND", [Fixed(np.array([[1], [3], [1]], np.int32)), floats(3, 2), ints(4, 2)]),
    Call(
        "ONE_HOT",
        [np.array([1, 0, 2], np.int32), number(4), *(Fixed(np.float32(n)) for n in (3, -1))],
        {"axis": -1},
    ),
    Call("SELECT", [TRUTHS, floats(2, 3), -floats(2, 3)]),
    Call("SELECT_V2", [TRUTHS, floats(2, 3), floats(3)]),
    Call("CAST", [floats(2, 3)], {"in_data_type": "FLOAT32", "out_data_type": "INT32"}, INT),
    Call("ZEROS_LIKE", [floats(2, 3)]),
    Call("ADD_N", [floats(2, 3)] * 3),
    *(
        resize(kind, align_corners=one, half_pixel_centers=other)
        for kind in ("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
        for one, other in ((False, False), (True, False), (False, True))
    ),
    Call("DEPTH_TO_SPACE", [floats(1, 2, 3, 12)], {"block_size": 2}),
    Call("SPACE_TO_DEPTH", [floats(1, 4, 6, 3)], {"block_size": 2}),
    Call("SPACE_TO_BATCH_ND", [IMAGE, ints(2, 3), Fixed(np.array([[0, 1], [0, 0]], np.int32))]),
    Call("BATCH_TO_SPACE_ND", [floats(6, 2, 2, 3), ints(2, 3), Fixed(np.array([[0, 1], [1, 0]], np.int32))]),
    Call("EMBEDDING_LOOKUP", [np.array([2, 0], np.int32), weights(4, 3)]),
]


def name(call: Call) -> str:
    return call.type


@pytest.mark.parametrize("call", CALLS, ids=name)
def test_an_operator_computes_what_litert_does(call, tmp_path):
    path = saved(call.graph(), tmp_path / "call.tflite")
    assert_same(listed(tmconvert.load(path)(*call.given)), in_litert(path, *call.given))


def test_inputs_and_outputs_keep_their_names(tmp_path):
    path = saved(Call("RELU", [floats(2, 3)]).graph(), tmp_path / "call.tflite")
    graph = tmconvert.load(path).graph
    assert [str(node) for node in (*graph.inputs[1:], *graph.outputs)] == ["x0", "y0"]


def test_a_cast_of_quantized_integers_converts_what_is_stored(tmp_path):
    quantization = Quantization(np.array([0.5], np.float32), 0, np.array([3]))
    x = Value("x", np.dtype(np.int8), (4,), quantization=quantization)
    y = Value("y", np.dtype(np.int32), (4,))
    types = {"in_data_type": "INT8", "out_data_type": "INT32"}
    graph = TargetGraph("tflite", 23, "cast", [x], [y], [Operator("CAST", [x], [y], types, "/cast")])
    graph.input_names, graph.output_names = ["x"], ["y"]
    path = saved(graph, tmp_path / "cast.tflite")
    stored = np.array([-128, -3, 4, 127], np.int8)
    found = tmconvert.load(path)((stored.astype(np.float32) - 3) * np.float32(0.5))
    np.testing.assert_array_equal(found, in_litert(path, stored)[0])
