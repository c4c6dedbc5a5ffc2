"""Operators applied directly: images, normalization, recurrent networks."""

import numpy as np

from .common import Known, call, numbers, parameter, rows

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


IMAGES = rows(__file__, "IMAGES", globals())
NORMS = rows(__file__, "NORMS", globals())
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
