"""Candidates that are programs of PyTorch: the calls that are kept; their other operands are inputs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.frontends.torch.written_calls import (
    CLASS,
    MODULE,
    Call,
    Code,
    Edits,
    NoForm,
    Program,
    Value,
    map_values,
)
from tmconvert.ir import CallFunction, CallMethod, Node, TensorNode, TracedModule
from tmconvert.ir.expr import Constant, GetAttr, Input
from tmconvert.ir.flatten import flatten_module
from tmconvert.ir.symbolic.dims import example
from tmconvert.reduction.trials import PLACE, Candidate, Failure

FACTORY = f"{MODULE}:{CLASS}"
_PROPERTIES = frozenset(("real", "imag", "T", "mT", "H", "mH"))  # of tensors, recorded as methods


def shown_command(command: Sequence[str], candidate: Candidate) -> str:
    """Returns the command as a user types it, for a file in the current folder."""
    name = candidate.model if ":" in candidate.model else f"{MODULE}{Path(candidate.model).suffix}"
    words = [each.replace(f"{PLACE}.out", MODULE).replace(PLACE, name) for each in command]
    return shlex.join([*words, *(candidate.words() if command[0] == "tmconvert" else ())])


class ProgramCandidates:
    """The calls of a program; ``write`` makes a file of some of them.

    >>> ProgramCandidates(program, command).write([3, 4], Path("folder"))  # doctest: +SKIP
    Candidate(model='reduced:Reduced', inputs=['float32[1,8]'])
    """

    suffix = ".py"
    has_weights = False  # they are made up in all candidates

    def __init__(self, program: Program, command: Sequence[str]) -> None:
        self.program, self.command, self.edits = program, command, Edits()
        self.lines: Mapping[int, int] = {}
        self.sizes, self.attributes = program.sizes, program.attributes

    @property
    def count(self) -> int:
        return len(self.program.calls)

    def write(self, kept: Sequence[int], folder: Path) -> Candidate | None:
        """Writes the program of some calls; returns None where it would have no inputs."""
        is_ours = self.command[0] == "tmconvert"
        made = self.program.write(kept, self.edits, "HEAD", not is_ours)
        if made is None:
            return None
        path, self.lines = folder / f"{MODULE}.py", made.lines
        candidate = Candidate(FACTORY if is_ours else str(path), made.inputs)
        head = f'"""Fails with: {shown_command(self.command, candidate)}"""'
        path.write_text(made.text.replace("HEAD", head, 1), encoding="utf-8")
        return candidate

    def named(self, failure: Failure) -> list[int]:
        """Returns the calls that a failure of the last candidate names, by its line or their functions."""
        at = [self.lines[failure.line]] if failure.line in self.lines else []
        words = {each.rpartition("::")[2].rpartition(".")[2] for each in failure.ops}
        return at + [
            number
            for number, call in enumerate(self.program.calls)
            if call.function.rpartition(".")[2].strip("_") in words and number not in at
        ]


def program_of_graph(module: TracedModule) -> Program | None:
    """Returns the recorded calls of PyTorch; None for a graph that has others."""
    graph = flatten_module(module).graph
    assert graph is not None
    made, numbers = Program(), dict[Node, Value]()

    def value(leaf: object) -> Any:
        if isinstance(leaf, Node):
            if leaf not in numbers:
                numbers[leaf] = Value(len(numbers))
                if isinstance(leaf, TensorNode) and leaf.shape is not None and leaf.dtype is not None:
                    shape = tuple(int(example(size)) for size in leaf.shape)
                    made.types[numbers[leaf].number] = leaf.dtype.name, shape
            return numbers[leaf]
        if isinstance(leaf, np.dtype):
            return Code(f"torch.{leaf.name}")
        return Code(str(leaf)) if type(leaf).__name__ in ("dtype", "memory_format", "layout") else leaf

    for expr in graph:
        if isinstance(expr, Input):
            continue
        results = map_values(value, expr.result)
        if isinstance(expr, (Constant, GetAttr)):
            held = expr.value if isinstance(expr, Constant) else None
            made.constants[value(expr.outputs[0]).number] = held if isinstance(held, np.ndarray) else None
            continue
        arguments = map_values(value, tuple(expr.args)), map_values(value, dict(expr.kwargs))
        if isinstance(expr, CallFunction) and expr.function.startswith("torch."):
            made.calls.append(Call(expr.function, False, *arguments, results=results))
        elif isinstance(expr, CallMethod) and expr.args and isinstance(expr.args[0], TensorNode):
            name = f".{expr.method}" if expr.method in _PROPERTIES else expr.method
            made.calls.append(Call(name, True, *arguments, results=results))
        else:
            return None
    return made if _has_form(made) else None


def _has_form(program: Program) -> bool:
    try:
        return program.write(range(len(program.calls)), Edits(), "") is not None
    except NoForm:
        return False
