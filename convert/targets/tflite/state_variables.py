"""States of a TFLite file as variables, which the runtime keeps from run to run.

The input ``NAME`` becomes READ_VARIABLE, the output ``NAME_next`` ASSIGN_VARIABLE of the variable ``NAME``.
CALL_ONCE assigns the values of the first run. Source: LiteRT's kernels ``var_handle.cc``,
``read_variable.cc``, ``assign_variable.cc`` and ``call_once.cc``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tmconvert.errors import UsageError, VerificationError
from tmconvert.ir import Input, TracedModule
from tmconvert.ir.fake_quant import quantize
from tmconvert.ir.symbolic.dims import example, is_symbolic
from tmconvert.ir.types import QParams
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.output.atomic import temporary_folder
from tmconvert.targets.target import Encoding
from tmconvert.targets.tflite.writer import RESOURCE, write_tflite

if TYPE_CHECKING:
    from tmconvert.verification.references import References
    from tmconvert.verification.verify import Verification

NEXT = "_next"
RUNS = 3  # of both files, which must give equal bits
Arrays = dict[str, np.ndarray]


class StateVariables(Encoding):
    """The file of another encoding, with variables in place of the inputs and outputs that are states."""

    def __init__(self, inner: Encoding, module: TracedModule) -> None:
        self.inner, self.plain = inner, inner.plain
        self.graph = with_variables(inner.graph, _starts(module))

    def verify(self, paths: Sequence[Path], references: References) -> Verification | None:
        """Verifies the file with states as inputs and outputs, and compares a few runs of both."""
        from tmconvert.targets.registry import runtime_for
        from tmconvert.verification.recorded_case import stored_inputs

        with temporary_folder() as folder:
            path = Path(folder) / "states.tflite"
            with path.open("wb") as file:
                write_tflite(self.inner.graph, file)
            found = self.inner.verify([path], references)
            runtime = runtime_for("tflite", path)
            if found is None or runtime is None:
                return found
            fed, run = stored_inputs([path], self.inner.graph, references), steps(paths[0])
            for _ in range(RUNS):
                names = self.inner.graph.output_names
                expected = dict(zip(names, runtime.run([path], fed, names), strict=True))
                made = run({name: array for name, array in fed.items() if name in self.graph.input_names})
                for name in self.graph.output_names:
                    if not np.array_equal(made[name], expected[name], equal_nan=True):
                        message = f"variables give another {name} than states that are inputs and outputs"
                        raise VerificationError("TM4001", message)
                fed |= {name: expected[f"{name}{NEXT}"] for name in fed.keys() - {*self.graph.input_names}}
        return found


def steps(path: Path) -> Callable[[Mapping[str, np.ndarray]], Arrays]:
    """Returns a function that runs a file again and again in one interpreter, which keeps its variables."""
    from ai_edge_litert.interpreter import Interpreter

    from tmconvert.targets.tflite.runtime import tflite_positions
    from tmconvert.targets.tflite.verify.observed import allocate
    from tmconvert.verification.runtime import refusals

    with refusals("LiteRT"):
        interpreter = Interpreter(model_path=os.fspath(path))
        inputs, outputs = tflite_positions(interpreter, [], [])

    def run(arrays: Mapping[str, np.ndarray]) -> Arrays:
        with refusals("LiteRT"):
            allocate(interpreter, {inputs[name]: array.shape for name, array in arrays.items()})
            for name, array in arrays.items():
                interpreter.set_tensor(inputs[name], np.ascontiguousarray(array))
            interpreter.invoke()
            return {name: np.array(interpreter.get_tensor(index)) for name, index in outputs.items()}

    return run


def with_variables(graph: TargetGraph, starts: Mapping[str, np.ndarray]) -> TargetGraph:
    """Returns a graph with a variable for each input NAME that has an output NAME_next.

    ``starts`` are values of the first run in the layout of the source, zeros by default. Raises UsageError
    TM6002 where no input is a state, or where a state has an open size.
    """
    inputs = dict(zip(graph.input_names, graph.inputs, strict=True))
    outputs = dict(zip(graph.output_names, graph.outputs, strict=True))
    names = [name for name, value in inputs.items() if _is_state(value, outputs.get(f"{name}{NEXT}"))]
    if not names:
        help = "name what the module keeps, as in --state all, or omit --state-as"
        message = "no input is a state: none has an output of its name with _next, in its type"
        raise UsageError("TM6002", message, notes=[("help", help)])
    first, last, once = list[Operator](), list[Operator](), list[Operator]()
    init = TargetGraph("tflite", graph.version, f"{graph.name}_first_run")
    for name in names:
        start = Value(
            f"{name}/start", inputs[name].dtype, inputs[name].shape, _start(inputs[name], starts.get(name))
        )
        start.quantization = inputs[name].quantization
        once += _use(name, "ASSIGN_VARIABLE", [start], [], "first_run/")
        first += _use(name, "READ_VARIABLE", [], [inputs[name]], "read/")
        last += _use(name, "ASSIGN_VARIABLE", [outputs[f"{name}{NEXT}"]], [], "assign/")
    init.operators = once
    begin = Operator("CALL_ONCE", [], [], {"init_subgraph_index": init}, "first_run")
    following = {f"{name}{NEXT}" for name in names}
    kept = {name: value for name, value in outputs.items() if name not in following}
    left = {name: value for name, value in inputs.items() if name not in names}
    return replace(
        graph,
        inputs=[*left.values()],
        input_names=[*left],
        outputs=[*kept.values()],
        output_names=[*kept],
        operators=[begin, *first, *graph.operators, *last],
    )


def _is_state(value: Value, following: Value | None) -> bool:
    return (
        following is not None
        and (value.dtype, value.shape) == (following.dtype, following.shape)
        and not is_symbolic(value.shape)
    )


def _use(name: str, type: str, given: list[Value | None], made: list[Value], prefix: str) -> list[Operator]:
    """Returns the operator with a handle of the variable of its own."""
    handle = Value(f"{prefix}{name}", RESOURCE, ())
    options = {"container": "", "shared_name": name}
    return [
        Operator("VAR_HANDLE", [], [handle], {**options}, f"{prefix}{name}_handle"),
        Operator(type, [handle, *given], made, {}, f"{prefix}{name}_use"),
    ]


def _starts(module: TracedModule) -> Arrays:
    if module.example is None or module.graph is None:
        return {}
    nodes = (node.expr for node in module.graph.inputs[1:])
    names = [each.name for each in nodes if isinstance(each, Input)]
    return dict(zip(names, module.example.inputs, strict=False))


def _start(value: Value, array: np.ndarray | None) -> np.ndarray:
    """Returns the elements of the first run in the layout and type of the file."""
    array = np.zeros(value.shape, np.float32) if array is None else array
    if array.ndim == 4 and array.shape != tuple(map(example, value.shape)):
        array = array.transpose(0, 2, 3, 1)
    if value.quantization is not None and array.dtype.kind == "f":
        scale, zero_point = value.quantization.scale, value.quantization.zero_point
        ends, zeros = np.iinfo(value.dtype), (0,) if zero_point is None else tuple(zero_point.tolist())
        qparams = QParams(value.dtype.name, tuple(scale.tolist()), zeros, int(ends.min), int(ends.max))
        array = quantize(array, qparams)
    return np.ascontiguousarray(array.astype(value.dtype))
