"""``tmconvert tflite``."""

from __future__ import annotations

from tmconvert.cli.conversion import conversion_command

command = conversion_command(
    "tflite",
    {"out": "OUT.tflite"},
    {},
    """Convert MODEL to the TFLite file OUT.tflite.

    The file is run in LiteRT, if that is installed, and its outputs are compared with those of MODEL; a file
    that computes something else is not written.
    """,
    example="""\
tmconvert tflite model.tm model.tflite
tmconvert tflite net.onnx net.tflite --quantized --calibration data/
tmconvert tflite model.tm half.tflite --weights float16
tmconvert tflite prefill=a.tm net.tflite --signature decode=b.tm""",
)
