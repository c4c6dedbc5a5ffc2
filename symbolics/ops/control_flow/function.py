"""tm::function, a call with its own ONNX symbolic: torch.autograd.Function with ``symbolic``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.subgraphs import inlined
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.subgraphs import one_or_all, run, types_of
from tmconvert.symbolics.op import ANY_DTYPE, Attribute, Op, Tensors, graph

# ``operators`` are [type, operands, attributes, results] each, an operand the number of a value or None:
# first come the inputs, then all results in order. ``attributes`` are [name, value] each, an array in them
# ["tensor", dtype, shape, numbers]. ``results`` are the numbers of what is returned.
function = Op(
    "tm::function",
    args=[
        Tensors("inputs", ANY_DTYPE), graph("body"), Attribute("operators", list), Attribute("results", list),
    ],
    result=lambda inputs, body, operators, results: _types(body, results),
)  # fmt: skip


def _types(body: InternalGraph, results: list[int]) -> list[TensorType]:
    types = types_of(body, "a function")
    if len(types) != len(results):
        raise ValueError(f"its symbolic returns {len(results)} results, its forward {len(types)}")
    return types


function.reference(lambda inputs, body, operators, results: one_or_all(run(body, inputs)))


@function.onnx(since=7)
def function_onnx7(g, inputs, body, operators, results):
    values = list(inputs)
    for type_, operands, attributes, count in operators:
        made = g.operator(
            type_,
            [None if operand is None else values[operand] for operand in operands],
            {name: _attribute(value) for name, value in attributes},
            count,
        )
        values += made
    return [values[number] for number in results]


function.decompose(lambda g, inputs, body, operators, results: inlined(g, body, inputs))


def _attribute(value: Any) -> Any:
    if isinstance(value, list) and value[:1] == ["tensor"]:
        _, dtype, shape, numbers = value
        return np.array(numbers, dtype).reshape(shape)
    return value
