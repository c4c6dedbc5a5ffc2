"""tm::loop, a subgraph repeated while its condition is true; torch.while_loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.subgraphs import limited_steps, one_or_all, run, types_of
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensor, Tensors, graph, integer


def loop_types(
    goes_on: TensorType, inputs: list[TensorType], carried: int, step: InternalGraph
) -> list[TensorType]:
    again, *after = types_of(step, "the step of a loop")
    if goes_on.shape or again != goes_on:
        raise ValueError(f"the condition of a loop is {goes_on}, then {again}, but must be one bool")
    if after != inputs[:carried]:
        shown = (", ".join(map(str, types)) for types in (inputs[:carried], after))
        raise ValueError("the loop state {} becomes {}".format(*shown))
    return after


loop = Op(
    "tm::loop",
    # of the inputs the first ``carried`` change; the step gives whether it goes on, and what they become
    args=[Tensor("goes_on", ("bool",)), Tensors("inputs", ANY_DTYPE), integer("carried"), graph("step")],
    result=loop_types,
)


@loop.reference
def loop_ref(goes_on: Any, inputs: list[Any], carried: int, step: InternalGraph) -> Any:
    state, around = inputs[:carried], inputs[carried:]
    for _ in limited_steps():
        if not goes_on:
            break
        goes_on, *state = run(step, [*state, *around])
    return one_or_all(state)


@loop.onnx(since=7)
def loop_onnx7(g, goes_on, inputs, carried, step):
    state, around = inputs[:carried], inputs[carried:]
    body = g.body(step, [None] * carried + around)
    body.inputs[:0] = [g.formal(np.dtype(np.int64), ()), g.formal(np.dtype(bool), ())]
    shapes = [type_.shape for type_ in g.result_types]
    return g.op("Loop", None, goes_on, *state, shapes=shapes, body=body)


@loop.tflite()
def loop_tflite(g, goes_on, inputs, carried, step):
    def once(inner, formals):
        _, *given = formals
        again, *after = inner.inlined(step, idioms.tflite_loops.completed(inputs, given, carried))
        return [again, *after, *given[carried:]]

    entering = [goes_on, *idioms.tflite_loops.computed(inputs, carried)]
    return idioms.tflite_loops.while_(g, entering, lambda inner, formals: formals[0], once)[1 : 1 + carried]


loop.unsupported("caffe", "Caffe has no loops; only short loops with a constant number of steps are unrolled")
