"""tm::scan, a subgraph per slice of some tensors, with stacked results; torch's scan and map."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.subgraphs import inlined
from tmconvert.ir.symbolic.dims import Dim, substituted
from tmconvert.ir.types import TensorType
from tmconvert.symbolics import idioms
from tmconvert.symbolics.idioms.subgraphs import limited_steps, one_or_all, run, sizes_of, types_of
from tmconvert.symbolics.op import ANY_DTYPE, Op, Tensors, graph, integer

# beyond this a file without an operator for it would be mostly copies of the step
MAX_STEPS = 500


def scan_types(inputs: list[TensorType], carried: int, scanned: int, step: InternalGraph) -> list[TensorType]:
    results = types_of(step, "the step of a scan")
    if results[:carried] != inputs[:carried]:
        shown = (", ".join(map(str, types)) for types in (inputs[:carried], results[:carried]))
        raise ValueError("the scan carry {} becomes {}".format(*shown))
    count, *others = (type_.shape[0] for type_ in inputs[carried : carried + scanned])
    if not all(other == count for other in others):
        raise ValueError(f"the scanned tensors have different lengths: {count}, {others}")
    stacked = [TensorType(type_.dtype, (count, *type_.shape)) for type_ in results[carried:]]
    return [*results[:carried], *stacked]


scan = Op(
    "tm::scan",
    # of the inputs the first ``carried`` change, the next ``scanned`` are given to the step slice by slice;
    # it gives what the first become, and what is stacked
    args=[Tensors("inputs", ANY_DTYPE), integer("carried"), integer("scanned"), graph("step")],
    result=scan_types,
)


@scan.reference
def scan_ref(inputs: list[Any], carried: int, scanned: int, step: InternalGraph) -> Any:
    state, sliced, around = inputs[:carried], inputs[carried : carried + scanned], inputs[carried + scanned :]
    rows = []
    for slices, _ in zip(zip(*sliced, strict=True), limited_steps(), strict=False):
        results = run(step, [*state, *map(np.asarray, slices), *around])
        state = results[:carried]
        rows.append(results[carried:])
    if not rows:  # of which only the types are known
        sizes = sizes_of(step, [*state, *(np.zeros(each.shape[1:], each.dtype) for each in sliced), *around])
        types = types_of(step, "the step of a scan")[carried:]
        shapes = [substituted((0, *type_.shape), sizes) for type_ in types]
        empty = (np.zeros(shape, type_.dtype) for shape, type_ in zip(shapes, types, strict=True))
        return one_or_all([*state, *empty])
    return one_or_all([*state, *(np.stack(column) for column in zip(*rows, strict=True))])


@scan.onnx(since=9)
def scan_onnx9(g, inputs, carried, scanned, step):
    given = carried + scanned
    shapes = [type_.shape for type_ in g.result_types]
    if isinstance(inputs[carried].shape[0], Dim):
        return _loop(g, inputs, carried, scanned, step, shapes)
    body = g.body(step, [None] * given + inputs[given:])
    return g.op("Scan", *inputs[:given], num_scan_inputs=scanned, shapes=shapes, body=body)


def _loop(g, inputs, carried, scanned, step, shapes):
    """Emits a Loop: ONNX Runtime refuses a Scan of length 0, which an open length may be."""
    state, sliced, around = inputs[:carried], inputs[carried : carried + scanned], inputs[carried + scanned :]
    count = g.op(
        "Gather",
        g.op("Shape", sliced[0], shape=(len(sliced[0].shape),), dtype=np.int64),
        g.ints(0),
        axis=0,
        shape=(),
    )
    number, flag = g.formal(np.dtype(np.int64), ()), g.formal(np.dtype(bool), ())
    first = len(g.graph.operators)
    slices = [g.op("Gather", x, number, axis=0, shape=x.shape[1:], dtype=x.dtype) for x in sliced]
    goes_on = g.op("Identity", flag, shape=(), dtype=np.bool_)
    own = g.graph.operators[first:]
    del g.graph.operators[first:]
    body = g.body(step, [None] * carried + slices + around)
    body.operators[:0] = own
    body.inputs[:0] = [number, flag]
    body.outputs[:0] = [goes_on]
    return g.op("Loop", count, g.const(True, np.bool_), *state, shapes=shapes, body=body)


@scan.tflite()
def scan_tflite(g, inputs, carried, scanned, step):
    given = carried + scanned

    def once(inner, state, slices, around):
        return inner.inlined(step, [*state, *slices, *around])

    if not inputs[carried].shape[0]:
        g.refuse("a scan of length 0 has no results to stack")
    rows = [TensorType(type_.dtype, type_.shape[1:]) for type_ in g.result_types[carried:]]
    return idioms.tflite_loops.scan(g, inputs[:carried], inputs[carried:given], inputs[given:], once, rows)


@scan.decompose
def scan_unrolled(g, inputs, carried, scanned, step):
    state, sliced = inputs[:carried], inputs[carried : carried + scanned]
    count = g.type(sliced[0]).shape[0]
    if isinstance(count, Dim) or not 0 < count <= MAX_STEPS:
        raise Refusal(f"a scan of {count} steps is too long to be unrolled")
    rows = []
    for number in range(count):
        slices = [g.call("aten::select", x, 0, number) for x in sliced]
        results = inlined(g, step, [*state, *slices, *inputs[carried + scanned :]])
        state = results[:carried]
        rows.append([g.call("aten::reshape", y, [1, *g.type(y).shape]) for y in results[carried:]])
    stacked = [g.call("aten::cat", list(column), 0) for column in zip(*rows, strict=True)]
    return [*state, *stacked]
