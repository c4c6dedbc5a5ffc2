"""Runs the files of ``make_tflite_types.py --cases`` in the TFLite runtime of this Python.

    PYTHON tools/run_tflite_cases.py CASES OUT.txt

PYTHON has tflite-runtime, tensorflow or ai-edge-litert, and needs nothing else. Files run in processes of
their own, many in one, so that a kernel that ends its process ends no more than one case. A line of OUT is
``NAME ok``, or ``NAME`` and what went wrong, once for XNNPACK and once for the runtime's own kernels.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

MODES = ("AUTO", "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
_STEPS = {"int8": 3, "uint8": 3, "int16": 64}  # kernels of functions differ between releases
_BATCH = 300


def interpreter_module() -> object:
    for name in ("ai_edge_litert.interpreter", "tflite_runtime.interpreter"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return importlib.import_module("tensorflow.lite.python.interpreter")


def difference(made: np.ndarray, wanted: np.ndarray) -> str:
    """What is wrong with a result; empty if nothing is."""
    if made.shape != wanted.shape or made.dtype != wanted.dtype:
        return f"{made.dtype}{list(made.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    if wanted.dtype == bool or not wanted.size:
        return "" if np.array_equal(made, wanted) else "another result"
    off = np.abs(made.astype(np.float64) - wanted.astype(np.float64))
    most = float(np.max(off[np.isfinite(off)], initial=0))
    if wanted.dtype.kind == "f":
        largest = float(np.max(np.abs(wanted[np.isfinite(wanted)]), initial=1e-6))
        same = np.array_equal(np.isnan(made), np.isnan(wanted)) and most <= 1e-2 * largest
    else:
        same = most <= _STEPS.get(wanted.dtype.name, 0)
    return "" if same else f"another result, {most:.3g} off"


def run_case(module: object, path: Path, mode: str) -> str:
    with np.load(path.with_suffix(".npz")) as arrays:
        inputs = [arrays[f"in{i}"] for i in range(sum(name.startswith("in") for name in arrays.files))]
        wanted = [arrays[f"out{i}"] for i in range(sum(name.startswith("out") for name in arrays.files))]
    try:
        kind = getattr(module.OpResolverType, mode)  # type: ignore[attr-defined]
        interpreter = module.Interpreter(str(path), num_threads=1, experimental_op_resolver_type=kind)  # type: ignore[attr-defined]
        for described, array in zip(interpreter.get_input_details(), inputs, strict=True):
            if tuple(described["shape"]) != array.shape:
                interpreter.resize_tensor_input(described["index"], array.shape)
        interpreter.allocate_tensors()
        for described, array in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(described["index"], array)
        interpreter.invoke()
        details = interpreter.get_output_details()
        if [each for each in wanted if not each.size]:
            return ""
        made = [interpreter.get_tensor(each["index"]) for each in details]
    except (RuntimeError, ValueError) as error:
        return " ".join(str(error).split())[:160]
    found = (difference(one, other) for one, other in zip(made, wanted, strict=True))
    return next((text for text in found if text), "")


def run_batch(paths: list[Path]) -> None:
    """Says each file before it runs, so that whoever waits knows which one ended the process."""
    module = interpreter_module()
    for path in paths:
        for mode in MODES:
            print("start", path.stem, mode, flush=True)
            print("done", path.stem, mode, run_case(module, path, mode) or "ok", flush=True)


def outcomes(paths: list[Path]) -> Iterator[str]:
    left = paths
    while left:
        batch = left[:_BATCH]
        done = subprocess.run(
            [sys.executable, __file__, "--batch"],
            input="\n".join(map(str, batch)),
            capture_output=True,
            text=True,
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        )
        started = None
        for line in done.stdout.splitlines():
            word, _, rest = line.partition(" ")
            if word == "start":
                started = rest
            elif word == "done":
                started = None
                yield rest
        if started is None:
            if done.returncode:
                raise RuntimeError(done.stderr[-2000:])
            left = left[len(batch) :]
            continue
        yield f"{started} ended the process"
        name, _ = started.split(" ")
        at = [path.stem for path in left].index(name)
        left = left[at + 1 :]


if __name__ == "__main__":
    if sys.argv[1:] == ["--batch"]:
        run_batch([Path(line) for line in sys.stdin.read().splitlines()])
    else:
        text = "".join(f"{line}\n" for line in outcomes(sorted(Path(sys.argv[1]).glob("*.tflite"))))
        Path(sys.argv[2]).write_text(text, encoding="utf-8")
