"""``tmconvert onnx``."""

from __future__ import annotations

from tmconvert.cli.conversion import conversion_command

command = conversion_command(
    "onnx",
    {"out": "OUT.onnx"},
    {},
    """Convert MODEL to the ONNX file OUT.onnx.

    The file is run in ONNX Runtime, if that is installed, and its outputs are compared with those of MODEL;
    a file that computes something else is not written.
    """,
    example="""\
tmconvert onnx model.tm model.onnx --opset 17
tmconvert onnx net.py:make net.onnx --input 'float32[1,3,224,224]'
tmconvert onnx model.tm int8.onnx --quantized --calibration images/""",
)
