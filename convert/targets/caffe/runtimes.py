"""The runtimes for Caffe files: OpenCV, MNN, and the definitions of Caffe's layers."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.targets.caffe.float32_integers import float32_inputs
from tmconvert.targets.caffe.mnn import MnnRuntime
from tmconvert.verification.runtime import FirstToTakeIt, IsolatedRuntime, Runtime, refusals, silent_stderr


class OpenCvRuntime(IsolatedRuntime):
    """OpenCV's dnn module, which reads Caffe nets and computes in float32."""

    name = "OpenCV"

    @property
    def version_here(self) -> str:
        import cv2

        return str(cv2.__version__)

    def load(self) -> None:
        import cv2  # noqa: F401

        from tmconvert.formats.caffe.schema import schema

        schema()

    def run_here(
        self,
        paths: Sequence[Path],
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        shapes: Sequence[Sequence[int]] | None,
    ) -> list[np.ndarray]:
        import cv2

        from tmconvert.formats.caffe.reader import caffe_tops

        with refusals(self.name), silent_stderr():
            tops = caffe_tops(paths[0])
            net = cv2.dnn.readNetFromCaffe(*map(os.fspath, paths))
            for name, array in float32_inputs(inputs).items():
                net.setInput(array, name)
            places = [_opencv_place(net, name, *tops[name]) for name in outputs]
            made = net.forwardAndRetrieve([layer for layer, _ in places])
            arrays = [blobs[index] for blobs, (_, index) in zip(made, places, strict=True)]
        if shapes is None:
            return [np.array(array) for array in arrays]
        return [_with_low_rank(array, shape) for array, shape in zip(arrays, shapes, strict=True)]


class NumpyCaffeRuntime:
    """The definitions of Caffe's layers, for nets that no installed runtime supports."""

    name = "Caffe's layers by definition, in NumPy"

    @property
    def version(self) -> str:
        return np.__version__

    def run(
        self,
        paths: Sequence[Path],
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str],
        *,
        shapes: Sequence[Sequence[int]] | None = None,
    ) -> list[np.ndarray]:
        from tmconvert.formats.caffe.reader import dialects_of, read_net
        from tmconvert.targets.caffe.interpreter import run_net

        with refusals(self.name):
            dialects = dialects_of(paths[0])
            net = read_net(paths[0], paths[1], (dialects or ["bvlc"])[0])
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


def _opencv_place(net: Any, name: str, layer: str, index: int) -> tuple[str, int]:
    """OpenCV finds a blob by its layer and position, but calls some convolutions by their blob."""
    return (layer, index) if net.getLayerId(layer) >= 0 else (name, index)


def _with_low_rank(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """OpenCV's matrices have two axes or more: [5] comes out as [5, 1]."""
    if len(shape) < 2 and array.ndim == 2 and array.size == np.prod(shape, dtype=int):
        return array.reshape(shape)
    return np.array(array)
