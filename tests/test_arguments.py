"""No argument of a public function, however wrong, ends in an error of Python's own."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tmconvert import api
from tmconvert.errors import InternalError, TmconvertError
from tmconvert.ir import TracedModule

MODEL = Path(__file__).parent.parent / "samples" / "digits.tm"


class Unwilling:
    """Whatever is asked of it raises."""

    def __fspath__(self) -> str:
        raise RuntimeError("no path")

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")

    def __repr__(self) -> str:
        raise RuntimeError("no text")


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"x"


# by a name for the test's id; each is made when it is needed
WRONG: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "true": lambda: True,
    "zero": lambda: 0,
    "three": lambda: 3,
    "negative": lambda: -1,
    "huge": lambda: 10**30,
    "fraction": lambda: 1.5,
    "nan": lambda: float("nan"),
    "complex": lambda: 1j,
    "empty text": lambda: "",
    "text": lambda: "no such thing",
    "NUL": lambda: "a\0b.onnx",
    "surrogate": lambda: "\udc80.onnx",
    "long text": lambda: "x" * 5000,
    "bytes": lambda: b"x",
    "empty list": list,
    "list of None": lambda: [None],
    "list of numbers": lambda: [3, 4],
    "list of texts": lambda: ["a", "b"],
    "list of lists": lambda: [[[]]],
    "tuple": lambda: (1, "a", None),
    "empty dict": dict,
    "dict by number": lambda: {3: 3},
    "dict of None": lambda: {"x": None},
    "dict of numbers": lambda: {"x": 3},
    "dict of texts": lambda: {"x": "y"},
    "dict of lists": lambda: {"x": ["y", None]},
    "dict of dicts": lambda: {"x": {"y": {}}},
    "dict of objects": lambda: {"x": object()},
    "set": lambda: {1, "a"},
    "object": object,
    "unwilling": Unwilling,
    "path of bytes": BytesPath,
    "class": lambda: dict,
    "module": lambda: np,
    "function": lambda: lambda: None,
    "generator": lambda: (number for number in range(3)),
    "array": lambda: np.zeros((2, 3)),
    "array of objects": lambda: np.array([object(), None]),
    "array of texts": lambda: np.array(["a"]),
    "number of NumPy": lambda: np.float64(3),
}


@pytest.fixture(scope="module")
def model() -> TracedModule:
    return tmconvert.load(MODEL)


@contextlib.contextmanager
def only_our_errors() -> Iterator[None]:
    """Errors of tmconvert that say what is wrong, and no defects."""
    try:
        yield
    except InternalError:
        raise
    except TmconvertError as error:
        assert re.fullmatch("TM[0-9]{4}", error.code)
        assert str(error)


def calls(model: TracedModule, folder: Path) -> dict[str, tuple[Any, ...]]:
    """The positional arguments of a call that succeeds, by function."""
    written = folder / "written.onnx"
    if not written.exists():
        tmconvert.to_onnx(model, written, verify=False)
    data = np.zeros((2, 1, 8, 8), np.float32)
    return {
        "load": (MODEL,),
        "trace": (model,),
        "to_onnx": (model, folder / "o.onnx"),
        "to_tflite": (model, folder / "o.tflite"),
        "to_caffe": (model, folder / "o.prototxt"),
        "save": (model, folder / "o.tm"),
        "check": (model, "onnx"),
        "missing_kernels": (model,),
        "violations": (model, "bvlc"),
        "sufficient_opset": (model, 7),
        "quantization": (model,),
        "verify": (model, written),
        "calibrate": (model, data),
        "supported_ops": ("onnx",),
        "lint": (folder / "o.prototxt",),
        "register_symbolic": ("aten::swish", lambda g, x: x),
    }


FUNCTIONS = list(calls.__annotations__) and [
    "load", "trace", "to_onnx", "to_tflite", "to_caffe", "save", "check", "missing_kernels", "violations",
    "sufficient_opset", "quantization", "verify", "calibrate", "supported_ops", "lint", "register_symbolic",
]


def parameters(function: str) -> list[inspect.Parameter]:
    every = inspect.signature(getattr(api, function)).parameters.values()
    return [each for each in every if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
