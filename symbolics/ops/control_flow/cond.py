"""tm::cond, the results of one of two subgraphs, selected by a bool tensor; torch.cond."""

from __future__ import annotations

from typing import Any

from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.subgraphs import one_or_all, run, types_of
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, Tensors, graph


def cond_types(
    pred: TensorType, inputs: list[TensorType], then: InternalGraph, otherwise: InternalGraph
) -> list[TensorType]:
    if pred.shape:
        raise ValueError(f"the condition is {pred}, but must be one bool")
    first, second = (types_of(body, "a branch") for body in (then, otherwise))
    if first != second:
        shown = (", ".join(map(str, types)) for types in (first, second))
        raise ValueError("the branches return different types: {} and {}".format(*shown))
    return first


cond = Op(
    "tm::cond",
    args=[Tensor("pred", ("bool",)), Tensors("inputs", ANY_DTYPE), graph("then"), graph("otherwise")],
    result=cond_types,
)


@cond.reference
def cond_ref(pred: Any, inputs: list[Any], then: InternalGraph, otherwise: InternalGraph) -> Any:
    return one_or_all(run(then if pred else otherwise, inputs))


@cond.onnx(since=7)
def cond_onnx7(g, pred, inputs, then, otherwise):
    branches = {"then_branch": g.body(then, inputs), "else_branch": g.body(otherwise, inputs)}
    return g.op("If", pred, shapes=[type_.shape for type_ in g.result_types], **branches)


@cond.tflite()
def cond_tflite(g, pred, inputs, then, otherwise):
    given = idioms.tflite_loops.computed(inputs)
    subgraphs = [
        g.body(branch, [value if value.is_constant else None for value in inputs])
        for branch in (then, otherwise)
    ]
    branches = dict(zip(("then_subgraph_index", "else_subgraph_index"), subgraphs, strict=True))
    return g.op("IF", pred, *given, shapes=[type_.shape for type_ in g.result_types], **branches)


@cond.caffe()
def cond_caffe(g, pred, inputs, then, otherwise):
    """Computes both branches, and selects each result."""
    first, second = (g.inlined(branch, inputs) for branch in (then, otherwise))
    return [
        idioms.caffe_numbers.chosen(g, pred, x, other, type_.shape)
        for x, other, type_ in zip(first, second, g.result_types, strict=True)
    ]
