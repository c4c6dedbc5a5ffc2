"""Files of the recorded models on accelerators, each compared with the processor.

    python benchmarks/accelerators.py [MODEL ...] [--on litert-gpu tflm webgpu] [--quantized] [--profile]
    python benchmarks/accelerators.py [MODEL ...] --vela VELA [--profile]

With ``--profile`` files are written for the profile of the accelerator. With ``--vela`` they are in int8, and
Arm's compiler for the Ethos-U55 judges them: VELA is the command of the package ethos-u-vela.
Prints a table for each accelerator that is installed: files that are whole and right, partly on the processor
and right, refused, wrong, and aborted. Exit status 1 if one is wrong or aborted. A driver in software:
``eval "$(tools/software_gpu FOLDER)"``. With ``--recurrent`` it compares latencies of recurrent layers in
TFLite with those in ONNX Runtime instead, by turns and on one thread; exit status 1 above twice as much.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tmconvert
from tmconvert.errors import TmconvertError, UsageError, VerificationError
from tmconvert.verification.accelerators.registry import known_accelerators

DATA = Path(__file__).parents[1] / "tests/data"
RECURRENT = [("LSTM", 16, 32, 256), ("LSTM", 64, 128, 100), ("GRU", 16, 32, 256), ("GRU", 64, 128, 100)]
TURNS = 60


def written(name: str, path: Path, target: str, quantized: bool, profile: str) -> bool:
    """Whether the model converts; one without scales is calibrated with its recorded inputs."""
    options: dict[str, Any] = {"verify": False, **({"profile": profile} if profile else {})}
    convert = getattr(tmconvert, f"to_{target}")
    model = tmconvert.load(DATA / f"{name}.tm")
    try:
        if not quantized:
            convert(model, path, **options)
            return True
        try:
            convert(model, path, quantized=True, **options)
        except UsageError:
            with np.load(DATA / f"{name}.npz") as golden:
                count = sum(each.startswith("in") for each in golden.files)
                sample = tuple(golden[f"in{number}"] for number in range(count))
            convert(model, path, quantized=True, calibration=[sample], **options)
    except TmconvertError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
    return True


def on_npu(vela: str, path: Path) -> str:
    command = [vela, "--accelerator-config", "ethos-u55-128", "--output-dir", str(path.parent), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    left = re.search(r"^CPU operators = (\d+)", done.stdout, re.MULTILINE)
    return "refused" if done.returncode else "partly" if left and left[1] != "0" else "whole"


def outcome(name: str, accelerator: str, target: str, quantized: bool, profile: str, folder: Path) -> str:
    path = folder / f"{name}.{target}"
    if not written(name, path, target, quantized, profile):
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
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--vela")
    parser.add_argument("--recurrent", action="store_true")
    given = parser.parse_args()
    names = given.models or sorted(path.stem for path in DATA.glob("*.tm") if "hostile" not in path.stem)
    with tempfile.TemporaryDirectory() as folder:
        if given.recurrent:
            return 0 if compare_recurrent(Path(folder)) else 1
        kinds = ("whole", "partly", "refused", "wrong", "aborted")
        print(f"| accelerator | {' | '.join(kinds)} |\n|{'---|' * (len(kinds) + 1)}")
        bad, made = 0, Path(folder)
        if given.vela:
            profile = "ethos-u55" if given.profile else ""
            there = [
                name for name in names if written(name, made / f"{name}.tflite", "tflite", True, profile)
            ]
            found = Counter(on_npu(given.vela, made / f"{name}.tflite") for name in there)
            print(f"| ethos-u55 | {' | '.join(str(found[kind]) for kind in kinds)} |")
            return 0
        for accelerator in (known_accelerators()[name] for name in given.on):
            if accelerator.is_available():
                target = accelerator.targets[-1]
                profile = accelerator.name if given.profile else ""
                found = Counter(
                    outcome(name, accelerator.name, target, given.quantized, profile, made) for name in names
                )
                bad += found["wrong"] + found["aborted"]
                print(f"| {accelerator.name} | {' | '.join(str(found[kind]) for kind in kinds)} |")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
