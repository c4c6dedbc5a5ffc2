"""Imports the modules of conversions, once for all processes that the server of ``--jobs`` forks.

No model is read and nothing is computed here, so that no thread of PyTorch or of a runtime is running.
"""

import tmconvert.api_convert
import tmconvert.cli.commands.caffe
import tmconvert.cli.commands.onnx
import tmconvert.cli.commands.tflite
import tmconvert.container.reader
import tmconvert.conversion.pipeline
import tmconvert.verification.report
import tmconvert.verification.worker  # noqa: F401
