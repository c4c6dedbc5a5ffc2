"""OpenCV as a runtime for Caffe files. The worker imports this file, which must not take long."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.formats.protobuf_text import parse_protobuf_text
from tmconvert.ir.types import Paths, Shapes
from tmconvert.targets.caffe.float32_integers import float32_inputs
from tmconvert.verification.runtime import IsolatedRuntime, refusals, silent_stderr


class OpenCvRuntime(IsolatedRuntime):
    """OpenCV's dnn module, which reads Caffe nets and computes in float32."""

    name = "OpenCV"

    @property
    def version_here(self) -> str:
        import cv2

        return str(cv2.__version__)

    def load(self) -> None:
        import cv2  # noqa: F401

    def run_here(
        self, paths: Paths, inputs: Mapping[str, np.ndarray], outputs: Sequence[str], shapes: Shapes | None
    ) -> list[np.ndarray]:
        import cv2

        with refusals(self.name), silent_stderr():
            tops = _tops(paths[0])
            net = cv2.dnn.readNetFromCaffe(*map(os.fspath, paths))
            for name, array in float32_inputs(inputs).items():
                net.setInput(array, name)
            places = [_opencv_place(net, name, *tops[name]) for name in outputs]
            made = net.forwardAndRetrieve([layer for layer, _ in places])
            arrays = [blobs[index] for blobs, (_, index) in zip(made, places, strict=True)]
        if shapes is None:
            return [np.array(array) for array in arrays]
        return [_with_low_rank(array, shape) for array, shape in zip(arrays, shapes, strict=True)]


def _tops(prototxt: Path) -> dict[str, tuple[str, int]]:
    """Returns for each blob the layer that last writes it, and which of its tops it is.

    The import of protobuf, which reads the text too, takes longer than a small net.
    """
    layers = parse_protobuf_text(prototxt.read_text("utf-8")).called("layer")
    return {
        top: (name, index)
        for layer in layers
        for name in layer.strings("name") or [""]
        for index, top in enumerate(layer.strings("top"))
    }


def _opencv_place(net: Any, name: str, layer: str, index: int) -> tuple[str, int]:
    """OpenCV finds a blob by its layer and position, but calls some convolutions by their blob."""
    return (layer, index) if net.getLayerId(layer) >= 0 else (name, index)


def _with_low_rank(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """OpenCV's matrices have two axes or more: [5] comes out as [5, 1]."""
    if len(shape) < 2 and array.ndim == 2 and array.size == np.prod(shape, dtype=int):
        return array.reshape(shape)
    return np.array(array)
