"""Variables of TFLite files, which last from run to run, as inputs and outputs of the graph.

Operators run in the order of the file: a variable is what ASSIGN_VARIABLE gave it last, and at first an
input.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.errors.source import Source
from tmconvert.formats.tflite.records import ModelRecord, OperatorRecord, SubgraphRecord
from tmconvert.frontends.tflite.tensors import TensorReader

OPERATORS = ("VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE")
_PLAIN = "let the main graph read and assign its variables, each in the type it has at the start"


class Variable(NamedTuple):
    """A variable that the main graph reads before it assigns a value; ``tensor`` is what it reads first."""

    name: str
    tensor: int
    start: np.ndarray | None
    is_assigned: bool

    @property
    def input(self) -> str:
        return re.sub(r"\W+", "_", self.name, flags=re.ASCII).strip("_") or "variable"


class Variables:
    """The variables of a model; ``handles`` are names by the tensors of VAR_HANDLE in the main graph."""

    def __init__(self, path: str, model: ModelRecord, names: Sequence[str]) -> None:
        self.path, self.tensors = path, TensorReader(path)
        main = model.subgraphs[model.main]
        self.handles = _handles(main)
        self._check_uses(model)
        starts: dict[str, np.ndarray] = {}
        for operator in main.operators:
            if operator.name == "CALL_ONCE":
                starts |= self._starts(model.subgraphs[operator.options["init_subgraph_index"]])
        assigned = {self.handles[each.inputs[0]] for each in _of(main, "ASSIGN_VARIABLE")}
        self.found = [
            Variable(name, tensor, starts.get(name), name in assigned)
            for name, tensor in self._first_reads(main)
        ]
        self._check_names([each.name for each in self.found if each.is_assigned], names)

    def _check_names(self, kept: Sequence[str], names: Sequence[str]) -> None:
        """Raises UsageError TM6014 for an unknown name, UnsupportedError TM2023 where one is missing."""
        known = {*kept, *(re.sub(r"\W+", "_", name) for name in kept), "all"}
        unknown = [name for name in names if name not in known]
        if unknown or (names and not kept):
            notes = [("its variables", ", ".join(kept)[:500] or "none"), ("help", "name them, or all")]
            what = f"no variable {unknown[0]!r}" if unknown else "no variables that last from run to run"
            raise UsageError("TM6014", f"the file has {what}", notes=notes)
        given = {re.sub(r"\W+", "_", name) for name in names}
        left = [name for name in kept if re.sub(r"\W+", "_", name) not in given and "all" not in given]
        if left:
            shown = ", ".join(left[:4]) + ", ..." * (len(left) > 4)
            raise self._refused(
                f"the variables {shown} last from run to run, and files of the targets have no memory",
                "make them inputs and outputs: --state all (state=['all'])",
            )

    def _refused(self, message: str, help: str = _PLAIN) -> UnsupportedError:
        return UnsupportedError("TM2023", message, source=Source(self.path), notes=[("help", help)])

    def _check_uses(self, model: ModelRecord) -> None:
        main = model.subgraphs[model.main]
        for graph in model.subgraphs:
            uses = {
                tensor for each in graph.operators if each.name not in OPERATORS for tensor in each.inputs
            }
            is_start = any(
                model.subgraphs[each.options["init_subgraph_index"]] is graph
                for each in _of(main, "CALL_ONCE")
            )
            if graph is not main and not is_start and any(each.name in OPERATORS for each in graph.operators):
                raise self._refused("a branch, a loop or another graph uses variables")
            if uses & _handles(graph).keys():
                raise self._refused("an operator takes a variable itself, not its value")

    def _first_reads(self, main: SubgraphRecord) -> Iterator[tuple[str, int]]:
        """Yields the variables that are read before they are assigned, and the tensors that are read."""
        seen: dict[str, int] = {}
        for operator in main.operators:
            if operator.name not in ("READ_VARIABLE", "ASSIGN_VARIABLE"):
                continue
            if operator.inputs[0] not in self.handles:
                raise self._refused("a variable has no handle in the main graph")
            name, is_read = self.handles[operator.inputs[0]], operator.name == "READ_VARIABLE"
            tensor = operator.outputs[0] if is_read else operator.inputs[1]
            first, own = (main.tensors[each] for each in (seen.setdefault(name, tensor), tensor))
            if (first.type, first.shape, first.quantization) != (own.type, own.shape, own.quantization):
                raise self._refused(f"the variable {name} changes its type, shape or quantization")
            if is_read and first is own:
                yield name, tensor

    def _starts(self, graph: SubgraphRecord) -> dict[str, np.ndarray]:
        """Returns the values that the graph of CALL_ONCE assigns: constants."""
        handles, found = _handles(graph), {}
        for operator in graph.operators:
            value = graph.tensors[operator.inputs[1]] if operator.name == "ASSIGN_VARIABLE" else None
            if operator.name == "VAR_HANDLE":
                continue
            if value is None or value.content is None or operator.inputs[0] not in handles:
                raise self._refused(f"the first run computes values of variables, with {operator.name}")
            found[handles[operator.inputs[0]]] = self.tensors.array(value)
        return found


def uses_variables(model: ModelRecord) -> bool:
    return any(each.name in OPERATORS for graph in model.subgraphs for each in graph.operators)


def start_notes(variables: Collection[Variable]) -> Iterator[str]:
    """Yields a note for each variable that is an input: its values at the first run."""
    for each in variables:
        if each.is_assigned:
            is_even = each.start is not None and each.start.size and np.all(each.start == each.start.flat[0])
            first = "zeros" if each.start is None else "what CALL_ONCE assigns"
            first = f"{each.start.flat[0]:g} everywhere" if is_even and each.start is not None else first
            yield f"the input {each.input} is the variable {each.name}, {first} at the first run"


def _of(graph: SubgraphRecord, name: str) -> list[OperatorRecord]:
    return [each for each in graph.operators if each.name == name]


def _handles(graph: SubgraphRecord) -> Mapping[int, str]:
    """Returns the names of variables by the tensors that stand for them."""
    return {
        each.outputs[0]: each.options.get("shared_name") or graph.tensors[each.outputs[0]].name
        for each in _of(graph, "VAR_HANDLE")
    }
