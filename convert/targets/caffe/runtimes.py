"""Chooses the runtime of a Caffe file: OpenCV, MNN, or the definitions of Caffe's layers."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tmconvert._version import __version__
from tmconvert.ir.types import NamedArrays, Paths, Shapes
from tmconvert.targets.caffe.float32_integers import float32_inputs
from tmconvert.targets.caffe.mnn import MnnRuntime
from tmconvert.targets.caffe.opencv import OpenCvRuntime
from tmconvert.verification.runtime import FirstToTakeIt, Runtime, refusals


class NumpyCaffeRuntime:
    """The definitions of Caffe's layers, for nets that no installed runtime supports.

    They are compared with recorded outputs of OpenCV and MNN (``tests/formats/caffe``), and read both files
    again.
    """

    name = "the NumPy definitions of Caffe's layers in tmconvert"
    version = __version__

    def run(
        self, paths: Paths, inputs: NamedArrays, outputs: Sequence[str], *, shapes: Shapes | None = None
    ) -> list[np.ndarray]:
        from tmconvert.formats.caffe.interpreter import run_net
        from tmconvert.formats.caffe.reader import dialect_of, read_net

        with refusals(self.name):
            net = read_net(paths[0], paths[1], dialect_of(paths[0]) or "bvlc")
            return run_net(net, float32_inputs(inputs), outputs)


def caffe_runtime(prototxt: Path | None = None) -> Runtime:
    """Returns OpenCV for a net that it supports; else MNN if that does.

    Without either, the nets are run by the definitions of the layers.
    """
    runtime = opencv_runtime(prototxt)
    if runtime is not None:
        return runtime
    defined = NumpyCaffeRuntime()
    return FirstToTakeIt(MnnRuntime(), defined) if prototxt is not None and _mnn_runs(prototxt) else defined


def _mnn_runs(prototxt: Path) -> bool:
    from tmconvert.targets.caffe.for_mnn import mnn_reads

    return importlib.util.find_spec("MNN") is not None and mnn_reads(prototxt)


def opencv_runtime(prototxt: Path | None = None) -> Runtime | None:
    """Returns OpenCV, if it is installed and supports the net."""
    from tmconvert.targets.caffe.lint import lint

    if importlib.util.find_spec("cv2") is None:
        return None
    return OpenCvRuntime() if prototxt is None or not lint(prototxt, "opencv") else None
