"""An interpreter of LiteRT that is run many times."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tmconvert.verification.runtime import refusals


def prepared_tflite(path: Path, threads: int) -> Callable[[], object]:
    """Returns a function that runs the file on zeros; open sizes are as the file stores them."""
    from ai_edge_litert.interpreter import Interpreter

    with refusals("LiteRT"):
        interpreter = Interpreter(model_path=os.fspath(path), num_threads=threads)
        interpreter.allocate_tensors()
        for each in interpreter.get_input_details():
            interpreter.set_tensor(each["index"], np.zeros(each["shape"], each["dtype"]))

    def run() -> object:
        return interpreter.invoke()

    return run
