"""Fourier transforms: bytes of the written files, time of a run, and error, against one dense matrix.

    python benchmarks/fft.py [N ...]

"n" counts the numbers of a file for each point of the transform, where all its bytes are numbers of 4 bytes.
The time is the shortest of 15 runs on one thread, of four signals. The error is the largest difference from
torch in float64 by the largest element; that of torch in float32 is printed for comparison.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tmconvert
from tmconvert.symbolics.ops.special import fourier

SIZES = (60, 64, 256, 400, 509, 512, 1024, 4096, 8192)
DENSE = 1 << 22  # elements of the largest matrix that is measured

Run = Callable[[], np.ndarray]


def transforms(n: int) -> Iterator[tuple[str, Callable[[torch.Tensor], torch.Tensor], torch.Tensor]]:
    yield "rfft", lambda x: torch.view_as_real(torch.fft.rfft(x)), torch.randn(4, n)
    yield (
        "fft",
        lambda x: torch.view_as_real(torch.fft.fft(torch.complex(x[0], x[1]))),
        torch.randn(2, 4, n),
    )
    yield "irfft", lambda x: torch.fft.irfft(torch.complex(x[0], x[1]), n), torch.randn(2, 4, n // 2 + 1)


def onnx_run(path: Path, x: np.ndarray) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)
    name = session.get_inputs()[0].name
    return lambda: session.run(None, {name: x})[0]


def tflite_run(path: Path, x: np.ndarray) -> Run:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    (given,), (result, *_) = interpreter.get_input_details(), interpreter.get_output_details()

    def run() -> np.ndarray:
        interpreter.set_tensor(given["index"], x)
        interpreter.invoke()
        return interpreter.get_tensor(result["index"])

    return run


def shortest(run: Run) -> float:
    run()
    times = []
    for _ in range(15):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def error(found: np.ndarray, exact: np.ndarray) -> float:
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def measured(function: Any, x: torch.Tensor, target: str, exact: np.ndarray, folder: Path) -> str:
    path = folder / f"model.{target}"
    convert = tmconvert.to_onnx if target == "onnx" else tmconvert.to_tflite
    options: dict[str, Any] = {"io_layout": "source"} if target == "tflite" else {}
    convert(function, path, example_inputs=[x], verify=False, **options)
    run = (onnx_run if target == "onnx" else tflite_run)(path, x.numpy())
    kilobytes = path.stat().st_size / 1000
    points = max(x.shape[-1], exact.shape[-1])
    numbers = path.stat().st_size / 4 / points
    return f"{kilobytes:9.1f} kB {numbers:5.0f} n {shortest(run) * 1e6:6.0f} us {error(run(), exact):.1e}"


def main(sizes: list[int]) -> None:
    torch.manual_seed(0)
    print(f"{'':17}{'torch':8}{'written':37}  one matrix")
    limit = fourier.LARGEST_MATRIX
    for n in sizes:
        for name, function, x in transforms(n):
            exact = function(x.double()).numpy()
            for target in ("onnx", "tflite"):
                with tempfile.TemporaryDirectory() as folder:
                    columns = [measured(function, x, target, exact, Path(folder))]
                    if limit < 4 * n * n <= DENSE:
                        fourier.LARGEST_MATRIX = DENSE
                        columns.append(measured(function, x, target, exact, Path(folder)))
                        fourier.LARGEST_MATRIX = limit
                own = error(function(x).numpy(), exact)
                print(f"{n:5} {name:5} {target:6}{own:.0e} ", "  ".join(columns), flush=True)


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or list(SIZES))
