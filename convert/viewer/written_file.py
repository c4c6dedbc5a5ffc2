"""The graph of any model, by the kind of its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tmconvert.errors import LoadError
from tmconvert.targets.recognize import target_of_file
from tmconvert.viewer.view_graph import ViewGraph


def is_written_file(path: Path) -> bool:
    """Whether this is a file of a target: ONNX, TFLite or a prototxt."""
    try:
        return path.is_file() and target_of_file(path).name in ("onnx", "tflite", "caffe")
    except (LoadError, OSError, ValueError):
        return False


def written_graph(path: Path) -> ViewGraph:
    """Returns the graph of an ONNX or TFLite file or a prototxt, as it is stored. Raises LoadError."""
    return _reader(target_of_file(path).name)(path)


def _reader(target: str) -> Callable[[Path], ViewGraph]:
    if target == "onnx":
        from tmconvert.viewer.onnx_file import onnx_graph

        return onnx_graph
    if target == "tflite":
        from tmconvert.viewer.tflite_file import tflite_graph

        return tflite_graph
    from tmconvert.viewer.caffe_file import caffe_graph

    return caffe_graph
