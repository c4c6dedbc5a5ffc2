"""One broken graph for each invariant, and what the error says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tmconvert.errors import GraphError
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    InternalGraph,
    ModuleNode,
    QParams,
    TensorNode,
    TensorType,
)
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.parser import parse_graph
from tmconvert.ir.verifier import verify_graph
from tmconvert.symbolics.op import SOURCE, Attribute, Op, Tensor
from tmconvert.symbolics.registry import Catalogue, catalogue
from tmconvert.symbolics.results import same_as

GOOD = """\
graph net(%x: f32[2,3]) -> (%z) {
  %w = aten::constant() {value=[1.5, -0.5, 2.0]} : f32[3] q{dtype="int8", scale=[0.5], zero_point=[0], \
range=[-128, 127], channel_axis=none} by("fold")
  %y = aten::add(%x, %w) : f32[2,3]   loc("net.py":5)
  %z = aten::relu(%y) : f32[2,3]   loc("net.py":6, "act", "Act")
}
"""


def good() -> InternalGraph:
    graph = parse_graph(GOOD)
    verify_graph(graph, catalogue())
    return graph


def broken(text: str) -> GraphError:
    return error_of(parse_graph(text))


def error_of(graph: InternalGraph) -> GraphError:
    with pytest.raises(GraphError) as caught:
        verify_graph(graph, catalogue())
    assert caught.value.exit_status == 3
    return caught.value


def test_a_good_graph_passes() -> None:
    good()
    verify_graph(InternalGraph("empty"), catalogue())


def test_a_call_whose_types_changed_since_it_was_made_is_checked_again() -> None:
    graph = InternalGraph("net")
    x = graph.add_input(TensorNode("x", (2, 3), np.dtype(np.float32)), made_by="test")
    g = GraphEmitter(graph, catalogue(), made_by="test")
    y = g.call("aten::neg", x)
    graph.set_result(g.call("aten::relu", y))
    verify_graph(graph, catalogue(), {})
    y.type = TensorType(np.dtype(np.float32), (3, 2))
    with pytest.raises(GraphError, match=r"TM3015.*declared f32\[3,2\], computed f32\[2,3\]"):
        verify_graph(graph, catalogue(), {})
    y.shape = (2, 3)
    graph.relink(graph.outputs[0].expr, (x,), {"unknown": 1})
    with pytest.raises(GraphError, match="TM3014"):
        verify_graph(graph, catalogue(), {})


def test_the_error_shows_the_node_its_neighbours_and_the_line() -> None:
    error = broken(GOOD.replace("relu(%y) : f32[2,3]", "relu(%y) : f32[3,2]").replace("%z)", "%z)"))
    assert error.render().splitlines() == [
        "error[TM3015]: declared f32[3,2], computed f32[2,3]",
        "  --> net.py:6, in Act (act)",
        "   |",
        '   |    %y = aten::add(%x, %w) : f32[2,3]   loc("net.py":5)',
        '   |  > %z = aten::relu(%y) : f32[3,2]   loc("net.py":6, "act", "Act")',
        "   |",
    ]


# ---- TM3011: defined before used


def test_tm3011_used_before_defined() -> None:
    graph = good()
    _, add, relu = graph
    graph.set_arguments(add, (relu.output, add.args[1]), {})
    error = error_of(graph)
    assert error.code == "TM3011"
    assert error.message == "%z is used before it is defined"
    assert "> %y = aten::add(%z, %w)" in error.excerpt


def test_tm3011_from_another_graph() -> None:
    graph, other = good(), good()
    _, add, _ = graph
    graph.set_arguments(add, (other.inputs[0], add.args[1]), {})
    assert error_of(graph).code == "TM3011"


def test_tm3011_result_not_defined() -> None:
    graph = good()
    graph.set_result((TensorNode("ghost"),))
    error = error_of(graph)
    assert (error.code, error.message) == ("TM3011", "the result %ghost is not defined in the graph")


# ---- TM3012: one producer, one graph, uses as recorded


def test_tm3012_two_producers() -> None:
    graph = good()
    _, add, relu = graph
    relu.result = add.output
    graph.set_result(())
    error = error_of(graph)
    assert error.code == "TM3012"
    assert error.message == "%y has another producer or belongs to another graph"


def test_tm3012_belongs_to_another_graph() -> None:
    graph = good()
    graph.inputs[0].expr.graph = good()
    assert error_of(graph).code == "TM3012"


def test_tm3012_recorded_uses_are_wrong() -> None:
    graph = good()
    _, add, _ = graph
    add.args = (add.args[0], add.args[0])
    error = error_of(graph)
    assert error.code == "TM3012"
    assert "the recorded uses of %" in error.message


def test_tm3012_result_changed_behind_the_graphs_back() -> None:
    graph = good()
    graph.result = (graph.inputs[0],)
    error = error_of(graph)
    assert error.code == "TM3012"
    assert "differ from the graph's record" in error.message


# ---- TM3013: names


@pytest.mark.parametrize("name", ["x", "", "two\nlines", "\x1b[2J"])
def test_tm3013_names(name: str) -> None:
    graph = good()
    next(iter(graph)).outputs[0]._name = name
    error = error_of(graph)
    assert (error.code, error.message) == ("TM3013", f"the name {name!r} is used twice or not valid")


@pytest.mark.parametrize("name", ["two words", "ü", "%x", "input.1", "x:0"])
def test_names_of_a_source_file_are_valid_and_have_a_text_form(name: str) -> None:
    graph = good()
    graph.rename(next(iter(graph)).outputs[0], name)
    verify_graph(graph, catalogue())
    text = graph.to_text()
    assert parse_graph(text).to_text() == text


# ---- TM3014: the op and its arguments


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("aten::nonsense(%x)", "aten::nonsense is not in the catalogue"),
        ("aten::relu()", "aten::relu has another number of tensor arguments"),
        ("aten::relu(%x, %x)", "aten::relu has another number of tensor arguments"),
        ("aten::relu(none)", "aten::relu: x is missing"),
        ("aten::relu(5)", "an argument that is not a tensor is passed where a tensor is expected"),
        ("aten::relu([%x])", "aten::relu: x must be one tensor"),
        ("aten::relu(%x) {slope=2}", "too many arguments: 2"),
        ("aten::reshape(%x)", "aten::reshape: shape is missing"),
        ("aten::reshape(%x) {shape=[true, 6]}", "aten::reshape: shape: True is not an integer"),
        ("aten::softmax(%x) {dim=1.5}", "aten::softmax: dim: 1.5 is not an integer"),
    ],
)
def test_tm3014_arguments(line: str, message: str | None) -> None:
    error = broken(f'graph g(%x: f32[2,3]) -> (%y) {{\n  %y = {line} : f32[2,3]   loc("a.py":1)\n}}\n')
    assert error.code in ("TM3014", "TM3015")
    if message is not None:
        assert error.code == "TM3014"
        assert message in error.message or message.replace(": 2", ": slope") in error.message
    assert "> %y = " in error.excerpt


def test_tm3014_arguments_in_another_form_than_the_signatures() -> None:
    graph = parse_graph(
        'graph g(%x: f32[2,3]) -> (%y) {\n  %y = aten::relu(%x) : f32[2,3]   loc("a.py":1)\n}\n'
    )
    (relu,) = graph
    graph.set_arguments(relu, (), {"x": graph.inputs[0]})
    assert error_of(graph).code == "TM3014"


def test_tm3014_what_is_no_call() -> None:
    graph = good()
    x = graph.inputs[0]
    graph.insert(CallMethod("sum", (x,), result=TensorNode("s", (), x.dtype), made_by="test"))
    error = error_of(graph)
    assert (error.code, error.message) == ("TM3014", "a CallMethod is not allowed in a normalized graph")


def test_tensors_behind_attributes_are_bound_by_name() -> None:
    """ATen has signatures such as gather(x, dim, index)."""
    gather = Op(
        "t::gather",
        args=[Tensor("x"), Attribute("dim", int), Tensor("index")],
        result=same_as("x"),
        layout=SOURCE,
    )
    text = 'graph g(%x: f32[2]) -> (%y) {\n  %y = t::gather(%x, %x) {dim=0} : f32[2] by("test")\n}\n'
    verify_graph(parse_graph(text), Catalogue([gather]))


# ---- TM3015: result types


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("aten::add(%x, %i) : f32[2,3]", "different dtypes: f32[2,3], i32[2,3]"),
        ("aten::sqrt(%i) : i32[2,3]", "aten::sqrt: x is i32[2,3], but must be one of float"),
        ("aten::add(%x, %x) : f32[3,2]", "declared f32[3,2], computed f32[2,3]"),
        ("aten::add(%x, %x) : f16[2,3]", "declared f16[2,3], computed f32[2,3]"),
        ("aten::reshape(%x) {shape=[4]} : f32[4]", "aten::reshape"),
        ("aten::relu(%x) : ?", "the type of an argument or a result is unknown"),
    ],
)
def test_tm3015_types(line: str, message: str) -> None:
    error = broken(f'graph g(%x: f32[2,3], %i: i32[2,3]) -> (%y) {{\n  %y = {line}   loc("a.py":1)\n}}\n')
    assert error.code == "TM3015"
    assert message in error.message


def test_tm3015_an_argument_of_unknown_type() -> None:
    assert broken('graph g(%x: ?) -> (%y) {\n  %y = aten::relu(%x) : f32[2] by("a")\n}\n').code == "TM3015"


# ---- TM3016: constants


@pytest.mark.parametrize("value", [np.zeros(3, np.float64), np.zeros(4, np.float32), [1.0, 2.0, 3.0], None])
def test_tm3016_constants(value: object) -> None:
    graph = good()
    next(iter(graph)).value = value
    error = error_of(graph)
    assert (error.code, error.message) == ("TM3016", "the constant %w does not match its declared type")


def test_tm3016_a_constant_with_another_digest_type() -> None:
    from tmconvert.ir.text import digest

    array = np.zeros(20, np.float64)
    text = (
        f'graph g() -> (%c) {{\n  %c = aten::constant() {{digest="{digest(array)}"}} : f32[20] by("a")\n}}\n'
    )
    assert error_of(parse_graph(text, {digest(array): array})).code == "TM3016"


def test_tm3016_a_constant_of_two_results() -> None:
    graph = InternalGraph("g")
    graph.insert(Constant(np.zeros(2), result=(TensorNode("a"), TensorNode("b")), made_by="test"))
    assert error_of(graph).message == "the constant %a, %b does not match its declared type"
    graph = InternalGraph("g")
    graph.insert(Constant(np.zeros(2), result=ModuleNode("a"), made_by="test"))
    assert error_of(graph).code == "TM3016"


# ---- TM3017: quantization


def quantized(scale: str = "0.5", zero: str = "0", axis: str = "none") -> str:
    return (
        GOOD.replace("scale=[0.5]", f"scale=[{scale}]")
        .replace("zero_point=[0]", f"zero_point=[{zero}]")
        .replace("channel_axis=none", f"channel_axis={axis}")
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (quantized(scale="0.0"), "a scale of %w is not positive and finite"),
        (quantized(scale="-1"), "a scale of %w is not positive and finite"),
        (quantized(scale="inf"), "a scale of %w is not positive and finite"),
        (quantized(scale="nan"), "a scale of %w is not positive and finite"),
        (quantized(zero="128"), "a zero point of %w is outside of the integer range"),
        (quantized(scale="0.5, 0.5"), "%w has 2 scales for 1 channels"),
        (quantized(axis="0"), "%w has 1 scales for 3 channels"),
        (quantized(axis="1"), "%w has no axis 1"),
        (quantized(axis="-1"), "%w has no axis -1"),
    ],
)
def test_tm3017_quantization(text: str, message: str) -> None:
    error = broken(text)
    assert (error.code, error.message) == ("TM3017", message)


def test_one_scale_for_each_channel_is_right() -> None:
    verify_graph(parse_graph(quantized("0.5, 1.0, 2.0", "0, 1, 2", "0")), catalogue())


def test_tm3017_of_an_input() -> None:
    graph = good()
    graph.inputs[0].qparams = QParams("int8", (), (), -128, 127)
    assert error_of(graph).code == "TM3017"


# ---- TM3018: origin


@pytest.mark.parametrize("remove", ['   loc("net.py":5)', ' by("fold")'])
def test_tm3018_origin(remove: str) -> None:
    error = broken(GOOD.replace(remove, ""))
    assert error.code == "TM3018"
    assert error.message == "the expression has neither a source nor the name of a pass"


def test_every_break_is_found_whatever_its_place() -> None:
    """A call with a wrong result type at any position of a longer line."""
    breaks: list[Callable[[CallFunction], None]] = [
        lambda expr: setattr(expr.output, "shape", (7,)),
        lambda expr: setattr(expr, "function", "aten::nothing"),
        lambda expr: setattr(expr, "source", None),
    ]
    for position in range(5):
        for spoil in breaks:
            lines = [f'  %n{i + 1} = aten::neg(%n{i}) : f32[2]   loc("a.py":{i})' for i in range(5)]
            graph = parse_graph("graph g(%n0: f32[2]) -> (%n5) {\n" + "\n".join(lines) + "\n}\n")
            expr = list(graph)[position]
            assert isinstance(expr, CallFunction)
            spoil(expr)
            assert f"> %n{position + 1} = " in error_of(graph).excerpt
