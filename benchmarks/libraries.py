"""Models of libraries of PyPI that no other benchmark uses, against PyTorch.

    python -m venv libs && libs/bin/pip install torch torchvision onnx onnxruntime onnxscript ai-edge-litert
    libs/bin/pip install --no-deps -r benchmarks/libraries/pins.txt
    libs/bin/python benchmarks/libraries.py                              all of libraries/*.models
    libs/bin/python benchmarks/libraries.py --only braindecode snac/encoder --measure onnx open dynamo

Measurements and options are those of ``torch_flows.py``. The libraries are installed without their
requirements, so that none of them brings a PyTorch of its own. One that is missing, or has another version
than in pins.txt, is named, and nothing is measured.

A file ``*.models`` has a section for each library, and a line for each model:

    == braindecode: EEG                            the name on PyPI, and the field
    from braindecode import models                 code that runs before a model is made
    eegnet | models.EEGNet(4, 2, n_times=200) | x[batch=2, 4, 200]
    bendr | models.BENDR(4, 2) | x[batch=2, 4, time=600:700:900:1200] | m(x)[0]

The columns are a name; an expression of the module; its inputs; and the call, by default ``m(x)`` with all
inputs. A named size is open. The numbers after colons are the three other sizes, if those of ``others``
do not fit. ``x[3]`` are normal numbers, ``x[3]<1.0`` numbers from 0 to 1, ``x[3]<50`` integers from 0 to 49,
``x[3]?`` booleans, and ``x[3]=time`` the size ``time``.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch_flows
from torch_flow import OTHER_SIZES, Example, Flow
from torchvision_ops import declare

FOLDER = Path(__file__).with_name("libraries")
INPUT = re.compile(r"(\w+)\[([^]]*)\]\s*(?:(<|=|\?)\s*([\w.]*))?")


def others(name: str, size: int) -> tuple[int, ...]:
    """Returns three other sizes: any for a sequence, multiples of half the example's for an image."""
    if name in ("batch", "sequence"):
        return {"batch": OTHER_SIZES["batch"], "sequence": (size // 2 + 1, size + 1, size * 2 + 3)}[name]
    return size // 2, size * 3 // 2, size * 2


@dataclass
class Input:
    """An input of a row: its name, sizes, and what its elements are."""

    name: str
    shape: list[int]
    axes: dict[int, str]
    others: dict[str, tuple[int, ...]]
    kind: str
    limit: str

    @classmethod
    def parse(cls, name: str, shape: str, kind: str, limit: str) -> Input:
        found = cls(name, [], {}, {}, kind, limit)
        for axis, text in enumerate(each.strip() for each in shape.split(",") if each.strip()):
            *open_size, numbers = text.split("=")
            size, *other = map(int, numbers.split(":"))
            found.shape.append(size)
            for label in open_size:
                found.axes[axis], found.others[label] = label, (*other,) or others(label, size)
        return found

    def draw(self, sizes: dict[str, int]) -> torch.Tensor:
        if self.kind == "<" and self.limit.isdigit():
            return torch.randint(0, int(self.limit), self.shape)
        if self.kind == "=":
            return torch.full(self.shape, sizes[self.limit])
        drawn = (torch.rand if self.kind else torch.randn)(self.shape)
        return drawn < 0.5 if self.kind == "?" else drawn


def flow(setup: str, made: str, inputs: str, call: str = "") -> Flow:
    """Returns the flow of a row."""
    parsed = [Input.parse(*part.groups(default="")) for part in INPUT.finditer(inputs)]
    names = ", ".join(each.name for each in parsed)
    sizes = {label: each.shape[axis] for each in parsed for axis, label in each.axes.items()}
    forward = f"class Net(torch.nn.Module):\n def forward(self, {names}):\n  m = self.m\n"
    forward += f"  return {call or f'm({names})'}\n"

    def make() -> Example:
        with contextlib.suppress(ImportError):
            declare()
        torch.manual_seed(0)
        known: dict[str, Any] = {"torch": torch}
        exec(setup + forward, known)
        net = known["Net"]()
        net.m = eval(made, known)
        return net.eval(), (), {each.name: each.draw(sizes) for each in parsed}

    return Flow(
        make,
        {each.name: each.axes for each in parsed if each.axes},
        {label: numbers for each in parsed for label, numbers in each.others.items()},
        lengths={each.name: each.limit for each in parsed if each.kind == "=" and each.limit in sizes},
    )


def sections() -> Iterator[tuple[str, list[str]]]:
    """Yields each library with the lines of its section."""
    for path in sorted(FOLDER.glob("*.models")):
        for section in re.split(r"^== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            head, *lines = section.splitlines()
            yield head.partition(":")[0], lines


def flows() -> dict[str, Flow]:
    """Returns the flows of all rows, by library/name."""
    found: dict[str, Flow] = {}
    for library, lines in sections():
        rows = [re.split(r"\s+\|\s+", line) for line in lines if re.match(r"[\w.-]+ +\| ", line)]
        setup = "".join(f"{line}\n" for line in lines if not re.match(r"[\w.-]+ +\| ", line))
        found |= {f"{library}/{name}": flow(setup, *columns) for name, *columns in rows}
    return found


def missing() -> list[str]:
    """Returns the pins that are not installed in their version."""
    pins = (FOLDER / "pins.txt").read_text(encoding="utf-8").split()
    installed = {
        each.metadata["Name"].lower().replace("_", "-"): each.version
        for each in importlib.metadata.distributions()
    }
    split = (pin.partition("==") for pin in pins)
    return [f"{name}=={version}" for name, _, version in split if installed.get(name) != version]


def main() -> int:
    absent = missing()
    if absent:
        print(f"not installed: {' '.join(absent)}\npip install --no-deps -r {FOLDER / 'pins.txt'}")
        return 1
    return torch_flows.run(flows(), __doc__ or "")


if __name__ == "__main__":
    sys.exit(main())
