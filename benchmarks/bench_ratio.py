"""`tmconvert bench` beside loops over the runtimes' own API, and how stable its ratios are on a busy machine.

Run: python benchmarks/bench_ratio.py [--seconds 2] [--repeats 5] [--busy 4]   (needs torch)
Ten files are timed both ways, in one thread. Then two pairs of files are compared several times, while --busy
processes compute something else. benchmarks/README.md has the results.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import tmconvert

TURNS = 5


def network() -> nn.Module:
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.ReLU6()]
    for _ in range(4):
        layers += [nn.Conv2d(32, 32, 3, padding=1, groups=32), nn.ReLU6(), nn.Conv2d(32, 32, 1), nn.ReLU6()]
    return nn.Sequential(*layers, nn.Flatten(1), nn.Linear(32 * 32 * 32, 10)).eval()


def written(folder: Path) -> dict[str, Path]:
    """Ten files of one network, by what they are."""
    shape = (1, 3, 64, 64)
    model = tmconvert.trace(network(), torch.rand(shape))
    opened = tmconvert.trace(network(), torch.rand(2, *shape[1:]), dynamic_shapes={"input": {0: "batch"}})
    data = np.random.default_rng(0).random((4, *shape[1:]), np.float32)
    integers = tmconvert.calibrate(model, data)
    made: list[tuple[str, Callable[..., Any], Any, dict[str, Any]]] = [
        ("ONNX", tmconvert.to_onnx, model, {}),
        ("ONNX, float16", tmconvert.to_onnx, model, {"float_type": "float16"}),
        ("ONNX, int8 weights", tmconvert.to_onnx, model, {"weights": "int8"}),
        ("ONNX, integers", tmconvert.to_onnx, integers, {"quantized": True}),
        ("ONNX, open batch", tmconvert.to_onnx, opened, {}),
        ("TFLite", tmconvert.to_tflite, model, {}),
        ("TFLite, float16 weights", tmconvert.to_tflite, model, {"weights": "float16"}),
        ("TFLite, integers", tmconvert.to_tflite, integers, {"quantized": True}),
        (
            "TFLite, 16-bit integers",
            tmconvert.to_tflite,
            integers,
            {"quantized": True, "activations": "int16"},
        ),
        ("Caffe", tmconvert.to_caffe, model, {}),
    ]
    found = {}
    for number, (name, convert, source, options) in enumerate(made):
        suffix = {"O": ".onnx", "T": ".tflite", "C": ".prototxt"}[name[0]]
        found[name] = folder / f"{number}{suffix}"
        convert(source, found[name], verify=False, **options)
    return found


def by_hand(path: Path) -> Callable[[], object]:
    """A run in the API of the file's runtime, in one thread, as its documentation shows it."""
    if path.suffix == ".onnx":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        session = onnxruntime.InferenceSession(path, options)
        (given,) = session.get_inputs()
        dtype = np.float16 if given.type == "tensor(float16)" else np.float32
        x = np.zeros([size if isinstance(size, int) else 1 for size in given.shape], dtype)
        return lambda: session.run(None, {given.name: x})
    if path.suffix == ".tflite":
        from ai_edge_litert.interpreter import Interpreter

        interpreter = Interpreter(model_path=str(path), num_threads=1)
        interpreter.allocate_tensors()
        return interpreter.invoke
    import cv2

    cv2.setNumThreads(1)
    net = cv2.dnn.readNetFromCaffe(str(path), str(path.with_suffix(".caffemodel")))
    x = np.zeros((1, 3, 64, 64), np.float32)

    def run() -> object:
        net.setInput(x)
        return net.forward()

    return run


def medians(path: Path, seconds: float) -> tuple[float, float]:
    """Milliseconds of the median run in ``bench`` and in a loop over the runtime's API, by turns."""
    run, found, own = by_hand(path), list[float](), list[float]()
    for _ in range(TURNS):
        (measured,) = tmconvert.bench(path, seconds=seconds / TURNS)
        found.append(measured.median)
        own.append(median_of(run, seconds / TURNS))
    return float(np.median(found)), float(np.median(own))


def median_of(run: Callable[[], object], seconds: float) -> float:
    times, end = list[float](), time.perf_counter() + seconds
    for _ in range(3):
        run()
    while time.perf_counter() < end or len(times) < 10:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return float(np.median(times)) * 1e3


def compute() -> None:
    while True:
        sum(range(100000))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--busy", type=int, default=4)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = written(Path(folder))
        print("| file | bench, ms | own API, ms | ratio |\n|---|---|---|---|")
        for name, path in files.items():
            found, own = medians(path, given.seconds)
            print(f"| {name} | {found:.3f} | {own:.3f} | {found / own:.2f} |", flush=True)
        others = [multiprocessing.Process(target=compute, daemon=True) for _ in range(given.busy)]
        for each in others:
            each.start()
        try:
            print(f"load {os.getloadavg()[0]:.0f}, and {given.busy} busy processes")
            for pair in (("ONNX", "TFLite"), ("TFLite", "TFLite, integers")):
                paths = [files[name] for name in pair]
                ratios = [
                    tmconvert.bench(*paths, seconds=given.seconds)[1].ratio for _ in range(given.repeats)
                ]
                middle = float(np.median(ratios))
                off = max(abs(each / middle - 1) for each in ratios)
                spread = max(ratios) / min(ratios) - 1
                shown = " ".join(f"{each:.3f}" for each in ratios)
                print(f"{pair[1]} / {pair[0]}: {shown}, spread {spread:.1%}, {off:.1%} from the median")
        finally:
            for each in others:
                each.terminate()


if __name__ == "__main__":
    main()
