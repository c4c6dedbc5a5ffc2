"""The typed text form: it reads back as it was printed, and damaged text is refused with its place."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tmconvert.errors import LoadError, UsageError
from tmconvert.errors.source import Source
from tmconvert.ir import CallFunction, CallMethod, Constant, InternalGraph, ModuleNode, QParams, TensorNode
from tmconvert.ir.parser import parse_graph
from tmconvert.ir.text import INLINE_ELEMENTS, describe, digest, graph_constants
from tmconvert.ir.types import DTYPES_BY_NAME

SAMPLE = """\
graph head(%x: f32[2,3,5,7] nhwc   loc("net.py":3), %ids: i64[] q{dtype="int8", scale=[0.5, 1e-05], \
zero_point=[0, -3], range=[-128, 127], channel_axis=none}) -> {"a": (%y, ), "b": [%w, %x]} {
  %w = aten::constant() {value=[1.5, -0.0, inf, nan], name="head.weight"} : f32[2,2] by("fold")
  %y = aten::conv2d(%x, %w, none) {stride=[1, 2], mode="same \\"x\\"", eps=1e-05} : f32[2,10,5,4]   \
loc("net.py":57, "head", "Head")
  %p, %q = aten::split(%y, [%w, %x]) {flag=true, none=none} : (f32[2,5], ? nhwc)   loc("net.py")
}
"""


def parsed(text: str, **constants: np.ndarray) -> InternalGraph:
    return parse_graph(text, constants)


def refusal(text: str) -> LoadError:
    with pytest.raises(LoadError) as caught:
        parse_graph(text)
    assert caught.value.code == "TM1101"
    assert re.match(r"graph text, line \d+, column \d+: .", caught.value.message)
    return caught.value


# ---- what is printed reads back


def test_the_sample_reads_back() -> None:
    graph = parse_graph(SAMPLE)
    text = graph.to_text()
    assert parse_graph(text).to_text() == text
    weight, conv, split = graph
    assert isinstance(weight, Constant) and isinstance(conv, CallFunction)
    assert weight.name == "head.weight"
    assert weight.made_by == "fold"
    assert weight.value.tolist()[0] == [1.5, 0.0]
    assert np.signbit(weight.value[0, 1])
    assert conv.kwargs == {"stride": [1, 2], "mode": 'same "x"', "eps": 1e-5}
    assert conv.args == (graph.inputs[0], weight.output, None)
    assert conv.source == Source("net.py", 57, "head", "Head")
    assert split.args[1] == [weight.output, graph.inputs[0]]
    assert split.outputs[1].shape is None
    assert graph.inputs[0].layout == "nhwc"
    assert graph.inputs[1].qparams == QParams("int8", (0.5, 1e-5), (0, -3), -128, 127)
    assert graph.result == {"a": (conv.output,), "b": [weight.output, graph.inputs[0]]}


names = st.from_regex(r"[A-Za-z_0-9.]{1,8}", fullmatch=True)
words = st.text(max_size=8)
floats = st.floats() | st.sampled_from(
    [float("inf"), float("nan"), -0.0, 5e-324, 1e22, 1.7976931348623157e308]
)
scalars = st.none() | st.booleans() | st.integers() | floats | words
attributes = st.dictionaries(
    st.from_regex(r"[A-Za-z_][A-Za-z_0-9]{0,7}", fullmatch=True),
    scalars | st.lists(scalars, max_size=3) | st.lists(st.lists(st.integers(), max_size=2), max_size=2),
    max_size=4,
).filter(lambda found: not {"value", "digest"} & set(found))
sources = st.none() | st.builds(
    Source, words, st.none() | st.integers(-1, 10**6), scope=words, class_name=words
)
shapes = st.lists(st.sampled_from([0, 1, 2, 3, 5]), max_size=4).map(tuple)


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    dtype = draw(st.sampled_from(sorted(DTYPES_BY_NAME.values(), key=str)))
    shape = draw(shapes)
    raw = draw(st.binary(min_size=32, max_size=32))
    size = int(np.prod(shape))
    if dtype.kind == "b":
        return np.resize(np.frombuffer(raw, np.uint8) % 2 == 1, size).reshape(shape)
    return np.resize(np.frombuffer(raw, dtype), size).reshape(shape)


@st.composite
def quantizations(draw: st.DrawFn) -> QParams:
    count = draw(st.integers(1, 3))
    return QParams(
        draw(words),
        tuple(draw(st.lists(floats, min_size=count, max_size=count))),
        tuple(draw(st.lists(st.integers(-300, 300), min_size=count, max_size=count))),
        *draw(st.sampled_from([(-128, 127), (0, 255)])),
        draw(st.none() | st.integers(0, 3)),
        draw(st.booleans()),
        draw(words),
    )


@st.composite
def graphs(draw: st.DrawFn) -> InternalGraph:
    graph = InternalGraph(
        draw(st.sampled_from(["net", "", "a.b", "1", "two words", "<lambda>", "naïve", '"']))
    )

    def node(known_type: bool = True) -> TensorNode:
        made = TensorNode(graph.free_name(draw(names)))
        if known_type:
            made.dtype, made.shape = draw(st.sampled_from(list(DTYPES_BY_NAME.values()))), draw(shapes)
        made.layout = draw(st.sampled_from([None, None, "nhwc"]))
        made.qparams = draw(st.none() | quantizations())
        return made

    nodes = []
    for _ in range(draw(st.integers(0, 2))):
        nodes.append(
            graph.add_input(node(draw(st.booleans())), source=draw(sources), made_by=draw(st.none() | words))
        )
    for _ in range(draw(st.integers(1, 4))):
        place: dict[str, Any] = {"source": draw(sources), "made_by": draw(st.none() | words)}
        if draw(st.booleans()):
            array = draw(arrays())
            result = TensorNode(graph.free_name(draw(names)), array.shape, array.dtype)
            graph.insert(Constant(array, draw(st.none() | words), result=result, **place))
        else:
            leaf = st.sampled_from([*nodes, None])
            args = tuple(draw(st.lists(leaf | st.lists(leaf, max_size=2), max_size=3)))
            result = tuple(node(draw(st.booleans())) for _ in range(draw(st.integers(1, 2))))
            tree = result[0] if len(result) == 1 else result
            op = draw(st.sampled_from(["aten::add", "tm::view", "megengine.functional.nn.relu", "f"]))
            graph.insert(CallFunction(op, args, draw(attributes), result=tree, **place))
        nodes.extend(graph.last.outputs)
    leaf = st.sampled_from(nodes)
    graph.set_result(
        draw(
            st.recursive(
                leaf,
                lambda inner: (
                    st.lists(inner, max_size=2)
                    | st.lists(inner, max_size=2).map(tuple)
                    | st.dictionaries(words | st.integers(), inner, max_size=2)
                ),
                max_leaves=4,
            )
        )
    )
    return graph


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(graphs())
def test_any_graph_reads_back(graph: InternalGraph) -> None:
    text = graph.to_text()
    again = parse_graph(text, graph_constants(graph))
    assert again.to_text() == text
    text.encode("utf-8")
    for before, after in zip(graph, again, strict=True):
        assert (before.source, before.made_by or None) == (after.source, after.made_by)
        if isinstance(before, Constant) and isinstance(after, Constant):
            assert before.value.dtype == after.value.dtype
            np.testing.assert_array_equal(before.value, after.value)


@pytest.mark.parametrize("short", DTYPES_BY_NAME)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3), (5, 7)])
def test_constants_of_every_type(short: str, shape: tuple[int, ...]) -> None:
    dtype = DTYPES_BY_NAME[short]
    array = np.random.default_rng(1).integers(0, 2 if short == "bool" else 100, shape).astype(dtype)
    if dtype.kind == "f":
        array = np.asarray(array / dtype.type(3))
    graph = InternalGraph("net")
    node = TensorNode("c", shape, dtype)
    graph.insert(Constant(array, result=node))
    graph.set_result((node,))
    constants = graph_constants(graph)
    assert len(constants) == (array.size > INLINE_ELEMENTS)
    (again,) = parse_graph(graph.to_text(), constants)
    assert again.value.dtype == dtype
    np.testing.assert_array_equal(again.value, array, strict=True)


def test_extreme_floats_keep_their_bits() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        info = np.finfo(dtype)
        array = np.array(
            [info.max, info.tiny, info.smallest_subnormal, -0.0, np.inf, -np.inf, info.eps], dtype
        )
        graph = InternalGraph()
        graph.insert(Constant(array, result=TensorNode("c", array.shape, array.dtype)))
        (again,) = parse_graph(graph.to_text())
        assert again.value.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "text",
    ["line\nbreak", "tab\t", 'quote " and \\', "\u2028 \x85", "\x00", "π 模型 🙂", "half \ud800 pair", ""],
)
def test_any_string_is_kept(text: str) -> None:
    graph = InternalGraph(text)
    x = graph.add_input(TensorNode("x", (), np.dtype(np.float32)), source=Source(text, 1, text, text))
    graph.insert(CallFunction("f", (x,), {"s": text}, result=TensorNode("y"), made_by=text or "pass"))
    printed = graph.to_text()
    printed.encode("utf-8")
    again = parse_graph(printed)
    assert again.name == (text or "main")
    (expr,) = again
    assert expr.kwargs == {"s": text}
    assert again.inputs[0].expr.source == Source(text, 1, text, text)
    assert again.to_text() == printed


@pytest.mark.parametrize("name", ["My Model", "1", "a-b", "ünï", "graph(", '"', "none", "a.b", "->"])
def test_graph_names_that_are_no_identifiers(name: str) -> None:
    graph = InternalGraph(name)
    graph.set_result(graph.add_input(TensorNode("x")))
    again = parse_graph(graph.to_text())
    assert again.name == name
    assert again.to_text() == graph.to_text()


def test_a_tuple_of_one_is_not_its_item() -> None:
    for result in ("(%x)", "(%x,)", "[%x]", '{"y": %x}', "()", "{1: (%x, (%x,),)}"):
        graph = parse_graph(f"graph g(%x: f32[]) -> {result} {{\n}}\n")
        assert parse_graph(graph.to_text()).result.__class__ is graph.result.__class__
        assert f"-> {result} {{" in graph.to_text()


def test_large_constants_are_taken_by_digest_and_checked() -> None:
    array = np.arange(40, dtype=np.float32)
    text = f'graph g() -> () {{\n  %c = aten::constant() {{digest="{digest(array)}"}} : f32[40]\n}}\n'
    (expr,) = parse_graph(text, {digest(array): array})
    assert expr.value is array
    assert "the constant with digest" in refusal(text).message
    with pytest.raises(LoadError, match="has another type or other values"):
        parse_graph(text, {digest(array): array + 1})


def test_digests_tell_type_and_shape_apart() -> None:
    array = np.zeros(24, np.float32)
    others = [array.reshape(4, 6), array.view(np.int32), array + 1, np.zeros(25, np.float32)]
    assert len({digest(array), *map(digest, others)}) == 5
    square = np.arange(36.0).reshape(6, 6)
    assert digest(square.T) == digest(square.T.copy())


# ---- what has no text form


def test_a_graph_with_modules_has_no_text_form() -> None:
    graph = InternalGraph("net")
    module = graph.add_input(ModuleNode("self"))
    with pytest.raises(UsageError, match="TM6005"):
        graph.to_text()
    graph = InternalGraph("net")
    expr = graph.insert(CallMethod("__call__", (module,), result=TensorNode("y")))
    with pytest.raises(UsageError, match="TM6005"):
        graph.to_text()
    assert describe(expr) == "%0: y = self()" or describe(expr).startswith("%0:")
    holder = CallFunction("f", (), {"d": {"a": 1}}, result=ModuleNode("m"))
    assert describe(holder).startswith("%0:")


# ---- damaged text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected 'graph', found 'the end'"),
        ("graph", "expected the name of the graph"),
        ("graph g(%x: f32[2]) -> (%x)", "expected '{', found 'the end'"),
        ("graph g(%x: f32[2]) -> (%x) {\n", "line 2, column 1: expected a value such as %x"),
        ("graph g(%x: f99[2]) -> (%x) {}", "column 13: unknown element type 'f99'"),
        ("graph g(%x: f32[-1]) -> (%x) {}", "a shape must be a list of non-negative integers"),
        ("graph g(%x: f32[true]) -> (%x) {}", "a shape must be a list of non-negative integers"),
        ("graph g(%x: f32[2], %x: f32[2]) -> () {}", "%x is defined twice"),
        ("graph g() -> (%y) {}", "%y is not defined before this line"),
        ("graph g() -> () {\n  %y = f(%z) : ?\n}", "line 2, column 10: %z is not defined"),
        ("graph g() -> () {\n  %y = f() {a=} : ?\n}", "expected a value, found '}'"),
        ("graph g() -> () {\n  %y = f() {1=2} : ?\n}", "expected the name of an attribute, found '1'"),
        ("graph g() -> () {\n  %y = 5() : ?\n}", "expected an op, found '5'"),
        ("graph g() -> () {\n  %y = f() : ?   loc(3)\n}", "expected a string, found '3'"),
        ('graph g() -> () {\n  %y = f() : ?   loc("a":x)\n}', "expected an integer, found 'x'"),
        ('graph g() -> () {\n  %y = f() : ?   loc("a", "b", "c", "d")\n}', "a location must have"),
        ('graph g() -> () {\n  %y = f() : ? by("a\n', "unexpected character"),
        ('graph g() -> () {\n  %y = f() {s="\\q"} : ?\n}', "Invalid \\\\escape"),
        ("graph g() -> () {\n  %y = f() : ? q{}\n}", "quantization must have dtype"),
        ("graph g() -> () {\n  %c = aten::constant() {} : f32[2]\n}", "the constant with digest None"),
        ("graph g() -> () {\n  %c = aten::constant() {value=[1]} : ?\n}", "a constant must have a type"),
        ("graph g() -> () {\n  %c = aten::constant() {value=[1]} : f32[2]\n}", "cannot reshape"),
        ("graph g() -> () {\n  %c = aten::constant() {value=[300]} : u8[1]\n}", "out of bounds"),
        ("graph g() -> () {\n  %c = aten::constant() {value=[1.5]} : i32[1]\n}", "a list of int32"),
        ("graph g() -> () {\n  %c = aten::constant() {value=[none]} : f32[1]\n}", "a list of float32"),
        (
            "graph g() -> () {\n  %c, %d = aten::constant() {value=[]} : (f32[0], ?)\n}",
            "must have one result",
        ),
        ("graph g() -> () {} trailing", "expected the end, found 'trailing'"),
        (f"graph g() -> () {{\n  %y = f() {{a={'[' * 99}", "nested too deeply"),
        (f"graph g() -> () {{\n  %y = f() {{a={'9' * 700}}} : ?\n}}", "expected an integer"),
        ("graph g() -> ) {}", "expected a value"),
        ("graph g() -> ((%x", "has no expressions in braces"),
        ("graph g() -> () {\n  ~\n}", "line 2, column 3: unexpected character"),
    ],
)
def test_malformed_text_says_where_and_what(text: str, message: str) -> None:
    assert message.replace("\\\\", "\\") in str(refusal(text))


def test_the_excerpt_is_the_line() -> None:
    error = refusal("graph g() -> () {\n  %a\u2028 = f() : ?\n  %y = f(%z) : ?\n}")
    assert error.excerpt == "  %y = f(%z) : ?"


def damaged(text: str, rng: random.Random) -> str:
    position = rng.randrange(len(text))
    other = rng.choice(
        ['"', "\\", "(", ")", "[", "]", "{", "}", "%", ",", ":", "=", "-", "0", "x", "\n", "e", "\x00", "é"]
    )
    changes: list[Callable[[], str]] = [
        lambda: text[:position] + text[position + 1 :],
        lambda: text[:position] + other + text[position + 1 :],
        lambda: text[:position] + other + text[position:],
        lambda: text[:position],
        lambda: text[:position] + text[rng.randrange(len(text)) :],
    ]
    return rng.choice(changes)()


@pytest.mark.parametrize("seed", range(8))
def test_damaged_text_never_raises_anything_else(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(400):
        text = damaged(SAMPLE, rng)
        if rng.random() < 0.3:
            text = damaged(text, rng)
        try:
            graph = parse_graph(text)
        except LoadError as error:
            assert error.code == "TM1101"
        else:
            assert parse_graph(graph.to_text()).to_text() == graph.to_text()
