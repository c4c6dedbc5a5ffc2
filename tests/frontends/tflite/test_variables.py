"""Variables of TFLite files as inputs and outputs: run by run as in LiteRT, which keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import onnxruntime
import pytest

import tmconvert
from tmconvert.errors import TmconvertError

schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
from ai_edge_litert.interpreter import Interpreter  # noqa: E402

START = np.array([[1.5, -2.0]], np.float32)
READ, ASSIGN = "READ_VARIABLE", "ASSIGN_VARIABLE"


class Graph:
    """A subgraph of float32 tensors of shape [1, 2] and of handles of variables."""

    def __init__(self, model: Any) -> None:
        self.model, self.made = model, schema.SubGraphT()
        self.made.tensors, self.made.operators, self.made.inputs, self.made.outputs = [], [], [], []

    def tensor(self, name: str, data: np.ndarray | None = None, kind: int = 0) -> int:
        buffer, tensor = schema.BufferT(), schema.TensorT()
        buffer.data = None if data is None else list(data.tobytes())
        self.model.buffers.append(buffer)
        tensor.name, tensor.type, tensor.shape = name, kind, [] if kind else [1, 2]
        tensor.buffer = len(self.model.buffers) - 1
        self.made.tensors.append(tensor)
        return len(self.made.tensors) - 1

    def call(self, name: str, inputs: Sequence[int], outputs: Sequence[int], **options: Any) -> int:
        code, operator = schema.OperatorCodeT(), schema.OperatorT()
        code.builtinCode = getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
        self.model.operatorCodes.append(code)
        operator.opcodeIndex = len(self.model.operatorCodes) - 1
        operator.inputs, operator.outputs = list(inputs), list(outputs)
        words = "".join(word.capitalize() for word in name.split("_")) + "Options"
        operator.builtinOptions = getattr(schema, f"{words}T")()
        operator.builtinOptionsType = getattr(schema.BuiltinOptions, words)
        vars(operator.builtinOptions).update(options)
        self.made.operators.append(operator)
        return outputs[0] if outputs else -1

    def variable(self, name: str) -> int:
        return self.call("VAR_HANDLE", [], [self.tensor(f"handle {name}", kind=13)], sharedName=name)

    def read(self, handle: int) -> int:
        return self.call(READ, [handle], [self.tensor(f"read {len(self.made.tensors)}")])

    def add(self, one: int, two: int) -> int:
        return self.call("ADD", [one, two], [self.tensor(f"sum {len(self.made.tensors)}")])


def saved(path: Path, kind: str = "") -> Path:
    """Writes a model with the variables ``s/sum``, which grows unless ``kind`` is fixed, and ``fixed``."""
    model = schema.ModelT()
    model.version, model.operatorCodes, model.subgraphs = 3, [], []
    model.buffers = [schema.BufferT()]
    main, start = Graph(model), Graph(model)
    x = main.tensor("x")
    main.call("CALL_ONCE", [], [], initSubgraphIndex=1)
    total, fixed = main.variable("s/sum"), main.variable("fixed")
    made = main.add(main.read(total), x)
    if kind != "fixed":
        main.call(ASSIGN, [total, made], [])
        made = main.add(made, main.read(total))  # the value of now, not of the start
        if kind == "as handle":
            main.call("ADD", [total, x], [main.tensor("wrong")])
    made = main.add(made, main.read(fixed))
    main.made.inputs, main.made.outputs = [x], [made]
    for name, value in (("s/sum", START), ("fixed", START * 2)):
        start.call(ASSIGN, [start.variable(name), start.tensor(f"start {name}", value)], [])
    model.subgraphs = [main.made, start.made]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    path.write_bytes(bytes(builder.Output()))
    return path


def test_each_run_computes_what_litert_does(tmp_path: Path) -> None:
    source, converted = saved(tmp_path / "source.tflite"), tmp_path / "net.tflite"
    report = tmconvert.to_onnx(source, tmp_path / "net.onnx", state=["s/sum"])
    tmconvert.to_tflite(source, converted, state=["all"])
    assert "the input s_sum is the variable s/sum, what CALL_ONCE assigns at the first run" in report.notes
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    runner = Interpreter(model_path=str(converted)).get_signature_runner()
    litert = Interpreter(model_path=str(source))
    litert.allocate_tensors()
    state = again = START
    for number in range(3):
        x = np.array([[number, 0.25]], np.float32)
        litert.set_tensor(litert.get_input_details()[0]["index"], x)
        litert.invoke()
        expected = litert.get_tensor(litert.get_output_details()[0]["index"])
        made, state = session.run([session.get_outputs()[0].name, "s_sum_next"], {"x": x, "s_sum": state})
        results = runner(x=x, s_sum=again)
        again = results.pop("s_sum_next")
        for each in (made, *results.values()):
            np.testing.assert_array_equal(each, expected)


def test_variables_that_nothing_assigns_are_constants(tmp_path: Path) -> None:
    assert tmconvert.to_onnx(saved(tmp_path / "a.tflite", "fixed"), tmp_path / "a.onnx").verified


@pytest.mark.parametrize(
    ("kind", "state", "pattern"),
    [
        ("", None, r"TM2023.*the variables s/sum last from run to run(.|\n)*--state all"),
        ("", ["other"], r"TM6014.*no variable 'other'(.|\n)*s/sum"),
        ("fixed", ["all"], r"TM6014.*no variables that last"),
        ("as handle", ["all"], r"TM2023.*takes a variable itself"),
    ],
)
def test_what_is_refused(kind: str, state: list[str] | None, pattern: str, tmp_path: Path) -> None:
    with pytest.raises(TmconvertError, match=pattern):
        tmconvert.to_onnx(saved(tmp_path / "a.tflite", kind), tmp_path / "a.onnx", state=state)
