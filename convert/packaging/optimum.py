"""Packages of optimum: model files with its names of inputs and outputs, configuration and tokenizer."""

from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.kind import Kind, layout

KIND = Kind("optimum", Consumer("optimum", "open_optimum.py", "pip install optimum-onnx"), layout(""))
