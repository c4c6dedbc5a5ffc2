"""Integer ONNX files of ONNX Runtime's static quantizer and of our own writer, as integer TFLite files.

    python benchmarks/onnx_quantizer.py
    python benchmarks/onnx_quantizer.py --only mobile_block attention --json results.json

Small networks of PyTorch are written to ONNX, quantized by ``quantize_static`` (Q/DQ pairs and QLinear
operators, weights per tensor and per channel, activations in uint8 and int8), read, converted to integer
TFLite and run in LiteRT on the calibration data, which ONNX Runtime runs as well. The table has how many
elements of the outputs are more than one step of the output apart. "ours" are the files with Q/DQ that
tmconvert writes of its own calibration. Exit status 1 where more than one element of 1,000 is, and for
errors.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[1]))

from rows import table

import tmconvert
from tmconvert.errors import TmconvertError

SAMPLES, ALLOWED = 8, 0.001


class Block(nn.Module):
    """A bottleneck of MobileNetV2, with ReLU6 and an addition."""

    def __init__(self, channels: int, wide: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(channels, wide, 1), nn.BatchNorm2d(wide), nn.ReLU6()),
            *(nn.Conv2d(wide, wide, 3, padding=1, groups=wide), nn.BatchNorm2d(wide), nn.ReLU6()),
            *(nn.Conv2d(wide, channels, 1), nn.BatchNorm2d(channels)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.layers(x)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.second(torch.relu(self.first(x))))


class Gate(nn.Module):
    """Squeeze and excitation."""

    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(self.up(torch.relu(self.down(x.mean((2, 3), keepdim=True)))))


class Swish(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(x)


class Branches(nn.Module):
    """Convolutions and a pool, concatenated."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.three = nn.Conv2d(3, 4, 1), nn.Conv2d(3, 5, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.one(x), torch.relu(self.three(x)), nn.functional.max_pool2d(x, 3, 1, 1)], 1)


class Pyramid(nn.Module):
    """An encoder and a decoder with a skip connection."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Conv2d(3, 8, 3, 2, 1), nn.Conv2d(11, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        deep = nn.functional.interpolate(torch.relu(self.inner(x)), scale_factor=2.0, mode="nearest")
        return self.outer(torch.cat([deep, x], 1))


class Attention(nn.Module):
    """A transformer block."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 32), nn.Linear(32, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, count, width = x.shape
        split = self.qkv(self.norms[0](x)).reshape(batch, count, 3, self.heads, self.size)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) * self.size**-0.5, -1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, count, width))
        return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))


def stack(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(*layers)


IMAGE = (1, 3, 16, 16)
NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = table(__file__, globals())


class Setting(NamedTuple):
    """How a file is quantized."""

    form: str  # "QDQ", "QOperator", or "ours"
    per_channel: bool
    activations: str  # "int8" or "uint8"

    def __str__(self) -> str:
        return (
            self.form
            if self.form == "ours"
            else f"{self.form} {self.activations}{' by channel' * self.per_channel}"
        )


SETTINGS = [
    *(
        Setting(form, per_channel, activations)
        for form in ("QDQ", "QOperator")
        for per_channel in (False, True)
        for activations in ("int8", "uint8")
    ),
    Setting("ours", True, "int8"),
]


class Result(NamedTuple):
    """The share of elements that are more than a step apart, and the largest distance in steps."""

    apart: float = 1.0
    largest: float = 0.0
    error: str = ""
    elements: int = 0

    @property
    def is_right(self) -> bool:
        return not self.error and self.apart <= ALLOWED

    def __str__(self) -> str:
        if self.error:
            return self.error
        return "0" if not self.apart else f"{self.apart:.2%} (up to {self.largest:.1f})"


def network(name: str) -> tuple[nn.Module, list[np.ndarray]]:
    """The network, with statistics and weights of its own, and samples."""
    make, shape = NETWORKS[name]
    torch.manual_seed(0)
    module = make()
    with torch.no_grad():
        for _ in range(4):
            module(torch.randn(4, *shape[1:]))
    random = np.random.default_rng(0)
    samples = [random.standard_normal(shape).astype(np.float32) for _ in range(SAMPLES)]
    return module.eval(), samples


def float_file(module: nn.Module, sample: np.ndarray, path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, (torch.from_numpy(sample),), path, dynamo=False, input_names=["x"], opset_version=17
        )
    return path


def quantized(module: nn.Module, samples: Sequence[np.ndarray], setting: Setting, folder: Path) -> Path:
    """Writes the network quantized as ``setting`` states."""
    made = folder / "quantized.onnx"
    if setting.form == "ours":
        example = (torch.from_numpy(samples[0]),)
        tmconvert.to_onnx(
            module, made, example_inputs=example, calibration=list(samples), quantized=True, verify=False
        )
        return made
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    source, prepared = float_file(module, samples[0], folder / "float.onnx"), folder / "prepared.onnx"
    quant_pre_process(str(source), str(prepared), skip_symbolic_shape=True)
    types = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}
    quantize_static(
        str(prepared),
        str(made),
        _Reader(samples),
        quant_format=QuantFormat[setting.form],
        per_channel=setting.per_channel,
        activation_type=types[setting.activations],
        weight_type=QuantType.QInt8,
    )
    return made


class _Reader:
    """What ``quantize_static`` reads samples from."""

    def __init__(self, samples: Sequence[np.ndarray]) -> None:
        self.samples = iter([{"x": sample} for sample in samples])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.samples, None)


def compared(path: Path, samples: Sequence[np.ndarray], setting: Setting, folder: Path) -> Result:
    """Converts the file, and runs both."""
    import onnxruntime
    from ai_edge_litert.interpreter import Interpreter

    made = folder / "integers.tflite"
    tmconvert.to_tflite(
        tmconvert.load(path), made, quantized=True, io_layout="source", allow_float=True, verify=False
    )
    onnxruntime.set_default_logger_severity(3)
    session = exact_session(path, setting)
    runner = Interpreter(str(made))
    runner.allocate_tensors()
    (given,), results = runner.get_input_details(), runner.get_output_details()
    distances = []
    for sample in samples:
        expected = session.run(None, {session.get_inputs()[0].name: sample})
        runner.set_tensor(given["index"], _integers(sample, given))
        runner.invoke()
        for array, about in zip(expected, results, strict=True):
            step, zero = about["quantization"]
            found = (runner.get_tensor(about["index"]).astype(np.float64) - zero) * (step or 1)
            step = step or float(np.ptp(array)) / 255 or 1.0
            distances.append(np.abs(found - array).ravel() / step)
    steps = np.concatenate(distances)
    return Result(float((steps > 1.01).mean()), float(steps.max()), elements=len(steps))


def exact_session(path: Path, setting: Setting) -> Any:
    """Returns a session that computes the same on every processor.

    x86 processors without VNNI saturate sums of uint8 by int8 products in 16 bits. With pairs of
    QuantizeLinear and DequantizeLinear a session without optimizations computes in float32. For QLinear
    operators of uint8 an option selects kernels that do not saturate; those of int8 did not in any test.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if setting.form != "QOperator":
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    elif setting.activations == "uint8":
        options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(str(path), options)


def _integers(array: np.ndarray, about: dict) -> np.ndarray:
    step, zero = about["quantization"]
    if not step:
        return array.astype(about["dtype"])
    limits = np.iinfo(about["dtype"])
    return np.rint(array / np.float32(step) + zero).clip(limits.min, limits.max).astype(about["dtype"])


def measured(name: str, setting: Setting) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        module, samples = network(name)
        try:
            path = quantized(module, samples, setting, Path(folder))
            return compared(path, samples, setting, Path(folder))
        except TmconvertError as error:
            return Result(error=f"{error.code} {error.message}")


def table(results: dict[str, dict[str, Result]]) -> Iterator[str]:
    """Rows of networks."""
    names = [str(setting) for setting in SETTINGS]
    yield f"| network | {' | '.join(names)} |"
    yield "|---" * (len(names) + 1) + "|"
    for name, row in results.items():
        yield f"| {name} | {' | '.join(str(row[setting]) for setting in names)} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", default=list(NETWORKS))
    parser.add_argument("--json", type=Path, help="partial results, which a next run continues")
    options = parser.parse_args()
    kept = json.loads(options.json.read_text()) if options.json and options.json.exists() else {}
    results: dict[str, dict[str, Result]] = {}
    for name in options.only:
        row = results.setdefault(name, {})
        for setting in map(str, SETTINGS):
            if setting in kept.get(name, {}):
                row[setting] = Result(*kept[name][setting])
                continue
            row[setting] = measured(name, SETTINGS[[*map(str, SETTINGS)].index(setting)])
            print(f"{name}, {setting}: {row[setting]}", file=sys.stderr, flush=True)
            kept.setdefault(name, {})[setting] = row[setting]
            if options.json:
                options.json.write_text(json.dumps(kept))
    print(*table(results), sep="\n")
    every = [result for row in results.values() for result in row.values()]
    right = sum(result.is_right for result in every)
    elements = sum(result.elements for result in every)
    apart = sum(result.elements * result.apart for result in every) / max(elements, 1)
    print(f"{right} of {len(every)} files are within one step on 99.9 % of the elements")
    print(f"of all {elements} elements {1 - apart:.3%} are")
    return int(right < len(every))


if __name__ == "__main__":
    sys.exit(main())
