"""tm::cond, the results of one of two subgraphs, selected by a bool tensor; torch.cond."""

from __future__ import annotations

from functools import partial
from typing import Any

from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.symbolic.dims import Size, same_size
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.subgraphs import one_or_all, run, types_of
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, Tensors, graph, integer


def cond_types(
    pred: TensorType, then: InternalGraph, otherwise: InternalGraph, choice: Size | None = None, **_: Any
) -> list[TensorType]:
    """``choice`` is the condition as a size, 1 or 0, where sizes decide: branches may differ in sizes."""
    if pred.shape:
        raise ValueError(f"the condition is {pred}, but must be one bool")
    first, second = (types_of(body, "a branch") for body in (then, otherwise))
    if choice is not None and [(a.dtype, a.rank) for a in first] == [(a.dtype, a.rank) for a in second]:
        return [_chosen(choice, *types) for types in zip(first, second, strict=True)]
    if first != second:
        shown = (", ".join(map(str, types)) for types in (first, second))
        raise ValueError("the branches return different types: {} and {}".format(*shown))
    return first


def _chosen(choice: Size, one: TensorType, other: TensorType) -> TensorType:
    sizes = zip(one.shape, other.shape, strict=True)
    return TensorType(one.dtype, tuple(a if same_size(a, b) else b + choice * (a - b) for a, b in sizes))


cond = Op(
    "tm::cond",
    args=[
        Tensor("pred", ("bool",)), Tensors("inputs", ANY_DTYPE), graph("then"), graph("otherwise"),
        integer("choice", None),
    ],
    result=cond_types,
)  # fmt: skip


@cond.reference
def cond_ref(pred: Any, inputs: list[Any], then: InternalGraph, otherwise: InternalGraph, choice: Any) -> Any:
    return one_or_all(run(then if pred else otherwise, inputs))


def _sides(g, choice, then, otherwise, inputs):
    from tmconvert.ir.symbolic.choices import where

    return [
        where(choice, number, partial(g.body, side, inputs)) for number, side in ((1, then), (0, otherwise))
    ]


@cond.onnx(since=7)
def cond_onnx7(g, pred, inputs, then, otherwise, choice):
    sides = _sides(g, choice, then, otherwise, inputs)
    branches = dict(zip(("then_branch", "else_branch"), sides, strict=True))
    return g.op("If", pred, shapes=[type_.shape for type_ in g.result_types], **branches)


@cond.tflite()
def cond_tflite(g, pred, inputs, then, otherwise, choice):
    given = idioms.tflite_loops.computed(inputs)
    subgraphs = _sides(g, choice, then, otherwise, [value if value.is_constant else None for value in inputs])
    branches = dict(zip(("then_subgraph_index", "else_subgraph_index"), subgraphs, strict=True))
    return g.op("IF", pred, *given, shapes=[type_.shape for type_ in g.result_types], **branches)


@cond.caffe()
def cond_caffe(g, pred, inputs, then, otherwise, choice):
    """Computes both branches, and selects each result."""
    first, second = (g.inlined(branch, inputs) for branch in (then, otherwise))
    return [
        idioms.caffe_numbers.chosen(g, pred, x, other, type_.shape)
        for x, other, type_ in zip(first, second, g.result_types, strict=True)
    ]
