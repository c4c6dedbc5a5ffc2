"""ONNX files converted to TFLite by tmconvert and by onnx2tf: operators, errors, latency and time.

    python benchmarks/beside_onnx2tf.py DIR --python PYTHON
    python benchmarks/beside_onnx2tf.py DIR --python PYTHON --only 'rapidocr*' --markdown table.md

PYTHON has onnx2tf and TensorFlow installed. Both tools are called by their command lines, as processes, with
the sizes of the sample for open sizes; inputs keep the layout of the ONNX file. Samples are those of
``onnx_files.py``, and the reference is ONNX Runtime on the ONNX file.

"error" is the largest difference over the largest absolute value of an output, where outputs of onnx2tf may
have other layouts. "ms" is the processor time of a run in LiteRT in one thread, the median of many, where the
two files take turns. "s" is the processor time of the process that converts, and "call, s" that of a second
conversion in a process, for which no modules are loaded.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).parent))

import onnx_files

TOOLS = ("tmconvert", "onnx2tf")
ROUNDS, LIMIT = 15, 600  # processor seconds of a conversion
COLUMNS = ("operators", "error", "ms", "s", "call, s")
# runs a module with its arguments twice, as ``python -m`` does, and prints the time of the second run
TWICE = """
import contextlib, runpy, sys, time
words = sys.argv[1:]
for _ in range(2):
    sys.argv, since = [*words], time.process_time()
    with contextlib.suppress(SystemExit):
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
print("\\n", time.process_time() - since)
"""


def command(tool: str, python: str, path: Path, folder: Path, sample: dict[str, np.ndarray]) -> list[str]:
    """Returns the command that converts a file at the sizes of a sample."""
    if tool == "tmconvert":
        sizes = [f"{name}={','.join(map(str, array.shape))}" for name, array in sample.items() if array.ndim]
        shapes = [part for size in sizes for part in ("--input-shape", size)]
        out = str(folder / "ours.tflite")
        return [sys.executable, "-m", "tmconvert", "tflite", str(path), out, *shapes, *OPTIONS]
    shapes = [f"{name}:{','.join(map(str, array.shape))}" for name, array in sample.items() if array.ndim]
    kept = [name for name, array in sample.items() if array.ndim > 2]
    found = [python, "-m", "onnx2tf", "-i", str(path), "-o", str(folder / "theirs"), "-n", "-coion"]
    return [*found, "-ois", *shapes, *(["-kat", *kept] if kept else [])]


OPTIONS = ("--io-layout", "source", "--no-verify")


def converted(words: list[str], log: Path) -> float:
    """Runs a command and returns its processor time. Raises RuntimeError with its last line."""
    with (
        log.open("wb") as file,
        subprocess.Popen(words, stdout=file, stderr=file, preexec_fn=limit) as process,
    ):
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        raise RuntimeError(f"status {process.returncode}: {lines[-1][:200] if lines else ''}")
    return usage.ru_utime + usage.ru_stime


def called(words: list[str], log: Path) -> float:
    """Returns the processor time of a second conversion in the process of a command."""
    python, _, *module = words
    converted([python, "-c", TWICE, *module], log)
    return float(log.read_text(errors="replace").split()[-1])


def limit() -> None:
    """Limits the processor time of the process."""
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))


def result(tool: str, folder: Path) -> Path:
    if tool == "tmconvert":
        return folder / "ours.tflite"
    found = sorted((folder / "theirs").glob("*_float32.tflite"))
    if not found:
        raise RuntimeError("no file was written")
    return found[0]


def loaded(path: Path, arrays: list[np.ndarray], names: list[str]) -> Any:
    """Returns an interpreter with its inputs set, by their names or else in order."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    details = interpreter.get_input_details()
    given = [given_for(each["name"], dict(zip(names, arrays, strict=True))) for each in details]
    if any(each is None for each in given):
        given = list(arrays)
    for detail, array in zip(details, given, strict=True):
        if list(detail["shape"]) != list(array.shape):
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(details, given, strict=True):
        interpreter.set_tensor(detail["index"], array.astype(detail["dtype"]))
    interpreter.invoke()
    return interpreter


def given_for(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray | None:
    """Returns the array of an input, whose name may have a prefix of TensorFlow's and the end ``:0``."""
    own = name.removeprefix("serving_default_")
    return next((arrays[each] for each in (name, own, own.removesuffix(":0")) if each in arrays), None)


def error(made: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """Returns the largest difference, in the order and layout of outputs that fit best."""
    if len(made) != len(wanted):
        return float("inf")
    if len(wanted) > 4:
        return sum_of([_apart(one, other) for one, other in zip(made, wanted, strict=True)])
    orders = itertools.permutations(made)
    return min(
        sum_of([_apart(one, other) for one, other in zip(order, wanted, strict=True)]) for order in orders
    )


def sum_of(apart: list[float]) -> float:
    return max(apart, default=0.0)


def _apart(one: np.ndarray, other: np.ndarray) -> float:
    layouts = itertools.permutations(range(one.ndim)) if one.ndim <= 4 else [tuple(range(one.ndim))]
    fitting = [one.transpose(axes) for axes in layouts if one.transpose(axes).shape == other.shape]
    return min((onnx_files.difference([each], [other]) for each in fitting), default=float("inf"))


def measured(path: Path, python: str) -> dict[str, Any]:
    """Returns what both tools make of a file."""
    model = onnx.load(str(path), load_external_data=False)
    sample = onnx_files.samples(path, model)[0]
    wanted = onnx_files.in_onnx_runtime(path, sample)
    row: dict[str, Any] = {"name": path.stem}
    runs: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for tool in TOOLS:
            row[tool] = {}
            try:
                words = command(tool, python, path, folder, sample)
                row[tool]["s"] = converted(words, folder / "log")
                row[tool]["call, s"] = called(words, folder / "log")
                out = result(tool, folder)
                row[tool]["operators"] = onnx_files.operators(out)
                runs[tool] = run = loaded(out, list(sample.values()), list(sample))
                made = [run.get_tensor(each["index"]) for each in run.get_output_details()]
                row[tool]["error"] = error(made, wanted)
            except Exception as reason:
                row[tool]["failed"] = f"{type(reason).__name__}: {' '.join(str(reason).split())}"[:300]
        times: dict[str, list[float]] = {tool: [] for tool in runs}
        for _ in range(ROUNDS):
            for tool, run in runs.items():
                since = time.process_time()
                run.invoke()
                times[tool].append(1000 * (time.process_time() - since))
        for tool, each in times.items():
            row[tool]["ms"] = statistics.median(each)
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """Returns the rows as Markdown, ours before theirs."""
    heads = [f"{column}, {tool}" for column in COLUMNS for tool in TOOLS]
    lines = [f"| file | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for row in rows:
        cells = [cell(row[tool], column) for column in COLUMNS for tool in TOOLS]
        lines.append(f"| {row['name']} | {' | '.join(cells)} |")
    for row in rows:
        lines += [
            f"\n{row['name']}, {tool}: {row[tool]['failed']}" for tool in TOOLS if "failed" in row[tool]
        ]
    for column in ("ms", "s", "call, s"):
        ratios = [row[TOOLS[0]][column] / row[TOOLS[1]][column] for row in rows if is_fair(row)]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            lines.append(f"\n{column}: {mean:.3f} of onnx2tf's (geometric mean of {len(ratios)} files)")
    return "\n".join(lines)


def is_fair(row: dict[str, Any]) -> bool:
    """Whether both files are right."""
    return all(row[tool].get("error", np.inf) <= onnx_files.RIGHT and "ms" in row[tool] for tool in TOOLS)


def cell(found: dict[str, Any], column: str) -> str:
    if column not in found:
        return "failed" if "failed" in found else ""
    value = found[column]
    return str(value) if column == "operators" else f"{value:.1e}" if column == "error" else f"{value:.2f}"


def tabulated(
    about: str | None,
    pattern: str,
    measured: Callable[[Path, str], dict[str, Any]],
    table: Callable[[list[dict[str, Any]]], str],
) -> list[dict[str, Any]]:
    """Measures the files of a folder, as the command line requests it, and prints the table; returns the
    rows.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--only", nargs="*", default=["*"])
    parser.add_argument("--json", type=Path, help="rows; files that have one are not measured again")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    rows = json.loads(options.json.read_text()) if options.json and options.json.is_file() else []
    for path in sorted(options.folder.glob(pattern)):
        if path.stem in [row["name"] for row in rows]:
            continue
        if any(fnmatch.fnmatch(path.stem, each) for each in options.only):
            rows.append(measured(path, options.python))
            print(json.dumps(rows[-1]), flush=True)
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1))
    print(table(rows))
    if options.markdown:
        options.markdown.write_text(table(rows) + "\n")
    return rows


def main() -> None:
    tabulated(__doc__, "*.onnx", measured, table)


if __name__ == "__main__":
    main()
