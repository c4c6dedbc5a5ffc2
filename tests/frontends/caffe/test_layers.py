"""Single layers of Caffe: what tmconvert computes of a net is what OpenCV computes, or the definition."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

import tmconvert
from tests.frontends.caffe.nets import Shape, arrays, declared, in_opencv, layer, written
from tmconvert.formats.caffe.interpreter import run_net
from tmconvert.frontends.caffe.loader import load_caffe
from tmconvert.frontends.caffe.source_file import CaffeSource

pytest.importorskip("cv2")
IMAGE: Shape = (2, 4, 7, 6)


@dataclass
class Case:
    """A layer; ``opencv`` says whether OpenCV computes what Caffe defines."""

    kind: str
    parameters: str = ""
    blobs: list[Shape] = field(default_factory=list)
    inputs: list[Shape] = field(default_factory=lambda: [IMAGE])
    tops: int = 1
    opencv: bool = True
    values: list[np.ndarray] | None = None

    @property
    def id(self) -> str:
        return f"{self.kind} {self.parameters}"[:60]


def conv(parameters: str, *blobs: Shape, kind: str = "Convolution", **facts: object) -> Case:
    return Case(kind, f"convolution_param {{ {parameters} }}", list(blobs), **facts)


def pool(parameters: str, **facts: object) -> Case:
    return Case("Pooling", f"pooling_param {{ {parameters} }}", **facts)


def plain(kind: str, name: str = "", parameters: str = "", **facts: object) -> Case:
    return Case(kind, f"{name}_param {{ {parameters} }}" if name else "", **facts)


RANDOM = np.random.default_rng(1)
TIES = np.array([[[1, 3, 3, 2]], [[5, 5, 0, 5]]], np.float32)
SEQUENCE, MARKS = (4, 2, 3), np.array([[0, 1], [1, 1], [1, 0], [1, 1]], np.float32)
VARIANCES = "variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2"
STATES = [(1, 2, 5), (1, 2, 5)]
ROIS = np.array([[0, 0, 0, 5, 6], [1, 1, 2, 4, 4]], np.float32)
DEFINED = {"opencv": False}

CASES = [
    conv("num_output: 6 kernel_size: 3", (6, 4, 3, 3), (6,)),
    conv("num_output: 6 kernel_size: 3 pad: 1 stride: 2 dilation: 2 bias_term: false", (6, 4, 3, 3)),
    conv(
        "num_output: 6 kernel_h: 3 kernel_w: 2 pad_h: 1 pad_w: 0 stride_h: 1 stride_w: 2 group: 2",
        (6, 2, 3, 2),
        (6,),
    ),
    conv("num_output: 6 kernel_size: 3 kernel_size: 2", (6, 4, 3, 2), (1, 1, 1, 6)),
    conv("num_output: 4 kernel_size: 3 group: 4", (4, 1, 3, 3), (4,)),
    conv("num_output: 4 kernel_size: 3 group: 4", (4, 1, 3, 3), (4,), kind="DepthwiseConv", **DEFINED),
    conv("num_output: 6 kernel_size: 3", (6, 4, 3), (6,), inputs=[(2, 4, 9)], **DEFINED),
    conv(
        "num_output: 6 kernel_size: 2 kernel_size: 2 kernel_size: 2 stride: 1 stride: 1 stride: 1 pad: 0 "
        "pad: 0 pad: 0 dilation: 1 dilation: 1 dilation: 1",
        (6, 4, 2, 2, 2),
        (6,),
        inputs=[(1, 4, 3, 4, 5)],
    ),
    conv("num_output: 6 kernel_size: 3 axis: 2", (6, 4, 3, 3), (6,), inputs=[(2, 3, 4, 7, 6)], **DEFINED),
    conv("num_output: 6 kernel_size: 3", (6, 4, 3, 3), (6,), inputs=[IMAGE, (1, 4, 5, 5)], tops=2, **DEFINED),
    conv("num_output: 6 kernel_size: 4 stride: 2 pad: 1", (4, 6, 4, 4), (6,), kind="Deconvolution"),
    conv("num_output: 6 kernel_size: 3 group: 2 bias_term: false", (4, 3, 3, 3), kind="Deconvolution"),
    conv("num_output: 6 kernel_size: 3 dilation: 2", (4, 6, 3, 3), (6,), kind="Deconvolution", **DEFINED),
    conv("kernel_size: 3 stride: 2 pad: 1", kind="Im2col", **DEFINED),
    *(
        pool(f"pool: {method} kernel_size: {kernel} stride: {stride} pad: {pad}")
        for method in ("MAX", "AVE")
        for kernel, stride, pad in ((3, 2, 0), (3, 2, 1), (2, 2, 1), (2, 1, 0), (3, 3, 2))
    ),
    *(pool(f"pool: {method} global_pooling: true") for method in ("MAX", "AVE")),
    *(
        pool(f"pool: {method} kernel_size: 2 stride: 2 round_mode: FLOOR", **DEFINED)
        for method in ("MAX", "AVE")
    ),
    pool("pool: MAX kernel_size: 2 stride: 2 ceil_mode: false"),
    pool("pool: AVE kernel_h: 3 kernel_w: 2 stride_h: 1 stride_w: 2 pad_h: 1 pad_w: 0"),
    pool("pool: MAX kernel_size: 2 stride: 2", tops=2),
    *(
        plain("SPP", "spp", f"pyramid_height: {height} pool: {method}", **DEFINED)
        for height, method in ((3, "MAX"), (2, "AVE"))
    ),
    plain("LRN", "lrn", "local_size: 3 alpha: 0.5 beta: 0.75"),
    plain("LRN", "lrn", "local_size: 3 alpha: 0.5 k: 2", **DEFINED),
    plain("LRN", "lrn", "local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL"),
    *(
        plain(kind)
        for kind in (
            "ReLU",
            "Sigmoid",
            "TanH",
            "AbsVal",
            "BNLL",
            "ELU",
            "Dropout",
            "ReLU6",
            "Mish",
            "Gelu",
            "HardSwish",
        )
    ),
    plain("GeluApproximation"),
    plain("ReLU", "relu", "negative_slope: 0.1"),
    plain("ELU", "elu", "alpha: 0.5"),
    plain("Swish", "swish", **DEFINED),
    plain("Swish", "swish", "beta: 1.5", **DEFINED),
    plain("Clip", "clip", "min: -0.5 max: 1", **DEFINED),
    plain("Threshold", "threshold", "threshold: 0.5", **DEFINED),
    Case("PReLU", "", [(4,)]),
    Case("PReLU", "prelu_param { channel_shared: true }", [(1,)]),
    *(
        plain("Power", "power", parameters)
        for parameters in (
            "power: 2 scale: 0.5 shift: 0.1",
            "power: 1 scale: -2 shift: 3",
            "power: 0 scale: 2 shift: 3",
            "power: 3",
        )
    ),
    *(plain("Power", "power", f"power: {power} shift: 3") for power in (0.5, -1, -0.5, 1.5)),
    *(plain("Exp", "exp", parameters) for parameters in ("", "base: 2 scale: 0.5 shift: 0.1")),
    *(
        plain("Log", "log", parameters, **DEFINED)
        for parameters in ("shift: 3", "base: 2 scale: 0.5 shift: 4")
    ),
    *(
        Case("Eltwise", f"eltwise_param {{ {parameters} }}", inputs=[IMAGE] * count)
        for parameters, count in (
            ("operation: SUM", 2),
            ("operation: SUM coeff: 1 coeff: -1", 2),
            ("coeff: 0.5 coeff: 2 coeff: -1", 3),
            ("operation: PROD", 3),
            ("operation: MAX", 2),
        )
    ),
    Case(
        "BatchNorm",
        "",
        [(4,), (4,), (1,)],
        values=[*arrays([(4,)]), np.abs(*arrays([(4,)], 2)), np.float32([2])],
    ),
    Case(
        "BatchNorm",
        "batch_norm_param { eps: 0.1 use_global_stats: true }",
        [(4,), (4,), (1,)],
        values=[*arrays([(4,)]), np.abs(*arrays([(4,)], 2)), np.float32([1])],
    ),
    Case(
        "BatchNorm",
        "",
        [(4,), (4,), (1,)],
        values=[*arrays([(4,)]), *arrays([(4,)], 2), np.float32([0])],
        **DEFINED,
    ),
    Case("BatchNorm", "batch_norm_param { use_global_stats: false }", **DEFINED),
    Case("Scale", "scale_param { bias_term: true }", [(4,), (4,)]),
    Case("Scale", "scale_param { axis: 2 num_axes: 2 }", [(7, 6)], **DEFINED),
    Case("Scale", "scale_param { axis: 0 num_axes: -1 }", [IMAGE], **DEFINED),
    Case("Scale", "scale_param { axis: 0 }", inputs=[IMAGE, (2, 4)]),
    Case("Scale", "scale_param { axis: 0 bias_term: true }", [(2, 4)], inputs=[IMAGE, (2, 4)], **DEFINED),
    Case("Bias", "bias_param { axis: 1 }", [(4,)], **DEFINED),
    Case("Bias", "bias_param { axis: 0 }", inputs=[IMAGE, (2,)], **DEFINED),
    *(
        plain("MVN", "mvn", parameters)
        for parameters in ("", "across_channels: true", "normalize_variance: false")
    ),
    plain("MVN", "mvn", "eps: 0.1", **DEFINED),
    *(plain("Softmax", "softmax", parameters) for parameters in ("", "axis: 2", "axis: -1")),
    Case("Normalize", "norm_param { across_spatial: false channel_shared: false }", [(4,)]),
    Case("Normalize", "norm_param { }", [(1,)], **DEFINED),
    Case("InnerProduct", "inner_product_param { num_output: 5 }", [(5, 168), (5,)]),
    Case("InnerProduct", "inner_product_param { num_output: 5 }", [(1, 1, 5, 168), (1, 1, 1, 5)]),
    Case("InnerProduct", "inner_product_param { num_output: 5 axis: 3 bias_term: false }", [(5, 6)]),
    Case("InnerProduct", "inner_product_param { num_output: 5 axis: -2 }", [(5, 42), (5,)], **DEFINED),
    Case(
        "InnerProduct", "inner_product_param { num_output: 5 transpose: true }", [(168, 5), (5,)], **DEFINED
    ),
    Case("InnerProduct", "inner_product_param { num_output: 5 axis: 0 }", [(5, 336), (5,)], **DEFINED),
    Case(
        "Embed",
        "embed_param { num_output: 5 input_dim: 9 }",
        [(9, 5), (5,)],
        [(2, 3)],
        values=None,
        **DEFINED,
    ),
    *(
        plain("Concat", "concat", parameters, inputs=[IMAGE, IMAGE])
        for parameters in ("", "axis: 2", "axis: -1")
    ),
    plain("Concat", "concat", "concat_dim: 3", inputs=[IMAGE, IMAGE], **DEFINED),
    plain("Concat", "concat"),
    plain("Slice", "slice", "slice_point: 1", tops=2),
    plain("Slice", "slice", "axis: 2 slice_point: 1 slice_point: 4", tops=3),
    plain("Slice", "slice", "slice_dim: 3", tops=2, **DEFINED),
    plain("Split", tops=3, **DEFINED),
    *(
        plain("Crop", "crop", parameters, inputs=[IMAGE, (2, 3, 4, 5)])
        for parameters in ("axis: 2 offset: 1", "axis: 1 offset: 1 offset: 2 offset: 0", "")
    ),
    *(plain("Tile", "tile", parameters, **DEFINED) for parameters in ("tiles: 3", "axis: -1 tiles: 2")),
    *(plain("Flatten", "flatten", parameters) for parameters in ("", "axis: 2", "axis: 1 end_axis: 2")),
    *(
        plain("Reshape", "reshape", parameters)
        for parameters in (
            "shape { dim: 0 dim: -1 }",
            "shape { dim: 2 dim: 7 dim: -1 } axis: 1 num_axes: 2",
            "shape { dim: -1 dim: 6 } axis: 0",
            "shape { dim: 3 dim: 2 } axis: 3",
        )
    ),
    plain("Permute", "permute", "order: 0 order: 2 order: 3 order: 1"),
    plain("Permute", "permute", "order: 1", **DEFINED),
    plain("ShuffleChannel", "shuffle_channel", "group: 2"),
    plain("Reverse", "reverse", "axis: 1 axis: 3", **DEFINED),
    *(
        plain("Reduction", "reduction", f"operation: {operation} axis: {axis} coeff: {coeff}", **DEFINED)
        for operation in ("SUM", "ASUM", "SUMSQ", "MEAN")
        for axis, coeff in ((1, 1), (-2, 0.5))
    ),
    plain("Reduction", "reduction", **DEFINED),
    *(
        plain("ArgMax", "argmax", parameters, inputs=[shape], **DEFINED)
        for shape in (IMAGE, (2, 1, 4))
        for parameters in (
            "",
            "axis: 2",
            "axis: 2 top_k: 3",
            "out_max_val: true",
            "out_max_val: true axis: -1 top_k: 2",
            "top_k: 2 out_max_val: true",
        )
    ),
    plain("Interp", "interp", "height: 11 width: 5"),
    plain("Interp", "interp", "zoom_factor: 2"),
    plain("Interp", "interp", "shrink_factor: 2", **DEFINED),
    plain("BatchReindex", inputs=[IMAGE, (3,)], **DEFINED),
    Case(
        "LSTM", "recurrent_param { num_output: 5 }", [(20, 3), (20,), (20, 5)], [SEQUENCE, (4, 2)], **DEFINED
    ),
    Case(
        "LSTM",
        "recurrent_param { num_output: 5 }",
        [(20, 3), (20,), (20, 6), (20, 5)],
        [SEQUENCE, (4, 2), (2, 6)],
        **DEFINED,
    ),
    Case(
        "LSTM",
        "recurrent_param { num_output: 5 expose_hidden: true }",
        [(20, 3), (20,), (20, 5)],
        [SEQUENCE, (4, 2), *STATES],
        3,
        **DEFINED,
    ),
    Case(
        "RNN",
        "recurrent_param { num_output: 5 }",
        [(5, 3), (5,), (5, 5), (5, 5), (5,)],
        [SEQUENCE, (4, 2)],
        **DEFINED,
    ),
    Case(
        "RNN",
        "recurrent_param { num_output: 5 expose_hidden: true }",
        [(5, 3), (5,), (5, 5), (5, 5), (5,)],
        [SEQUENCE, (4, 2), STATES[0]],
        2,
        **DEFINED,
    ),
    Case(
        "ROIPooling", "roi_pooling_param { pooled_h: 3 pooled_w: 2 spatial_scale: 1 }", inputs=[IMAGE, (2, 5)]
    ),
    *(
        Case("PriorBox", f"prior_box_param {{ {parameters} }}", inputs=[(1, 4, 3, 4), (1, 3, 60, 80)])
        for parameters in (
            "min_size: 10 max_size: 20 aspect_ratio: 2 aspect_ratio: 3 flip: true clip: false " + VARIANCES,
            "min_size: 10 flip: false clip: true variance: 0.1",
            "min_size: 10 min_size: 30 aspect_ratio: 2 clip: false step: 20 offset: 0.25 variance: 0.1",
        )
    ),
]


def inputs_of(case: Case) -> dict[str, np.ndarray]:
    made = {f"x{number}": array for number, array in enumerate(arrays(case.inputs, 3))}
    if case.kind == "ArgMax" and case.inputs == [(2, 1, 4)]:
        made["x0"] = TIES
    if case.kind == "Embed":
        made["x0"] = np.array([[0, 8, 3], [1, 1, 7]], np.float32)
    if case.kind == "BatchReindex":
        made["x1"] = np.array([1, 0, 1], np.float32)
    if case.kind in ("LSTM", "RNN"):
        made["x1"] = MARKS
    if case.kind == "ROIPooling":
        made["x1"] = ROIS
    return made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_layer(tmp_path, case):
    inputs, tops = inputs_of(case), [f"y{number}" for number in range(case.tops)]
    bottoms = list(inputs)
    text = declared({name: array.shape for name, array in inputs.items()}) + layer(
        case.kind, case.parameters, bottoms, tops
    )
    blobs = arrays(case.blobs) if case.values is None else case.values
    path = written(tmp_path, text, {case.kind: blobs} if blobs else {})
    found = tmconvert.load(path)(*inputs.values())
    found = list(found) if isinstance(found, list | tuple) else [found]
    if case.opencv:
        # OpenCV has other numbers of axes for some; only elements are compared
        expected = in_opencv(path, inputs, tops)
    else:
        source = load_caffe(str(path)).source
        assert isinstance(source, CaffeSource)
        expected = run_net(source.net, inputs, tops)
        assert [array.shape for array in found] == [array.shape for array in expected]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.ravel(), other.ravel(), rtol=2e-5, atol=2e-5)
