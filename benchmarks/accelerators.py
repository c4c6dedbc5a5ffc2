"""Files of recorded and of PyTorch models on accelerators, each compared with the processor.

    python benchmarks/accelerators.py [MODEL ...] [--on litert-gpu tflm webgpu] [--quantized] [--profile]
    python benchmarks/accelerators.py --torch 'small/*' 'timm/*' [--on ...] [--profile]
    python benchmarks/accelerators.py [MODEL ...] --vela VELA [--profile]

With ``--torch`` the models are those of ``torch_models.py`` by patterns of their names, not the recorded
ones. With ``--profile`` files are written for the profile of the accelerator, their outputs are compared with
those of the default file, both on the processor, and the forecast of the profile with what ran on the
accelerator. With ``--files FOLDER`` the files of the folder are judged, NAME.tflite or NAME.onnx, whoever
wrote them. With ``--vela`` files are in int8, and Arm's compiler for the Ethos-U55 judges them: VELA is the
command of the package ethos-u-vela. Prints a table for each accelerator that is installed: files that are
whole and right, partly on the processor and right, refused, wrong, and aborted. Exit status 1 if one is wrong
or aborted. A driver in software: ``eval "$(tools/software_gpu FOLDER)"``. With ``--recurrent`` it compares
latencies of recurrent layers in TFLite with those in ONNX Runtime instead, by turns and on one thread; exit
status 1 above twice as much.
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

import tmconvert
from tmconvert.errors import TmconvertError, UsageError, VerificationError
from tmconvert.inspection.forecast import forecast_file
from tmconvert.profiles.registry import profile_named
from tmconvert.verification.accelerators.check import difference_of
from tmconvert.verification.accelerators.registry import known_accelerators

DATA = Path(__file__).parents[1] / "tests/data"
RECURRENT = [("LSTM", 16, 32, 256), ("LSTM", 64, 128, 100), ("GRU", 16, 32, 256), ("GRU", 64, 128, 100)]
TURNS = 60
KINDS = ("whole", "partly", "refused", "wrong", "aborted")
FLOAT_TOLERANCE = 1e-5  # of the largest value: a file for a profile against the default one


@dataclass
class Counts:
    """The outcomes of the models on one accelerator."""

    kinds: Counter[str] = field(default_factory=Counter)
    forecast: int = 0  # operators whose side the forecast names rightly
    operators: int = 0
    differing: list[str] = field(
        default_factory=list
    )  # models whose file for the profile computes something else


def recorded_model(name: str) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Returns a recorded model and its inputs."""
    with np.load(DATA / f"{name}.npz") as golden:
        count = sum(each.startswith("in") for each in golden.files)
        sample = tuple(golden[f"in{number}"] for number in range(count))
    return tmconvert.load(DATA / f"{name}.tm"), sample


def torch_model(make: Callable[[], Any]) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Returns a traced model of ``torch_models.py`` and its inputs."""
    import torch
    from torch_models import alive, tensors

    torch.manual_seed(0)
    module, args, kwargs = alive(make())
    return tmconvert.trace(module, *args, **kwargs), tuple(tensors((args, kwargs)))


def chosen_models(names: list[str], patterns: list[str] | None) -> dict[str, Callable[[], Any]]:
    """Returns functions that make a model and its inputs, by the names of the models."""
    if patterns is not None:
        from torch_models import models

        return {
            name: lambda make=make: torch_model(make)
            for name, make in models().items()
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
        }
    recorded = names or sorted(path.stem for path in DATA.glob("*.tm") if "hostile" not in path.stem)
    return {name: lambda name=name: recorded_model(name) for name in recorded}


def write(model: Any, sample: tuple[np.ndarray, ...], path: Path, quantized: bool, profile: str) -> None:
    """Converts the model; one without scales is calibrated with its inputs."""
    options: dict[str, Any] = {"verify": False, **({"profile": profile} if profile else {})}
    convert = getattr(tmconvert, f"to_{path.suffix[1:]}")
    if not quantized:
        convert(model, path, **options)
        return
    try:
        convert(model, path, quantized=True, **options)
    except UsageError:
        convert(model, path, quantized=True, calibration=[sample], **options)


def on_npu(vela: str, path: Path) -> str:
    command = [vela, "--accelerator-config", "ethos-u55-128", "--output-dir", str(path.parent), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    left = re.search(r"^CPU operators = (\d+)", done.stdout, re.MULTILINE)
    return "refused" if done.returncode else "partly" if left and left[1] != "0" else "whole"


def run_on(accelerator: str, path: Path) -> tuple[str, int]:
    """Returns how a file runs on an accelerator, and the number of operators that stay on the processor."""
    try:
        (said,) = tmconvert.verify(path, on=[accelerator]).accelerators
    except VerificationError as error:
        print(f"{path.stem}: {error}", file=sys.stderr)
        return ("aborted" if "does not run" in str(error) else "wrong"), 0
    if "whole" in said:
        return "whole", 0
    print(f"{path.stem}: {said}", file=sys.stderr)
    _, _, places = said.partition("on the processor ran: ")
    number = re.search(r"\((\d+) in all\)", places)
    return ("refused" if "refuses" in said else "partly"), int(number[1]) if number else places.count(",") + 1


def computes_alike(path: Path, default: Path, sample: tuple[np.ndarray, ...]) -> bool:
    """Whether two files compute the same on the processor: floats to 1e-5, integers within a step."""
    for ours, theirs in zip(
        *(tmconvert.run(each, list(sample)).values() for each in (path, default)), strict=True
    ):
        size, limit = difference_of(np.asarray(ours), np.asarray(theirs))
        if size > (FLOAT_TOLERANCE if np.asarray(theirs).dtype.kind == "f" else limit):
            return False
    return True


def judge(
    name: str,
    make: Callable[[], Any],
    accelerator: Any,
    given: argparse.Namespace,
    folder: Path,
    counts: Counts,
) -> None:
    """Adds the outcome of one model to ``counts``. One that does not convert is stated and not counted."""
    path = folder / f"{name.replace('/', '-')}.{accelerator.targets[-1]}"
    profile = accelerator.name if given.profile else ""
    try:
        model, sample = make()
        write(model, sample, path, given.quantized, profile)
    except Exception as error:  # of any model: the benchmark goes on
        print(f"{name}: {error}", file=sys.stderr)
        counts.kinds["not converted"] += 1
        return
    kind, left = run_on(accelerator.name, path)
    counts.kinds[kind] += 1
    if profile:
        forecast = forecast_file(path, profile_named(profile))
        counts.operators += len(forecast.steps)
        counts.forecast += len(forecast.steps) - abs(forecast.elsewhere.total() - left)
        default = path.with_stem(f"{path.stem}-default")
        write(model, sample, default, given.quantized, "")
        if not computes_alike(path, default, sample):
            counts.differing.append(name)


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


def compare_on_npu(made: Path, models: dict[str, Callable[[], Any]], given: argparse.Namespace) -> None:
    found = Counter[str]()
    for name, make in models.items():
        path = made / f"{name.replace('/', '-')}.tflite"
        try:
            write(*make(), path, True, "ethos-u55" if given.profile else "")
        except TmconvertError as error:
            print(f"{name}: {error}", file=sys.stderr)
            continue
        found[on_npu(given.vela, path)] += 1
    print(f"| ethos-u55 | {' | '.join(str(found[kind]) for kind in KINDS)} |")


def compare_on(
    accelerator: Any, made: Path, models: dict[str, Callable[[], Any]], given: argparse.Namespace
) -> int:
    """Prints the row of an accelerator; returns the number of files that are wrong or aborted there."""
    counts = Counts()
    if given.files:
        files = sorted(Path(given.files).glob(f"*.{accelerator.targets[-1]}"))
        counts.kinds.update(run_on(accelerator.name, path)[0] for path in files)
    else:
        for name, make in models.items():
            judge(name, make, accelerator, given, made, counts)
    print(f"| {accelerator.name} | {' | '.join(str(counts.kinds[kind]) for kind in KINDS)} |")
    if counts.operators:
        print(f"\nforecast: right for {counts.forecast} of {counts.operators} operators")
        print(f"computes something else than the default file: {', '.join(counts.differing) or 'none'}")
    return counts.kinds["wrong"] + counts.kinds["aborted"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--torch", nargs="+", metavar="PATTERN")
    parser.add_argument("--files", metavar="FOLDER")
    parser.add_argument("--on", nargs="+", default=sorted(known_accelerators()))
    parser.add_argument("--quantized", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--vela")
    parser.add_argument("--recurrent", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.recurrent:
            return 0 if compare_recurrent(Path(folder)) else 1
        models = chosen_models(given.models, given.torch)
        print(f"| accelerator | {' | '.join(KINDS)} |\n|{'---|' * (len(KINDS) + 1)}")
        if given.vela:
            compare_on_npu(Path(folder), models, given)
            return 0
        asked = [known_accelerators()[name] for name in given.on]
        bad = [compare_on(each, Path(folder), models, given) for each in asked if each.is_available()]
    return 1 if any(bad) else 0


if __name__ == "__main__":
    sys.exit(main())
