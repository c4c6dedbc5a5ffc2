"""Graphs with symbolic sizes: the text form, and sizes as data."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from tmconvert.errors import LoadError
from tmconvert.ir import InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.parser import parse_graph
from tmconvert.ir.symbolic.clamps import maximum
from tmconvert.ir.symbolic.dims import Dim, dim
from tmconvert.ir.symbolic.journal import SizeJournal
from tmconvert.ir.symbolic.signs import thresholds
from tmconvert.ir.verifier import verify_graph
from tmconvert.symbolics.registry import catalogue

batch, height, width = dim("batch", 2), dim("height", 64, 32), dim("width", 9)
F32 = np.dtype(np.float32)


def net() -> tuple[InternalGraph, GraphEmitter, TensorNode]:
    graph = InternalGraph("net")
    x = graph.add_input(TensorNode("x", (batch, 3, height, width), F32))
    assert isinstance(x, TensorNode)
    return graph, GraphEmitter(graph, catalogue(), made_by="test"), x


def test_the_text_form_reads_back() -> None:
    graph, g, x = net()
    pooled = g.call("aten::max_pool2d", x, [3, 3], [2, 2], [1, 1])
    flat = g.call("aten::reshape", pooled, [batch, 3 * (height // 2) * ((width + 1) // 2)])
    part = g.call("aten::slice", flat, 1, 0, height // 4 - 1)
    graph.set_result((flat, part))
    text = graph.to_text()
    assert text.startswith("graph net{batch=2, height=64/32, width=9}(%x: f32[batch,3,height,width]) -> ")
    assert "f32[batch,3,height/2,floor((width+1)/2)]" in text
    again = parse_graph(text)
    assert again.to_text() == text
    assert [node.type for node in again.outputs] == [flat.type, part.type]
    verify_graph(again, catalogue())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("graph g{n=2}(%x: f32[m]) -> (%x) {\n}", "is not declared"),
        ("graph g{n}(%x: f32[n]) -> (%x) {\n}", "a size must have an example"),
        ("graph g{floor=2}(%x: f32[3]) -> (%x) {\n}", "a size must be declared by"),
        ("graph g{n=2, n=3}(%x: f32[n]) -> (%x) {\n}", "a size must be declared by"),
        ("graph g{n=5/2}(%x: f32[n]) -> (%x) {\n}", "not a multiple of 2"),
        ("graph g{n=4/0}(%x: f32[n]) -> (%x) {\n}", "not a multiple of 0"),
        ("graph g{n=2}(%x: f32[n+]) -> (%x) {\n}", "is not declared|expected|not a size"),
        ("graph g{n=2}(%x: f32[n/2]) -> (%x) {\n}", "not a size"),
    ],
)
def test_malformed_sizes_have_a_place(text: str, message: str) -> None:
    with pytest.raises(LoadError, match=message) as caught:
        parse_graph(text)
    assert caught.value.code == "TM1101" and "line 1, column" in caught.value.message


def test_arithmetic_on_sizes_is_followed() -> None:
    _, g, x = net()
    shape = g.constant(list(g.type(x).shape), np.int32)
    pixels = g.call("aten::mul", g.call("aten::select", shape, 0, 2), g.call("aten::select", shape, 0, 3))
    halves = g.call("aten::floor_divide", pixels, g.constant(2, np.int32))
    both = g.call("aten::cat", [g.call("aten::slice", shape, 0, 0, 2), g.call("aten::reshape", halves, [1])])
    sizes = g.sizes(both)
    assert sizes is not None and list(sizes) == [batch, 3, height * width // 2]
    assert g.known(both) is None
    wide = g.call(
        "aten::to", both, dtype="float32"
    )  # integers that floats hold are sizes, fractions are data
    assert list(g.sizes(wide)) == list(sizes)  # type: ignore[arg-type]
    assert g.sizes(g.call("aten::div", wide, g.constant(2, F32))) is None


def test_constants_are_not_folded_to_symbolic_shapes() -> None:
    _, g, _ = net()
    with SizeJournal() as journal:
        wide = g.call("aten::expand", g.constant(1.0, F32), [batch, 3])
    assert g.known(wide) is None and g.type(wide).shape == (batch, 3)
    assert not journal.specialized


def test_formulas_that_share_parts_are_compared_and_printed_once() -> None:
    """As trees they have too many parts to walk."""

    def nested() -> Dim:
        h, w = dim("h", 64), dim("w", 48)
        for _ in range(10):
            h, w = (h + maximum(h % 2, w % 2)) // 2 + 9, (w + maximum(h % 2, w % 2)) // 3 + 9
        return h + w

    size = nested()
    assert nested() is size and copy.deepcopy(size) is size and pickle.loads(pickle.dumps(size)) is size
    assert len(str(size)) < 100_000 and str(size) != str(size // 2)
    assert thresholds([size])["h"] > 9
