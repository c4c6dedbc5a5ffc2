"""Sizes, errors and times of ONNX files with weights in float32, float16, int8 and int4.

Run: python benchmarks/weight_types.py [SECONDS]   (needs torch and torchvision)
Prints the table of docs/how-to/precision.md. The files of a network are timed by turns in one thread.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

import tmconvert

KINDS = (None, "float16", "int8", "int4")


class Recurrent(nn.Module):
    """Embedding, LSTM and Linear."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.lstm = nn.Embedding(8000, 256), nn.LSTM(256, 256, batch_first=True)
        self.out = nn.Linear(256, 256)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.out(self.lstm(self.table(tokens))[0])


def networks() -> Iterator[tuple[str, nn.Module, torch.Tensor]]:
    torch.manual_seed(0)
    vision: list[tuple[str, Callable[[], Any]]] = []
    try:
        from torchvision.models import mobilenet_v2, resnet18

        vision = [("ResNet-18", resnet18), ("MobileNetV2", mobilenet_v2)]
    except ImportError:
        print("torchvision is not installed: no vision networks", file=sys.stderr)
    for name, make in vision:
        yield name, make(), torch.randn(1, 3, 224, 224)
    for rows in (128, 1):
        layers = nn.Sequential(nn.Linear(768, 3072), nn.GELU(), nn.Linear(3072, 768))
        yield f"two Linear, 768 to 3072 and back, {rows} rows", layers, torch.randn(1, rows, 768)
    yield "Embedding, LSTM of 256, Linear, 32 steps", Recurrent(), torch.randint(0, 8000, (1, 32))


def row(name: str, module: nn.Module, x: torch.Tensor, seconds: float) -> str:
    model = tmconvert.trace(module.eval(), x)
    with tempfile.TemporaryDirectory() as folder:
        paths, errors = [], []
        for kind in KINDS:
            paths.append(Path(folder) / f"{kind}.onnx")
            report = tmconvert.to_onnx(model, paths[-1], weights=kind, opset=21)
            notes = [each for each in report.notes if each.startswith("the outputs differ by ")]
            errors += [note.removeprefix("the outputs differ by ").split()[0] for note in notes]
        times = tmconvert.bench(*paths, seconds=seconds)
        sizes = [f"{path.stat().st_size / 1e6:.1f}" for path in paths]
        medians = [f"{each.best:.2f}" for each in times]
    return f"| {name} | {' / '.join(sizes)} | {' / '.join(errors)} | {' / '.join(medians)} |"


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
    print(
        "| network | MB, float32 / float16 / int8 / int4 | error of the last three | ms |\n|---|---|---|---|"
    )
    for each in networks():
        print(row(*each, seconds), flush=True)


if __name__ == "__main__":
    main()
