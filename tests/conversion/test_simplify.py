"""ONNX files that are simplified: nodes that cannot be converted stay, and no model is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

import tmconvert
from tests.cli.runner import run
from tmconvert.errors import TmconvertError

FLOAT = TensorProto.FLOAT
Node = onnx.NodeProto


def value(name: str, shape: Sequence[int | str] | None, type_: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type_, shape)


def model(
    nodes: Sequence[Node],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    constants: dict[str, Any] | None = None,
    **others: Any,
) -> onnx.ModelProto:
    stored = [onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()]
    graph = helper.make_graph(nodes, "net", inputs, outputs, stored)
    opsets = [
        helper.make_opsetid("", 18),
        helper.make_opsetid("com.microsoft", 1),
        helper.make_opsetid("own", 2),
    ]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, **others)


def make(kind: str, *edges: str, **attributes: Any) -> Node:
    """Returns the node ``kind`` whose operands and results are separated by "->"."""
    at = edges.index("->")
    domain, _, name = kind.rpartition(".")
    return helper.make_node(name, edges[:at], edges[at + 1 :], domain=domain, **attributes)


def outputs_of(proto: onnx.ModelProto, given: dict[str, np.ndarray]) -> list[Any]:
    return onnxruntime.InferenceSession(proto.SerializeToString()).run(None, given)


def kinds(proto: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in proto.graph.node)


X = np.linspace(-2, 2, 32, dtype=np.float32).reshape(1, 2, 4, 4)
IMAGE, ANY = value("x", [1, 2, 4, 4]), value("y", ["n", "c", "h", "w"])
BODY = helper.make_graph(
    [make("Identity", "a", "->", "then")], "body", [], [helper.make_tensor_value_info("then", FLOAT, None)]
)
OTHER = helper.make_graph(
    [
        make("Neg", "a", "->", "a2"),
        make("Size", "a2", "->", "s"),
        make("Resize", "a2", "", "scales", "->", "els"),
    ],
    "other",
    [],
    [helper.make_tensor_value_info("els", FLOAT, None)],
)
SEQUENCE = [
    make("Relu", "x", "->", "a"),
    make("SequenceConstruct", "a", "x", "->", "q"),
    make("SequenceAt", "q", "i", "->", "b"),
    make("Identity", "b", "->", "c"),
    make("Relu", "c", "->", "y"),
]
IDLE = [make("Identity", "x", "->", "x2"), make("Relu", "x2", "->", "a")]
KEPT: dict[str, tuple[onnx.ModelProto, dict[str, np.ndarray], str]] = {
    "scales from the data": (
        model(
            [*IDLE, make("Resize", "a", "", "scales", "->", "b"), make("Identity", "b", "->", "y")],
            [IMAGE, value("scales", [4])],
            [ANY],
        ),
        {"x": X, "scales": np.float32([1, 1, 2, 1])},
        "Resize",
    ),
    "axes from the data": (
        model(
            [*IDLE, make("ReduceSum", "a", "axes", "->", "b"), make("Identity", "b", "->", "y")],
            [IMAGE, value("axes", [1], TensorProto.INT64)],
            [ANY],
        ),
        {"x": X, "axes": np.int64([2])},
        "ReduceSum",
    ),
    "operators of another domain": (
        model(
            [
                *IDLE,
                make("com.microsoft.BifurcationDetector", "t", "t", "p", "->", "o", "n"),
                make("Identity", "o", "->", "z"),
                make("Identity", "a", "->", "y"),
            ],
            [IMAGE, value("t", [3], TensorProto.INT64), value("p", [1], TensorProto.INT64)],
            [ANY, value("z", ["n"], TensorProto.INT64)],
        ),
        {"x": X, "t": np.int64([1, 2, 3]), "p": np.int64([0])},
        "BifurcationDetector",
    ),
    "a subgraph that captures": (
        model(
            [
                *IDLE,
                make("If", "flag", "->", "b", then_branch=BODY, else_branch=OTHER),
                make("Identity", "b", "->", "y"),
            ],
            [IMAGE, value("flag", [], TensorProto.BOOL), value("scales", [4])],
            [ANY],
        ),
        {"x": X, "flag": np.array(False), "scales": np.float32([1, 1, 2, 1])},
        "If",
    ),
    "sequences": (
        model(SEQUENCE, [IMAGE, value("i", [], TensorProto.INT64)], [ANY]),
        {"x": X, "i": np.array(0)},
        "SequenceAt",
    ),
}


@pytest.mark.parametrize("convert", [tmconvert.simplify, tmconvert.to_onnx])
@pytest.mark.parametrize("case", KEPT)
def test_keeps_nodes_that_cannot_be_converted(case: str, convert: Callable[..., Any]) -> None:
    proto, given, kept = KEPT[case]
    report = convert(proto)
    made = report.model
    onnx.checker.check_model(made)
    assert kinds(made)[kept] == 1
    assert "Identity" not in kinds(made)
    assert any("stayed as in the model" in note and kept in note for note in report.notes)
    assert [each.name for each in made.graph.input] == [each.name for each in proto.graph.input]
    assert list(made.graph.output) == list(proto.graph.output)
    for one, other in zip(outputs_of(made, given), outputs_of(proto, given), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(("opset", "written"), [(None, 18), ("auto", 18), (18, 18), (19, None)])
def test_a_conversion_keeps_nodes_where_they_mean_the_same(opset: int | None, written: int | None) -> None:
    proto = KEPT["scales from the data"][0]  # opset 18, whose Resize differs from those of 17 and 19
    if written is None:
        with pytest.raises(TmconvertError, match=r"Resize cannot stay(.|\n)*--opset 18"):
            tmconvert.to_onnx(proto, opset=opset)
    else:
        report = tmconvert.to_onnx(proto, opset=opset)
        assert report.version == report.model.opset_import[0].version == written


def test_nodes_stay_that_mean_something_else_in_the_runtime() -> None:
    """ONNX states that a product that a mask takes away is -inf; ONNX Runtime gives the lowest float."""
    attributes = {"is_causal": 1, "qk_matmul_output_mode": 2, "q_num_heads": 2, "kv_num_heads": 2}
    nodes = [
        make("Abs", "q", "->", "a"),
        make("Attention", "a", "k", "k", "m", "->", "y", "", "", "s", **attributes),
    ]
    edges = [value("q", [1, 3, 8]), value("k", [1, 5, 8]), value("m", [3, 5])]
    proto = model(nodes, edges, [value("y", [1, 3, 8]), value("s", [1, 2, 3, 5])])
    proto.opset_import[0].version = 23
    q, k = np.ones((1, 3, 8), np.float32), np.ones((1, 5, 8), np.float32)
    given = {"q": q, "k": k, "m": np.zeros((3, 5), np.float32)}
    if not np.isfinite(outputs_of(proto, given)[1]).all():
        pytest.skip("this ONNX Runtime computes what ONNX states")
    report = tmconvert.to_onnx(proto, opset=23)
    assert report.verified
    assert kinds(report.model) == {"Abs": 1, "Attention": 1}
    assert any("differ from the ONNX standard" in note for note in report.notes)


def test_a_conversion_does_not_verify_unknown_operators() -> None:
    report = tmconvert.to_onnx(UNCHANGED["an unknown operator"])
    assert not report.verified
    assert kinds(report.model) == {"Mystery": 1}
    with pytest.raises(TmconvertError, match="TM4006"):
        tmconvert.to_onnx(UNCHANGED["an unknown operator"], require_verified=True)


def gru(x: str, y: str) -> Node:
    return make("GRU", x, "w", "r", "->", y, hidden_size=4, linear_before_reset=1)


RMS = [
    *(make("Mul", "x", "x", "->", "a"), make("ReduceMean", "a", "axes", "->", "b")),
    *(make("Add", "b", "eps", "->", "c"), make("Sqrt", "c", "->", "d")),
    *(make("Div", "x", "d", "->", "e"), make("Mul", "e", "w", "->", "y")),
]
GELU = {"half": 0.5, "one": 1, "three": 3, "small": 0.044715, "slope": (2 / np.pi) ** 0.5}
# the model, its opset, and the operators that are left
SMALLER: dict[str, tuple[onnx.ModelProto, int, list[str]]] = {
    "layers whose axis of directions is removed": (
        model(
            [
                *(gru("x", "a"), make("Transpose", "a", "->", "b", perm=[0, 2, 1, 3])),
                *(make("Reshape", "b", "shape", "->", "c"), gru("c", "d")),
                *(
                    make("Transpose", "d", "->", "e", perm=[0, 2, 1, 3]),
                    make("Reshape", "e", "shape", "->", "y"),
                ),
            ],
            [value("x", [5, 2, 4])],
            [value("y", [5, 2, 4])],
            {
                **{name: np.linspace(-1, 1, 48, dtype=np.float32).reshape(1, 12, 4) for name in "wr"},
                "shape": np.int64([5, 2, 4]),
            },
        ),
        18,
        ["GRU", "Reshape", "GRU", "Reshape"],
    ),
    "a mean of one element": (
        model(
            [
                make("Relu", "x", "->", "a"),
                make("ReduceMean", "a", "axes", "->", "b"),
                make("Exp", "b", "->", "y"),
            ],
            [value("x", [1, 4, 1, 1])],
            [value("y", [1, 4, 1, 1])],
            {"axes": np.int64([2, 3])},
        ),
        18,
        ["Relu", "Exp"],
    ),
    "a normalization with a computed weight": (
        model(
            RMS,
            [value("x", [2, 3, 4]), value("w", [4])],
            [value("y", [2, 3, 4])],
            {"axes": np.int64([2]), "eps": np.float32(1e-5)},
        ),
        23,
        ["RMSNormalization"],
    ),
    "indices of two axes that count from the end": (
        model(
            [
                *(make("Identity", "i", "->", "a"), make("GatherElements", "x", "a", "->", "y", axis=1)),
                *(make("Gather", "x", "j", "->", "z", axis=1), make("Unsqueeze", "z", "axes", "->", "u")),
            ],
            [value("x", [2, 3]), *(value(name, [2, 2], TensorProto.INT64) for name in "ij")],
            [value("y", [2, 2]), value("u", [2, 1, 2, 2])],
            {"axes": np.int64([1])},
        ),
        18,
        ["GatherElements", "Gather", "Reshape"],
    ),
    "indices in their own shape": (
        model(
            [make("Relu", "x", "->", "a"), make("Gather", "a", "i", "->", "b"), make("Exp", "b", "->", "y")],
            [value("x", [2, 3]), value("i", [2, 2], TensorProto.INT64)],
            [value("y", [2, 2, 3])],
        ),
        18,
        ["Relu", "Gather", "Exp"],
    ),
    "rows of a table by indices of open sizes, through a GELU": (
        model(
            [
                *(make("Identity", "i", "->", "a"), make("Gather", "table", "a", "->", "b")),
                *(make("Mul", "b", "half", "->", "c"), make("Pow", "b", "three", "->", "d")),
                *(make("Mul", "d", "small", "->", "e"), make("Add", "b", "e", "->", "f")),
                *(make("Mul", "f", "slope", "->", "g"), make("Tanh", "g", "->", "h")),
                *(make("Add", "h", "one", "->", "k"), make("Mul", "c", "k", "->", "y")),
            ],
            [value("i", ["batch", "length"], TensorProto.INT64)],
            [value("y", ["batch", "length", 3])],
            {
                "table": np.linspace(-3, 3, 15, dtype=np.float32).reshape(5, 3),
                **{name: np.float32(number) for name, number in GELU.items()},
            },
        ),
        18,
        ["Gather", "Mul", "Mul", "Add", "Mul", "Sigmoid", "Mul"],
    ),
}


@pytest.mark.parametrize("case", SMALLER)
def test_leaves_fewer_nodes(case: str) -> None:
    proto, opset, left = SMALLER[case]
    proto.opset_import[0].version, proto.ir_version = opset, 11
    report = tmconvert.simplify(proto)
    assert report.verified
    assert not any("stayed" in note for note in report.notes)
    assert [node.op_type for node in report.model.graph.node] == left
    rng = np.random.default_rng(0)
    shapes = {
        each.name: [d.dim_value or 2 for d in each.type.tensor_type.shape.dim] for each in proto.graph.input
    }
    given: dict[str, Any] = {
        name: rng.integers(-2, 2, shape) if name in "ij" else np.float32(rng.standard_normal(shape))
        for name, shape in shapes.items()
    }
    for one, other in zip(outputs_of(report.model, given), outputs_of(proto, given), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


UNCHANGED = {
    "strings": model(
        [make("StringConcat", "x", "x", "->", "a"), make("Identity", "a", "->", "y")],
        [value("x", [2], TensorProto.STRING)],
        [value("y", [2], TensorProto.STRING)],
    ),
    "an unknown operator": model([make("own.Mystery", "x", "->", "y", power=2)], [IMAGE], [ANY]),
    "random numbers": model([make("RandomNormalLike", "x", "->", "y")], [IMAGE], [ANY]),
    "one node that would become several": model(
        [make("Sub", "x", "x2", "->", "y")],
        [value(name, [3], TensorProto.UINT32) for name in ("x", "x2")],
        [value("y", [3], TensorProto.UINT32)],
    ),
}


@pytest.mark.parametrize("case", UNCHANGED)
def test_a_model_that_cannot_be_simplified_is_copied(case: str, tmp_path: Path) -> None:
    source, path = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(UNCHANGED[case], source)
    report = tmconvert.simplify(source, path)
    assert path.read_bytes() == source.read_bytes()
    assert not report.verified
    assert any("unchanged" in note for note in report.notes)


def test_a_defect_is_told_where_the_model_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(model([make("Relu", "x", "->", "y")], [value("x", [2])], [value("y", [2])]), source)
    monkeypatch.setattr("tmconvert.conversion.simplify.convert", lambda *_: {}["a"])
    report = tmconvert.simplify(source, out)
    assert out.read_bytes() == source.read_bytes()
    assert "this is a defect of tmconvert, please report it: TM9000: KeyError: 'a'" in report.notes


def test_a_copy_has_its_weights(tmp_path: Path) -> None:
    weight = np.ones((2, 300), np.float32)
    proto = model([make("own.Mystery", "x", "w", "->", "y")], [IMAGE], [ANY], {"w": weight})
    (tmp_path / "in").mkdir()
    onnx.save(
        proto, tmp_path / "in" / "a.onnx", save_as_external_data=True, location="w.bin", size_threshold=0
    )
    tmconvert.simplify(tmp_path / "in" / "a.onnx", tmp_path / "b.onnx")
    read = onnx.load(tmp_path / "b.onnx").graph.initializer[0]
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(read), weight)


def test_a_node_that_grows_stays_where_others_are_simplified() -> None:
    nodes = [make("Sub", "p", "q", "->", "d"), make("Cast", "d", "->", "f", to=FLOAT)]
    inputs = [IMAGE, *(value(name, [4], TensorProto.UINT32) for name in "pq")]
    made = tmconvert.simplify(model([*IDLE, *nodes, make("Add", "a", "f", "->", "y")], inputs, [ANY])).model
    assert kinds(made) == {"Relu": 1, "Sub": 1, "Cast": 1, "Add": 1}


def test_keeps_opset_and_metadata() -> None:
    proto = model([*IDLE, make("Identity", "a", "->", "y")], [IMAGE], [value("y", [1, 2, 4, 4])])
    proto.metadata_props.add(key="classes", value="a,b")
    proto.doc_string, proto.model_version = "a net", 3
    report = tmconvert.simplify(proto)
    made = report.model
    assert report.verified
    assert (made.doc_string, made.model_version, made.graph.name) == ("a net", 3, "net")
    assert {"classes": "a,b"}.items() <= {each.key: each.value for each in made.metadata_props}.items()
    assert next(each.version for each in made.opset_import if not each.domain) == 18
    assert kinds(made) == {"Relu": 1}


def test_names_of_kept_values_are_free() -> None:
    """The converted part has values of its own, which must not have the names of kept ones."""
    nodes = [
        make("Mul", "x", "w", "->", "a"),
        make("Resize", "a", "", "w2", "->", "b"),
        make("Mul", "b", "w2_", "->", "y"),
    ]
    inputs = [IMAGE, value("p", [4])]
    constants = {"w": np.float32(2), "w2_": np.float32(3)}
    proto = model([make("Mul", "p", "w", "->", "w2"), *nodes], inputs, [ANY], constants)
    given = {"x": X, "p": np.float32([0.5, 0.5, 0.5, 1])}
    np.testing.assert_array_equal(
        outputs_of(tmconvert.simplify(proto).model, given), outputs_of(proto, given)
    )


def test_kept_nodes_are_the_same_in_another_opset() -> None:
    proto, _, _ = KEPT["a subgraph that captures"]  # has Resize, which opset 19 changed
    with pytest.raises(TmconvertError, match="Resize, Size cannot stay"):
        tmconvert.simplify(proto, opset=20)
    other = tmconvert.simplify(KEPT["axes from the data"][0], opset=20).model  # ReduceSum is of opset 13
    assert next(each.version for each in other.opset_import if not each.domain) == 20


def test_options_that_change_the_model_are_not_dropped() -> None:
    with pytest.raises(TmconvertError):
        tmconvert.simplify(UNCHANGED["an unknown operator"], input_shapes={"x": [1, 2, 8, 8]})


@pytest.mark.parametrize("damaged", [b"", b"no model", b"\x08\x09:\x03\x01\x02\x03"])
def test_refuses_what_is_no_model(damaged: bytes, tmp_path: Path) -> None:
    (tmp_path / "in.onnx").write_bytes(damaged)
    with pytest.raises(TmconvertError) as caught:
        tmconvert.simplify(tmp_path / "in.onnx", tmp_path / "out.onnx")
    assert caught.value.code.startswith("TM10")
    assert not (tmp_path / "out.onnx").exists()


def test_command(tmp_path: Path) -> None:
    source, path = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(KEPT["scales from the data"][0], source)
    outcome = run("simplify", source, path)
    assert outcome.status == 0
    assert "1 node stayed as in the model: Resize" in outcome.stderr
    assert f"{path}  (ONNX opset 18, 2 operators, 0 parameters)" in outcome.stdout
