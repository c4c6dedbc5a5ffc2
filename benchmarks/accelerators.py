"""Files of the recorded models on accelerators, each compared with the processor.

    python benchmarks/accelerators.py [MODEL ...] [--on litert-gpu tflm webgpu] [--quantized]

Prints a table for each accelerator that is installed: files that are whole and right, partly on the processor
and right, refused, wrong, and aborted. Exit status 1 if one is wrong or aborted. A driver in software:
``eval "$(tools/software_gpu FOLDER)"``. With ``--recurrent`` it compares latencies of recurrent layers in
TFLite with those in ONNX Runtime instead, by turns and on one thread; exit status 1 above twice as much.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tmconvert
from tmconvert.errors import TmconvertError, VerificationError
from tmconvert.verification.accelerators.registry import known_accelerators

DATA = Path(__file__).parents[1] / "tests/data"
RECURRENT = [("LSTM", 16, 32, 256), ("LSTM", 64, 128, 100), ("GRU", 16, 32, 256), ("GRU", 64, 128, 100)]
TURNS = 60


def outcome(name: str, accelerator: str, target: str, quantized: bool, folder: Path) -> str:
    path = folder / f"{name}.{target}"
    options = {"quantized": True} if quantized else {}
    try:
        getattr(tmconvert, f"to_{target}")(DATA / f"{name}.tm", path, verify=False, **options)
    except TmconvertError:
        return ""
    try:
        (said,) = tmconvert.verify(path, on=[accelerator]).accelerators
    except VerificationError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return "aborted" if "does not run" in str(error) else "wrong"
    return "whole" if "whole" in said else "refused" if "refuses" in said else "partly"


def latencies(kind: str, inputs: int, hidden: int, steps: int, folder: Path) -> list[float]:
    """Medians in milliseconds, in ONNX Runtime and in LiteRT, of a layer after a convolution."""
    import onnxruntime
    import torch
    from ai_edge_litert.interpreter import Interpreter

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = torch.nn.Conv1d(inputs, inputs, 3, padding=1)
            self.layer = getattr(torch.nn, kind)(inputs, hidden, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(self.conv(x).transpose(1, 2))[0]

    x = torch.randn(1, inputs, steps)
    for target in ("onnx", "tflite"):
        getattr(tmconvert, f"to_{target}")(Model().eval(), folder / f"net.{target}", example_inputs=[x])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / "net.onnx", options)
    interpreter = Interpreter(str(folder / "net.tflite"), num_threads=1)
    interpreter.allocate_tensors()
    fed = {session.get_inputs()[0].name: x.numpy()}
    times: list[list[float]] = [[], []]
    for _ in range(TURNS):
        for own, run in zip(times, (lambda: session.run(None, fed), interpreter.invoke), strict=True):
            start = time.perf_counter()
            run()
            own.append(1e3 * (time.perf_counter() - start))
    return [float(np.median(own)) for own in times]


def compare_recurrent(folder: Path) -> bool:
    print("| layer | ONNX Runtime, ms | TFLite, ms | ratio |\n|---|---|---|---|")
    ratios = []
    for kind, inputs, hidden, steps in RECURRENT:
        onnx, tflite = latencies(kind, inputs, hidden, steps, folder)
        ratios.append(tflite / onnx)
        print(f"| {kind}({inputs}, {hidden}), {steps} steps | {onnx:.2f} | {tflite:.2f} | {ratios[-1]:.2f} |")
    return max(ratios) <= 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--on", nargs="+", default=sorted(known_accelerators()))
    parser.add_argument("--quantized", action="store_true")
    parser.add_argument("--recurrent", action="store_true")
    given = parser.parse_args()
    names = given.models or sorted(path.stem for path in DATA.glob("*.tm") if "hostile" not in path.stem)
    with tempfile.TemporaryDirectory() as folder:
        if given.recurrent:
            return 0 if compare_recurrent(Path(folder)) else 1
        kinds = ("whole", "partly", "refused", "wrong", "aborted")
        print(f"| accelerator | {' | '.join(kinds)} |\n|{'---|' * (len(kinds) + 1)}")
        bad = 0
        for accelerator in (known_accelerators()[name] for name in given.on):
            if accelerator.is_available():
                target = accelerator.targets[-1]
                found = Counter(
                    outcome(name, accelerator.name, target, given.quantized, Path(folder)) for name in names
                )
                bad += found["wrong"] + found["aborted"]
                print(f"| {accelerator.name} | {' | '.join(str(found[kind]) for kind in kinds)} |")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
