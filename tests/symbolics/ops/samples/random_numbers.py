"""Samples of ops that draw random numbers: of no numbers, as others differ from runtime to runtime.

tests/frontends/torch/test_random_numbers.py tests the distributions.
"""

from .common import Sample

NONE = Sample(
    [], {"size": [2, 0], "stream": 1, "seed": 3}, targets=("onnx", "tflite"), onnx_since=9, onnx_to=21
)

SAMPLES: dict[str, list[Sample]] = {"tm::random_uniform": [NONE], "tm::random_normal": [NONE]}
