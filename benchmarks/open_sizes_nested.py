"""Random PyTorch programs whose inputs are nested, with open sizes and sums of sizes.

    python benchmarks/open_sizes_nested.py [COUNT] [FIRST SEED]

The steps are those of open_sizes.py. Inputs are in a list, a tuple, a dict, ``*args`` or like the cache of a
decoder; two tensors have sizes of their own, and often a third one has the sum. Each file
runs at the example's sizes and at six others, and where there is a sum also with an empty past.
"""

from __future__ import annotations

import collections
import random
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import open_sizes
import torch
from torch.utils._pytree import tree_leaves

import tmconvert
from tmconvert.errors import InternalError, TmconvertError
from tmconvert.targets.registry import runtime_for

SIZES = ((2, 3), (1, 2), (3, 1), (5, 2), (1, 1), (4, 3))  # (past, rows) of examples
OTHERS = ((1, 1), (2, 5), (4, 2), (3, 7), (6, 1), (1, 11), (0, 3), (0, 1))


class Form(NamedTuple):
    """How inputs are nested, and their sizes.

    ``function`` makes a function of nested inputs from one of a tensor; ``make`` nests the tensors ``x``
    [rows, 4], ``past`` [past, 4] and ``mask`` [past + rows].
    """

    function: Callable[[Callable[[torch.Tensor], Any]], Callable[..., Any]]
    make: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], tuple[Any, ...]]
    sizes: Mapping[str, Mapping[int, str]]


def _joined(x: torch.Tensor, past: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return torch.cat([past, x]) * mask[:, None]


ROWS, PAST, SUM = {0: "rows"}, {0: "past"}, {0: "past+rows"}
FORMS: dict[str, Form] = {
    "a list": Form(
        lambda apply: lambda xs: apply(_joined(*xs)),
        lambda x, past, mask: ([x, past, mask],),
        {"xs.0": ROWS, "xs.1": PAST, "xs.2": SUM},
    ),
    "a tuple": Form(
        lambda apply: lambda x, rest: apply(_joined(x, *rest)),
        lambda x, past, mask: (x, (past, mask)),
        {"x": ROWS, "rest.0": PAST, "rest.1": SUM},
    ),
    "a dict": Form(
        lambda apply: lambda batch: apply(_joined(batch["x"], batch["past"], batch["mask"])),
        lambda x, past, mask: ({"x": x, "past": past, "mask": mask},),
        {"batch.x": ROWS, "batch.past": PAST, "batch.mask": SUM},
    ),
    "args": Form(
        lambda apply: lambda *xs: apply(_joined(*xs)),
        lambda x, past, mask: (x, past, mask),
        {"xs.0": ROWS, "xs.1": PAST, "xs.2": SUM},
    ),
    "a cache": Form(
        lambda apply: lambda x, mask, past: apply(_joined(x, past[0]["key"] + past[0]["value"], mask)),
        lambda x, past, mask: (x, mask, [{"key": past, "value": past * 0.5}]),
        {"x": ROWS, "mask": SUM, "past.0.key": PAST, "past.0.value": PAST},
    ),
    "no sum": Form(
        lambda apply: lambda xs: apply(torch.cat([xs["past"], xs["x"]]) + xs["x"].mean(0)),
        lambda x, past, mask: ({"past": past, "x": x},),
        {"xs.past": PAST, "xs.x": ROWS},
    ),
}


class Program(NamedTuple):
    """A program in words, its function, how its inputs are nested, and the sizes of its example."""

    words: str
    function: Callable[..., Any]
    form: Form
    example: tuple[int, int]


def program(seed: int) -> Program:
    """Returns the program of a seed."""
    draw = random.Random(seed)
    name = draw.choice(list(FORMS))
    form = FORMS[name]
    chosen = [draw.choice(open_sizes._steps(draw)) for _ in range(draw.randint(1, 3))]
    nests = draw.random() < 0.5

    def apply(x: torch.Tensor) -> Any:
        joined = x
        for _, step in chosen:
            x = step(x)
        return {"result": x, "present": [(joined, joined * 2)]} if nests else x

    words = " > ".join((name, *(each for each, _ in chosen)))
    return Program(words, form.function(apply), form, draw.choice(SIZES))


def inputs_of(form: Form, past: int, rows: int, generator: torch.Generator) -> tuple[Any, ...]:
    """Returns random inputs of these sizes."""
    made = (torch.rand(size, 4, generator=generator) + 0.5 for size in (rows, past))
    return form.make(*made, torch.rand(past + rows, generator=generator) + 0.5)


def outcome(seed: int, folder: Path) -> tuple[str, str]:
    """Returns what became of the program, and more on it."""
    words, function, form, example = program(seed)
    target = "tflite" if seed % 4 == 3 else "onnx"
    generator = torch.Generator().manual_seed(seed)
    about = f"{seed} {target} {example}: {words}"
    try:
        inputs = inputs_of(form, *example, generator)
        function(*inputs)
    except (RuntimeError, IndexError, TypeError):
        return "no program", about
    path = folder / f"model.{target}"
    try:
        traced = tmconvert.trace(function, *inputs, dynamic_shapes=form.sizes)
        report = getattr(tmconvert, f"to_{target}")(traced, path)
    except TmconvertError as error:
        kind = "defect" if isinstance(error, InternalError) or error.code == "TM4001" else "refused"
        return {"TM2030": "in a range", "TM2031": "fixed"}.get(error.code, kind), f"{about}: {error!s:.300}"
    except Exception as error:
        return "defect", f"{about}: {type(error).__name__}: {error}"
    open_ = {size for each in report.inputs for size in each["shape"] if isinstance(size, str)}
    is_open = {"past", "rows"} <= open_
    others = [sizes for sizes in OTHERS if is_open and (sizes[0] or words.partition(" >")[0] != "no sum")]
    for sizes in dict.fromkeys((example, *others)):
        wrong = _wrong(function, inputs_of(form, *sizes, generator), path, target, report)
        if wrong:
            return wrong, f"{about} at {sizes}"
    kind = "open" if is_open else "partly fixed" if open_ else "fixed"
    return kind, about if is_open else f"{about}: {'; '.join([*traced.notes, *report.notes])}"


def _wrong(
    function: Callable[..., Any], inputs: tuple[Any, ...], path: Path, target: str, report: Any
) -> str:
    try:
        wanted = [tensor.numpy() for tensor in tree_leaves(function(*inputs))]
    except (RuntimeError, IndexError, TypeError):
        return ""
    if not all(np.isfinite(array).all() for array in wanted):
        return ""
    runtime = runtime_for(target, path)
    assert runtime is not None
    names = [each["name"] for each in report.inputs]
    leaves = [tensor.numpy() for tensor in _in_order(inputs, len(names))]
    try:
        found = runtime.run(
            [path], dict(zip(names, leaves, strict=True)), [each["name"] for each in report.outputs]
        )
    except TmconvertError:
        return "does not run"
    pairs = list(zip(found, wanted, strict=True))
    return "" if all(_is_close(one, two) for one, two in pairs) else "WRONG"


def _in_order(inputs: tuple[Any, ...], count: int) -> list[torch.Tensor]:
    """Returns the tensors in the order of the file's inputs."""
    flat = list(_leaves(inputs))
    assert len(flat) == count
    return flat


def _leaves(tree: Any) -> Any:
    if isinstance(tree, torch.Tensor):
        yield tree
        return
    for child in tree.values() if isinstance(tree, dict) else tree:
        yield from _leaves(child)


def _is_close(found: np.ndarray, wanted: np.ndarray) -> bool:
    largest = float(np.max(np.abs(wanted), initial=1))
    return found.shape == wanted.shape and np.allclose(found, wanted, rtol=0, atol=1e-4 * largest)


def main(count: int = 1000, first: int = 0) -> dict[str, int]:
    """Prints the programs that are not right, and the counts."""
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
