"""Random PyTorch programs with open sizes, converted and compared with PyTorch at other sizes.

    python benchmarks/open_sizes.py [COUNT] [FIRST SEED]

Examples have 1, 2, 3 or 5 rows; every fourth file is TFLite. Each file runs at the example's size and at
six others. Prints what became of each program:
open (right at all sizes), fixed, in a range (TM2030), refused, wrong.
"""

from __future__ import annotations

import collections
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import tmconvert
from tmconvert.errors import InternalError, TmconvertError
from tmconvert.targets.registry import runtime_for

ROWS = (1, 2, 3, 5)
MOST_SCALED = 6  # times that inputs are divided by 8 whose outputs overflow
OTHERS = (1, 2, 3, 4, 7, 11, 23)
Step = tuple[str, Callable[[torch.Tensor], torch.Tensor]]


def _rows_written(x: torch.Tensor, rows: slice) -> torch.Tensor:
    x = x.clone()
    x[rows] = x.mean()
    return x


def _steps(draw: random.Random) -> list[Step]:
    """The steps to choose from, with numbers drawn for this program."""
    k, low, high = draw.randint(1, 6), draw.randint(-4, 3), draw.randint(-3, 12)
    return [
        (f"x[:{k}]", lambda x: x[:k]),
        (f"x[-{k}:]", lambda x: x[-k:]),
        (f"x[{low}:{high}]", lambda x: x[low:high]),
        ("x[::2]", lambda x: x[::2]),
        (f"x[{low}:{high}] = mean", lambda x: _rows_written(x, slice(low, high))),
        ("x[0]", lambda x: x[0].expand_as(x)),
        ("x[-1]", lambda x: x - x[-1]),
        ("x[[0, -1]]", lambda x: x[[0, -1]]),
        ("squeeze", lambda x: x.unsqueeze(0).squeeze()),
        ("reshape", lambda x: x.reshape(x.shape[0], 2, -1).transpose(1, 2).flatten(1)),
        ("view", lambda x: x.contiguous().view(-1, 2).repeat(1, 2)),
        ("matmul", lambda x: x @ x.mT @ x),
        ("softmax", lambda x: x.softmax(0)),
        ("cumsum", lambda x: x.cumsum(0)),
        ("cumprod", lambda x: x.cumprod(0)),
        ("logcumsumexp", lambda x: x.logcumsumexp(0)),
        ("flip", lambda x: x.flip(0)),
        (f"roll {k}", lambda x: x.roll(k, 0)),
        ("cat", lambda x: torch.cat([x, x[:1]])),
        ("mean", lambda x: x - x.mean(0, keepdim=True)),
        ("/ n", lambda x: x / x.shape[0]),
        ("float(n)", lambda x: x / float(x.shape[0])),
        (f"if n > {k}", lambda x: x * 2 if x.shape[0] > k else x * 3),
        ("if n == 1", lambda x: x * 2 if x.shape[0] == 1 else x * 3),
        ("range(n)", lambda x: sum((x[i] for i in range(x.shape[0])), x)),
        (f"min(n, {k})", lambda x: x[: min(x.shape[0], k)]),
        ("arange", lambda x: x + torch.arange(x.shape[0])[:, None]),
        ("triu", lambda x: torch.triu(x @ x.mT) @ x),
        ("split", lambda x: torch.split(x, 2)[0]),
        ("chunk", lambda x: x.chunk(2)[-1]),
        ("pad", lambda x: torch.nn.functional.pad(x, (0, 0, k, 1))),
        ("relu", lambda x: x.relu()),
    ]


def program(seed: int) -> tuple[str, Callable[[torch.Tensor], torch.Tensor], int]:
    """(its steps in words, the function, the rows of its example)."""
    draw = random.Random(seed)
    chosen = [draw.choice(_steps(draw)) for _ in range(draw.randint(1, 4))]

    def function(x: torch.Tensor) -> torch.Tensor:
        for _, step in chosen:
            x = step(x)
        return x

    return " > ".join(name for name, _ in chosen), function, draw.choice(ROWS)


def outcome(seed: int, folder: Path) -> tuple[str, str]:
    """What became of the program, and more on it."""
    words, function, rows = program(seed)
    target = "tflite" if seed % 4 == 3 else "onnx"
    generator = torch.Generator().manual_seed(seed)
    about = f"{seed} {target} {rows} rows: {words}"
    try:
        example = torch.rand(rows, 4, generator=generator) + 0.5
        function(example)
    except (RuntimeError, IndexError, TypeError):
        return "no program", about
    path = folder / f"model.{target}"
    try:
        traced = tmconvert.trace(function, example, dynamic_shapes={"x": {0: "n"}})
        report = getattr(tmconvert, f"to_{target}")(traced, path)
    except TmconvertError as error:
        kind = "defect" if isinstance(error, InternalError) or error.code == "TM4001" else "refused"
        return {"TM2030": "in a range", "TM2031": "fixed"}.get(error.code, kind), f"{about}: {error!s:.300}"
    except Exception as error:
        return "defect", f"{about}: {type(error).__name__}: {error}"
    is_open = report.inputs[0]["shape"][0] == "n"
    for size in dict.fromkeys((rows, *(OTHERS if is_open else ()))):
        wrong = _wrong(function, torch.rand(size, 4, generator=generator) + 0.5, path, target, report)
        if wrong:
            return wrong, f"{about} at {size}"
    return ("open", about) if is_open else ("fixed", f"{about}: {'; '.join([*traced.notes, *report.notes])}")


def _wrong(
    function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, path: Path, target: str, report: object
) -> str:
    try:
        wanted = function(x).numpy()
        for _ in range(MOST_SCALED):  # PyTorch accumulates in float64: what follows an infinity may be finite
            if np.isfinite(wanted).all():
                break
            x = x / 8
            wanted = function(x).numpy()
    except (RuntimeError, IndexError, TypeError):
        return ""
    runtime = runtime_for(target, path)
    assert runtime is not None
    try:
        (found,) = runtime.run([path], {"x": x.numpy()}, [report.outputs[0]["name"]])  # type: ignore[attr-defined]
    except TmconvertError:
        return "does not run"
    # elements that cancel are off by the rounding of the largest; products may overflow, to the same NaN
    largest = float(np.max(np.abs(wanted), initial=1, where=np.isfinite(wanted)))
    equal = found.shape == wanted.shape and np.allclose(
        found, wanted, rtol=0, atol=1e-4 * largest, equal_nan=True
    )
    return "" if equal else "WRONG"


def main(count: int = 2000, first: int = 0) -> dict[str, int]:
    found: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            kind, about = outcome(seed, Path(folder))
            found[kind] += 1
            if kind in ("WRONG", "defect", "does not run"):
                print(kind, about, flush=True)
    print(dict(found.most_common()))
    return dict(found)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
