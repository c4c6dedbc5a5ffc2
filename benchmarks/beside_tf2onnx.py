"""TFLite files converted to ONNX by tmconvert, tf2onnx and tflite2onnx: nodes, errors, latency and time.

    python benchmarks/beside_tf2onnx.py DIR --python PYTHON
    python benchmarks/beside_tf2onnx.py DIR --python PYTHON --only 'face_*' --markdown table.md

PYTHON has tf2onnx, TensorFlow and tflite2onnx installed. Each conversion is a process. The reference is
LiteRT on the TFLite file, for random inputs: a batch of 1, and 1,024 elements for other open sizes.

"nodes" are those of the ONNX file without constants, and "transposes" how many of them are Transpose.
"error" is the largest difference over the largest absolute value of an output, or over 0.01 where this is
larger, since ONNX Runtime computes a sigmoid to 1e-7, also next to 0. "ms" is the processor time of a run
in ONNX Runtime in one thread, the median of many, where the files take turns. "s" is the processor time of
the process that converts. Exit status 1 where a file of ours is wrong.
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(Path(__file__).parent))

import onnx_files
from beside_onnx2tf import ROUNDS, converted, loaded, tabulated

TOOLS = ("tmconvert", "tf2onnx", "tflite2onnx")
COLUMNS = ("nodes", "transposes", "error", "ms", "s")
OPEN = 1024
LEAST = 0.01


def command(tool: str, python: str, path: Path, out: Path) -> list[str]:
    """Returns the command that converts a file."""
    if tool == "tmconvert":
        return [sys.executable, "-m", "tmconvert", "onnx", str(path), str(out), "--no-verify"]
    if tool == "tf2onnx":
        words = ["--tflite", str(path), "--output", str(out), "--opset", "17"]
        return [python, "-m", "tf2onnx.convert", *words]
    return [python, "-c", f"import tflite2onnx; tflite2onnx.convert({str(path)!r}, {str(out)!r})"]


def sample_of(path: Path) -> dict[str, np.ndarray]:
    """Returns random inputs by name, in the order of the file: floats from 0 to 1, integers 0 and 1."""
    from ai_edge_litert.interpreter import Interpreter

    random, arrays = np.random.default_rng(0), {}
    for each in Interpreter(str(path)).get_input_details():
        said = [int(extent) for extent in each["shape_signature"]]
        shape = [extent if extent > 0 else OPEN if axis else 1 for axis, extent in enumerate(said)]
        if each["dtype"] in (np.float32, np.float16):
            arrays[each["name"]] = random.random(shape).astype(each["dtype"])
        else:
            arrays[each["name"]] = random.integers(0, 2, shape).astype(each["dtype"])
    return arrays


def session(path: Path) -> onnxruntime.InferenceSession:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])


def fed(run: onnxruntime.InferenceSession, arrays: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the inputs by their names; tflite2onnx may take images channels-first."""
    feed = {}
    for each, array in zip(run.get_inputs(), arrays, strict=True):
        is_moved = len(each.shape) == 4 and list(each.shape) == [array.shape[axis] for axis in (0, 3, 1, 2)]
        is_moved = is_moved and list(each.shape) != list(array.shape)
        feed[each.name] = array.transpose(0, 3, 1, 2).copy() if is_moved else array
    return feed


def measured(path: Path, python: str) -> dict[str, Any]:
    """Returns what the tools make of a file."""
    row: dict[str, Any] = {"name": path.stem}
    runs: dict[str, Any] = {}
    try:
        sample = sample_of(path)
        arrays = list(sample.values())
        interpreter = loaded(path, arrays, list(sample))
        wanted = [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]
    except (RuntimeError, ValueError) as reason:  # a custom operator, for example
        arrays, wanted = [], []
        row["reference"] = f"LiteRT: {' '.join(str(reason).split())}"[:200]
    with tempfile.TemporaryDirectory() as name:
        for tool in TOOLS:
            out, row[tool] = Path(name) / f"{tool}.onnx", {}
            try:
                row[tool]["s"] = converted(command(tool, python, path, out), Path(name) / "log")
                if not out.is_file():
                    raise RuntimeError("no file was written")
                nodes = onnx.load(str(out)).graph.node
                row[tool]["nodes"] = sum(each.op_type != "Constant" for each in nodes)
                row[tool]["transposes"] = sum(each.op_type == "Transpose" for each in nodes)
                if wanted:
                    run = session(out)
                    feed = fed(run, arrays)
                    row[tool]["error"] = error(in_order(run.run(None, feed), wanted), wanted)
                    runs[tool] = run, feed
            except Exception as reason:
                row[tool]["failed"] = f"{type(reason).__name__}: {' '.join(str(reason).split())}"[:200]
        times: dict[str, list[float]] = {tool: [] for tool in runs}
        for _ in range(ROUNDS):
            for tool, (run, feed) in runs.items():
                since = time.process_time()
                run.run(None, feed)
                times[tool].append(1000 * (time.process_time() - since))
        for tool, each in times.items():
            row[tool]["ms"] = statistics.median(each)
    return row


def in_order(made: list[np.ndarray], wanted: list[np.ndarray]) -> list[np.ndarray]:
    """Returns outputs in the order in which their shapes fit, and channels-last as those of the file."""
    for order in itertools.permutations(made):
        moved = [
            each.transpose(0, 2, 3, 1) if each.ndim == 4 and each.shape != other.shape else each
            for each, other in zip(order, wanted, strict=False)
        ]
        if [each.shape for each in moved] == [each.shape for each in wanted]:
            return moved
    return made


def error(made: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """Returns the largest error of an output; infinite where shapes differ."""
    if [each.shape for each in made] != [each.shape for each in wanted]:
        return float("inf")
    pairs = list(zip(made, wanted, strict=True))
    apart = [np.max(np.abs(one - other.astype(np.float64)), initial=0) for one, other in pairs]
    scales = [max(LEAST, np.max(np.abs(each), initial=0)) for each in wanted]
    return float(max(one / scale for one, scale in zip(apart, scales, strict=True)))


def is_right(found: dict[str, Any]) -> bool:
    return found.get("error", np.inf) <= onnx_files.RIGHT


def table(rows: list[dict[str, Any]]) -> str:
    """Returns the rows as Markdown, the tools in each cell, and the reasons below."""
    lines = [f"| file | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for row in rows:
        cells = [" / ".join(cell(row[tool], column) for tool in TOOLS) for column in COLUMNS]
        lines.append(f"| {row['name']} | {' | '.join(cells)} |")
    for row in rows:
        for tool in TOOLS:
            if "failed" in row[tool]:
                lines.append(f"\n{row['name']}, {tool}: {row[tool]['failed']}")
    for tool in TOOLS:
        right = [row for row in rows if is_right(row[tool])]
        compared = [row for row in rows if "reference" not in row]
        lines.append(f"\n{tool}: {len(right)} of {len(compared)} right")
    for tool in TOOLS[1:]:
        both = [row for row in rows if is_right(row[TOOLS[0]]) and is_right(row[tool])]
        for column in ("nodes", "ms", "s"):
            ratios = [row[TOOLS[0]][column] / row[tool][column] for row in both]
            if ratios:
                mean = statistics.geometric_mean(ratios)
                lines.append(f"\n{column}: {mean:.3f} of {tool}'s (geometric mean of {len(ratios)} files)")
    return "\n".join(lines)


def cell(found: dict[str, Any], column: str) -> str:
    if column not in found:
        return "-"
    value = found[column]
    return f"{value:.0e}" if column == "error" else f"{value:.2f}" if isinstance(value, float) else str(value)


def main() -> int:
    rows = tabulated(__doc__, "*.tflite", measured, table)
    return int(any("error" in row[TOOLS[0]] and not is_right(row[TOOLS[0]]) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
