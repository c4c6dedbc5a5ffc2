"""Fourier transforms."""

import numpy as np

from tests.symbolics.ops.harness import Const, normal

from .common import Sample

ONNX = ("onnx",)
REAL, IMAG = normal(0, 2, 5, 6), normal(1, 2, 5, 6)
SIGNAL = normal(2, 2, 23)

SAMPLES: dict[str, list[Sample]] = {
    "tm::fft": [
        Sample([REAL, None], {"n": 6, "onesided": True}, ("onnx", "tflite")),
        Sample([REAL, None], {"n": 5, "dim": 1, "onesided": True, "norm": "ortho"}, ("onnx", "tflite")),
        Sample([REAL, IMAG], {"n": 6}, ("onnx", "tflite")),
        Sample([REAL, IMAG], {"n": 4, "dim": 1, "inverse": True}, ("onnx", "tflite")),
        Sample([REAL, IMAG], {"n": 9, "inverse": True, "norm": "forward"}, ("onnx", "tflite")),
        Sample([REAL, None], {"n": 9, "norm": "forward"}, ("onnx", "tflite")),
    ],
    "tm::irfft": [
        Sample([REAL, IMAG], {"n": 10}, ("onnx", "tflite")),
        Sample([REAL, IMAG], {"n": 7, "dim": 1, "norm": "forward"}, ("onnx", "tflite")),
        Sample([REAL, IMAG], {"n": 16, "norm": "ortho"}, ("onnx", "tflite")),
    ],
    "tm::stft": [
        Sample(
            [SIGNAL, Const(np.hanning(8).astype(np.float32))],
            {"n_fft": 8, "hop_length": 3},
            ("onnx", "tflite"),
        ),
        Sample(
            [SIGNAL, None],
            {"n_fft": 7, "hop_length": 2, "normalized": True, "onesided": False},
            ("onnx", "tflite"),
        ),
        Sample([SIGNAL, normal(3, 6)], {"n_fft": 6, "hop_length": 6}, ("onnx", "tflite")),
    ],
}
