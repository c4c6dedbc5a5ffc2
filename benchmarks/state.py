"""Generated programs with state and with random numbers: each streams as its module does, or is refused.

    python benchmarks/state.py [--programs 100] [--noisy 20] [--seed 0]

A program has cells that keep tensors in buffers, attributes, lists, dicts, tuples and objects; they are
called several times, shared, and reset inside of forward. The module is called four times, on other inputs
each time; the files of ONNX and TFLite run as often, with the outputs of each run as the state of the next.
The last ``--noisy`` programs also draw random numbers; the files get what PyTorch draws from the same seed.
Exit status 1 if a result is wrong, or an exception has no code.
"""

from __future__ import annotations

import argparse
import copy
import functools
import random
import re
import sys
import tempfile
import warnings
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import tmconvert
from tmconvert.errors import InternalError, TmconvertError
from tmconvert.targets.registry import runtime_for

CALLS, ROWS, WIDTH = 4, 2, 3


class Holder:
    def __init__(self) -> None:
        self.value = torch.zeros(ROWS, WIDTH)


class Cell(nn.Module):
    """Keeps state in one of ``STARTS``, and updates it by the function of the same name in ``UPDATES``."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.linear = kind, nn.Linear(WIDTH, WIDTH)
        start = STARTS[kind]()
        if kind.startswith("buffer"):
            self.register_buffer("h", start)
        else:
            self.h = start

    def reset(self) -> None:
        self.h = STARTS[self.kind]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return UPDATES[self.kind](self, torch.tanh(self.linear(x)))


def zeros() -> torch.Tensor:
    return torch.zeros(ROWS, WIDTH)


STARTS: dict[str, Callable[[], Any]] = {
    "buffer": zeros,
    "buffer in place": zeros,
    "buffer ring": lambda: torch.zeros(ROWS, 4, WIDTH),
    "buffer count": lambda: torch.zeros((), dtype=torch.int64),
    "buffer mask": lambda: torch.zeros(ROWS, WIDTH, dtype=torch.bool),
    "attribute": zeros,
    "none": lambda: None,
    "list": lambda: [zeros(), zeros() + 1],
    "list in place": lambda: [zeros(), zeros() + 1],
    "dict": lambda: {"mean": zeros(), "peak": zeros()},
    "tuple": lambda: (zeros(), zeros()),
    "tuple of none": lambda: None,
    "empty dict": dict,
    "nested": lambda: {"layers": [[zeros(), zeros()], [zeros(), zeros()]]},
    "object": Holder,
    "deque": lambda: deque([zeros(), zeros()], maxlen=2),
    "number": lambda: 0,
    "growing": list,
}


def assign(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h = torch.tanh(x + 0.5 * (0 if cell.h is None else cell.h))
    return cell.h


def in_place(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h.mul_(0.5).add_(x)
    return cell.h * x


def ring(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h[:, :-1] = cell.h[:, 1:].clone()
    cell.h[:, -1] = x
    return cell.h.mean(1)


def count(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h += 1
    return x / cell.h


def mask(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h = cell.h | (x > 0.3)
    return torch.where(cell.h, x, -x)


def shift(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h = [*list(cell.h)[1:], x]
    return cell.h[0] + x


def list_in_place(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h[0], cell.h[1] = cell.h[1], cell.h[0] + x
    cell.h[1].mul_(0.7)
    return cell.h[0]


def statistics(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h["mean"] = 0.9 * cell.h["mean"] + 0.1 * x
    cell.h["peak"] = torch.maximum(cell.h["peak"], x)
    return x - cell.h["mean"] + cell.h["peak"]


def lstm(cell: Any, x: torch.Tensor) -> torch.Tensor:
    h, c = (zeros(), zeros()) if cell.h is None else cell.h
    c = 0.6 * c + x * h.sigmoid()
    cell.h = (torch.tanh(c), c)
    return cell.h[0]


def fills(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h["last"] = 0.5 * cell.h.get("last", zeros()) + x
    return cell.h["last"].clone()


def nested(cell: Any, x: torch.Tensor) -> torch.Tensor:
    for layer in cell.h["layers"]:
        layer[0], layer[1] = x + 0.3 * layer[1], layer[0]
        x = torch.tanh(layer[0] - layer[1])
    return x


def of_object(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h.value = 0.4 * cell.h.value + x
    return cell.h.value * 2


def queue(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h.append(x)
    return cell.h[0] - x


def number(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h += 1
    return x * cell.h


def grow(cell: Any, x: torch.Tensor) -> torch.Tensor:
    cell.h.append(x)
    return torch.stack(cell.h).sum(0)


_CACHED = (assign, in_place, ring, count, mask, assign, assign, shift, list_in_place, statistics, lstm, lstm)
UPDATES = dict(zip(STARTS, (*_CACHED, fills, nested, of_object, queue, number, grow), strict=True))

# what cells add to their state that draw random numbers
DRAWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "randn_like": lambda x: x + torch.randn_like(x),
    "randn": lambda x: x * torch.randn(x.shape[0], 1),
    "normal": lambda x: torch.normal(x, 0.5),
    "normal_": lambda x: x - torch.empty(WIDTH).normal_(1.0, 2.0),
    "rand": lambda x: torch.where(torch.rand(ROWS, WIDTH) < 0.5, x, 0),
    "rand_like": lambda x: x * torch.rand_like(x).round(),
    "uniform_": lambda x: x + torch.zeros_like(x).uniform_(-1, 1),
    "exponential_": lambda x: x * torch.zeros_like(x).exponential_(2.0),
    "gumbel": lambda x: nn.functional.gumbel_softmax(x, 0.5),
    "randint": lambda x: x[:, torch.randint(0, 3, (WIDTH,))],
    "randint_like": lambda x: x + torch.randint_like(x, 3),
    "rsample": lambda x: torch.distributions.Normal(x, 2.0).rsample(),
}
STARTS |= {f"noise {name}": zeros for name in DRAWS}
UPDATES |= {f"noise {name}": lambda cell, x, draw=draw: assign(cell, draw(x)) for name, draw in DRAWS.items()}
# how the notes of a report describe them
DISTRIBUTIONS: dict[str, Callable[[list[int]], torch.Tensor]] = {
    "normal(0, 1)": torch.randn,
    "uniform [0, 1)": torch.rand,
    "exponential(1)": lambda shape: torch.empty(shape).exponential_(),
    "integers [0, 3)": lambda shape: torch.randint(0, 3, shape),
}


class Program(nn.Module):
    """Calls its cells in an order that repeats and shares them, and resets some inside of forward."""

    def __init__(self, choice: random.Random, is_noisy: bool) -> None:
        super().__init__()
        rare = {"number", "growing"} if choice.random() < 0.8 else set()
        pool = [kind for kind in STARTS if kind not in rare and not kind.startswith("noise")]
        kinds = choice.choices(pool, k=2)
        if is_noisy:
            kinds[1] = f"noise {choice.choice([*DRAWS])}"
        self.encoder = nn.ModuleDict({f"cell{n}": Cell(kind) for n, kind in enumerate(kinds)})
        self.shared = self.encoder["cell0"] if choice.random() < 0.4 else nn.Identity()
        self.steps = choice.choices([*self.encoder], k=choice.choice([1, 2, 3, 5]))
        self.steps += ["cell1"] * is_noisy
        self.resets = [name for name in self.encoder if choice.random() < 0.15]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in self.resets:
            self.encoder[name].reset()
        for name in self.steps:
            x = x + self.encoder[name](x)
        return self.shared(x)


def streams(program: nn.Module, target: str, folder: Path, inputs: list[torch.Tensor], noise: Any) -> None:
    """Raises AssertionError where a file that is fed its own state is not what the module computes."""
    path = folder / f"made.{target}"
    convert = getattr(tmconvert, f"to_{target}")
    report = convert(program, path, example_inputs=(inputs[0],), state=["all"], noise=noise)
    assert not any(note.startswith("warning") for note in report.notes), report.notes
    names = [each["name"] for each in report.inputs]
    results = [each["name"] for each in report.outputs]
    graph = tmconvert.trace(program, inputs[0], state=["all"], noise=noise)
    drawn = drawn_as_noted(report)
    assert bool(drawn) == bool(noise), "random numbers"
    fed = dict(zip(names, graph.example.inputs, strict=True))
    module = copy.deepcopy(program)
    for seed, x in enumerate(inputs):
        torch.manual_seed(seed)
        fed |= {name: draw().numpy().astype(fed[name].dtype) for name, draw in drawn.items()}
        fed[names[0]] = x.numpy()
        made = dict(zip(results, runtime_for(target).run([path], fed, results), strict=True))
        torch.manual_seed(seed)
        with torch.no_grad():
            expected = module(x).numpy()
        np.testing.assert_allclose(made[results[0]], expected, rtol=1e-4, atol=1e-5)
        fed = {name: made.get(f"{name}_next", fed[name]) for name in names}


def drawn_as_noted(report: Any) -> dict[str, Callable[[], torch.Tensor]]:
    """Returns what draws each input that is noise, in the order in which the module draws them."""
    shapes = {each["name"]: each["shape"] for each in report.inputs}
    notes = (re.match(r"the input (\w+), .* is noise for \w+: (.*)", note) for note in report.notes)
    return {note[1]: functools.partial(DISTRIBUTIONS[note[2]], shapes[note[1]]) for note in notes if note}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--noisy", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    for number in range(options.seed, options.seed + options.programs + options.noisy):
        is_noisy = number >= options.seed + options.programs
        torch.manual_seed(number)
        program = Program(random.Random(number), is_noisy).eval()
        inputs = [torch.randn(ROWS, WIDTH) for _ in range(CALLS)]
        for target in ("onnx", "tflite"):
            outcome = "right"
            with tempfile.TemporaryDirectory() as folder:
                try:
                    streams(program, target, Path(folder), inputs, "input" if is_noisy else None)
                except InternalError as error:
                    outcome = f"crash {error}"
                except TmconvertError as error:
                    outcome = f"refused {error.code}: {error.message}"
                except Exception as error:
                    outcome = f"WRONG {type(error).__name__}: {error}"
            counts[outcome.split()[0]] += 1
            if outcome != "right":
                kinds = [cell.kind for cell in program.encoder.values()]
                print(number, target, kinds, program.steps, program.resets, outcome[:300], file=sys.stderr)
    print(*(f"{name} {count}" for name, count in counts.items()), sep=", ")
    return int(any(name in counts for name in ("WRONG", "crash")))


if __name__ == "__main__":
    sys.exit(main())
