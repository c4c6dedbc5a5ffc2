"""Random programs with Python's control flow, compared with PyTorch on both sides of their decisions.

    python -m benchmarks.control_flow --count 60 --seed 1
    python -m benchmarks.control_flow --loops

Each program is a function of two tensors with branches on data, some nested or in loops of Python, early
returns, lists that grow and counters as indices. It is traced once, and ONNX Runtime and LiteRT run it on
inputs that lead to different sides. A program is right, refused with a code, or wrong.

``--loops`` runs the programs of ``control_flow_loops.py`` instead, at many sizes.
"""

from __future__ import annotations

import argparse
import linecache
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
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


def compiled(text: str, name: str) -> Callable[..., Any]:
    """Returns the function ``forward`` of a program, whose lines tracebacks show."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names: dict[str, Any] = {"torch": torch, "__name__": name}
    torch.manual_seed(0)
    exec(compile(text, name, "exec"), names)
    return names["forward"]  # type: ignore[no-any-return]


def cases() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields inputs that lead to different sides."""
    for number, x in enumerate(INPUTS):
        for mask in (x > 0.5, x > 9, x < 9):
            yield x * (1, 0.1, 4, -1, 0.5, 2)[number], mask
    yield torch.ones(3, 4), torch.ones(3, 4) > 0


def difference(function: Callable[..., Any], path: Path) -> str:
    """Returns where a file differs from PyTorch; empty if it does not."""
    for number, (x, mask) in enumerate(cases()):
        wanted = [each.numpy() for each in function(x.clone(), mask.clone())]
        if not all(np.isfinite(each).all() for each in wanted):
            continue
        made = tmconvert.run(path, [x.numpy(), mask.numpy()])
        outputs = list(made.values()) if isinstance(made, dict) else list(made)
        for one, two in zip(wanted, outputs, strict=True):
            scale = max(1.0, float(np.abs(one).max()))
            if one.shape != two.shape or np.abs(one - two).max() > 1e-3 * scale:
                return f"{path.suffix} differs on case {number}"
    return ""


def outcome(seed: int, folder: Path) -> tuple[str, str]:
    """Returns what came of a program, in a word and in detail."""
    text = Program(seed).text()
    function = compiled(text, f"<program-{seed}>")
    first = next(cases())
    try:
        function(*first)
    except Exception as error:
        return "not a program", str(error)
    try:
        traced = tmconvert.trace(function, *first)
        for suffix, write in ((".onnx", tmconvert.to_onnx), (".tflite", tmconvert.to_tflite)):
            path = folder / f"p{seed}{suffix}"
            write(traced, path)
            found = difference(function, path)
            if found:
                return "wrong", f"{found}\n{text}"
    except TmconvertError as error:
        reason = next((text for kind, text in error.notes if kind == "note"), error.message)
        return f"refused {error.code}", f"{error.source}: {reason}"
    except Exception as error:
        return "crashed", f"{type(error).__name__}: {error}\n{text}"
    return "right", ""


def loop_outcome(function: Callable[..., Any], path: Path) -> tuple[str, str]:
    """Returns what came of a program with a loop over the first axis of its input."""
    try:
        traced = tmconvert.trace(function, torch.randn(6, 4, 3), dynamic_shapes={"x": {0: "n"}})
        tmconvert.to_onnx(traced, path)
    except TmconvertError as error:
        return f"refused {error.code}", " ".join(text for kind, text in error.notes if kind == "also")
    except Exception as error:
        return "crashed", f"{type(error).__name__}: {error}"
    for size in SIZES:
        x = torch.randn(size, 4, 3)
        try:
            wanted = function(x.clone())
        except Exception:  # a size that the program does not take
            continue
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        made = tmconvert.run(path, [x.numpy()])
        for one, two in zip(wanted, made.values() if isinstance(made, dict) else made, strict=True):
            if tuple(one.shape) != two.shape or not np.allclose(one.numpy(), two, rtol=1e-3, atol=1e-4):
                return "wrong", f"differs at {size}"
    return "right", ""


def outcomes(given: argparse.Namespace, folder: Path) -> Iterator[tuple[object, str, str]]:
    """Yields the name of each program, and what came of it."""
    if given.loops:
        from benchmarks.control_flow_loops import PROGRAMS

        for name, make in PROGRAMS.items():
            yield name, *loop_outcome(make(), folder / f"{name}.onnx")
        return
    for seed in range(given.seed, given.seed + given.count):
        yield seed, *outcome(seed, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--loops", action="store_true", help="run the programs with loops over open sizes")
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
