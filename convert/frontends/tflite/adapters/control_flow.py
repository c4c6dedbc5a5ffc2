"""IF, WHILE and CALL, whose subgraphs are traced modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import cast, reshaped
from tmconvert.frontends.tflite.adapters.values import PREFIX
from tmconvert.ir import InternalGraph, TensorNode
from tmconvert.ir.emitter import Emitter, empty_body
from tmconvert.ir.subgraphs import inlined
from tmconvert.symbolics.registry import catalogue

OPERATORS = Table(PREFIX)


def _body(g: Emitter, subgraph: Any, inputs: Sequence[Any]) -> InternalGraph:
    """Returns a subgraph with one input for each of ``inputs``; some of these may be the same tensor."""
    slots = [TensorNode("slot", type_.shape, type_.dtype) for type_ in map(g.type, inputs)]
    return g.body(subgraph, slots, slots)


OPERATORS.add("CALL")(lambda g, *inputs, subgraph: inlined(g, _body(g, subgraph, inputs), inputs))


@OPERATORS.add("IF")
def if_(g, condition, *inputs, then_subgraph_index, else_subgraph_index):
    subgraphs = then_subgraph_index, else_subgraph_index
    known = g.known(condition)
    if known is not None:
        taken = subgraphs[0] if bool(known.reshape(-1)[0]) else subgraphs[1]
        return inlined(g, _body(g, taken, inputs), inputs)
    around = list({id(each): each for each in inputs}.values()) or [condition]
    then, otherwise = (g.body(body, inputs, around) for body in subgraphs)
    return _listed(g.call("tm::cond", _flag(g, condition), around, then, otherwise))


@OPERATORS.add("WHILE")
def while_(g, *inputs, cond_subgraph_index, body_subgraph_index):
    condition, body = (_body(g, each, inputs) for each in (cond_subgraph_index, body_subgraph_index))
    types = [g.type(each) for each in inputs]
    if [node.type for node in body.outputs if isinstance(node, TensorNode)] != types:
        raise Refusal(
            "the types of the values of a loop change from step to step", "convert a model with static sizes"
        )
    step, values = empty_body("step", types, catalogue())
    after = inlined(step, body, values)
    goes_on = inlined(step, condition, after)[0]
    step.graph.set_result((_flag(step, goes_on), *after))
    first = _flag(g, inlined(g, condition, inputs)[0])
    return _listed(g.call("tm::loop", first, list(inputs), len(inputs), step.graph))


def _flag(g: Emitter, value: Any) -> Any:
    return cast(g, reshaped(g, value, []), np.bool_)


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]
