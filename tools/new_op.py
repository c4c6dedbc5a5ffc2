#!/usr/bin/env python3
"""Writes the skeleton of an op and of its tests; docs/development/add-an-op.md explains how to complete it.

    python tools/new_op.py squareplus                          aten::squareplus(x)
    python tools/new_op.py mylib::squareplus --args x,other    two tensors that broadcast

The files are symbolics/ops/NAME.py, tests/ops/samples/NAME.py and tests/frontends/torch/test_op_NAME.py, and
a line in symbolics/ops/__init__.py. Existing files are never overwritten.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = "symbolics/ops/__init__.py"
OP = '''"""{full}({args}): TODO, its formula."""

from __future__ import annotations

import numpy as np

from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.results import {rule}

{name} = Op(
    "{full}",
    args=[{tensors}],
    result={rule}({quoted}),
    layout=ANY,
)


@{name}.reference
def {name}_ref({typed}) -> np.ndarray:
    raise NotImplementedError("TODO: compute {full} in NumPy, in the dtype of its arguments")


@{name}.onnx(since=7)
def {name}_onnx7(g, {args}):
    g.refuse("TODO: return g.op('OperatorOfOnnx', {args}), or delete this function")


@formula({name})  # for the targets without a symbolic
def {name}_formula({terms}) -> Term:
    raise NotImplementedError("TODO: return a formula such as (x * x + 1).sqrt()")
'''
SAMPLES = '''"""Sample arguments of {full}."""

from tests.ops.harness import {harness}

from .common import Sample, X

SAMPLES: dict[str, list[Sample]] = {{
    "{full}": [
        Sample([{first}]),
{more}    ],
}}
'''
TORCH = '''"""{full} as PyTorch computes it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.harness import check  # noqa: E402


def test_{name}() -> None:
    check({function}, {inputs}, tflite=True)
'''


def files_of(full: str, arguments: list[str]) -> dict[str, str]:
    """The text of each new file by its path."""
    name = full.rpartition("::")[2]
    several = len(arguments) > 1
    words = {
        "full": full,
        "name": name,
        "args": ", ".join(arguments),
        "rule": "broadcast" if several else "same_as",
        "tensors": ", ".join(f'Tensor("{each}", FLOATS)' for each in arguments),
        "quoted": ", ".join(f'"{each}"' for each in arguments),
        "typed": ", ".join(f"{each}: np.ndarray" for each in arguments),
        "terms": ", ".join(f"{each}: Term" for each in arguments),
        "harness": "Const, normal" if several else "normal",
        "first": ", ".join(["X", *(f"normal({i}, 2, 3, 5, 7)" for i in range(1, len(arguments)))]),
        "more": _more_samples(len(arguments)),
        "function": f"torch.ops.{full.replace('::', '.')}",
        "inputs": ", ".join(["torch.randn(2, 3)"] * len(arguments)),
    }
    return {
        f"symbolics/ops/{name}.py": OP.format(**words),
        f"tests/ops/samples/{name}.py": SAMPLES.format(**words),
        f"tests/frontends/torch/test_op_{name}.py": TORCH.format(**words),
    }


def _more_samples(count: int) -> str:
    """Another rank for ops of one tensor; constants that broadcast for those of several."""
    if count == 1:
        return "        Sample([normal(1, 5)]),\n"
    constants = ", ".join(f"Const(normal({i + 2}, 1, 3, 1, 1))" for i in range(1, count))
    return f"        Sample([X, {constants}]),\n"


def listed(text: str, full: str) -> str:
    """symbolics/ops/__init__.py with the line of a new op at the end of ``MODULES``."""
    name = full.rpartition("::")[2]
    before, end, after = text.partition("\n}\n")
    shown = full.removeprefix("aten::")
    return f'{before}\n    "{name}": "{shown}",{end}{after}'


def is_listed(text: str, full: str) -> bool:
    """Whether ``MODULES`` in this text has the op, in a file of its own or among others."""
    return re.search(rf"[\" ]{re.escape(full.removeprefix('aten::'))}[\" ]", text) is not None


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="Writes the skeleton of an op and of its tests.")
    parser.add_argument("name", help="the op: squareplus (of ATen) or mylib::squareplus")
    parser.add_argument("--args", default="x", help="its tensors, as in x,other; a first self is called x")
    options = parser.parse_args(arguments)
    full = options.name if "::" in options.name else f"aten::{options.name}"
    tensors = options.args.split(",")
    if not all(re.fullmatch(r"[a-z_][a-z0-9_]*", each) for each in [*full.split("::"), *tensors]):
        parser.error("names consist of small letters, digits and underscores")
    if tensors[0] != "x":
        parser.error("the first tensor is called x")
    files = files_of(full, tensors)
    existing = [name for name in files if (root / name).exists()]
    if existing:
        parser.error(f"{', '.join(existing)} exists")
    if is_listed((root / LIST).read_text(encoding="utf-8"), full):
        parser.error(f"{full} names an op that exists: {LIST} has it")
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}")
    path = root / LIST
    path.write_text(listed(path.read_text(encoding="utf-8"), full), encoding="utf-8")
    print(f"added a line to MODULES in {LIST}")
    print(f"complete each TODO, then: python -m pytest -k {full.rpartition('::')[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
