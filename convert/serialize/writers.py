"""The writer of each target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ..lower.target_graph import TargetGraph


def write(graph: TargetGraph, files: Sequence[BinaryIO]) -> None:
    """Writes the graph to its open files: one, or prototxt and caffemodel."""
    if graph.target == "onnx":
        from .onnx_writer import write_onnx

        write_onnx(graph, files[0])
    elif graph.target == "tflite":
        from .tflite_writer import write_tflite

        write_tflite(graph, files[0])
    else:
        from .caffe_writer import write_caffe

        write_caffe(graph, files[0], files[1])


def check_written(graph: TargetGraph, paths: Sequence[Path]) -> None:
    """The format's own checker, where there is one."""
    if graph.target == "onnx":
        from .onnx_writer import check_onnx

        check_onnx(paths[0], graph)
