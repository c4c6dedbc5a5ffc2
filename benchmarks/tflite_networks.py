"""Twenty networks converted to TFLite by us and by others: operators, time, memory, latency.

    python benchmarks/tflite_networks.py                                      # ours alone
    python benchmarks/tflite_networks.py --only swin_t vit_b_32
    python benchmarks/tflite_networks.py --folder DIR --python tinynn=PYTHON --python onnx2tf=PYTHON

Another tool runs in a Python of its own, which has it installed: TinyNN and litert (with torch and
torchvision) read the module, onnx2tf the ONNX file that we make. DIR keeps the files, NETWORK.TOOL.tflite;
with --keep those of the others are not made again.

"TRANSPOSE" and "RESHAPE" are those between two operators: neither on an input nor on an output of the model.
"CPU s" is the processor time of a process that converts (ours from a container, nothing verified), "MiB" the
peak of its resident set, without the bytes of the weights: medians of three, by turns. "ms" is the processor
time of a run in LiteRT in one thread: the median of many, where the files of a network take turns in one
process. "error" is the largest difference from PyTorch over the largest absolute output.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

TOOLS = ("tmconvert", "tinynn", "onnx2tf", "litert")
OURS = "tmconvert"
ROUNDS, SECONDS = 15, 2.0
CONVERSIONS = 3


# --- conversions: each in a process of its own


def source(name: str, folder: Path) -> dict[str, Any]:
    """Writes the container, the ONNX file, inputs and PyTorch's outputs."""
    import numpy as np
    import torch

    import tmconvert

    model, inputs = _network(name)
    with torch.no_grad():
        outputs = model(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    arrays = {f"input_{i}": value.numpy() for i, value in enumerate(inputs)}
    arrays |= {f"output_{i}": value.numpy() for i, value in enumerate(outputs)}
    np.savez(folder / f"{name}.npz", **arrays)
    tmconvert.trace(model, *inputs).save(folder / f"{name}.tmc")
    tmconvert.to_onnx(folder / f"{name}.tmc", folder / f"{name}.onnx", verify=False)
    return {"weights": sum(value.nbytes for value in model.state_dict().values())}


def _network(name: str) -> Any:
    from tflite_networks_models import NETWORKS

    return NETWORKS[name]()


def convert(tool: str, name: str, folder: Path) -> dict[str, Any]:
    """Seconds of the processor and the peak of the memory, of this whole process."""
    out = folder / f"{name}.{tool}.tflite"
    run = {OURS: _ours, "tinynn": _tinynn, "onnx2tf": _onnx2tf, "litert": _litert}[tool]
    run(name, folder, out)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {"seconds": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss << 10}


def _ours(name: str, folder: Path, out: Path) -> None:
    import tmconvert

    tmconvert.to_tflite(folder / f"{name}.tmc", out, verify=False)


def _tinynn(name: str, folder: Path, out: Path) -> None:
    from tinynn.converter import TFLiteConverter

    model, inputs = _network(name)
    TFLiteConverter(model, inputs, str(out)).convert()


def _litert(name: str, folder: Path, out: Path) -> None:
    import litert_torch

    model, inputs = _network(name)
    litert_torch.convert(model, inputs).export(str(out))


def _onnx2tf(name: str, folder: Path, out: Path) -> None:
    import onnx2tf

    with tempfile.TemporaryDirectory() as made:
        onnx2tf.convert(
            input_onnx_file_path=str(folder / f"{name}.onnx"),
            output_folder_path=made,
            non_verbose=True,
            copy_onnx_input_output_names_to_tflite=True,
        )
        shutil.move(next(Path(made).glob("*_float32.tflite")), out)


# --- measurement


def measure(name: str, direction: str, folder: Path) -> dict[str, Any]:
    """Operators, error and latency of every file of a network; loaded "forward" or "backward"."""
    import numpy as np

    arrays = np.load(folder / f"{name}.npz")
    inputs = [arrays[key] for key in arrays if key.startswith("input")]
    wanted = [arrays[key] for key in arrays if key.startswith("output")]
    paths = {tool: folder / f"{name}.{tool}.tflite" for tool in TOOLS}
    paths = {tool: path for tool, path in paths.items() if path.exists()}
    found: dict[str, Any] = {}
    for tool, path in paths.items():
        found[tool] = {**operators(path), "size": path.stat().st_size}
        try:
            interpreter = _interpreter(path, inputs)
            interpreter.invoke()
            details = interpreter.get_output_details()
            results = [interpreter.get_tensor(detail["index"]) for detail in details]
            found[tool]["error"] = max(_error(array, results) for array in wanted)
        except (RuntimeError, ValueError) as error:
            found[tool]["failure"] = str(error).splitlines()[0]
    able = [tool for tool in paths if "error" in found[tool]]
    order = able if direction == "forward" else able[::-1]
    for tool, milliseconds in _latencies({tool: _interpreter(paths[tool], inputs) for tool in order}).items():
        found[tool]["ms"] = milliseconds
    return found


def _interpreter(path: Path, inputs: list[Any]) -> Any:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    for detail, array in zip(_ordered(interpreter, inputs), inputs, strict=True):
        interpreter.set_tensor(detail["index"], _stored(array, detail))
    return interpreter


def _ordered(interpreter: Any, inputs: list[Any]) -> list[dict[str, Any]]:
    details = interpreter.get_input_details()
    if len(details) != len(inputs):
        raise ValueError(f"{len(details)} inputs instead of {len(inputs)}")
    return list(details)


def _stored(array: Any, detail: dict[str, Any]) -> Any:
    """An input in the order and type of the file: channels-last where its shape says so."""
    import numpy as np

    shape = tuple(detail["shape"])
    if array.shape != shape and array.ndim == len(shape):
        array = np.moveaxis(array, 1, -1)
    if array.shape != shape:
        raise ValueError(f"an input has the shape {shape}")
    return np.ascontiguousarray(array.astype(detail["dtype"]))


def _error(wanted: Any, results: list[Any]) -> float:
    """The least over all results of that shape, in either order of memory, and over their orders."""
    import numpy as np

    best = math.inf
    for result in results:
        for given in (result, np.moveaxis(result, -1, 1) if result.ndim > 2 else result):
            if given.shape == wanted.shape:
                best = min(best, float(np.abs(given - wanted).max() / max(np.abs(wanted).max(), 1e-30)))
    return best


def _latencies(interpreters: dict[str, Any]) -> dict[str, float]:
    """Median milliseconds; the files take turns, in changing order."""
    times: dict[str, list[float]] = {tool: [] for tool in interpreters}
    order, end = list(interpreters), time.perf_counter() + SECONDS * len(interpreters)
    for tool in order:
        interpreters[tool].invoke()
    while order and (len(times[order[0]]) < ROUNDS or time.perf_counter() < end):
        for tool in order:
            start = time.thread_time()
            interpreters[tool].invoke()
            times[tool].append(time.thread_time() - start)
        order = order[1:] + order[:1]
    return {tool: 1000 * sorted(each)[len(each) // 2] for tool, each in times.items()}


def operators(path: Path) -> dict[str, Any]:
    """How many operators a file has, and of them interior TRANSPOSE and RESHAPE, in all subgraphs."""
    from ai_edge_litert import schema_py_generated as schema

    names = {value: key for key, value in vars(schema.BuiltinOperator).items() if isinstance(value, int)}
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(path.read_bytes()))
    codes = [names[max(code.builtinCode, code.deprecatedBuiltinCode)] for code in model.operatorCodes]
    counts: Counter[str] = Counter()
    interior: Counter[str] = Counter()
    for number, graph in enumerate(model.subgraphs):
        ends = {*graph.inputs, *graph.outputs} if number == 0 else set()
        for operator in graph.operators:
            kind = codes[operator.opcodeIndex]
            counts[kind] += 1
            interior[kind] += not ends & {operator.inputs[0], *operator.outputs}
    return {
        "operators": counts.total(),
        "TRANSPOSE": interior["TRANSPOSE"],
        "RESHAPE": interior["RESHAPE"],
        "kinds": dict(counts.most_common()),
    }


# --- the table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="names of networks")
    parser.add_argument("--folder", type=Path, help="where the files go, and stay")
    parser.add_argument("--python", action="append", default=[], metavar="TOOL=PYTHON")
    parser.add_argument("--keep", action="store_true", help="convert only what has no file yet, but for ours")
    parser.add_argument("--kinds", action="store_true", help="print the operators of the files")
    parser.add_argument("--step", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        step, *rest = options.step
        result = {"source": source, "convert": convert, "measure": measure}[step](*rest, options.folder)
        print(json.dumps(result))
        return 0
    names = options.only or _child(sys.executable, ["-c", _NAMES])
    folder = options.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    pythons = {OURS: sys.executable, **dict(pair.split("=", 1) for pair in options.python)}
    rows = []
    for name in names:
        rows.append(_network_row(name, folder, pythons, options.keep))
        print("\n".join(lines(*rows[-1], with_kinds=options.kinds)), flush=True)
    print("\n".join(summary(rows)))
    return 0


_NAMES = "import json, tflite_networks_models as m; print(json.dumps(list(m.NETWORKS)))"
Row = tuple[str, dict[str, dict[str, Any]]]


def _network_row(name: str, folder: Path, pythons: dict[str, str], keeps: bool) -> Row:
    """All that is known of a network's files, by tool. Conversions are remembered beside the files."""
    known_path = folder / f"{name}.json"
    known = json.loads(known_path.read_text()) if keeps and known_path.exists() else {}
    if "weights" not in known:
        known = _step(sys.executable, "source", name, folder=folder)
        if "failure" in known:
            return name, {OURS: known}
    asked = {tool: python for tool, python in pythons.items() if tool == OURS or tool not in known}
    for tool, made in conversions(name, folder, asked).items():
        if "memory" in made:
            made["memory"] = max(made["memory"] - known["weights"], 0)
        known[tool] = made
    known_path.write_text(json.dumps(known))
    # what is loaded last has the better place in memory: up to 3 %
    measured, again = (
        _step(sys.executable, "measure", name, order, folder=folder) for order in ("forward", "backward")
    )
    for tool in TOOLS:
        if "ms" in measured.get(tool, {}) and "ms" in again.get(tool, {}):
            measured[tool]["ms"] = (measured[tool]["ms"] + again[tool]["ms"]) / 2
    return name, {tool: {**known.get(tool, {}), **measured.get(tool, {})} for tool in pythons}


def conversions(name: str, folder: Path, pythons: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Medians for each tool. They take turns: what ran before decides much of a time."""
    made: dict[str, list[dict[str, Any]]] = {tool: [] for tool in pythons}
    for _ in range(CONVERSIONS):
        for tool, python in pythons.items():
            made[tool].append(_step(python, "convert", tool, name, folder=folder))
    return {tool: _middle(each) for tool, each in made.items()}


def _middle(made: list[dict[str, Any]]) -> dict[str, Any]:
    failures = [each for each in made if "failure" in each]
    if failures:
        return failures[0]
    return {key: sorted(each[key] for each in made)[len(made) // 2] for key in ("seconds", "memory")}


def _step(python: str, *words: str, folder: Path) -> dict[str, Any]:
    return _child(python, [__file__, "--folder", str(folder.resolve()), "--step", *words])


def _child(python: str, arguments: list[str]) -> Any:
    """What a process prints as JSON in its last line, or its failure."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    folder = Path(__file__).parent
    done = subprocess.run(
        [python, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, **threads, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    if done.returncode == 0:
        return json.loads(done.stdout.strip().splitlines()[-1])
    said = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
    return {"failure": said[-1][:100]}


def lines(name: str, found: dict[str, dict[str, Any]], with_kinds: bool) -> list[str]:
    """Rows of the table."""
    rows = []
    for tool, of in found.items():
        if "operators" not in of:
            rows.append(f"| {name} | {tool} | {of.get('failure', 'no file')} | | | | | | | |")
            continue
        cells = [of["operators"], of["TRANSPOSE"], of["RESHAPE"], f"{of['size'] / 1e6:.2f}"]
        cells += [_told(of, "seconds", 1, ".2f"), _told(of, "memory", 1 / 2**20, ".0f")]
        cells += [_told(of, "ms", 1, ".2f"), _told(of, "error", 1, ".0e") + of.get("failure", "")]
        rows.append(f"| {name} | {tool} | " + " | ".join(map(str, cells)) + " |")
        if with_kinds:
            rows.append(f"    {of['kinds']}")
    return rows


def _told(of: dict[str, Any], key: str, factor: float, form: str) -> str:
    return format(of[key] * factor, form) if key in of else ""


def summary(rows: list[Row]) -> list[str]:
    """Ours beside each other tool, over the networks that both have."""
    told = []
    for tool in TOOLS[1:]:
        both = [(of[OURS], of[tool]) for _, of in rows if "ms" in of.get(tool, {}) and "ms" in of[OURS]]
        if not both:
            continue
        told.append(f"over the {len(both)} networks of {tool} and ours:")
        for key in ("TRANSPOSE", "RESHAPE", "operators", "size"):
            sums = [sum(pair[i][key] for pair in both) for i in (0, 1)]
            told.append(f"  {key}: {sums[0]}, {tool} {sums[1]}")
        for key in ("ms", "seconds", "memory"):
            ratios = [max(a[key], 1e-9) / max(b[key], 1e-9) for a, b in both if key in a and key in b]
            if ratios:
                mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
                told.append(
                    f"  {key}: {mean:.3f} of {tool}'s in the geometric mean, at most {max(ratios):.2f}"
                )
    return told


if __name__ == "__main__":
    sys.exit(main())
