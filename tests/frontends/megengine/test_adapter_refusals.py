"""Arguments that an adapter cannot say in aten ops are refused with a reason, never by another error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontends.megengine.adapter_samples import SAMPLES, Call, Known, call, numbers
from tests.frontends.megengine.test_adapter_samples import CALLS, applied, built, eagerly, module_of
from tmconvert.errors import Refusal
from tmconvert.ir import InternalGraph, TensorNode, TracedModule
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.symbolics.registry import catalogue

X = numbers(2, 3, 5, 7)
MATRIX = numbers(3, 4)
VECTOR = numbers(5)
WHOLE = np.array([[1, 2], [3, 4]], np.int32)
FUNCTIONAL = "megengine.functional."

REFUSED: list[tuple[str, Call, str]] = [
    ("elemwise.pow", call(2, 3), "none of 2, 3 is a tensor"),
    ("elemwise.pow", call(MATRIX, {}), "{} is neither a tensor nor a number"),
    ("elemwise.clip", call(MATRIX), "None is neither a tensor nor a number"),
    ("elemwise.clip", call(MATRIX, "0", 2), "'0' is neither a tensor nor a number"),
    ("elemwise.clip", call(MATRIX, float("nan"), 2), "not numbers"),
    ("elemwise.logical_and", call(MATRIX, MATRIX), "logical_and"),
    ("elemwise.left_shift", call(MATRIX, 2), "bitwise_left_shift"),
    ("elemwise.less", call(MATRIX, "1"), "'1' is neither a tensor nor a number"),
    ("tensor.where", call(MATRIX, MATRIX, MATRIX), "where"),
    ("opdef.Elemwise", call(MATRIX, MATRIX, mode="TANH_GRAD"), "the Elemwise mode TANH_GRAD is a gradient"),
    ("opdef.Elemwise", call(MATRIX, mode="TWICE"), "the Elemwise mode TWICE is not known"),
    ("opdef.ElemwiseMultiType", call(MATRIX, mode="QRELU", dtype="int8"), "QRELU is not known"),
    ("opdef.Convolution", call(X, numbers(4, 3, 3, 3), mode="CONVOLUTION"), "conv_mode 'CONVOLUTION'"),
    (
        "opdef.ConvBias",
        call(WHOLE, WHOLE, WHOLE, nonlineMode="RELU"),
        "ConvBias of i32[2,2] is not supported",
    ),
    ("opdef.AddAxis", call(X, axis=[5]), "cannot insert the axes [5]"),
    ("opdef.RemoveAxis", call(X, axis=[0]), "cannot squeeze axes [0]"),
    ("opdef.Split", call(X, Known(1), Known(3), axis=1), "cannot be split at [1, 4]"),
    ("opdef.Reduce", call(X, mode="SUM", data_type="QINT_I8xO32"), "QINT_I8xO32 of Reduce are not supported"),
    ("opdef.Reduce", call(X, Known(1, 3), mode="SUM"), "cannot be reduced to [1, 3]"),
    (
        "opdef.MeshIndexing",
        call(X, Known(1), items=[[0, True, False, False, False]]),
        "an outer index with slices is not supported",
    ),
    ("opdef.Resize", call(X, Known(2, 2), format="NHWC", imode="CUBIC"), "in format 'NHWC' is not supported"),
    (
        "opdef.Resize3D",
        call(X, Known(2, 2), format="NCDHW", imode="CUBIC"),
        "the interpolation mode 'CUBIC' is not supported",
    ),
    (
        "opdef.ROIAlign",
        call(X, MATRIX, mode="MAX", spatial_scale=1.0, offset=0.25),
        "roi_align with the offset 0.25",
    ),
    (
        "opdef.BatchNorm",
        call(X, MATRIX, MATRIX, fwd_mode="TRAINING", epsilon=0.1, param_dim="DIM_1C11"),
        "with the statistics of the batch",
    ),
    (
        "opdef.LSTM",
        call(X[0], X, X, VECTOR, num_layers=1, bias=True, bidirectional=False, hidden_size=2, proj_size=1),
        "computed from the data",
    ),
    ("nn.prelu", call(MATRIX), "None is neither a tensor nor a number"),
    ("elemwise.add", call(MATRIX, numbers(5)), "add"),
    ("elemwise.add", call(MATRIX, "1"), "'1' is neither a tensor nor a number"),
    ("elemwise.add", call(MATRIX, None), "None is neither a tensor nor a number"),
    ("elemwise.add", call(MATRIX, [1, [2]]), "add"),
    ("elemwise.add", call(1, 2), "none of 1, 2 is a tensor"),
    ("elemwise.add", call(MATRIX), "missing a required argument"),
    ("elemwise.add", call(MATRIX, MATRIX, MATRIX), "too many positional arguments"),
    ("elemwise.exp", call(MATRIX, out=1), "unexpected keyword argument"),
    ("elemwise.exp", call(2.0), "exp"),
    ("math.mean", call(X, 4), "axis 4 is out of range for a tensor of rank 4"),
    ("math.mean", call(X, (0, -5)), "axis -5 is out of range"),
    ("math.sum", call(X, 1.0), "an axis must be an integer, not 1.0"),
    ("math.max", call(X, "1"), "an axis must be an integer, not '1'"),
    ("math.argmax", call(X, 4), "axis 4 is out of range"),
    ("nn.conv2d", call(X, numbers(4, 2, 3, 3)), "conv2d"),
    ("nn.conv2d", call(X, numbers(4, 3, 9, 3)), "conv2d"),
    ("nn.conv2d", call(X, numbers(6, 1, 3, 3), groups=3), "a grouped weight has five axes, not 4"),
    ("nn.conv2d", call(X, numbers(4, 3, 3, 3), conv_mode="convolution"), "conv_mode 'convolution'"),
    ("nn.conv2d", call(X, numbers(4, 3, 3, 3), stride=(1, 2, 3)), "is neither an int nor 2 of them"),
    ("nn.conv2d", call(X, numbers(4, 3, 3, 3), stride=0), "conv2d"),
    (
        "nn.conv2d",
        call(X, numbers(4, 3, 3, 3), stride="a"),
        "a number of a window must be an integer, not 'a'",
    ),
    ("nn.conv2d", call(X, numbers(4, 3, 3, 3), padding=-1), "must be positive"),
    ("nn.conv2d", call(X, numbers(4, 3, 1, 1), stride=-6), "must be positive"),
    ("nn.conv2d", call(X, numbers(4, 3, 3, 3), bias=numbers(1, 3, 1, 1)), "conv2d"),
    ("nn.conv2d", call(X[0], numbers(4, 3, 3, 3)), "conv2d"),
    ("nn.linear", call(MATRIX, numbers(2, 3)), "linear"),
    ("nn.batch_norm", call(X), "with the statistics of the batch is not inference"),
    (
        "nn.batch_norm",
        call(X, numbers(1, 3, 1, 1), numbers(1, 3, 1, 1), training=True),
        "with the statistics of the batch",
    ),
    (
        "nn.batch_norm",
        call(X, numbers(1, 1, 1, 3), numbers(1, 1, 1, 3), param_dim="dim_1chw"),
        "param_dim 'dim_1chw' is not supported",
    ),
    ("nn.batch_norm", call(X, numbers(1, 5, 1, 1), numbers(1, 5, 1, 1)), "batch_norm"),
    ("nn.max_pool2d", call(X, 9), "max_pool2d"),
    ("nn.avg_pool2d", call(X, 2, padding=2), "windows of [2, 2] are entirely inside the padding [2, 2]"),
    ("nn.avg_pool2d", call(X.astype(np.int8), 2), "avg_pool2d of int8 rounds in MegEngine"),
    ("nn.conv1d", call(X, numbers(4, 3, 3)), "conv1d takes 3 axes, not 4"),
    ("nn.conv_transpose2d", call(X, numbers(3, 4, 3, 3), conv_mode="convolution"), "conv_mode 'convolution'"),
    ("nn.conv_transpose2d", call(X, numbers(3, 4, 3, 3), groups=3), "a grouped weight has five axes, not 4"),
    ("nn.conv_transpose3d", call(X, numbers(3, 4, 3, 3)), "conv_transpose3d takes 5 axes, not 4"),
    ("nn.conv_transpose2d", call(X, numbers(3, 4, 3, 3), output_padding=1), "must be below the stride"),
    ("nn.sync_batch_norm", call(X, None, None, eps_mode="min"), "eps_mode 'min' is not supported"),
    ("nn.general_norm", call(X, (2, 1), False), "must name axes in ascending order"),
    ("nn.layer_norm", call(X, (3,), False), "layer_norm"),
    ("nn.group_norm", call(X, 2, False), "are not divisible into 2 groups"),
    ("nn.local_response_norm", call(X, 4), "size 4 is not an odd number"),
    ("nn.pixel_shuffle", call(X, 2), "not divisible by 2 x 2"),
    ("nn.sliding_window_transpose", call(X.astype(np.int32), 3, 2), "of int32 is not supported"),
    ("nn.max_pool2d", call(X, (1, 2, 3)), "is neither an int nor 2 of them"),
    ("nn.max_pool2d", call(X, None), "a number of a window must be an integer, not None"),
    ("nn.avg_pool2d", call(X, 2, mode="sum"), "the pooling mode 'sum' is not supported"),
    ("nn.avg_pool2d", call(X[0], 2), "rank 4"),
    ("nn.adaptive_avg_pool2d", call(X, (6, 2)), "cannot pool [5, 7] to [6, 2]"),
    ("nn.adaptive_avg_pool2d", call(X, 0), "cannot pool [5, 7] to [0, 0]"),
    ("nn.adaptive_max_pool2d", call(X, (1, 2, 3)), "cannot pool [5, 7] to [1, 2, 3]"),
    ("nn.adaptive_max_pool2d", call(X[0], 2), "adaptive_max_pool2d"),
    ("nn.adaptive_max_pool2d", call(X, None), "a shape must be an integer, not None"),
    ("nn.softmax", call(X, 4), "axis 4 is out of range"),
    ("nn.pad", call(X, ((1, 1),), "wrap"), "the padding mode 'wrap' is not supported"),
    ("nn.pad", call(X, ((1, 2, 3),)), "does not fit"),
    ("nn.pad", call(X, ((1, 1),) * 5), "does not fit"),
    ("nn.pad", call(X, ((0, 0), (0, 0), (5, 0), (0, 0)), "reflect"), "pad"),
    ("nn.pad", call(X, 1), "pad"),
    ("nn.pad", call(X, ((1.5, 1),)), "a padding must be an integer, not 1.5"),
    ("nn.pad", call(X, ((1, 1),), constant_value="a"), "pad"),
    ("nn.leaky_relu", call(X, "a"), "'a' is neither a tensor nor a number"),
    ("tensor.reshape", call(X, (-1, -1)), "cannot be reshaped to (-1, -1)"),
    ("tensor.reshape", call(X, (4, -1)), "cannot be reshaped to (4, -1)"),
    ("tensor.reshape", call(X, (2.0, 105)), "a shape must be an integer, not 2.0"),
    ("tensor.reshape", call(X, (True, -1)), "a shape must be an integer, not True"),
    ("tensor.reshape", call(X, None), "a shape must be an integer, not None"),
    ("tensor.reshape", call(X, (0, -1)), "cannot be reshaped"),
    ("tensor.flatten", call(X, 4), "axis 4 is out of range"),
    ("tensor.flatten", call(X, 2, 1), "cannot flatten axes 2 to 1"),
    ("tensor.transpose", call(X, (0, 1)), "is not a permutation of the axes"),
    ("tensor.transpose", call(X, (0, 1, 2, 2)), "is not a permutation of the axes"),
    ("tensor.transpose", call(X, "abcd"), "an axis must be an integer"),
    ("tensor.swapaxes", call(X, 0, 4), "axis 4 is out of range"),
    ("tensor.squeeze", call(X, 1), "cannot squeeze axes [1]"),
    ("tensor.expand_dims", call(X, 5), "cannot insert the axes [5]"),
    ("tensor.expand_dims", call(X, (0, 0)), "cannot insert the axes [0, 0]"),
    ("tensor.concat", call([]), "concat of an empty list"),
    ("tensor.concat", call([X, X[:1, :1]], 0), "concat"),
    ("tensor.concat", call([X, MATRIX], 0), "concat"),
    ("tensor.concat", call([X, X], 4), "axis 4 is out of range"),
    ("tensor.concat", call([X, 1], 0), "concat"),
    ("tensor.stack", call([]), "concat of an empty list"),
    ("tensor.stack", call([X, X[:1]]), "stack"),
    ("tensor.split", call(X, 4, 3), "axis 3 of f32[2,3,5,7] cannot be split into 4 equal parts"),
    ("tensor.split", call(X, 0), "cannot be split into 0 equal parts"),
    ("tensor.split", call(X, (3, 2), 3), "the split points [3, 2] are not ascending within 7"),
    ("tensor.split", call(X, (3, 9), 3), "the split points [3, 9] are not ascending within 7"),
    ("vision.interpolate", call(X, mode="area"), "mode 'area' is not supported"),
    ("vision.remap", call(X, X[..., :2], "transparent"), "the border mode 'transparent' is not supported"),
    ("vision.remap", call(X, X[..., :2], interp_mode="cubic"), "mode 'cubic' is not supported"),
    ("vision.remap", call(WHOLE, X[..., :2]), "images must hold floats"),
    ("vision.remap", call(X, X), "must be (x, y)"),
    ("vision.warp_affine", call(X, X, (2, 2)), "warp_affine by f32[2,3,5,7]"),
    ("vision.warp_affine", call(MATRIX, numbers(1, 2, 3), (2, 2)), "images f32[3,4] in format 'NHWC'"),
    (
        "vision.warp_perspective",
        call(X, numbers(2, 3, 3), (2,)),
        "an image size must be two integers, got [2]",
    ),
    ("vision.roi_align", call(X, numbers(2, 5), 2, "min"), "the pooling mode 'min' is not supported"),
    ("vision.roi_pooling", call(X, numbers(2, 5), 2, "mean"), "roi_pooling with mode 'mean'"),
    ("vision.correlation", call(X, X, kernel_size=2), "by 2 is not supported"),
    ("vision.correlation", call(X, X, max_displacement=3), "by 7 displacements is not supported"),
    ("vision.nms", call(numbers(5, 4), numbers(4), 0.5), "do not fit each other"),
    ("vision.nvof", call(X), "vision.nvof needs special hardware"),
    ("math.svd", call(MATRIX), "is a singular value decomposition"),
    ("tensor.cond_take", call(X[0] > 0, X), "bool[3,5,7] is not a valid mask for f32[2,3,5,7]"),
    ("vision.cvt_color", call(X, "RGB2BGR"), "cvt_color with mode 'RGB2BGR'"),
    ("Tensor.__getitem__", call(X, 2), "index 2 is out of range for axis 0"),
    ("Tensor.__getitem__", call(X, (0, -4)), "index -4 is out of range for axis 1 of f32[2,3,5,7]"),
    ("Tensor.__getitem__", call(X, (0,) * 5), "does not fit f32[2,3,5,7]"),
    ("Tensor.__getitem__", call(X, (Ellipsis, 0, Ellipsis)), "does not fit"),
    ("Tensor.__getitem__", call(X, slice(None, None, 0)), "step"),
    ("Tensor.__getitem__", call(X, Known(0, 2)), "index 2 is out of range for axis 0"),
    ("Tensor.__getitem__", call(X, False), "False is not supported as an index"),
    ("Tensor.__getitem__", call(X, X), "an index must hold integers or bools, not f32[2,3,5,7]"),
    ("Tensor.__getitem__", call(X, X[:1] > 0), "the mask bool[1,3,5,7] does not fit f32[2,3,5,7]"),
    ("Tensor.__getitem__", call(X, [0.5]), "[0.5] is not an index"),
    ("Tensor.__getitem__", call(X, ([0, 1], [0, 1, 2])), "__getitem__"),
    ("Tensor.__setitem__", call(X, 0, numbers(4)), "f32[4] does not broadcast to [3, 5, 7]"),
    ("Tensor.__setitem__", call(X, [0, 1], numbers(4)), "__setitem__"),
    ("Tensor.__setitem__", call(X, 0, None), "None is neither a tensor nor a number"),
    ("Tensor.__setitem__", call(X, X[:1] > 0, 1.0), "does not fit f32[2,3,5,7]"),
    ("Tensor.__setitem__", call(X, 5, 0), "index 5 is out of range for axis 0"),
    ("Tensor.__getitem__", call(X, slice(0.5, None)), "a slice bound must be an integer"),
    ("Tensor.reshape", call(X, 4, -1), "cannot be reshaped"),
    ("Tensor.reshape", call(X, "6"), "a shape must be an integer"),
    ("Tensor.transpose", call(X, 0, 1), "is not a permutation of the axes"),
    ("Tensor.astype", call(X, "complex64"), "astype"),
    ("Tensor.astype", call(X, "qint8"), "astype"),
    ("Tensor.backward", call(MATRIX), "Tensor.backward belongs to training"),
    ("nn.nvof", call(X), "megengine.functional.nn.nvof is not supported"),
    ("opdef.GetVarShape", call(X, axis=4), "axis 4 is out of range"),
]


@pytest.mark.parametrize(
    ("row", "each", "reason"), REFUSED, ids=[f"{row[0]}.{i}" for i, row in enumerate(REFUSED)]
)
def test_refused(row: str, each: Call, reason: str) -> None:
    name = row if row.startswith(("Tensor.", "opdef.")) else FUNCTIONAL + row
    with pytest.raises(Refusal) as caught:
        built(name, each)
    assert reason in caught.value.reason


STRANGE = [None, "text", -1, 1 << 70, 2.5, float("nan"), (), [], (1, "a"), {}, Ellipsis, b"x"]


@pytest.mark.parametrize("way", [eagerly, built])
@pytest.mark.parametrize("row", [row for row, calls in SAMPLES.items() if calls])
def test_strange_arguments_give_results_or_refusals(row: str, way: Any) -> None:
    """Each argument of the first sample in turn is replaced by what a damaged file may hold."""
    key, each = next((key, each) for name, key, each in CALLS if name == row)
    for position in range(len(each.args) + 1):
        for value in STRANGE:
            args = (*each.args[:position], value, *each.args[position + 1 :])
            try:
                way(row, Call(args, each.kwargs), module_of(key))
            except Refusal as refusal:
                assert refusal.reason


@pytest.mark.parametrize("row", [name for name, calls in SAMPLES.items() if calls and ".module." in name])
def test_strange_modules_give_results_or_refusals(row: str) -> None:
    """Attributes of a module are replaced or missing."""
    key, each = next((key, each) for name, key, each in CALLS if name == row)
    names = list(module_of(key).attributes)
    for name in names:
        for value in [*STRANGE, KeyError]:
            module = module_of(key)
            assert isinstance(module, TracedModule)
            if value is KeyError:
                del module.attributes[name]
            else:
                module.attributes[name] = value
            try:
                built(row, each, module)
            except Refusal as refusal:
                assert refusal.reason


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (FUNCTIONAL + "tensor.reshape", "f32[2,3,5,7] cannot be reshaped to (found_1,)"),
        (FUNCTIONAL + "tensor.expand_dims", "an axis is computed from the data"),
        (FUNCTIONAL + "math.mean", "an axis is computed from the data"),
        (FUNCTIONAL + "tensor.split", "a number of parts is computed from the data"),
    ],
)
def test_computed_sizes_are_refused(row: str, reason: str) -> None:
    graph = InternalGraph("net")
    x = graph.add_input(TensorNode("x", X.shape, X.dtype))
    size = graph.add_input(TensorNode("size", (), np.dtype(np.int32)))
    with pytest.raises(Refusal) as caught:
        applied(GraphEmitter(graph, catalogue()), row, (x, size), {})
    assert caught.value.reason == reason
