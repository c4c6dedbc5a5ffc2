"""Each layer by its definition, beside OpenCV's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.targets.caffe.nets import defined, layer, normal, opencv

X = normal(0, 2, 6, 9, 11)
IMAGE = {"x": X}
WEIGHT, BIAS = normal(1, 8, 6, 3, 2), normal(2, 8)
GROUPED = normal(3, 6, 2, 3, 3)

CONVOLUTION = (
    "convolution_param { num_output: 8 kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 1 pad_h: 1 pad_w: 0 }"
)
DILATED = (
    "convolution_param { num_output: 8 kernel_size: 3 kernel_size: 2 dilation: 2 dilation: 3 "
    "bias_term: false }"
)
GROUPS = "convolution_param { num_output: 6 kernel_size: 3 group: 3 pad: 1 bias_term: false }"

# what is computed, the blobs of its layer y
CASES = {
    "AbsVal": (layer("AbsVal"), []),
    "BNLL": (layer("BNLL"), []),
    "BatchNorm": (
        layer("BatchNorm", "batch_norm_param { eps: 0.01 }"),
        [normal(1, 6), normal(2, 6) ** 2, np.ones(1)],
    ),
    "BatchNorm of sums": (layer("BatchNorm"), [normal(1, 6), normal(2, 6) ** 2 + 1, np.full(1, 2.0)]),
    "Concat": (layer("Concat", "concat_param { axis: 2 }", "x x"), []),
    "Convolution": (layer("Convolution", CONVOLUTION), [WEIGHT, BIAS]),
    "Convolution with holes": (layer("Convolution", DILATED), [WEIGHT]),
    "Convolution in groups": (layer("Convolution", GROUPS), [GROUPED]),
    "Crop": (
        layer("Pooling", "pooling_param { kernel_size: 3 stride: 2 }", tops="p")
        + layer("Crop", "crop_param { axis: 2 offset: 1 offset: 2 }", "x p"),
        [],
    ),
    "Deconvolution": (
        layer("Deconvolution", "convolution_param { num_output: 4 kernel_size: 3 stride: 2 pad: 1 }"),
        [normal(1, 6, 4, 3, 3), normal(2, 4)],
    ),
    "Deconvolution in groups": (
        layer(
            "Deconvolution",
            "convolution_param { num_output: 6 group: 6 kernel_size: 4 stride: 2 bias_term: false }",
        ),
        [normal(1, 6, 1, 4, 4)],
    ),
    "Dropout": (layer("Dropout"), []),
    "ELU": (layer("ELU", "elu_param { alpha: 0.7 }"), []),
    "Eltwise": (layer("Eltwise", "eltwise_param { coeff: 2 coeff: -1 }", "x x"), []),
    "Eltwise PROD": (layer("Eltwise", "eltwise_param { operation: PROD }", "x x"), []),
    "Exp": (layer("Exp", "exp_param { base: 2 scale: 0.5 shift: 1 }"), []),
    "Flatten": (layer("Flatten", "flatten_param { axis: 2 }"), []),
    "InnerProduct": (
        layer("InnerProduct", "inner_product_param { num_output: 5 }"),
        [normal(1, 5, 6 * 9 * 11), normal(2, 5)],
    ),
    "InnerProduct axis": (
        layer("InnerProduct", "inner_product_param { num_output: 5 axis: 3 bias_term: false }"),
        [normal(1, 5, 11)],
    ),
    "LRN": (layer("LRN", "lrn_param { local_size: 3 alpha: 0.1 beta: 0.7 }"), []),
    "LRN within": (
        layer("LRN", "lrn_param { local_size: 3 alpha: 0.1 beta: 0.7 norm_region: WITHIN_CHANNEL }"),
        [],
    ),
    "Log": (layer("AbsVal", tops="a") + layer("Log", bottoms="a"), []),
    "MVN": (layer("MVN"), []),
    "MVN across": (layer("MVN", "mvn_param { across_channels: true }"), []),
    "MVN of means": (layer("MVN", "mvn_param { normalize_variance: false }"), []),
    "PReLU": (layer("PReLU"), [normal(1, 6)]),
    "PReLU of one slope": (layer("PReLU", "prelu_param { channel_shared: true }"), [normal(1, 1)]),
    "Pooling": (layer("Pooling", "pooling_param { kernel_size: 3 stride: 2 }"), []),
    "Pooling padded": (
        layer(
            "Pooling", "pooling_param { kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 3 pad_h: 1 pad_w: 1 }"
        ),
        [],
    ),
    "Pooling AVE": (layer("Pooling", "pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }"), []),
    "Pooling AVE over the end": (
        layer("Pooling", "pooling_param { pool: AVE kernel_size: 4 stride: 3 }"),
        [],
    ),
    "Pooling global": (layer("Pooling", "pooling_param { pool: AVE global_pooling: true }"), []),
    "Power": (layer("Power", "power_param { power: 2 scale: 0.5 shift: 3 }"), []),
    "ReLU": (layer("ReLU"), []),
    "ReLU with a slope": (layer("ReLU", "relu_param { negative_slope: 0.2 }"), []),
    "Reshape": (layer("Reshape", "reshape_param { shape { dim: 0 dim: -1 dim: 3 } }"), []),
    "Scale": (layer("Scale", "scale_param { bias_term: true }"), [normal(1, 6), normal(2, 6)]),
    "Sigmoid": (layer("Sigmoid"), []),
    "Slice": (layer("Slice", "slice_param { axis: 2 slice_point: 2 slice_point: 5 }", tops="y a b"), []),
    "Softmax": (layer("Softmax", "softmax_param { axis: 2 }"), []),
    "Split": (layer("Split", tops="y a"), []),
    "TanH": (layer("TanH"), []),
}

FORKS = {
    "Gelu": (layer("Gelu"), []),
    "GeluApproximation": (layer("GeluApproximation"), []),
    "HardSwish": (layer("HardSwish"), []),
    "Interp": (layer("Interp", "interp_param { height: 17 width: 6 }"), []),
    "Mish": (layer("Mish"), []),
    "Normalize": (
        layer("Normalize", "norm_param { across_spatial: false channel_shared: false }"),
        [normal(1, 6)],
    ),
    "Permute": (layer("Permute", "permute_param { order: 0 order: 2 order: 3 order: 1 }"), []),
    "Pooling rounded down": (
        layer("Pooling", "pooling_param { kernel_size: 3 stride: 3 ceil_mode: false }"),
        [],
    ),
    "ReLU6": (layer("Power", "power_param { scale: 5 }", tops="a") + layer("ReLU6", bottoms="a"), []),
    "ShuffleChannel": (layer("ShuffleChannel", "shuffle_channel_param { group: 2 }"), []),
    "Swish": (layer("Swish"), []),
}


def compare(text: str, blobs: list[np.ndarray], dialect: str) -> None:
    weights = {"y": [np.asarray(blob, np.float32) for blob in blobs]}
    (actual,) = defined(IMAGE, text, weights, dialect=dialect)
    (expected,) = opencv(IMAGE, text, weights, dialect=dialect)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", CASES)
def test_layers_of_bvlc(name: str) -> None:
    compare(*CASES[name], "bvlc")


@pytest.mark.parametrize("name", FORKS)
def test_layers_of_forks(name: str) -> None:
    compare(*FORKS[name], "opencv")


@pytest.mark.parametrize("extents", [(7,), (5, 6, 7)], ids=str)
def test_convolution_of_other_ranks(extents: tuple[int, ...]) -> None:
    window = "kernel_size: 3 stride: 2 pad: 1 dilation: 1 " * len(extents)
    text = layer("Convolution", f"convolution_param {{ num_output: 4 group: 2 {window} }}")
    blobs = {"y": [normal(1, 4, 2, *(3 for _ in extents)), normal(2, 4)]}
    inputs = {"x": normal(0, 2, 4, *extents)}
    np.testing.assert_allclose(*(run(inputs, text, blobs)[0] for run in (defined, opencv)), atol=1e-5)


def test_scale_of_two_bottoms() -> None:
    inputs = {"x": X, "f": normal(5, 2, 6)}
    text = layer("Scale", "scale_param { axis: 0 }", "x f")
    np.testing.assert_allclose(*(run(inputs, text)[0] for run in (defined, opencv)), rtol=1e-6)


def test_in_place_layers_and_a_reader_of_both() -> None:
    text = layer("Power", "power_param { scale: -1 }", tops="a") + (
        'layer { name: "r" type: "ReLU" bottom: "a" top: "a" }' + layer("Eltwise", "", "a x")
    )
    np.testing.assert_allclose(*(run(IMAGE, text)[0] for run in (defined, opencv)), rtol=1e-6)
