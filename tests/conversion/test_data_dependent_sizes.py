"""Results whose size depends on the data: as many as are found, in ONNX Runtime beside MegEngine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from ai_edge_litert import interpreter as litert

import tmconvert
from tmconvert.errors import Refusal, UnsupportedError
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.node import TensorNode
from tmconvert.ir.parser import parse_graph
from tmconvert.ir.symbolic.data_dependent import agree, anonymous, data_symbols, found, named
from tmconvert.ir.symbolic.dims import dim, of, sole_symbol
from tmconvert.ir.symbolic.journal import SizeJournal
from tmconvert.ir.types import TensorType
from tmconvert.ir.verifier import verify_graph
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.symbolics.registry import catalogue
from tmconvert.verification.reference import Reference
from tmconvert.verification.references import References
from tmconvert.verification.verify import verify_written

FOLDER = Path(__file__).parents[1] / "data/made/found"
FLOAT = np.dtype(np.float32)
# (model, opset)
FILES = [
    *(("masks", opset) for opset in (9, 11, 13, 17, 21)),
    *(("rows", opset) for opset in (9, 10, 11, 13, 17, 21)),
    *(("best", opset) for opset in (11, 13, 17, 21)),
    *(("detector", opset) for opset in (11, 13, 17, 21)),
]


@pytest.mark.parametrize(("name", "opset"), FILES)
def test_model(name: str, opset: int, tmp_path: Path) -> None:
    """Of several inputs, in the last of which nothing is found."""
    report = tmconvert.to_onnx(FOLDER / f"{name}.tm", tmp_path / "net.onnx", opset=opset)
    assert report.verified
    assert_computes(name, tmp_path / "net.onnx")


def assert_computes(name: str, path: Path) -> None:
    truth = np.load(FOLDER / f"{name}.npz")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    inputs = [each.name for each in session.get_inputs()]
    for call in range(4):
        feeds = {each: truth[f"{call}_in{i}"] for i, each in enumerate(inputs)}
        for i, actual in enumerate(session.run(None, feeds)):
            expected = truth[f"{call}_out{i}"]
            assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["masks", "rows", "detector", "best"])
def test_interpreter_of_the_source(name: str) -> None:
    truth, module = np.load(FOLDER / f"{name}.npz"), tmconvert.load(FOLDER / f"{name}.tm")
    for call in range(4):
        inputs = [truth[key] for key in truth.files if key.startswith(f"{call}_in")]
        for i, actual in enumerate(module(*inputs)):
            expected = truth[f"{call}_out{i}"]
            assert actual.shape == expected.shape
            np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_outputs_have_named_sizes(tmp_path: Path) -> None:
    report = tmconvert.to_onnx(FOLDER / "masks.tm", tmp_path / "net.onnx", opset=17)
    assert [each["shape"] for each in report.outputs[:3]] == [["found_1"], ["found_2", 4], ["found_2+2", 4]]
    written = onnx.load(tmp_path / "net.onnx").graph.output
    assert written[0].type.tensor_type.shape.dim[0].dim_param == "found_1"


def test_beside_dynamic_sizes(tmp_path: Path) -> None:
    report = tmconvert.to_onnx(
        FOLDER / "detector.tm",
        tmp_path / "net.onnx",
        dynamic_shapes={"boxes": {0: "n"}, "scores": {0: "n"}},
    )
    assert [each["shape"] for each in report.inputs] == [["n", 4], ["n"]]
    assert_computes("detector", tmp_path / "net.onnx")


def test_equal_sizes_of_two_searches(tmp_path: Path) -> None:
    """They are known where both search the same elements, and else assumed."""
    report = tmconvert.to_onnx(FOLDER / "rows.tm", tmp_path / "net.onnx", opset=17)
    assert not any("the file is valid for" in note for note in report.notes)
    torch = pytest.importorskip("torch")

    def other(x):
        made = x + 1
        made[-x < 0] = x[x > 0] * 2
        return made

    x = torch.randn(2, 5)
    report = tmconvert.to_onnx(other, tmp_path / "other.onnx", example_inputs=[x], opset=17)
    assert "the file is valid for these sizes: found_1 == found_2" in report.notes


@pytest.mark.parametrize(
    ("name", "opset", "reason", "help"),
    [
        ("masks", 8, "no ONNX symbolic for aten::nonzero at opset 8", "11"),
        ("detector", 10, "infers for a slice with constant bounds", "11"),
        ("rows", 8, "setitem_out_index_copy (aten::index_copy) requires a static size", "9"),
    ],
)
def test_old_opsets(name: str, opset: int, reason: str, help: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.to_onnx(FOLDER / f"{name}.tm", tmp_path / "net.onnx", opset=opset)
    assert reason in caught.value.message
    assert f"use --opset {help}" in str(caught.value)


@pytest.mark.parametrize("name", ["masks", "rows", "detector", "best"])
def test_tflite(name: str, tmp_path: Path) -> None:
    """Of several inputs, in the last of which nothing is found."""
    path = tmp_path / "net.tflite"
    assert tmconvert.to_tflite(FOLDER / f"{name}.tm", path, io_layout="source").verified
    truth = np.load(FOLDER / f"{name}.npz")
    inputs = [f"in{i}" for i in range(sum(key.startswith("0_in") for key in truth.files))]
    interpreter = litert.Interpreter(
        str(path), experimental_op_resolver_type=litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    )
    for call in range(4):
        interpreter.allocate_tensors()
        for described, key in zip(interpreter.get_input_details(), inputs, strict=True):
            interpreter.set_tensor(described["index"], truth[f"{call}_{key}"])
        interpreter.invoke()
        for i, described in enumerate(interpreter.get_output_details()):
            expected = truth[f"{call}_out{i}"]
            assert described["shape"].tolist() == list(expected.shape)
            if expected.size:
                actual = interpreter.get_tensor(described["index"])
                np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


def test_caffe_refuses(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="a Caffe net has static sizes only"):
        tmconvert.to_caffe(FOLDER / "masks.tm", tmp_path / "net.prototxt")


# ---- the sizes themselves


def size(number: int = 1, most: int = 12) -> object:
    (type_,) = named([TensorType(FLOAT, (found(most),))], InternalGraph("net"))
    symbol = sole_symbol(type_.shape[0])
    assert symbol is not None
    return of(type(symbol)(f"found_{number}", most, from_data=True))


def test_stand_ins_get_names_that_are_new_to_the_graph() -> None:
    graph = InternalGraph("net")
    graph.add_input(TensorNode("x", (dim("found_1", 4),), FLOAT))
    values, counts = named([TensorType(FLOAT, (found(9),)), TensorType(FLOAT, (found(9), 2))], graph)
    assert str(values) == "f32[found_2]"
    assert str(counts) == "f32[found_2,2]"
    assert sole_symbol(values.shape[0]).example == 9


def test_types_agree_whatever_the_names() -> None:
    rule = [TensorType(FLOAT, (found(9),)), TensorType(FLOAT, (found(9), 2))]
    assert agree(rule, [TensorType(FLOAT, (size(3),)), TensorType(FLOAT, (size(3), 2))])
    assert agree(rule, [TensorType(FLOAT, (5,)), TensorType(FLOAT, (5, 2))])
    assert not agree(rule, [TensorType(FLOAT, (size(3),)), TensorType(FLOAT, (size(4), 2))])
    assert not agree(rule, [TensorType(FLOAT, (size(3),)), TensorType(FLOAT, (size(3), 3))])
    assert anonymous([TensorType(FLOAT, (size(3),))]) == anonymous([TensorType(FLOAT, (size(7, 99),))])


def test_a_size_of_the_data_may_be_zero_and_is_never_a_number() -> None:
    with SizeJournal() as journal:
        n = size()
        assert n >= 0
        assert n + 1 > 0
        assert n != 1
        assert 4 * n % n == 0
        with pytest.raises(Refusal, match="whether found_1 > 0 is data-dependent"):
            _ = n > 0
        with pytest.raises(Refusal, match="the size found_1 is data-dependent"):
            range(n)
    assert journal.specialized == {}


def test_equal_calls_find_as_many() -> None:
    graph = InternalGraph("net")
    x = graph.add_input(TensorNode("x", (3, 4), FLOAT))
    g = GraphEmitter(graph, catalogue(), made_by="test")
    first, second = g.call("aten::nonzero", x), g.call("aten::nonzero", x)
    other = g.call("aten::nonzero", g.call("aten::neg", x))
    assert first is second
    assert (str(first.type), str(other.type)) == ("i64[found_1,2]", "i64[found_2,2]")


def test_inputs_in_which_too_few_are_found() -> None:
    """The model asks for just two places, which random inputs do not have."""
    graph = InternalGraph("net")
    x = graph.add_input(TensorNode("x", (3, 4), FLOAT))
    g = GraphEmitter(graph, catalogue(), made_by="test")
    with SizeJournal() as journal:
        graph.set_result(g.call("aten::reshape", g.call("aten::nonzero", x), [2, 2]))
    assert journal.summary() == ["the file is valid for these sizes: 2*found_1 == 4"]
    references = References([Reference(graph, catalogue())], None)
    target = TargetGraph("onnx", 17, "net")
    assert verify_written("onnx", [Path("net.onnx")], target, references) is None
    assert references.notes[0].startswith("not verified: the model itself fails for these inputs")


def test_text_form_and_reference() -> None:
    graph = InternalGraph("net")
    x = graph.add_input(TensorNode("x", (3, 4), FLOAT))
    g = GraphEmitter(graph, catalogue(), made_by="test")
    places = g.call("aten::nonzero", x)
    graph.set_result(g.call("aten::reshape", places, [2 * places.shape[0]]))
    text = graph.to_text()
    assert "{found_1=12?}" in text
    again = parse_graph(text)
    verify_graph(again, catalogue())
    assert again.to_text() == text
    assert data_symbols(again.outputs[0].shape)
    (result,) = Reference(again, catalogue()).run([np.eye(3, 4, dtype=np.float32)])
    np.testing.assert_array_equal(result, [0, 0, 1, 1, 2, 2])
