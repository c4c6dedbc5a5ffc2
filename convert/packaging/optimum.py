"""Packages of optimum: model files with its names of inputs and outputs, configuration and tokenizer."""

from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.general_types import write_general_type
from tmconvert.packaging.kind import Kind, layout

KIND = Kind(
    "optimum",
    Consumer("optimum", "open_optimum.py", "pip install optimum-onnx"),
    layout(""),
    generalize=write_general_type,
)
