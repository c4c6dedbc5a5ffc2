"""Rules are tried at calls of the functions that they take, and asked once for each function."""

from __future__ import annotations

from tmconvert.ir import CallFunction, InternalGraph
from tmconvert.ir.parser import parse_graph
from tmconvert.passes.rewriting import RewritePass

GRAPH = """\
graph net(%x: f32[2,3]) -> (%d) {
  %a = aten::neg(%x) : f32[2,3]   loc("net.py":1)
  %b = aten::relu(%a) : f32[2,3]   loc("net.py":2)
  %c = aten::neg(%b) : f32[2,3]   loc("net.py":3)
  %d = aten::relu(%c) : f32[2,3]   loc("net.py":4)
}
"""


class Negations(RewritePass[str]):
    """Refuses every negation."""

    name = "negations"

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.tried: list[str] = []

    def takes(self, function: str) -> bool:
        self.asked.append(function)
        return function == "aten::neg"

    def match(self, graph: InternalGraph, call: CallFunction) -> str | None:
        self.tried.append(call.output.name)
        return call.output.name

    def check(self, graph: InternalGraph, call: CallFunction, match: str) -> str | None:
        return "it is one"

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: str) -> str:
        raise AssertionError("it is always refused")


def test_a_rule_is_tried_at_the_functions_that_it_takes() -> None:
    rule = Negations()
    record = rule.run(parse_graph(GRAPH))
    assert rule.asked == ["aten::neg", "aten::relu"]
    assert rule.tried == ["a", "c"]
    assert [event.node for event in record.refused] == ["a", "c"]
