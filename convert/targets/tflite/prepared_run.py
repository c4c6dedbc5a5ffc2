"""An interpreter of LiteRT that is run many times."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from tmconvert.targets.tflite.verify.observed import allocate
from tmconvert.verification.runtime import refusals


def prepared_tflite(
    path: Path, threads: int, inputs: Mapping[str, np.ndarray], signature: str = ""
) -> Callable[[], object]:
    """Returns a function that runs the file, or a signature of it, on these inputs.

    LiteRT runs a signature only with copies of its inputs and outputs.
    """
    from ai_edge_litert.interpreter import Interpreter

    with refusals("LiteRT"):
        interpreter = Interpreter(model_path=os.fspath(path), num_threads=threads)
        if signature:
            return partial(interpreter.get_signature_runner(signature), **inputs)
        by_index = {
            each["index"]: array
            for each, array in zip(interpreter.get_input_details(), inputs.values(), strict=True)
        }
        allocate(interpreter, {index: array.shape for index, array in by_index.items()})
        for index, array in by_index.items():
            interpreter.set_tensor(index, array)

    def run() -> object:
        return interpreter.invoke()

    return run
