"""Operators applied directly: images, normalization, recurrent networks."""

import numpy as np

from .common import CUBE, IMAGE, Known, X, call, numbers, parameter

VOLUME = numbers(1, 2, 3, 4, 5)
CHANNELS_LAST = numbers(1, 5, 7, 4)
COLOURS = numbers(1, 5, 7, 3)
COLOUR_BYTES = np.abs(COLOURS * 37).astype(np.uint8)
PLACES = np.abs(numbers(1, 3, 4, 2)) * np.float32(0.7)
AFFINE = np.array([[[1, 0.2, 0.1], [0.1, 1, 0.2]]], np.float32)
PERSPECTIVE = np.array([[[1, 0.2, 0.1], [0.1, 1, 0.2], [0, 0.1, 1]]], np.float32)
BOXES = np.array([[0, 0.5, 0.5, 4, 4], [0, 1, 1, 3, 2]], np.float32)
FEATURES = numbers(2, 4, 3, 3)
PER_CHANNEL = [parameter(name, (1, 4, 1, 1)) for name in ("weight", "bias", "mean", "var")]
LAST_CHANNEL = [each.reshape(1, 1, 1, 4) for each in PER_CHANNEL]
HEIGHT_WIDTH = {"pooled_height": 2, "pooled_width": 3, "sample_height": 2, "sample_width": 1}
SEQUENCE = numbers(5, 2, 3)
CONVOLUTION = {
    **{f"{name}_{axis}": value for name, value in (("stride", 1), ("dilate", 1)) for axis in "hw"},
    "pad_h": 1,
    "pad_w": 0,
    "sparse": "DENSE",
}


def small(*shape):
    return numbers(*shape) / 16


def norms(**state):
    return [
        call(FEATURES, numbers(4), numbers(4, seed=1), affine=True, eps=1e-5, **state),
        call(FEATURES, affine=False, eps=0.25, **state),
    ]


IMAGES = {
    "Resize": [
        *(call(IMAGE, Known(3, 9), format="NCHW", imode=mode) for mode in ("LINEAR", "NEAREST", "CUBIC")),
        *(call(COLOURS, Known(3, 9), format="NHWC", imode=mode) for mode in ("LINEAR", "NEAREST", "CUBIC")),
        call(CHANNELS_LAST, Known(8, 4), format="NHWC", imode="LINEAR"),
        call(COLOUR_BYTES, Known(8, 4), format="NHWC", imode="NEAREST"),
    ],
    "Resize3D": [
        call(VOLUME, Known(2, 3, 4), format="NCDHW", imode="LINEAR", align_corners=aligned)
        for aligned in (False, True)
    ],
    "Remap": [
        call(IMAGE, PLACES, border_type="REPLICATE", scalar=0.0, format="NCHW", imode="LINEAR"),
        call(IMAGE, PLACES, border_type="CONSTANT", scalar=1.5, format="NCHW", imode="NEAREST"),
        call(COLOURS, PLACES, border_type="CONSTANT", scalar=1.5, format="NHWC", imode="LINEAR"),
        call(CHANNELS_LAST, PLACES, border_type="REFLECT", scalar=0.0, format="NHWC", imode="NEAREST"),
    ],
    "WarpAffine": [
        call(
            IMAGE, AFFINE, Known(3, 4), border_mode="REPLICATE", border_val=0.0, format="NCHW", imode="LINEAR"
        ),
        call(
            CHANNELS_LAST,
            AFFINE,
            Known(3, 4),
            border_mode="CONSTANT",
            border_val=1.5,
            format="NHWC",
            imode="LINEAR",
        ),
    ],
    "WarpPerspective": [
        call(IMAGE, PERSPECTIVE, *others, bmode="REPLICATE", border_val=0.0, format="NCHW", imode="LINEAR")
        for others in ([Known(3, 4)], [Known([0]), Known(3, 4)])
    ],
    "ROIAlign": [
        call(IMAGE, BOXES, mode=mode, spatial_scale=0.5, offset=offset, format="NCHW", **HEIGHT_WIDTH)
        for mode in ("MAX", "AVERAGE")
        for offset in (0.0, 0.5)
    ],
    "ROIPooling": [
        call(IMAGE, BOXES, Known(2, 3), mode=mode, scale=scale)
        for mode in ("MAX", "AVERAGE")
        for scale in (1.0, 0.5)
    ],
    "Correlation": [
        call(
            X,
            numbers(2, 3, 5, 7, seed=4),
            format="NCHW",
            kernel_size=1,
            max_displacement=1,
            stride1=1,
            stride2=1,
            pad_size=1,
            is_multiply=multiplies,
        )
        for multiplies in (True, False)
    ],
    "CvtColor": [call(numbers(1, 2, 2, 3) / 8, mode=mode) for mode in ("RGB2GRAY", "RGB2YUV")],
    "ConvBias": [
        call(X, numbers(4, 3, 3, 3), numbers(1, 4, 1, 1), nonlineMode=mode, mode=way, **CONVOLUTION)
        for mode, way in (
            ("IDENTITY", "CROSS_CORRELATION"),
            ("RELU", "CONVOLUTION"),
            ("H_SWISH", "CROSS_CORRELATION"),
        )
    ],
}
NORMS = {
    "BatchNorm": [
        call(FEATURES, *PER_CHANNEL, fwd_mode="INFERENCE", epsilon=1e-5, param_dim="DIM_1C11"),
        call(CHANNELS_LAST, *LAST_CHANNEL, fwd_mode="INFERENCE", epsilon=1e-5, param_dim="DIM_111C"),
    ],
    "LayerNorm": [
        call(
            CUBE, numbers(4), numbers(4, seed=1), normalized_dim=1, normalized_size=4, affine=True, eps=1e-5
        ),
        call(CUBE, normalized_dim=2, normalized_size=12, affine=False, eps=0.25),
    ],
    "GeneralNorm": [
        call(CUBE, numbers(3), numbers(3, seed=1), axis_start=1, axis_end=2, affine=True, eps=1e-5),
        call(CUBE, axis_start=0, axis_end=2, affine=False, eps=0.25),
    ],
    "GroupNorm": norms(group=2),
    "InstanceNorm": norms(group=4),
}
RECURRENT = {
    "RNNCell": [
        call(numbers(2, 3), small(4, 3), small(4), small(2, 4), small(4, 4), small(4), nonlineMode=mode)
        for mode in ("IDENTITY", "TANH", "RELU")
    ],
    "LSTMCell": [
        call(numbers(2, 3), small(16, 3), small(16), small(2, 4), small(16, 4), small(16), small(2, 4))
    ],
    "RNN": [
        call(
            SEQUENCE,
            small(1, 2, 4),
            Known(*small(4 * 3 + 4 * 4 + 8), dtype=np.float32),
            hidden_size=4,
            num_layers=1,
            bias=True,
            bidirectional=False,
            fwd_mode="INFERENCE",
            nonlineMode="TANH",
        )
    ],
    "LSTM": [
        call(
            SEQUENCE,
            small(2, 2, 4),
            small(2, 2, 4),
            Known(*small(2 * (16 * 3 + 16 * 4 + 32)), dtype=np.float32),
            hidden_size=4,
            num_layers=1,
            bias=True,
            bidirectional=True,
            fwd_mode="INFERENCE",
            proj_size=0,
        )
    ],
}

SAMPLES = {f"opdef.{name}": calls for part in (IMAGES, NORMS, RECURRENT) for name, calls in part.items()}
