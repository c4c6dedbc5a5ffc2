"""Random programs with Python's control flow, compared with PyTorch on both sides of their decisions.

    python -m benchmarks.control_flow --count 60 --seed 1
    python -m benchmarks.control_flow --loops [--name greedy]

Each program is a function of two tensors with branches on data, some nested or in loops of Python, early
returns, lists that grow and counters as indices. It is traced once, and ONNX Runtime and LiteRT run it on
inputs that lead to different sides. A program is right, refused with a code, or wrong.

``--loops`` runs the programs of ``control_flow_loops.models`` instead, at many sizes or on other data.
"""

from __future__ import annotations

import argparse
import linecache
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tmconvert
from tmconvert.errors import TmconvertError

CONDITIONS = (
    "x.sum() > {n}",
    "(y > {n}).any()",
    "y.max() <= x.max()",
    "not (x < {n}).all()",
    "x.mean() > 0 and y.min() < {n}",
    "mask.any()",
    "mask[0].all() or x[0, 0] > {n}",
    "torch.equal(x, y)",
    "x.max().item() - 1 > {n}",
    "bool((x * mask).sum().lt({n}))",
)
STATEMENTS = (
    "y = y * {m} + x",
    "x = torch.tanh(x) - y",
    "x, y = y, x",
    "y = y @ w",
    "x = x + y.mean(1, keepdim=True)",
    "y = y.masked_fill(mask, {m})",
    "parts.append(x + y)",
    "x = x.clone(); x[:, 1:] += y[:, :-1]",
    "y = layer(y)",
    "x = x.softmax(-1)",
    "k = k + 1",
    "y = y + x[:, k % 4].unsqueeze(1)",
    "y = helper(x, y)",
    "y = y.clamp(max=abs(x[1, 2].item()) + {m})",
)
HEAD = """
layer = torch.nn.Linear(4, 4).requires_grad_(False)
w = torch.randn(4, 4)

def helper(a, b):
    if a[0, 0] > b[1, 1]:
        return a.cos()
    return a * b

def forward(x, mask):
    y, k, parts = x.flip(1), 0, [x]
"""
INPUTS = torch.randn(6, 3, 4, generator=torch.Generator().manual_seed(0))
SIZES = (1, 2, 3, 5, 6, 7, 12, 13, 17, 42)  # of the open axis


class Program:
    """Writes a program: statements, with at most ``decisions`` branches."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.decisions = self.random.randint(1, 4)

    def text(self) -> str:
        end = (
            "    return x + sum(parts), y\n"
            if self.random.random() < 0.7
            else "    return y * len(parts) + x, x\n"
        )
        lines = [*self.block(1, 4), ""]
        return HEAD + "\n".join(lines) + end

    def block(self, depth: int, length: int) -> Iterator[str]:
        """Yields the lines of a block."""
        indent = "    " * depth
        for _ in range(self.random.randint(1, length)):
            kind = self.random.random()
            if kind < 0.5 and self.decisions and depth < 5:
                self.decisions -= 1
                yield from self.branch(depth)
            elif kind < 0.6 and depth < 3:
                yield f"{indent}for i in range({self.random.randint(2, 3)}):"
                yield f"{indent}    x = x + y[:, i : i + 1]"
                yield from self.block(depth + 1, 2)
                if self.decisions > 1:
                    self.decisions -= 2
                    word = self.random.choice(("continue", "break"))
                    yield f"{indent}    if {self.condition()}:"
                    yield f"{indent}        {word}"
                    yield f"{indent}    y = y - i"
            else:
                yield indent + self.filled(self.random.choice(STATEMENTS))

    def branch(self, depth: int) -> Iterator[str]:
        indent = "    " * depth
        yield f"{indent}if {self.condition()}:"
        yield from self.block(depth + 1, 2)
        kind = self.random.random()
        if kind < 0.2:
            yield f"{indent}    return x - y, y"
        elif kind < 0.6:
            yield f"{indent}else:"
            yield from self.block(depth + 1, 2)

    def condition(self) -> str:
        return self.filled(self.random.choice(CONDITIONS))

    def filled(self, text: str) -> str:
        return text.format(n=self.random.choice((-2, 0, 0.5, 3)), m=self.random.choice((0.5, -1.5, 2)))


def compiled(text: str, name: str, names: Mapping[str, object]) -> Callable[..., Any]:
    """Returns the function ``forward`` of a program, whose lines tracebacks show."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    found: dict[str, Any] = {"torch": torch, "__name__": name, **names}
    torch.manual_seed(0)
    exec(compile(text, name, "exec"), found)
    return found["forward"]  # type: ignore[no-any-return]


def cases() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields inputs that lead to different sides."""
    for number, x in enumerate(INPUTS):
        for mask in (x > 0.5, x > 9, x < 9):
            yield x * (1, 0.1, 4, -1, 0.5, 2)[number], mask
    yield torch.ones(3, 4), torch.ones(3, 4) > 0


def difference(function: Callable[..., Any], path: Path, inputs: Iterable[Sequence[torch.Tensor]]) -> str:
    """Returns where a file differs from PyTorch; empty if it does not."""
    for number, given in enumerate(inputs):
        try:
            wanted = function(*(each.clone() for each in given))
        except Exception:  # data, or a size, that the program does not take
            continue
        wanted = [each.numpy() for each in (wanted if isinstance(wanted, tuple) else [wanted])]
        if not all(np.isfinite(each).all() for each in wanted):
            continue
        made = tmconvert.run(path, [each.numpy() for each in given])
        for one, two in zip(wanted, made.values() if isinstance(made, dict) else made, strict=True):
            scale = max(1.0, float(np.abs(one).max(initial=0)))
            if one.shape != two.shape or np.abs(one - two).max(initial=0) > 1e-3 * scale:
                return f"{path.suffix} differs on case {number}"
    return ""


def outcome(
    function: Callable[..., Any], text: str, path: Path, inputs: Sequence[Sequence[torch.Tensor]], **how: Any
) -> tuple[str, str]:
    """Returns what came of a program, in a word and in detail; ``how`` are options of the trace."""
    try:
        function(*inputs[0])
    except Exception as error:
        return "not a program", str(error)
    try:
        traced = tmconvert.trace(function, *inputs[0], **how)
        for suffix, write in ((".onnx", tmconvert.to_onnx), (".tflite", tmconvert.to_tflite)):
            if how and suffix == ".tflite":  # LiteRT is asked for one size at a time
                continue
            write(traced, path.with_suffix(suffix))
            found = difference(function, path.with_suffix(suffix), inputs)
            if found:
                return "wrong", f"{found}\n{text}"
    except TmconvertError as error:
        reason = next((text for kind, text in error.notes if kind in ("note", "also")), error.message)
        return f"refused {error.code}", f"{error.source}: {reason}"
    except Exception as error:
        return "crashed", f"{type(error).__name__}: {error}\n{text}"
    return "right", ""


def outcomes(given: argparse.Namespace, folder: Path) -> Iterator[tuple[object, str, str]]:
    """Yields the name of each program, and what came of it."""
    if not given.loops:
        for seed in range(given.seed, given.seed + given.count):
            text = Program(seed).text()
            function = compiled(text, f"<program-{seed}>", {})
            yield seed, *outcome(function, text, folder / f"p{seed}", list(cases()))
        return
    from benchmarks.control_flow_loops import ROWS, names, over_sizes, programs

    held = names()
    sized = [[torch.randn(size, 4, 3)] for size in (6, *SIZES)]
    x = torch.linspace(-2, 3, 20).reshape(5, 4)
    other = [[x * factor] for factor in (1, 10, 0.01, -1, -30)] + [[x.flip(0) * 3]]
    for programs_, inputs, how in (
        (over_sizes(), sized, {"dynamic_shapes": {"x": {0: "n"}}}),
        (programs(ROWS["ON_DATA"]), other, {}),
    ):
        for name, text in programs_:
            if given.name in name:
                function = compiled(text, f"<{name}>", held)
                yield name, *outcome(function, text, folder / name.replace(" ", "_"), inputs, **how)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--loops", action="store_true", help="run the programs with loops over open sizes")
    parser.add_argument("--name", default="", help="run those with this in their names")
    given = parser.parse_args()
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for name, word, detail in outcomes(given, Path(folder)):
            counts[word] += 1
            if detail:
                print(f"{name}: {word}: {detail}", flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
