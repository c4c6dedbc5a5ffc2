"""The same graph gives the same bytes in every process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib, io
import numpy as np
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.caffe.writer import write_caffe
from tmconvert.targets.onnx.writer import write_onnx

F32 = np.dtype("f4")
x, y = Value("x", F32, (2, 3, 5, 7)), Value("y", F32, (2, 4, 5, 7))
weight = Value("w", F32, (4, 3, 1, 1), np.arange(12, dtype="f4").reshape(1, 1, 3, 4).T)

def graph(target, version, operator):
    metadata = {name: name for name in ("author", "source", "licence")}
    return TargetGraph(target, version, "net", [x], [y, x], [operator], ["x"], ["y", "copy"], metadata)

onnx, prototxt, caffemodel = io.BytesIO(), io.BytesIO(), io.BytesIO()
attributes = {"strides": [1, 1], "pads": [0, 0, 0, 0], "group": 1, "dilations": [1, 1]}
write_onnx(graph("onnx", 13, Operator("Conv", [x, weight], [y], attributes, "conv")), onnx)
attributes = {"num_output": 4, "bias_term": False, "kernel_size": 1, "pad_h": 0, "pad_w": 0}
write_caffe(
    graph("caffe", 0, Operator("Convolution", [x, weight], [y], attributes, "y")), prototxt, caffemodel
)
for file in (onnx, prototxt, caffemodel):
    print(len(file.getvalue()), hashlib.sha256(file.getvalue()).hexdigest())
"""


@pytest.mark.slow
def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    ]
    assert len(printed[0].splitlines()) == 3
    assert printed[0] == printed[1] == printed[2]
