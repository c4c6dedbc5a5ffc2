#!/usr/bin/env python3
"""Writes the skeleton of an op and of its tests; docs/development/add-an-op.md explains how to complete it.

    python tools/new_op.py squareplus                          aten::squareplus(x)
    python tools/new_op.py mylib::squareplus --args x,other    two tensors that broadcast
    python tools/new_op.py mylib::unit --args x,dim:integer    a tensor and an attribute
    python tools/new_op.py mylib::crop --folder shapes         an op of another family

The files are symbolics/ops/FOLDER/NAME.py, tests/symbolics/ops/samples/NAME.py and
tests/frontends/torch/test_op_NAME.py, and a line in symbolics/ops/index.json. Existing files are never
overwritten.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIST = "symbolics/ops/index.json"
OP = '''"""{full}({args}): TODO, its formula."""

from __future__ import annotations

import numpy as np

{formulas}from tmconvert.symbolics.layouts import {layout}
from tmconvert.symbolics.op import FLOATS, Op, Tensor{kinds}
from tmconvert.symbolics.results import {rule}

{name} = Op(
    "{full}",
    args=[{tensors}],
    result={rule}({quoted}),
    layout={layout},{layout_note}
)


@{name}.reference
def {name}_ref({typed}) -> np.ndarray:
    raise NotImplementedError("TODO: compute {full} in NumPy, in the dtype of its arguments")


@{name}.onnx(since=7)
def {name}_onnx7(g, {args}):
    g.refuse("TODO: return g.op('OperatorOfOnnx', {onnx_args}), or delete this function")


{decomposition}'''
FORMULA = """@formula({name})  # for the targets without a symbolic
def {name}_formula({terms}) -> Term:
    raise NotImplementedError("TODO: return a formula such as (x * x + 1).sqrt()")
"""
CALLS = """@{name}.decompose  # for the targets without a symbolic
def {name}_calls(g, {args}):
    raise NotImplementedError("TODO: return g.call('aten::mul', x, x)")
"""
# kinds of attributes: the type of Python, and the value in the sample
KINDS = {
    "integer": ("int", "1"),
    "integers": ("list[int]", "[1]"),
    "number": ("float", "0.5"),
    "boolean": ("bool", "True"),
}
SAMPLES = '''"""Sample arguments of {full}."""

from tests.symbolics.ops.harness import {harness}

from .common import Sample, X

SAMPLES: dict[str, list[Sample]] = {{
    "{full}": [
        Sample([{first}]{values}),
{more}    ],
}}
'''
TORCH = '''"""{full} as PyTorch computes it."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.harness import check  # noqa: E402


{declaration}def test_{name}() -> None:
    inputs = [{inputs}]
    check({function}, *inputs, tflite=True)
'''


DECLARATION = """@torch.library.custom_op("{full}", mutates_args=())
def {name}({of_torch}) -> torch.Tensor:
    raise NotImplementedError("TODO: compute it, or import the library that has the op in place of this")


"""


def files_of(full: str, arguments: list[str], folder: str) -> dict[str, str]:
    """The text of each new file by its path."""
    name = full.rpartition("::")[2]
    tensors = [each for each in arguments if ":" not in each]
    attributes = dict(each.split(":") for each in arguments if ":" in each)
    several = len(tensors) > 1
    words = {
        "full": full,
        "name": name,
        "args": ", ".join([*tensors, *attributes]),
        "onnx_args": ", ".join([*tensors, *(f"{each}={each}" for each in attributes)]),
        "rule": "broadcast" if several else "same_as",
        "tensors": ", ".join(
            [f'Tensor("{each}", FLOATS)' for each in tensors]
            + [f'{kind}("{each}")' for each, kind in attributes.items()]
        ),
        "kinds": "".join(f", {kind}" for kind in sorted(set(attributes.values()))),
        "layout": "SOURCE" if attributes else "ANY",
        "layout_note": '  # TODO: ANY if it is elementwise, any_with(dim="axis") if dim is an axis'
        if attributes
        else "",
        "quoted": ", ".join(f'"{each}"' for each in tensors),
        "typed": ", ".join(
            [f"{each}: np.ndarray" for each in tensors]
            + [f"{each}: {KINDS[kind][0]}" for each, kind in attributes.items()]
        ),
        "terms": ", ".join(f"{each}: Term" for each in tensors),
        "formulas": "" if attributes else "from tmconvert.symbolics.idioms.formulas import Term, formula\n",
        "harness": "Const, normal" if several else "normal",
        "first": ", ".join(["X", *(f"normal({i}, 2, 3, 5, 7)" for i in range(1, len(tensors)))]),
        "values": _values(attributes),
        "inputs": ", ".join(["torch.randn(2, 3)"] * len(tensors)),
    }
    words["more"] = _more_samples(len(tensors), words["values"])
    words["function"] = _function_of_torch(full, tensors, attributes)
    words["of_torch"] = ", ".join(
        [f"{each}: torch.Tensor" for each in tensors]
        + [f"{each}: {KINDS[kind][0]}" for each, kind in attributes.items()]
    )
    is_of_library = "::" in full and not full.startswith(("aten::", "tm::"))
    words["declaration"] = DECLARATION.format(**words) if is_of_library else ""
    words["decomposition"] = (CALLS if attributes else FORMULA).format(**words)
    return {
        f"symbolics/ops/{folder}/{name}.py": OP.format(**words),
        f"tests/symbolics/ops/samples/{name}.py": SAMPLES.format(**words),
        f"tests/frontends/torch/test_op_{name}.py": TORCH.format(**words),
    }


def _values(attributes: dict[str, str]) -> str:
    """The second argument of a sample: attributes by name."""
    values = ", ".join(f'"{each}": {KINDS[kind][1]}' for each, kind in attributes.items())
    return f", {{{values}}}" if values else ""


def _more_samples(count: int, values: str) -> str:
    """Another rank for ops of one tensor; constants that broadcast for those of several."""
    if count == 1:
        return f"        Sample([normal(1, 2, 5)]{values}),\n"
    constants = ", ".join(f"Const(normal({i + 2}, 1, 3, 1, 1))" for i in range(1, count))
    return f"        Sample([X, {constants}]{values}),\n"


def _function_of_torch(full: str, tensors: list[str], attributes: dict[str, str]) -> str:
    function = f"torch.ops.{full.replace('::', '.')}"
    if not attributes:
        return function
    given = ", ".join([*tensors, *(KINDS[kind][1] for kind in attributes.values())])
    return f"lambda {', '.join(tensors)}: {function}({given})"


def listed(text: str, full: str, folder: str) -> str:
    """symbolics/ops/index.json with the line of a new op at its end."""
    name = full.rpartition("::")[2]
    before, end, after = text.partition("\n}\n")
    shown = full.removeprefix("aten::")
    return f'{before},\n    "{folder}.{name}": "{shown}"{end}{after}'


def is_listed(text: str, full: str) -> bool:
    """Whether this text of the index has the op, in a file of its own or among others."""
    return re.search(rf"[\" ]{re.escape(full.removeprefix('aten::'))}[\" ]", text) is not None


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="Writes the skeleton of an op and of its tests.")
    parser.add_argument("name", help="the op: squareplus (of ATen) or mylib::squareplus")
    parser.add_argument(
        "--args", default="x", help="its arguments, as in x,other or x,dim:integer; a first self is called x"
    )
    folders = sorted(path.parent.name for path in (root / LIST).parent.glob("*/__init__.py"))
    parser.add_argument("--folder", choices=folders, default="elementwise", help="its family of ops")
    options = parser.parse_args(arguments)
    full = options.name if "::" in options.name else f"aten::{options.name}"
    given = options.args.split(",")
    names, kinds = [each.partition(":")[0] for each in given], [each.partition(":")[2] for each in given]
    if not all(re.fullmatch(r"[a-z_][a-z0-9_]*", each) for each in [*full.split("::"), *names]):
        parser.error("names consist of small letters, digits and underscores")
    unknown = [kind for kind in kinds if kind and kind not in KINDS]
    if unknown:
        parser.error(f"{unknown[0]!r} is not a kind of attributes: {', '.join(KINDS)}")
    if given[0] != "x":
        parser.error("the first tensor is called x")
    files = files_of(full, given, options.folder)
    existing = [name for name in files if (root / name).exists()]
    if existing:
        parser.error(f"{', '.join(existing)} exists")
    if is_listed((root / LIST).read_text(encoding="utf-8"), full):
        parser.error(f"{full} names an op that exists: {LIST} has it")
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}")
    path = root / LIST
    path.write_text(listed(path.read_text(encoding="utf-8"), full, options.folder), encoding="utf-8")
    print(f"added a line to {LIST}")
    print(f"complete each TODO, then: python -m pytest -k {full.rpartition('::')[2]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
