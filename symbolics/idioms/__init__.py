"""Formulas of targets that several ops share; a module is imported when an op first uses it.

>>> from tmconvert.symbolics import idioms
>>> idioms.tflite.inverse_root.__name__
'inverse_root'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from tmconvert.symbolics.idioms import (
        caffe,
        caffe_angles,
        caffe_numbers,
        convolutions,
        integer_steps,
        onnx_recurrent,
        recurrent_steps,
        tflite,
        tflite_convolutions,
        tflite_loops,
    )

__all__ = [
    "caffe", "caffe_angles", "caffe_numbers", "convolutions", "integer_steps", "onnx_recurrent",
    "recurrent_steps", "tflite", "tflite_convolutions", "tflite_loops",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
