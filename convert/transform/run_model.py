"""Runs a model on named arrays, and returns its outputs and watched values by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from os import PathLike
from typing import Any

import numpy as np

from tmconvert.conversion.io_names import written_outputs
from tmconvert.errors import UsageError
from tmconvert.errors.suggestions import no_such_name
from tmconvert.errors.values import type_and_value
from tmconvert.ir import Input, Node, TensorNode, TensorType, TracedModule
from tmconvert.ir.arrays import as_array
from tmconvert.ir.extract import by_matching_name
from tmconvert.ir.flatten import flatten_module
from tmconvert.ir.interpreter import Interpreter, run_module
from tmconvert.ir.tree import leaves
from tmconvert.ir.types import name_of
from tmconvert.verification.input_files import read_inputs

Inputs = Mapping[str, Any] | Sequence[Any] | str | PathLike[str]


def run_model(module: TracedModule, inputs: Inputs, watch: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Returns the outputs by their names in written files, and the watched values by their names.

    ``watch`` are names of nodes, after the path of their submodule, or patterns of such names. Raises
    UsageError TM6003, TM6011, TM6014 for inputs that do not match the model, TM6050 for an unknown name.
    """
    if module.graph is None:
        raise UsageError("TM6004", f"{module!r} has no graph to run")
    arrays = _arrays(module, inputs)
    watcher = _Watcher(module, watch)
    values = [leaf for leaf in leaves(run_module(module, arrays, watcher)) if isinstance(leaf, np.ndarray)]
    for pattern in watch:
        if not any(fnmatchcase(name, pattern) for name in watcher.seen):
            raise no_such_name(pattern, _names(module), "the run computes no value")
    graph = flatten_module(module).graph
    assert graph is not None
    return {**watcher.seen, **dict(zip(written_outputs(graph), values, strict=True))}


class _Watcher(Interpreter):
    """Collects the tensors whose names fit a pattern."""

    def __init__(self, module: TracedModule, watch: Sequence[str]) -> None:
        super().__init__(module)
        self.watch = watch
        self.seen: dict[str, np.ndarray] = {}

    def _set(self, node: Node, value: object) -> None:
        super()._set(node, value)
        name = f"{self._path}.{node.name}" if self._path else node.name
        if isinstance(value, np.ndarray) and any(fnmatchcase(name, pattern) for pattern in self.watch):
            self.seen[name] = value


def _names(module: TracedModule) -> list[str]:
    """Returns the names of all tensors, after the paths of their modules."""
    return [
        f"{path}.{node.name}" if path else node.name
        for path, each in module.modules()
        for graph in each.graphs.values()
        for expr in [*(node.expr for node in graph.inputs), *graph]
        for node in (expr.outputs if expr is not None else ())
        if isinstance(node, TensorNode)
    ]


def _arrays(module: TracedModule, inputs: Inputs) -> list[np.ndarray]:
    """Returns the arrays in the order of the inputs, with the element types of the model."""
    assert module.graph is not None
    nodes = module.graph.inputs[1:]
    names = [node.expr.name if isinstance(node.expr, Input) else node.name for node in nodes]
    if isinstance(inputs, (str, PathLike)):
        found: list[Any] = list(read_inputs(inputs, names, in_order=True))
    elif isinstance(inputs, Mapping):
        given = by_matching_name(inputs, names)
        _check_names(given, names)
        found = [given[name] for name in names]
    elif isinstance(inputs, (list, tuple)):
        found = list(inputs)
    else:
        raise UsageError("TM6003", f"inputs must be arrays or a path, got {type_and_value(inputs)}")
    if len(found) != len(names):
        raise UsageError("TM6003", f"the model takes {len(names)} inputs, {len(found)} were given")
    arrays = [as_array(value, f"the input {name!r}") for name, value in zip(names, found, strict=True)]
    for name, node, array in zip(names, nodes, arrays, strict=True):
        _check_dtype(name, node, array)
    return arrays


def _check_names(inputs: Mapping[str, object], names: Sequence[str]) -> None:
    for name in inputs:
        if name not in names:
            raise no_such_name(name, names, "the model has no input")
    missing = [name for name in names if name not in inputs]
    if missing:
        raise UsageError("TM6003", f"there is no array for the input {', '.join(missing)}")


def _check_dtype(name: str, node: Node, array: np.ndarray) -> None:
    if not isinstance(node, TensorNode) or node.dtype is None or node.shape is None:
        return
    wanted = np.dtype(name_of(node.real_type.dtype))
    if array.dtype != wanted:
        expected, given = TensorType(wanted, node.shape), TensorType(array.dtype, array.shape)
        raise UsageError("TM6003", f"the input {name!r} must be {expected}, got {given}")
