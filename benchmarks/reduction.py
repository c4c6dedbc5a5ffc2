"""Failures that are planted in real architectures, made small by `tmconvert reduce`.

    python benchmarks/reduction.py [NAME...] [--failures refused wrong wrong-tflite crash]

Each network of timm, at random weights, fails in four ways: one activation calls a function that no target
has; a plugin makes an operator of the ONNX or TFLite file wrong, which the verification finds; and another
program ends with an exception for an ONNX file in which two operators occur. A row has the nodes before and
after, the lines of the program (the nodes of an ONNX file), trials, and seconds. It is right if the result
fails in the same way and has no weight of the source.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torchvision_ops

import tmconvert
from tmconvert.errors import TmconvertError

torchvision_ops.declare()
import timm  # noqa: E402

# a network, its op that is made wrong, and two types of operators of its ONNX file
NETS = {
    "ghostnet_100": ("relu", "Add", "Concat"),
    "edgenext_xx_small": ("gelu", "Erf", "Softmax"),
    "densenet121": ("relu", "Concat", "AveragePool"),
    "efficientnet_b0": ("silu", "Sigmoid", "Conv"),
    "resnet18": ("relu", "MaxPool", "Add"),
    "mobilenetv3_small_100": ("hardswish", "HardSigmoid", "Gemm"),
    "mobilevit_xxs": ("silu", "Softmax", "LayerNormalization"),
    "regnetx_002": ("relu", "Conv", "Gemm"),
    "convnext_atto": ("gelu", "LayerNormalization", "MatMul"),
    "vit_tiny_patch16_224": ("gelu", "Softmax", "Gemm"),
}
WRONG = """import tmconvert

@tmconvert.register_symbolic("aten::{op}", target="{target}", since={since})
def wrong(g, x{more}):
    return g.op("{identity}", x)
"""
CRASH = """import sys, onnx
types = [each.op_type for each in onnx.load(sys.argv[1], load_external_data=False).graph.node]
if {one!r} in types and {two!r} in types:
    raise NotImplementedError("both")
"""
FAILURES = ("refused", "wrong", "wrong-tflite", "crash")


class Refused(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.linalg.eigvals(x[..., :1, :1]).real[..., None]


def make(name: str, failure: str) -> torch.nn.Module:
    torch.manual_seed(0)
    net = timm.create_model(name, pretrained=False).eval()
    if failure == "refused":
        kinds = ("ReLU", "GELU", "SiLU", "Hardswish", "BatchNormAct2d")
        paths = [path for path, each in net.named_modules() if type(each).__name__ in kinds]
        net.set_submodule(paths[len(paths) // 2], Refused())
    return net


def reduced(name: str, failure: str, folder: Path) -> tuple[str, bool, int]:
    """Returns a row, whether it is right, and the lines of the result."""
    op, one, two = NETS[name]
    size = 224 if name.startswith("vit") else 64
    source, result, command = folder / "net.tm", folder / "small.py", ["tmconvert", "onnx", "{}", "{}.onnx"]
    tmconvert.trace(make(name, failure), torch.randn(1, 3, size, size)).save(source)
    if failure == "crash":
        tmconvert.to_onnx(source, folder / "net.onnx", verify=False)
        source, result = folder / "net.onnx", folder / "small.onnx"
        (folder / "crash.py").write_text(CRASH.format(one=one, two=two))
        command = [sys.executable, str(folder / "crash.py"), "{}"]
    elif failure.startswith("wrong"):
        target = "tflite" if failure == "wrong-tflite" else "onnx"
        parts = {"op": op, "target": target, "since": 1 if target == "tflite" else 7}
        parts["more"] = ", approximate='none'" if op == "gelu" else ""
        parts["identity"] = "ABS" if target == "tflite" else "Abs"
        (folder / "wrong.py").write_text(WRONG.format(**parts))
        command = ["tmconvert", target, "{}", f"{{}}.{target}", "--plugin", str(folder / "wrong.py")]
    started = time.perf_counter()
    found = tmconvert.reduce(source, result, command=command)
    seconds = time.perf_counter() - started
    lines = found.after if failure == "crash" else len(result.read_text().splitlines())
    row = f"{name} | {failure} | {found.failure.code} | {found.before} | {found.after} | {lines}"
    return f"{row} | {found.trials} | {seconds:.0f}", not found.has_weights, lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(NETS))
    parser.add_argument("--failures", nargs="+", choices=FAILURES, default=FAILURES)
    options = parser.parse_args()
    print("network | failure | code | nodes | after | lines | trials | s", flush=True)
    lines, right = [], 0
    for name in options.names or NETS:
        for failure in options.failures:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    row, is_right, count = reduced(name, failure, Path(folder))
                except TmconvertError as error:
                    print(f"{name} | {failure} | {str(error)[:150]}", flush=True)
                    continue
            print(row + ("" if is_right else " | with weights"), flush=True)
            right += is_right
            lines.append(count)
    print(f"{right} right, median {statistics.median(lines)} lines")


if __name__ == "__main__":
    main()
