"""Plants one wrong layer in each of 50 files, and looks whether ``tmconvert.compare`` finds it.

    python benchmarks/compare_planted.py

Four networks are written as ONNX (float32, float16, with pairs of QuantizeLinear and DequantizeLinear),
TFLite (float32, weights in float16, int8) and Caffe. In each file the weights of one layer are
changed: rolled, negated, scaled, flipped, or one channel set to 0. A hit is a comparison whose first wrong
layer is computed by the changed operator; the untouched file must have no wrong layer.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import tmconvert  # noqa: E402
from tests.inspection.planted import change_caffe, change_onnx, change_tflite  # noqa: E402
from tmconvert.inspection.run_file import FileRunner  # noqa: E402

FILES = 50


class Residual(torch.nn.Module):
    """Convolutions with batch norms and a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 12, 3, stride=2, padding=1)
        self.norm = torch.nn.BatchNorm2d(12)
        self.left = torch.nn.Conv2d(12, 12, (3, 1), padding=(1, 0))
        self.right = torch.nn.Conv2d(12, 12, (1, 3), padding=(0, 1))
        self.down = torch.nn.Conv2d(12, 20, 3, stride=2)
        self.head = torch.nn.Linear(20, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.stem(x)))
        x = torch.relu(self.left(x) + self.right(x))
        x = torch.relu(self.down(x))
        return self.head(x.mean((2, 3)))


class Mobile(torch.nn.Module):
    """Depthwise and pointwise convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.expand = torch.nn.Conv2d(3, 16, 1)
        self.depth = torch.nn.Conv2d(16, 16, 5, padding=2, groups=16, stride=2)
        self.project = torch.nn.Conv2d(16, 10, 1)
        self.pool = torch.nn.MaxPool2d(2)
        self.last = torch.nn.Conv2d(10, 24, 3)
        self.head = torch.nn.Linear(24, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.nn.functional.relu6(self.expand(x))
        x = torch.nn.functional.relu6(self.depth(x))
        x = self.pool(self.project(x))
        x = torch.relu(self.last(x))
        return self.head(x.mean((2, 3)))


class Up(torch.nn.Module):
    """A transposed convolution and a concatenation."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.down = torch.nn.Conv2d(8, 12, 2, stride=2)
        self.up = torch.nn.ConvTranspose2d(12, 8, 2, stride=2)
        self.merge = torch.nn.Conv2d(16, 6, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(x))
        y = torch.relu(self.up(torch.relu(self.down(x))))
        return self.merge(torch.cat([x, y], 1))


class Dense(torch.nn.Module):
    """Linear layers on the pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Linear(3 * 20 * 24, 30)
        self.two = torch.nn.Linear(30, 18)
        self.three = torch.nn.Linear(18, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.one(x.flatten(1)))
        return self.three(torch.tanh(self.two(x)))


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "rolled": lambda array: np.roll(array.reshape(-1), 3).reshape(array.shape),
    "negated": lambda array: -array,
    "scaled": lambda array: (array * 0.6).astype(array.dtype),
    "a channel of zeros": lambda array: _zeroed(array),
    "flipped": lambda array: array.reshape(-1)[::-1].reshape(array.shape),
}


def _zeroed(array: np.ndarray) -> np.ndarray:
    """Sets the channel with the largest weights to 0."""
    made = array.copy()
    made[np.abs(array.reshape(len(array), -1).astype(np.float64)).sum(1).argmax()] = 0
    return made


def written(net: torch.nn.Module, folder: Path) -> Iterator[tuple[str, tmconvert.TracedModule, Path]]:
    """Yields (kind, source, file)."""
    generator = torch.Generator().manual_seed(1)
    model = tmconvert.trace(net.eval(), torch.rand(1, 3, 20, 24, generator=generator))
    data = torch.rand(16, 3, 20, 24, generator=generator).numpy()
    calibrated = tmconvert.calibrate(model, data, bias_correction=False, equalization=False)
    name = type(net).__name__
    jobs: dict[str, Callable[[], tmconvert.conversion.report.Report]] = {
        "ONNX float32": lambda: tmconvert.to_onnx(model, folder / f"{name}.onnx"),
        "ONNX float16": lambda: tmconvert.to_onnx(model, folder / f"{name}_16.onnx", float_type="float16"),
        "ONNX integers": lambda: tmconvert.to_onnx(calibrated, folder / f"{name}_q.onnx", quantized=True),
        "TFLite float32": lambda: tmconvert.to_tflite(model, folder / f"{name}.tflite"),
        "TFLite float16": lambda: tmconvert.to_tflite(model, folder / f"{name}_16.tflite", weights="float16"),
        "TFLite int8": lambda: tmconvert.to_tflite(calibrated, folder / f"{name}_8.tflite", quantized=True),
        "Caffe": lambda: tmconvert.to_caffe(model, folder / f"{name}.prototxt"),
    }
    for kind, job in jobs.items():
        yield kind, model, job().paths[0]


def weights_of(path: Path) -> list[tuple[str, str]]:
    """Returns the names of weights, each with the operator that uses it."""
    model = FileRunner(path).model
    if model.target == "caffe":
        return [
            (f"{layer.name}/0", f"{layer.type} {layer.name}")
            for layer in model.layers
            if any(name.endswith("_weight") for name in layer.inputs)
        ]
    makers = {name: layer for layer in model.layers for name in layer.outputs}
    found = []
    for layer in model.layers:
        if len(layer.inputs) < 2 or layer.type in ("DequantizeLinear", "QuantizeLinear", "RESHAPE"):
            continue
        for name in layer.inputs:
            maker = makers.get(name)
            if maker is not None and maker.type in ("DequantizeLinear", "DEQUANTIZE"):
                name = maker.inputs[0]
            is_weight = model.types.get(name) in ("float32", "float16", "int8", "uint8")
            if is_weight and name in model.constants and len(model.tensors[name] or ()) >= 2:
                found.append((name, f"{layer.type} {layer.name}"))
    return found


def main() -> int:
    hits: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder, number, seconds = Path(name), 0, 0.0
        files = []
        torch.manual_seed(0)
        for net in (Residual(), Mobile(), Up(), Dense()):
            for kind, source, path in written(net, folder):
                sound = tmconvert.compare(source, path)
                if sound.first is not None:
                    print(f"FALSE ALARM in {kind} of {type(net).__name__}: {sound.first.name}")
                    return 1
                files.append((type(net).__name__, kind, source, path, weights_of(path)))
        while number < FILES:
            net_name, kind, source, path, weights = files[number % len(files)]
            constant, operator = weights[(number * 7 // 3) % len(weights)]
            how = list(CHANGES)[number % len(CHANGES)]
            out = folder / f"planted_{number}{path.suffix}"
            change = {".onnx": change_onnx, ".tflite": change_tflite}.get(path.suffix, change_caffe)
            change(path, out, constant, CHANGES[how])
            start = time.perf_counter()
            found = tmconvert.compare(source, out)
            seconds += time.perf_counter() - start
            is_hit = found.first is not None and operator in found.first.operators
            hits[kind] += is_hit
            totals[kind] += 1
            if not is_hit:
                said = "nothing" if found.first is None else found.first.operators
                print(f"MISSED {kind} {net_name}: {how} weights of {operator}; found {said}")
            number += 1
    for kind, total in totals.items():
        print(f"{kind:<16} {hits[kind]} of {total}")
    print(f"{sum(hits.values())} of {FILES} planted layers found, {seconds / FILES:.2f} s each")
    return 0 if sum(hits.values()) == FILES else 1


if __name__ == "__main__":
    raise SystemExit(main())
