"""Calibrated models beside those of ONNX Runtime's static quantization and of TinyNN's.

    python benchmarks/calibration.py [--tinynn PYTHON FOLDER] [digits resnet18 mobilenet_v2]

Each tool measures the same data, in a process of its own, and its file runs on the same other data: the ratio
of signal to noise at the outputs, against the float model. TinyNN's PYTHON has its packages, FOLDER is its
repository. With --memory: the peak of ``tmconvert calibrate`` for one and for 500 images.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SAMPLES, TESTS = 32, 64


def make(name: str, folder: Path, split: str) -> None:
    """The float model and its data in ``folder``."""
    import torch
    from calibration_models import SPLITS, data, prepared

    import tmconvert

    model = prepared(name, SPLITS[split])
    torch.save(model, folder / "model.pt")
    measured, test = data(name, SPLITS[split], SAMPLES, TESTS)
    np.savez(folder / "data.npz", x=measured)
    np.savez(folder / "test.npz", x=test)
    traced = tmconvert.trace(model, torch.from_numpy(measured[:1]))
    traced.save(folder / "model.tm")
    tmconvert.to_onnx(traced, folder / "float.onnx", verify=False)


def ours(folder: Path, options: dict) -> None:
    import tmconvert

    options = {name: value == "1" if value in "01" else value for name, value in options.items()}
    made = tmconvert.calibrate(folder / "model.tm", folder / "data.npz", **options)
    tmconvert.to_tflite(made, folder / "ours.tflite", quantized=True, io_type="float32", verify=False)
    tmconvert.to_onnx(made, folder / "ours.onnx", quantized=True, verify=False)


def onnxruntime_static(folder: Path, method: str) -> None:
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    class Reader:
        def __init__(self) -> None:
            import onnx

            self.name = onnx.load(folder / "float.onnx", load_external_data=False).graph.input[0].name
            self.samples = iter(np.load(folder / "data.npz")["x"])

        def get_next(self) -> dict | None:
            sample = next(self.samples, None)
            return None if sample is None else {self.name: sample[None]}

    quantize_static(
        folder / "float.onnx",
        folder / "theirs.onnx",
        Reader(),
        quant_format=QuantFormat.QDQ,
        per_channel=True,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod[method],
    )


def tinynn(folder: Path, repository: str) -> None:
    import torch

    sys.path.insert(0, repository)
    sys.modules["torchvision"] = None  # of another PyTorch, where both are there; TinyNN does without
    from tinynn.converter import TFLiteConverter
    from tinynn.graph.quantization.quantizer import PostQuantizer
    from tinynn.graph.tracer import model_tracer

    model = torch.load(folder / "model.pt", weights_only=False)
    data = torch.from_numpy(np.load(folder / "data.npz")["x"])
    with model_tracer():
        config = {"asymmetric": True, "per_tensor": False}
        quantizer = PostQuantizer(model, data[:1], work_dir=str(folder / "out"), config=config)
        prepared = quantizer.quantize()
    with torch.no_grad():
        prepared.eval()
        for sample in data:
            prepared(sample[None])
        prepared = quantizer.convert(prepared)
        torch.backends.quantized.engine = quantizer.backend
        path = str(folder / "theirs.tflite")
        TFLiteConverter(prepared, data[:1], path, quantize_target_type="int8").convert()


def run(path: Path, test: np.ndarray) -> np.ndarray:
    """The outputs for each of ``test``, NCHW, in float."""
    return np.concatenate([_runner(path)(sample[None]) for sample in test])


def _runner(path: Path):
    if path.suffix == ".onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        return lambda x: session.run(None, {session.get_inputs()[0].name: x})[0]
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path))
    interpreter.allocate_tensors()
    (given,), (result,) = interpreter.get_input_details(), interpreter.get_output_details()

    def execute(x: np.ndarray) -> np.ndarray:
        x = x if tuple(given["shape"]) == x.shape else x.transpose(0, 2, 3, 1)
        scale, zero = given["quantization"]
        if given["dtype"] != np.float32:
            x = np.clip(np.rint(x / scale) + zero, -128, 127).astype(given["dtype"])
        interpreter.set_tensor(given["index"], x)
        interpreter.invoke()
        y = interpreter.get_tensor(result["index"]).astype(np.float32)
        scale, zero = result["quantization"]
        return (y - zero) * scale if scale else y

    return execute


def ratio(signal: np.ndarray, actual: np.ndarray) -> float:
    noise = np.sum((signal.astype(np.float64) - actual) ** 2)
    return float(10 * np.log10(np.sum(signal.astype(np.float64) ** 2) / noise))


def child(*arguments: str, python: str = sys.executable) -> tuple[float, float, str]:
    """Seconds and peak megabytes of this script with ``arguments``; its last words where it failed."""
    began = time.perf_counter()
    command = [python, __file__, "--child", *arguments]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        return 0, 0, made.stderr.strip().splitlines()[-1][:100]
    return time.perf_counter() - began, float(made.stdout.splitlines()[-1].split()[-1]), ""


def as_child(arguments: list[str]) -> None:
    kind, folder, *rest = arguments
    path = Path(folder)
    if kind == "make":
        make(rest[0], path, rest[1])
    elif kind == "ours":
        ours(path, dict(option.split("=") for option in rest))
    elif kind == "memory":
        import tmconvert

        tmconvert.calibrate(path / "model.tm", path / rest[0])
    elif kind == "onnxruntime":
        onnxruntime_static(path, rest[0])
    else:
        tinynn(path, rest[0])
    status = Path("/proc/self/status").read_text()
    print("peak", float(status.partition("VmHWM:")[2].split()[0]) / 1024)


def row(name: str, tool: str, folder: Path, files: list[str], measured: tuple[float, float, str]) -> None:
    seconds, memory, error = measured
    if error:
        print(f"| {name} | {tool} | {error} |")
        return
    test = np.load(folder / "test.npz")["x"]
    signal = run(folder / "float.onnx", test)
    ratios = " / ".join(f"{ratio(signal, run(folder / file, test)):.1f}" for file in files)
    print(f"| {name} | {tool} | {ratios} | {seconds:.1f} | {memory:.0f} |", flush=True)


def compare(name: str, folder: Path, settings: list[str], others: argparse.Namespace) -> None:
    failed = child("make", str(folder), name, others.split)[2]
    if failed:
        raise SystemExit(failed)
    for setting in settings:
        measured = child("ours", str(folder), *setting.split())
        row(name, f"tmconvert {setting}", folder, ["ours.tflite", "ours.onnx"], measured)
    if others.only_ours:
        return
    for method in ("MinMax", "Percentile", "Entropy"):
        measured = child("onnxruntime", str(folder), method)
        row(name, f"onnxruntime {method}", folder, ["theirs.onnx"], measured)
    if others.tinynn:
        python, repository = others.tinynn
        measured = child("tinynn", str(folder), repository, python=python)
        row(name, "TinyNN", folder, ["theirs.tflite"], measured)


def memory(name: str, folder: Path, split: str) -> None:
    child("make", str(folder), name, split)
    data = np.load(folder / "data.npz")["x"]
    np.savez(folder / "one.npz", x=data[:1])
    np.savez(folder / "many.npz", x=np.concatenate([data] * 16)[:500])
    np.savez_compressed(folder / "packed.npz", x=np.concatenate([data] * 16)[:500])
    for file in ("one.npz", "many.npz", "packed.npz"):
        seconds, peak, error = child("memory", str(folder), file)
        size = (folder / file).stat().st_size / 1e6
        print(f"| {name} | {file}, {size:.0f} MB | {peak:.0f} MiB | {seconds:.1f} s | {error}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="*", default=["digits", "resnet18", "mobilenet_v2"])
    parser.add_argument("--tinynn", nargs=2)
    parser.add_argument("--split", choices=["choice", "report"], default="report")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--only-ours", action="store_true")
    parser.add_argument("--settings", nargs="*", default=["method=minmax", "method=mse"])
    parser.add_argument("--child", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    if given.child:
        as_child(given.child)
        return
    for name in given.models:
        with tempfile.TemporaryDirectory() as folder:
            if given.memory:
                memory(name, Path(folder), given.split)
            else:
                compare(name, Path(folder), given.settings, given)


if __name__ == "__main__":
    main()
