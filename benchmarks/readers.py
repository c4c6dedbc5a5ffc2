"""What other programs make of the written files: tried, loaded, right.

    python benchmarks/readers.py FOLDER CORPUS [--reader openvino ...] [--model NAME ...] [--opset N]

Installs each reader of ``READERS`` into a scratch environment below FOLDER (once; Node's needs ``npm``),
converts the ``.tm`` files of CORPUS, which have their inputs and outputs beside them in ``.npz`` files, and
lets each reader run them in a process of its own (``reader_programs.py``). An output is right if it differs
by less than 1e-4 of the largest element. Prints a row of the table for each reader and kind of file.
What a reader says of each file that it does not load or gets wrong goes to ``FOLDER/results.json``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import tmconvert
from tmconvert.errors import TmconvertError
from tmconvert.qparams.survey import quantization_of
from tmconvert.symbolics.registry import catalogue

PROGRAMS = Path(__file__).with_name("reader_programs.py")
NODE_PROGRAM = PROGRAMS.with_suffix(".mjs")
IN_NODE = ("node", "web")  # the programs of NODE_PROGRAM
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Reader:
    """A program, the packages that it takes, and the kinds of files that it is given."""

    title: str
    program: str
    packages: tuple[str, ...]
    kinds: tuple[str, ...]
    seconds: int = 180  # for one file

    @property
    def name(self) -> str:
        return self.packages[0].partition("<")[0]


ONNX, TFLITE, CAFFE, INTEGERS = "onnx", "tflite", "caffe", "tflite-int8"
READERS = (
    Reader("ONNX Runtime in Node", "node", ("onnxruntime-node",), (ONNX,)),
    Reader("ONNX Runtime Web, WebAssembly", "web", ("onnxruntime-web",), (ONNX,)),
    Reader("OpenVINO", "openvino", ("openvino", "numpy"), (ONNX, TFLITE)),
    Reader("tract", "tract", ("tract", "numpy"), (ONNX,)),
    Reader("Apache TVM", "tvm", ("apache-tvm", "onnx", "numpy"), (ONNX,)),
    Reader("onnxslim, then ONNX Runtime", "onnxslim", ("onnxslim", "onnxruntime", "numpy"), (ONNX,)),
    Reader("OpenCV dnn", "opencv", ("opencv-python-headless<5", "numpy"), (ONNX, CAFFE)),
    Reader("pnnx and ncnn", "ncnn", ("pnnx", "ncnn", "numpy"), (ONNX,)),
    Reader("TensorFlow", "tensorflow", ("tensorflow-cpu",), (TFLITE,)),
    Reader("tflite-runtime", "tflite_runtime", ("tflite-runtime", "numpy<2"), (TFLITE,)),
    Reader("TFLite Micro", "tflite_micro", ("tflite-micro", "numpy"), (TFLITE,)),
    Reader("Arm Vela (Ethos-U55)", "vela", ("ethos-u-vela",), (INTEGERS,)),
)


@dataclass
class Tally:
    tried: int = 0
    loaded: int = 0
    right: int = 0
    misses: dict[str, str] = field(default_factory=dict)


# ---- environments


def installed(reader: Reader, folder: Path) -> list[str] | None:
    """The command that runs the reader's program; None where its packages cannot be had."""
    home = folder / "environments" / reader.program
    if reader.program in IN_NODE:
        if not (home / "node_modules" / reader.name).exists():
            home.mkdir(parents=True, exist_ok=True)
            (home / "package.json").write_text("{}")
            # without its scripts, which fetch libraries for GPUs
            if not _done(["npm", "install", "--ignore-scripts", *reader.packages], home):
                return None
        return ["node", str(NODE_PROGRAM), str(home), reader.name]
    python = home / "bin" / "python"
    if not (home / "ready").exists():
        venv.create(home, with_pip=True, clear=True)
        if not _done([str(python), "-m", "pip", "install", "--quiet", *reader.packages], home):
            return None
        (home / "ready").touch()
    return [str(python), str(PROGRAMS), reader.program]


def version(reader: Reader, folder: Path) -> str:
    home = folder / "environments" / reader.program
    if reader.program in IN_NODE:
        described = (home / "node_modules" / reader.name / "package.json").read_text("utf-8")
        return str(json.loads(described)["version"])
    code = f"import importlib.metadata as m; print(m.version({reader.name!r}))"
    return subprocess.run([home / "bin/python", "-c", code], capture_output=True, text=True).stdout.strip()


def _done(command: list[str], folder: Path) -> bool:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        print(f"{' '.join(command[:4])} ...: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    return not done.returncode


# ---- files


def convert_all(models: Sequence[Path], kind: str, opset: int | None, folder: Path) -> list[Path]:
    """A case for each model that converts."""
    cases = []
    for model in models:
        case = folder / "cases" / f"{kind}{opset or ''}" / model.stem
        if not (case / "case.json").exists():
            try:
                _convert(model, kind, opset, case)
            except TmconvertError as error:
                print(f"{model.stem} as {kind}: {error.code}", file=sys.stderr)
                continue
        cases.append(case)
    return cases


def _convert(model: Path, kind: str, opset: int | None, case: Path) -> None:
    case.mkdir(parents=True, exist_ok=True)
    with np.load(model.with_suffix(".npz")) as golden:
        inputs, expected = _numbered(golden, "in"), _numbered(golden, "out")
    if quantization_of(tmconvert.load(model), catalogue()) is not None:
        expected = _float_outputs(model, inputs, case)
    if kind == ONNX:
        file, report = "model.onnx", tmconvert.to_onnx(model, case / "model.onnx", opset=opset, verify=False)
    elif kind == CAFFE:
        file, report = (
            "model.prototxt",
            tmconvert.to_caffe(model, case / "model.prototxt", dialect="opencv", verify=False),
        )
    else:
        file, options = "model.tflite", {"io_layout": "source", "verify": False}
        if kind == INTEGERS:
            source = tmconvert.load(model)
            options |= {"quantized": True}
            try:
                report = tmconvert.to_tflite(source, case / file, **options)
            except TmconvertError:  # no quantization of its own
                samples = [tuple(inputs)]
                report = tmconvert.to_tflite(source, case / file, calibration=samples, **options)
        else:
            report = tmconvert.to_tflite(model, case / file, **options)
    inputs = [array.astype(each["dtype"]) for array, each in zip(inputs, report.inputs, strict=True)]
    for i, array in enumerate(inputs):
        np.ascontiguousarray(array).tofile(case / f"in{i}.bin")
    np.savez(case / "expected.npz", *expected)
    described = {
        "file": file,
        "inputs": [[array.dtype.name, list(array.shape)] for array in inputs],
        "outputs": [[array.dtype.name, list(array.shape)] for array in expected],
        "input_names": [each["name"] for each in report.inputs],
        "output_names": [each["name"] for each in report.outputs],
    }
    (case / "case.json").write_text(json.dumps(described))


def _float_outputs(model: Path, inputs: list[np.ndarray], case: Path) -> list[np.ndarray]:
    """ONNX Runtime's outputs, of a model whose recorded ones are rounded by fake quantization."""
    report = tmconvert.to_onnx(model, case / "float.onnx")
    session = onnxruntime.InferenceSession(case / "float.onnx")
    feeds = {each["name"]: array for each, array in zip(report.inputs, inputs, strict=True)}
    kinds = {each["name"]: each["dtype"] for each in report.inputs}
    return list(session.run(None, {name: array.astype(kinds[name]) for name, array in feeds.items()}))


def _numbered(golden: Any, prefix: str) -> list[np.ndarray]:
    return [golden[f"{prefix}{i}"] for i in range(sum(name.startswith(prefix) for name in golden.files))]


# ---- runs


def results(reader: Reader, command: list[str], cases: list[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """What the reader says of each case. One that ends its process is an error; the next gets a new one."""
    waiting = {case.name: case for case in cases}
    while waiting:
        limit = 60 + reader.seconds * min(len(waiting), 5)
        told, problem = _told([*command, *map(str, waiting.values())], limit)
        begun = ""
        for line in told:
            if line.get("stage") == "loading":
                begun = line["case"]
            else:
                yield waiting.pop(line["case"]), line
                begun = ""
        if waiting and begun in waiting:
            yield waiting.pop(begun), {"error": problem}
        elif waiting:
            name = next(iter(waiting))
            yield waiting.pop(name), {"error": problem}


def _told(command: list[str], limit: int) -> tuple[list[dict[str, Any]], str]:
    try:
        done = subprocess.run(command, capture_output=True, timeout=limit)
        text, problem = done.stdout, f"the process ended with {done.returncode}"
        if done.returncode > 0 and done.stderr.strip():
            problem += f": {done.stderr.decode(errors='replace').strip().splitlines()[-1][:200]}"
    except subprocess.TimeoutExpired as error:
        text, problem = error.stdout or b"", "timed out"
    lines = text.decode(errors="replace").splitlines()
    return [json.loads(line[1:]) for line in lines if line.startswith("@{")], problem


def judged(reader: Reader, case: Path, told: dict[str, Any]) -> str:
    """Why the reader's outputs are not right; empty if they are."""
    with np.load(case / "expected.npz") as golden:
        expected = [golden[f"arr_{i}"] for i in range(len(golden.files))]
    if reader.program == "vela":
        count = int(np.fromfile(case / "vela-out0.bin", np.int64)[0])
        return f"{count} operators on the CPU" if count else ""
    if len(told["outputs"]) != len(expected):
        return f"{len(told['outputs'])} outputs, not {len(expected)}"
    for i, ((dtype, shape), right) in enumerate(zip(told["outputs"], expected, strict=True)):
        got = np.fromfile(case / f"{reader.program}-out{i}.bin", dtype)
        if got.size != right.size:
            return f"output {i} has shape {shape}, not {list(right.shape)}"
        difference = _difference(got.astype(np.float64), right.reshape(-1).astype(np.float64))
        if not difference <= TOLERANCE:
            return f"output {i} is {difference:.2g} of its largest element off"
    return ""


def _difference(got: np.ndarray, right: np.ndarray) -> float:
    if not right.size:
        return 0.0
    same = (got == right) | (np.isnan(got) & np.isnan(right))
    finite = right[np.isfinite(right)]
    largest = max(float(np.abs(finite).max()), 1e-6) if finite.size else 1.0
    return float(np.abs(np.where(same, 0, got - right)).max() / largest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, help="scratch: environments, files and results")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--reader", nargs="+", choices=[reader.program for reader in READERS])
    parser.add_argument("--model", nargs="+")
    parser.add_argument("--opset", type=int, help="of the ONNX files, in place of the default")
    options = parser.parse_args()
    folder = options.folder.resolve()
    models = [
        path for path in sorted(options.corpus.resolve().glob("*.tm")) if path.with_suffix(".npz").exists()
    ]
    models = [path for path in models if not options.model or path.stem in options.model]
    for reader in READERS:
        if options.reader and reader.program not in options.reader:
            continue
        command = installed(reader, folder)
        for kind in reader.kinds:
            if command is None:
                print(f"| {reader.title} | {kind} | cannot be installed | | |", flush=True)
                continue
            started, tally = time.perf_counter(), Tally()
            for case, told in results(
                reader, command, convert_all(models, kind, options.opset if kind == ONNX else None, folder)
            ):
                tally.tried += 1
                tally.loaded += "outputs" in told
                problem = told["error"] if "error" in told else judged(reader, case, told)
                tally.right += not problem
                if problem:
                    tally.misses[case.name] = problem
            counts = f"{tally.tried} | {tally.loaded} | {tally.right}"
            print(f"| {reader.title} {version(reader, folder)} | {kind} | {counts} |", flush=True)
            _record(folder, reader, kind, tally, time.perf_counter() - started)


def _record(folder: Path, reader: Reader, kind: str, tally: Tally, seconds: float) -> None:
    path = folder / "results.json"
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    known[f"{reader.program} {kind}"] = vars(tally) | {"seconds": round(seconds)}
    path.write_text(json.dumps(known, indent=1, sort_keys=True))


if __name__ == "__main__":
    main()
