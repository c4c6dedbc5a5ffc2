"""Imports the modules of conversions, once for all processes that the server of ``--jobs`` forks.

No model is read and nothing is computed here, so that no thread of PyTorch or of a runtime is running.
"""

import numpy.random  # noqa: F401

import tmconvert.api_convert
import tmconvert.cli.batch.work
import tmconvert.cli.commands.caffe
import tmconvert.cli.commands.onnx
import tmconvert.cli.commands.tflite
import tmconvert.container.reader
import tmconvert.conversion.pipeline
import tmconvert.frontends.megengine.adapters
import tmconvert.frontends.megengine.loader
import tmconvert.ir.editing.lint
import tmconvert.targets.caffe.builder
import tmconvert.targets.caffe.lint
import tmconvert.targets.caffe.target
import tmconvert.targets.caffe.writer
import tmconvert.targets.onnx.builder
import tmconvert.targets.onnx.target
import tmconvert.targets.onnx.writer
import tmconvert.targets.tflite.builder
import tmconvert.targets.tflite.target
import tmconvert.targets.tflite.writer
import tmconvert.verification.report
import tmconvert.verification.worker  # noqa: F401
