"""The writer of each target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ..lower.target_graph import TargetGraph
from .external_data import MOST_INLINE, external_bytes, weights_path


def paths_of(graph: TargetGraph, paths: Sequence[Path], *, external_data: bool) -> list[Path]:
    """The files to write: for ONNX ``paths`` and, when asked for or needed, one for the weights."""
    if graph.target != "onnx" or not (size := external_bytes(graph)):
        return list(paths)
    return [*paths, weights_path(paths[0])] if external_data or size > MOST_INLINE else list(paths)


def write(graph: TargetGraph, files: Sequence[BinaryIO], weights_name: str = "") -> None:
    """Writes the graph to its open files: one, or prototxt and caffemodel.

    For ONNX a second file takes the weights; the first one refers to it as ``weights_name``.
    """
    if graph.target == "onnx":
        from .onnx_writer import write_onnx

        write_onnx(graph, files[0], files[1] if len(files) > 1 else None, weights_name)
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
