"""Runs files in ONNX Runtime and LiteRT and keeps what they give; needs NumPy and these two only.

    python benchmarks/processors_runner.py FOLDER RESULTS

For each NAME.onnx and NAME.tflite of FOLDER, NAME.onnx.npz or NAME.tflite.npz has the inputs. The outputs go
to a file of the same name in RESULTS, or the reason why there are none to NAME.onnx.error. A file that was
tried is not run again: where one ends the process, a second process runs the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np


def run_onnx(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A session as users start one."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    known = {each.name for each in session.get_inputs()}
    fed = {name: array for name, array in inputs.items() if name in known}
    return dict(zip(names, session.run(names, fed)))  # noqa: B905  (Python 3.9 has no strict=)


def run_tflite(path: Path, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The interpreter as users start one, with XNNPACK."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    signature = interpreter.get_signature_runner()
    taken, made = signature.get_input_details(), signature.get_output_details()
    del signature  # a call of it resizes the inputs, which crashes on ARM if one has no axes
    interpreter.allocate_tensors()
    for name, details in taken.items():
        interpreter.set_tensor(details["index"], inputs[name])
    interpreter.invoke()
    return {name: interpreter.get_tensor(details["index"]) for name, details in made.items()}


RUNTIMES = {".onnx": run_onnx, ".tflite": run_tflite}


def main() -> None:
    folder, results = map(Path, sys.argv[1:])
    for path in sorted(each for each in folder.iterdir() if each.suffix in RUNTIMES):
        made, error = results / f"{path.name}.npz", results / f"{path.name}.error"
        if made.exists() or error.exists():
            continue
        error.write_text("the process ended")
        with np.load(folder / f"{path.name}.npz") as inputs:
            given = dict(inputs)
        try:
            outputs = RUNTIMES[path.suffix](path, given)
        except Exception as failure:
            error.write_text(f"{type(failure).__name__}: {failure}")
            continue
        np.savez(made, **{f"out:{name}": array for name, array in outputs.items()})
        error.unlink()


if __name__ == "__main__":
    main()
