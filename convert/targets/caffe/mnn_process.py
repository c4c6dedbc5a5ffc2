"""The process that ``MnnRuntime`` starts, since a net that MNN cannot read ends the process.

Its arguments are FOLDER CAFFEMODEL OUTPUT ... FOLDER has ``inputs.npz`` and for the output of number I the
net ``I.prototxt``; its array becomes ``I.npy``. The converter is called as a function, since MNN's command
sends telemetry.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    folder, caffemodel, *outputs = sys.argv[1:]
    os.chdir(folder)  # the converter leaves a file in the working folder
    _run_all(Path(folder), caffemodel, outputs)


def _run_all(folder: Path, caffemodel: str, outputs: list[str]) -> None:
    inputs = dict(np.load(folder / "inputs.npz"))
    for number, output in enumerate(outputs):
        prototxt = folder / f"{number}.prototxt"
        text = prototxt.read_text("utf-8")
        fed = {name: array for name, array in inputs.items() if f'top: "{name}"' in text}
        np.save(folder / f"{number}.npy", _run(prototxt, caffemodel, fed, output))


def _run(prototxt: Path, caffemodel: str, inputs: dict[str, np.ndarray], output: str) -> np.ndarray:
    import _tools
    from MNN import expr, nn

    model = str(prototxt.with_suffix(".mnn"))
    files = ["--modelFile", caffemodel, "--prototxt", str(prototxt), "--MNNModel", model]
    _tools.mnnconvert(["mnnconvert", "-f", "CAFFE", *files, "--bizCode", "caffe"])
    # Threads of MNN wait for each other in a loop, at the cost of all other processes.
    runtime = nn.create_runtime_manager(({"backend": "CPU", "numThread": 1},))
    net = nn.load_module_from_file(model, list(inputs), [output], runtime_manager=runtime)
    (made,) = net.onForward([_variable(expr, array) for array in inputs.values()])
    return np.array(expr.convert(made, expr.NCHW).read())


def _variable(expr: Any, array: np.ndarray) -> Any:
    """Images are fed in MNN's own order: in another one it writes where it should not."""
    variable = expr.const(np.ascontiguousarray(array), list(array.shape), expr.NCHW)
    return expr.convert(variable, expr.NC4HW4) if array.ndim == 4 else variable


if __name__ == "__main__":
    main()
