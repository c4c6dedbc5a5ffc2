"""Graphs that are run piece by piece: the results are those of the whole file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

import tmconvert
from tmconvert.errors import VerificationError
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.onnx.runtime import OnnxRuntime
from tmconvert.verification import pieces
from tmconvert.verification.pieces import InPieces, is_large, pieces_of, write_graph

torch = pytest.importorskip("torch")
F32 = np.dtype(np.float32)


def value(name: str, shape: tuple[int | str, ...], stored: np.ndarray | None = None) -> Value:
    return Value(name, np.dtype(bool) if name == "choice" else F32, shape, stored)


def chain(count: int) -> TargetGraph:
    """Returns products in a row; the last adds the result of the first, and all intermediate ones."""
    random = np.random.default_rng(0)
    results = [value("x", ("batch", 8))]
    operators = []
    for number in range(count):
        weight = value(f"w{number}", (8, 8), random.standard_normal((8, 8), np.float32))
        results.append(value(f"y{number}", ("batch", 8)))
        operators.append(Operator("MatMul", [results[-2], weight], [results[-1]], {}, f"op{number}"))
    results.append(value("sum", ("batch", 8)))
    operators.append(Operator("Sum", list(results[:-1]), [results[-1]], {}, "all"))
    outputs = [results[-1], results[2], results[0]]
    return TargetGraph(
        "onnx", 17, "net", results[:1], outputs, operators, ["x"], [each.name for each in outputs]
    )


@pytest.mark.parametrize("limit", [0, 256, 600, 1 << 20])
def test_pieces_compute_what_the_file_does(
    limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "PIECE", limit)
    graph = chain(5)
    graph.outputs.pop()  # an input, which is no operator's result
    graph.output_names.pop()
    run = InPieces(OnnxRuntime(), graph)
    assert len(run.pieces) == {0: 6, 256: 5, 600: 3, 1 << 20: 1}[limit]
    given = {"x": np.random.default_rng(1).standard_normal((3, 8), np.float32)}
    wanted = OnnxRuntime().run(write_graph(graph, tmp_path, "whole"), given, graph.output_names)
    found = run.run([], given, graph.output_names)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)
    assert [each.shape for each in run.run([], given, ["y1"])] == [(3, 8)]


def test_an_input_and_a_constant_may_be_outputs() -> None:
    graph = chain(2)
    constant = value("c", (2,), np.array([3, 4], np.float32))
    graph.outputs.append(constant)
    graph.output_names.append("c")
    x = np.ones((1, 8), np.float32)
    *_, same, stored = InPieces(OnnxRuntime(), graph).run([], {"x": x}, graph.output_names)
    np.testing.assert_array_equal(same, x)
    np.testing.assert_array_equal(stored, [3, 4])


@pytest.mark.parametrize("choice", [True, False])
def test_branches_read_results_of_earlier_pieces(
    choice: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "PIECE", 0)
    graph = chain(2)
    graph.outputs.pop()
    graph.output_names.pop()
    first, weight = graph.operators[0].outputs[0], graph.operators[0].inputs[1]
    branches: list[TargetGraph] = []
    for type_ in ("MatMul", "Gemm"):
        inner, result = value(f"{type_}/inner", ("batch", 8)), value(f"{type_}/y", ("batch", 8))
        operators = [
            Operator(type_, [first, weight], [inner], {}, type_),
            Operator("Neg", [inner], [result], {}, f"{type_}/neg"),
        ]
        branches.append(TargetGraph("onnx", 17, type_, [], [result], operators, [], [result.name]))
    condition, chosen = value("choice", ()), value("chosen", ("batch", 8))
    attributes = {"then_branch": branches[0], "else_branch": branches[1]}
    graph.operators.append(Operator("If", [condition], [chosen], attributes, "if"))
    graph.inputs.append(condition)
    graph.input_names.append("choice")
    graph.outputs.append(chosen)
    graph.output_names.append("chosen")
    given = {"x": np.ones((2, 8), np.float32), "choice": np.array(choice)}
    wanted = OnnxRuntime().run(write_graph(graph, tmp_path, "whole"), given, ["chosen"])
    found = InPieces(OnnxRuntime(), graph).run([], given, ["chosen"])
    np.testing.assert_array_equal(found[0], wanted[0])
    assert {each.name for each in pieces_of(graph)[-1].inputs} == {"choice", "y0"}


def test_results_without_types_are_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LARGE", 0)
    graph = chain(2)
    assert is_large(graph)
    graph.operators[0].outputs[0].is_typed = False
    assert not is_large(graph)


class Layers(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x)) + x.mean(1, keepdim=True)
        return x


@pytest.mark.parametrize(
    ("target", "options"), [("onnx", {"weights": "int4", "opset": 21}), ("tflite", {"weights": "int8"})]
)
def test_large_models_are_compared_in_pieces(
    target: str, options: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "LARGE", 1 << 14)
    monkeypatch.setattr(pieces, "PIECE", 1 << 15)
    convert = getattr(tmconvert, f"to_{target}")
    report = convert(Layers(), tmp_path / f"o.{target}", example_inputs=[torch.randn(2, 5, 64)], **options)
    assert report.verified
    assert any("pieces, each with the weights of a few layers" in note for note in report.notes)


def test_a_wrong_piece_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "LARGE", 0)
    monkeypatch.setattr(pieces, "PIECE", 1 << 14)
    wrong = pieces.write_graph

    def spoilt(graph: TargetGraph, folder: Path, name: str) -> Sequence[Path]:
        paths = wrong(graph, folder, name)
        model = onnx.load(paths[0])
        for node in model.graph.node:
            if node.op_type == "Tanh":
                node.op_type = "Sin"
        onnx.save(model, paths[0])
        return paths

    monkeypatch.setattr(pieces, "write_graph", spoilt)
    with pytest.raises(VerificationError, match="TM4001"):
        tmconvert.to_onnx(
            Layers(), tmp_path / "o.onnx", example_inputs=[torch.randn(2, 5, 64)], weights="int8"
        )
