"""``tmconvert caffe``."""

from __future__ import annotations

from tmconvert.cli.conversion import conversion_command

command = conversion_command(
    "caffe",
    {"prototxt": "OUT.prototxt"},
    {"caffemodel": "[OUT.caffemodel]"},
    """Convert MODEL to the Caffe net OUT.prototxt and its weights OUT.caffemodel.

    Without a path for the weights they are written next to the net. The net is run in OpenCV or MNN, if
    one is installed and supports all layers, else by the NumPy definitions of the layers, and its outputs
    are compared with those of MODEL; files that compute something else are not written.
    """,
    example="""\
tmconvert caffe model.tm model.prototxt --dialect bvlc
tmconvert caffe model.onnx net.prototxt net.caffemodel --dialect nnie""",
)
