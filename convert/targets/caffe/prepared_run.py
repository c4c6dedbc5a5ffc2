"""A net in OpenCV, or in NumPy without it, that is run many times."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tmconvert.formats.caffe.reader import caffe_input_sizes
from tmconvert.targets.caffe.opencv import OpenCvRuntime
from tmconvert.targets.caffe.runtimes import NumpyCaffeRuntime, caffe_runtime
from tmconvert.targets.caffe.written_model import written_caffe
from tmconvert.verification.runtime import refusals


def prepared_caffe(paths: Sequence[Path], threads: int) -> Callable[[], object]:
    """Returns a function that runs the net on zeros."""
    given = {name: np.zeros(shape, np.float32) for name, shape in caffe_input_sizes(paths[0]).items()}
    outputs = written_caffe(paths[0]).outputs
    is_opencv = isinstance(caffe_runtime(paths[0]), OpenCvRuntime)
    if importlib.util.find_spec("cv2") is None or not is_opencv:
        runtime = NumpyCaffeRuntime()
        return lambda: runtime.run(paths, given, outputs)
    import cv2

    cv2.setNumThreads(threads)
    with refusals("OpenCV"):
        net = cv2.dnn.readNetFromCaffe(*map(os.fspath, paths))

    def run() -> object:
        for name, array in given.items():
            net.setInput(array, name)
        return net.forward(outputs)

    return run
