"""ONNX files: read, to ONNX, to TFLite in float and as integers; beside onnxsim and onnxslim.

    python benchmarks/onnx_files.py DIR                                     all .onnx files of a folder
    python benchmarks/onnx_files.py DIR --only 'silero*' --measure onnx tflite --opset 15
    python benchmarks/onnx_files.py DIR --simplifiers --markdown table.md --json rows.json

The reference is ONNX Runtime on the file itself. Inputs are those of NAME.npz beside NAME.onnx, one or more
samples whose arrays are called input, input.1, input.2, ...; without it they are random. All samples but the
first calibrate the integer model, and the first is compared.

"error" is the largest difference over the largest absolute value of an output; a float file is right up to
1e-3. "SNR" is that of the integer file in dB. "nodes" counts those of subgraphs, too, and no constants.
Each file is a process of its own with a time limit.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

MEASUREMENTS = ("onnx", "tflite", "int8")
SIMPLIFIERS = ("onnxsim", "onnxslim")
RIGHT = 1e-3
SAMPLES = 4
SIZES = {"batch": 1, "image": 64, "other": 16}


def nodes(graph: Any) -> int:
    """Returns the number of nodes of a graph and its subgraphs."""
    count = 0
    for node in graph.node:
        count += node.op_type != "Constant"
        count += sum(nodes(each.g) for each in node.attribute if each.type == onnx.AttributeProto.GRAPH)
    return count


# ---- inputs


def samples(path: Path, model: Any) -> list[dict[str, np.ndarray]]:
    """Returns the samples of NAME.npz, or random ones."""
    stored = {each.name for each in model.graph.initializer}
    inputs = [each for each in model.graph.input if each.name not in stored]
    beside = path.with_suffix(".npz")
    if not beside.exists():
        rng = np.random.default_rng(0)
        return [{each.name: drawn(each, rng) for each in inputs} for _ in range(SAMPLES)]
    found: dict[int, dict[str, np.ndarray]] = defaultdict(dict)
    with np.load(beside) as arrays:
        for key, array in arrays.items():
            name, _, number = key.rpartition(".")
            is_numbered = number.isdigit() and name in {each.name for each in inputs}
            found[int(number) if is_numbered else 0][name if is_numbered else key] = array
    return [found[number] for number in sorted(found)]


def drawn(value: Any, rng: np.random.Generator) -> np.ndarray:
    """Returns a random array of the type of an input."""
    type_ = value.type.tensor_type
    dims = type_.shape.dim
    shape = []
    for axis, each in enumerate(dims):
        kind = "batch" if axis == 0 else "image" if len(dims) == 4 and axis > 1 else "other"
        is_open = each.WhichOneof("value") != "dim_value" or each.dim_value < 1
        shape.append(SIZES[kind] if is_open else each.dim_value)
    dtype = onnx.helper.tensor_dtype_to_np_dtype(type_.elem_type)
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 10, shape).astype(dtype)


# ---- runtimes


def in_onnx_runtime(path: Path, sample: dict[str, np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = {each.name: sample[each.name] for each in session.get_inputs()}
    return [np.asarray(each) for each in session.run(None, given)]


def in_litert(path: Path, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Runs the file on arrays in the order of its inputs, in the layout of the source."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    given = interpreter.get_input_details()
    for detail, array in zip(given, arrays, strict=True):
        if list(detail["shape"]) != list(array.shape):
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(given, arrays, strict=True):
        interpreter.set_tensor(detail["index"], array.astype(detail["dtype"]))
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def operators(path: Path) -> int:
    from ai_edge_litert.interpreter import Interpreter

    return sum(each["op_name"] != "DELEGATE" for each in Interpreter(str(path))._get_ops_details())


def difference(made: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """Returns the largest difference over the largest absolute value of an output; inf for other shapes."""
    worst = 0.0
    for one, other in zip(made, wanted, strict=True):
        if one.shape != other.shape:
            return float("inf")
        a, b = one.astype(np.float64), other.astype(np.float64)
        with np.errstate(invalid="ignore"):
            apart = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
        scale = np.abs(b[np.isfinite(b)]).max(initial=0.0) or 1.0
        found = float(apart.max(initial=0.0)) / scale
        worst = max(worst, found if np.isfinite(found) else float("inf"))
    return worst


def noise(made: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """Returns the smallest signal-to-noise ratio of the float outputs, in dB."""
    ratios = [
        10
        * np.log10(np.square(b, dtype=np.float64).sum() / (np.square(b - a, dtype=np.float64).sum() + 1e-30))
        for a, b in zip(made, wanted, strict=True)
        if b.dtype.kind == "f" and a.shape == b.shape and b.any()
    ]
    return float(min(ratios, default=float("inf")))


# ---- one file


class File:
    """The measurements of one file."""

    def __init__(self, path: Path, folder: Path, opset: int | None) -> None:
        self.path, self.folder, self.opset = path, folder, opset
        model = onnx.load(str(path), load_external_data=False)
        self.row: dict[str, Any] = {"name": path.stem, "nodes": nodes(model.graph)}
        self.row["opset"] = next(
            each.version for each in model.opset_import if each.domain in ("", "ai.onnx")
        )
        self.samples = samples(path, model)
        self.wanted = in_onnx_runtime(path, self.samples[0])

    def load(self) -> None:
        import tmconvert

        since = time.process_time()
        self.model = tmconvert.load(self.path)
        self.row["load s"] = time.process_time() - since
        names = [node.expr.name for node in self.model.graph.inputs[1:]]
        self.arrays = [[sample[name] for name in names] for sample in self.samples]

    def onnx(self) -> None:
        import tmconvert

        out = self.folder / "out.onnx"
        since = time.process_time()
        tmconvert.to_onnx(self.model, out, opset=self.opset or self.row["opset"], verify=False)
        self.row["onnx s"] = time.process_time() - since
        self.row["onnx nodes"] = nodes(onnx.load(str(out)).graph)
        self.row["onnx error"] = difference(in_onnx_runtime(out, self.samples[0]), self.wanted)

    def tflite(self) -> None:
        import tmconvert

        out = self.folder / "out.tflite"
        since = time.process_time()
        tmconvert.to_tflite(self.model, out, io_layout="source", verify=False)
        self.row["tflite s"] = time.process_time() - since
        self.row["tflite operators"] = operators(out)
        self.row["tflite error"] = difference(in_litert(out, self._used(out)), self.wanted)

    def int8(self) -> None:
        import tmconvert

        out = self.folder / "int8.tflite"
        data = [tuple(each) for each in (self.arrays[1:] or self.arrays)]
        calibrated = tmconvert.calibrate(self.model, data)
        tmconvert.to_tflite(
            calibrated,
            out,
            quantized=True,
            allow_float=True,
            io_type="float32",
            io_layout="source",
            verify=False,
        )
        self.row["int8 operators"] = operators(out)
        self.row["int8 bytes"] = out.stat().st_size
        self.row["int8 SNR"] = noise(in_litert(out, self._used(out)), self.wanted)

    def _used(self, out: Path) -> list[np.ndarray]:
        """Returns the arrays of the inputs that the file still has."""
        from ai_edge_litert.interpreter import Interpreter

        names = [node.expr.name for node in self.model.graph.inputs[1:]]
        details = Interpreter(str(out)).get_input_details()
        if len(details) == len(names):
            return self.arrays[0]
        return [self.arrays[0][names.index(each["name"])] for each in details]

    def simplify(self, tool: str) -> None:
        model = onnx.load(str(self.path))
        since = time.process_time()
        if tool == "onnxsim":
            import onnxsim

            made, _ = onnxsim.simplify(model)
        else:
            import onnxslim

            made = onnxslim.slim(model)
        self.row[f"{tool} s"] = time.process_time() - since
        self.row[f"{tool} nodes"] = nodes(made.graph)


def measure(path: Path, wanted: list[str], opset: int | None, pipe: Any) -> None:
    """Sends the row of a file, again after each measurement: a runtime may end the process."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        try:
            file = File(path, Path(folder), opset)
        except Exception as error:
            pipe.send({"name": path.stem, "nodes": 0, "load": f"{type(error).__name__}: {error}"})
            return
        for name in ("load", *wanted):
            file.row[name] = "crash or time limit"
            pipe.send(file.row)
            try:
                file.simplify(name) if name in SIMPLIFIERS else getattr(file, name)()
                file.row[name] = ""
            except Exception as error:
                file.row[name] = f"{type(error).__name__}: {' '.join(str(error).split())}"
            pipe.send(file.row)
    pipe.close()


def row_of(path: Path, options: Any) -> dict[str, Any]:
    """Returns the row of a file, measured in a process of its own."""
    wanted = [*options.measure, *(SIMPLIFIERS if options.simplifiers else ())]
    row = {"name": path.stem, "nodes": 0, "load": "crash or time limit"}
    return last_row(measure, (path, wanted, options.opset), row, options.seconds)


def last_row(
    measure: Callable[..., None],
    arguments: Sequence[Any],
    row: dict[str, Any],
    seconds: float,
    method: str = "spawn",
) -> dict[str, Any]:
    """Returns the last row that ``measure(*arguments, pipe)`` sends in time from a process, or ``row``.

    ``method`` is how multiprocessing starts the process.
    """
    context: Any = multiprocessing.get_context(method)
    ours, theirs = context.Pipe(False)
    process = context.Process(target=measure, args=(*arguments, theirs))
    process.start()
    theirs.close()
    end = time.monotonic() + seconds
    try:
        while ours.poll(max(0.0, end - time.monotonic())):
            row = ours.recv()
    except EOFError:
        pass
    process.kill()
    process.join()
    return row


# ---- tables

COLUMNS = (
    *("name", "nodes", "onnx nodes", "onnxsim nodes", "onnxslim nodes", "onnx error"),
    *("tflite operators", "tflite error", "int8 operators", "int8 SNR"),
    *("load s", "onnx s", "tflite s", "onnxsim s", "onnxslim s"),
)


def cell(row: dict[str, Any], column: str) -> str:
    if column not in row:
        failed = row.get(column.partition(" ")[0], "")
        return "error" if failed else ""
    value = row[column]
    if isinstance(value, float):
        return f"{value:.1e}" if "error" in column else f"{value:.1f}"
    return str(value)


def table(rows: list[dict[str, Any]]) -> str:
    """Returns the rows and their errors as Markdown."""
    columns = [each for each in COLUMNS if any(each in row for row in rows)]
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    lines += [f"| {' | '.join(cell(row, column) for column in columns)} |" for row in rows]
    for row in rows:
        for name in ("load", *MEASUREMENTS, *SIMPLIFIERS):
            if row.get(name):
                lines.append(f"\n{row['name']}, {name}: {row[name][:400]}")
    return "\n".join(lines)


def is_right(row: dict[str, Any], name: str) -> bool:
    return not row.get(name) and row.get(f"{name} error", 0.0) <= RIGHT


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=["*"])
    parser.add_argument("--measure", nargs="*", default=list(MEASUREMENTS), choices=MEASUREMENTS)
    parser.add_argument("--opset", type=int, help="of the ONNX file; by default that of the source")
    parser.add_argument("--simplifiers", action="store_true", help="also onnxsim and onnxslim")
    parser.add_argument("--seconds", type=float, default=300.0, help="time limit of a file")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    rows = []
    for path in sorted(options.folder.glob("*.onnx")):
        if any(fnmatch.fnmatch(path.stem, each) for each in options.only):
            rows.append(row_of(path, options))
            print(json.dumps(rows[-1]), flush=True, file=sys.stderr)
    text = table(rows)
    print(text)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    if options.markdown:
        options.markdown.write_text(text + "\n")
    return 0 if all(is_right(row, name) for row in rows for name in ("load", *options.measure)) else 1


if __name__ == "__main__":
    sys.exit(main())
