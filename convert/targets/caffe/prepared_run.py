"""A net in OpenCV, or in NumPy without it, that is run many times."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable

from tmconvert.ir.types import NamedArrays, Paths
from tmconvert.targets.caffe.opencv import OpenCvRuntime
from tmconvert.targets.caffe.runtimes import NumpyCaffeRuntime, caffe_runtime
from tmconvert.targets.caffe.written_model import written_caffe
from tmconvert.verification.runtime import refusals


def prepared_caffe(paths: Paths, threads: int, inputs: NamedArrays) -> Callable[[], object]:
    """Returns a function that runs the net on these inputs."""
    outputs = written_caffe(paths[0]).outputs
    is_opencv = isinstance(caffe_runtime(paths[0]), OpenCvRuntime)
    if importlib.util.find_spec("cv2") is None or not is_opencv:
        runtime = NumpyCaffeRuntime()
        return lambda: runtime.run(paths, inputs, outputs)
    import cv2

    cv2.setNumThreads(threads)
    with refusals("OpenCV"):
        net = cv2.dnn.readNetFromCaffe(*map(os.fspath, paths))

    def run() -> object:
        for name, array in inputs.items():
            net.setInput(array, name)
        return net.forward(outputs)

    return run
