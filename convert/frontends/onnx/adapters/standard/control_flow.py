"""If, Loop and Scan.

Their subgraphs are traced modules; ``captured`` has, for each subgraph in the order of its attribute's name,
the values that it takes from around it. What is known when the model is converted is decided then: a branch
that is taken always, the number of steps of a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tmconvert.errors import GraphError, Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import (
    axis_of,
    cast,
    is_tensor,
    rank,
    reshaped,
    stacked,
    static_int,
)
from tmconvert.ir import CallFunction, Constant, Input, InternalGraph, TensorNode, TracedModule
from tmconvert.ir.emitter import EagerEmitter, Emitter, empty_body
from tmconvert.ir.subgraphs import emitted, inlined
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.ir.symbolic.journal import current_journal, validated
from tmconvert.symbolics.idioms.subgraphs import limited_steps
from tmconvert.symbolics.registry import catalogue

OPERATORS = OperatorTable()
Captured = Sequence[Sequence[Any]]
MAX_UNROLLED = 500  # steps
_VIEWS = ("aten::reshape", "aten::to")
# signs of the difference of two sizes for which a comparison is true
_COMPARISONS = {
    "aten::eq": {0},
    "aten::ne": {-1, 1},
    "aten::lt": {-1},
    "aten::le": {-1, 0},
    "aten::gt": {1},
    "aten::ge": {0, 1},
}


@OPERATORS.add("If")
def if_(g, cond, *, then_branch, else_branch, captured=((), ())):
    subgraphs = (else_branch, then_branch)
    known = g.known(cond)
    if known is not None:
        taken = int(bool(known.reshape(-1)[0]))
        return emitted(g, subgraphs[taken], captured[taken])
    given = [_given(g, each) for each in captured]
    around = _unknown(g, [*captured[0], *captured[1]]) or [cond]
    try:
        otherwise, then = (g.body(body, each, around) for body, each in zip(subgraphs, given, strict=True))
    except Refusal as refusal:  # as Squeeze in `If(size == 1, Squeeze, Identity)`, which PyTorch exports
        choice = validated(lambda: _by_sizes(g, cond))
        if choice is None:
            raise Refusal(refusal.reason, _choice_help(cond) or refusal.help) from None
    else:
        same = [g.type(each) for each in otherwise.outputs] == [g.type(each) for each in then.outputs]
        choice = None if same else validated(lambda: _by_sizes(g, cond))
    if choice is not None:
        return emitted(g, subgraphs[choice], captured[choice])
    return _listed(g.call("tm::cond", cast(g, reshaped(g, cond, []), np.bool_), around, then, otherwise))


def _choice_help(cond) -> str:
    """Returns how a branch is chosen whose condition is computed from one input of the model."""
    waiting, inputs = [cond], dict[str, None]()
    while waiting:
        expr = getattr(waiting.pop(), "expr", None)
        if isinstance(expr, Input):
            inputs[expr.name] = None
        elif isinstance(expr, CallFunction):
            waiting += expr.inputs
    if len(inputs) != 1:
        return ""
    return (
        f"if the branch is for another value of the input {next(iter(inputs))!r} than yours, store yours in "
        "the file as an initializer of that name instead of the input"
    )


def _by_sizes(g: Emitter, cond) -> bool | None:
    """Returns a condition that compares two sizes as it is in the example, with a guard; None for others."""
    expr = getattr(cond, "expr", None)
    while isinstance(expr, CallFunction) and expr.function in _VIEWS:
        expr = expr.args[0].expr
    if not isinstance(expr, CallFunction) or expr.function not in _COMPARISONS:
        return None
    first, second = (g.sizes(each) for each in expr.args[:2])
    if first is None or second is None or first.size != 1 or second.size != 1:
        return None
    difference, signs = first.reshape(-1)[0] - second.reshape(-1)[0], _COMPARISONS[expr.function]
    if isinstance(difference, Dim):
        return current_journal().holds(difference, signs)
    return (int(difference) > 0) - (int(difference) < 0) in signs


@OPERATORS.add("Loop")
def loop(g, M, cond=None, *v_initial, body, captured=((),)):
    state, around = list(v_initial), list(captured[0])
    first = True if cond is None else _flag(g, cond)
    if isinstance(g, EagerEmitter):
        return _run(g, M, first, state, around, body)
    if first is False:
        return _no_step(g, state, around, body)
    count = None if M is None or g.sizes(M) is None else static_int(g, M, "the number of steps of a loop")
    step = None if _holds_lists(state) else _step(g, state, around, body)
    if step is None or (
        isinstance(count, int) and not _is_endless(step) and len(step.outputs) > len(state) + 1
    ):
        return _unrolled(g, count, state, around, body)
    if first is True and _is_endless(step) and M is not None:
        count = static_int(g, M, "the number of steps of a loop") if count is None else count
        if count == 1:
            return _unrolled(g, count, state, around, body)
        return _counted(g, count, state, around, step)
    if len(step.outputs) > len(state) + 1:
        raise Refusal(
            "a loop that ends by a condition has stacked outputs, whose number depends on the data",
            "export the model with a loop over a known number of steps",
        )
    return _while(g, M, cond, state, around, step)


def _given(g: Emitter, values: Sequence[Any]) -> list[Any]:
    """Returns arguments of a subgraph: arrays of those that are known."""
    return [value if g.known(value) is None else np.asarray(g.known(value)) for value in values]


def _unknown(g: Emitter, values: Sequence[Any]) -> list[Any]:
    """Returns the values that are not known, without duplicates."""
    return [value for value in {id(each): each for each in values}.values() if g.known(value) is None]


def _listed(results) -> list[Any]:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def _flag(g: Emitter, value) -> bool | None:
    """Returns a condition that is known."""
    known = g.known(value)
    return None if known is None else bool(known.reshape(-1)[0])


def _holds_lists(values: Sequence[Any]) -> bool:
    return not all(map(is_tensor, values))


def _step(g: Emitter, state: list[Any], around: list[Any], body: TracedModule) -> InternalGraph | None:
    """Returns the subgraph of a step: (number, state, around) to (goes on, state, stacked).

    None where it changes the type of the state. A step that is taken knows that the condition is true.
    """
    number = TensorNode("number", (), np.dtype(np.int64))
    slots = [TensorNode("slot", type_.shape, type_.dtype) for type_ in map(g.type, state)]
    inputs = [number, *slots, *_unknown(g, around)]
    made = g.body(body, [number, np.array(True), *slots, *_given(g, around)], inputs)
    after = [node.type for node in made.outputs[1 : len(state) + 1] if isinstance(node, TensorNode)]
    return made if after == [g.type(value) for value in state] else None


def _is_endless(step: InternalGraph) -> bool:
    """Whether a step always continues the loop."""
    expr = step.outputs[0].expr
    return isinstance(expr, Constant) and bool(np.all(expr.value))


def _counted(g: Emitter, count, state: list[Any], around: list[Any], step: InternalGraph) -> list[Any]:
    """A loop over a number of steps is a scan over their numbers."""
    if isinstance(count, int) and count <= 0:
        raise Refusal("a loop that runs zero times is not supported")
    numbers = g.call("aten::arange", 0, count, 1)
    found = _unknown(g, around)
    types = [*map(g.type, state), g.type(numbers), *map(g.type, found)]
    types[len(state)] = type(types[len(state)])(np.dtype(np.int64), ())
    inner, inputs = empty_body("step", types, catalogue())
    values, number, given = inputs[: len(state)], inputs[len(state)], inputs[len(state) + 1 :]
    results = inlined(inner, step, [number, *values, *given])
    inner.graph.set_result(tuple(results[1:]))
    return _listed(g.call("tm::scan", [*state, numbers, *found], len(state), 1, inner.graph))


def _while(g: Emitter, M, cond, state: list[Any], around: list[Any], step: InternalGraph) -> list[Any]:
    """A loop that ends by a condition, or after a number of steps that is computed."""
    limit = None if M is None else reshaped(g, cast(g, M, np.int64), [])
    found = _unknown(g, around)
    limits = [] if limit is None else [limit]
    first = g.constant(0, np.int64)
    types = [g.type(value) for value in (first, *state, *found, *limits)]
    inner, inputs = empty_body("step", types, catalogue())
    number, values = inputs[0], inputs[1 : len(state) + 1]
    given = inputs[len(state) + 1 : len(state) + 1 + len(found)]
    goes_on, *after = inlined(inner, step, [number, *values, *given])
    following = inner.call("aten::add", number, inner.constant(1, np.int64))
    goes_on = cast(inner, reshaped(inner, goes_on, []), np.bool_)
    if limits:
        goes_on = inner.call("aten::logical_and", goes_on, inner.call("aten::lt", following, inputs[-1]))
    inner.graph.set_result((goes_on, following, *after))
    begins = g.constant(True) if cond is None else cast(g, reshaped(g, cond, []), np.bool_)
    if limit is not None:
        begins = g.call("aten::logical_and", begins, g.call("aten::lt", first, limit))
    entering = [first, *state, *found, *limits]
    return _listed(g.call("tm::loop", begins, entering, len(state) + 1, inner.graph))[1:]


def _unrolled(g: Emitter, count, state: list[Any], around: list[Any], body: TracedModule) -> list[Any]:
    """Writes the steps of a loop one after the other."""
    if not isinstance(count, int) or count > MAX_UNROLLED:
        raise Refusal(
            "the type or number of the values of a loop changes from step to step, and the number of "
            "its steps is not known",
            "export the model with values of the same shape in each step",
        )
    rows: list[list[Any]] = []
    for number in range(max(count, 0)):
        goes_on, *results = emitted(
            g, body, [g.constant(number, np.int64), g.constant(True), *state, *around]
        )
        state = results[: len(state)]
        rows.append(results[len(state) :])
        known = _flag(g, goes_on)
        if known is None:
            raise Refusal("the steps of a loop depend on the data, and so do the types of its values")
        if not known:
            break
    if not rows:
        return _no_step(g, state, around, body)
    return [*state, *_stacked(g, rows)]


def _stacked(g: Emitter, rows: list[list[Any]]) -> list[Any]:
    return [stacked(g, column) for column in zip(*rows, strict=True)]


def _no_step(g: Emitter, state: list[Any], around: list[Any], body: TracedModule) -> list[Any]:
    """The results of a loop that takes no step: the initial state, and empty stacks."""
    assert body.graph is not None
    count = len(body.graph.outputs) - 1 - len(state)
    if not count:
        return state
    step = _step(g, state, around, body)
    if step is None:
        raise Refusal("the types of the outputs of a loop that runs zero times are not known")
    types = [node.type for node in step.outputs[-count:] if isinstance(node, TensorNode)]
    return [*state, *(g.constant(np.zeros((0, *type_.shape), type_.dtype)) for type_ in types)]


def _run(
    g: EagerEmitter, M, goes_on: bool | None, state: list[Any], around: list[Any], body: TracedModule
) -> list[Any]:
    """Computes a loop on arrays."""
    limit = None if M is None else max(int(np.asarray(M).reshape(-1)[0]), 0)
    rows: list[list[Any]] = []
    count = len(state)
    for _ in limited_steps():
        if not goes_on or len(rows) == limit:
            break
        number = g.constant(len(rows), np.int64)
        again, *results = emitted(g, body, [number, g.constant(True), *state, *around])
        state = results[:count]
        rows.append(results[count:])
        goes_on = _flag(g, again)
    if not rows:
        return _no_step(g, state, around, body)
    return [*state, *_stacked(g, rows)]


@OPERATORS.add("Scan", since=9)
def scan(
    g,
    *initial_state_and_scan_inputs, body, num_scan_inputs, scan_input_axes=None, scan_input_directions=None,
    scan_output_axes=None, scan_output_directions=None, captured=((),),
):  # fmt: skip
    given = list(initial_state_and_scan_inputs)
    count = len(given) - num_scan_inputs
    state, scanned = given[:count], given[count:]
    axes = list(scan_input_axes or [0] * num_scan_inputs)
    backwards = list(scan_input_directions or [0] * num_scan_inputs)
    scanned = [
        _axis_first(g, x, axis_of(g, x, axis), bool(is_backwards))
        for x, axis, is_backwards in zip(scanned, axes, backwards, strict=True)
    ]
    results = _scanned(g, state, scanned, list(captured[0]), body)
    rows = results[count:]
    axes = list(scan_output_axes or [0] * len(rows))
    backwards = list(scan_output_directions or [0] * len(rows))
    return [*results[:count], *(_put_back(g, *each) for each in zip(rows, axes, backwards, strict=True))]


def _scanned(
    g: Emitter, state: list[Any], scanned: list[Any], around: list[Any], body: TracedModule
) -> list[Any]:
    slots = [TensorNode("slot", type_.shape, type_.dtype) for type_ in map(g.type, state)]
    slices = [TensorNode("slice", type_.shape[1:], type_.dtype) for type_ in map(g.type, scanned)]
    found = _unknown(g, around)
    step = g.body(body, [*slots, *slices, *_given(g, around)], [*slots, *slices, *found])
    try:
        return _listed(g.call("tm::scan", [*state, *scanned, *found], len(state), len(scanned), step))
    except GraphError:
        length = g.type(scanned[0]).shape[0]
        if isinstance(length, Dim) or length > MAX_UNROLLED:
            raise
    rows = []
    for number in range(length):  # the state has another type after a step
        parts = [g.call("aten::select", x, 0, number) for x in scanned]
        results = emitted(g, body, [*state, *parts, *around])
        state = results[: len(state)]
        rows.append(results[len(state) :])
    return [*state, *_stacked(g, rows)]


@OPERATORS.add("Scan", since=8)
def scan8(
    g, sequence_lens, *initial_state_and_scan_inputs, body, num_scan_inputs, directions=None, captured=((),)
):
    """Scans over the second axis, for each element of the batch."""
    if sequence_lens is not None:
        raise Refusal("a scan over sequences of different lengths is not supported", "export at opset 9")
    given = list(initial_state_and_scan_inputs)
    batch = g.type(given[0]).shape[0]
    if isinstance(batch, Dim):
        raise Refusal("a scan of opset 8 needs a static batch", "export at opset 9")
    rows = []
    for number in range(batch):
        parts = [g.call("aten::select", x, 0, number) for x in given]
        rows.append(
            scan(
                g,
                *parts,
                body=body,
                num_scan_inputs=num_scan_inputs,
                scan_input_directions=directions,
                captured=captured,
            )
        )
    return _stacked(g, rows)


def _axis_first(g: Emitter, x, axis: int, is_backwards: bool) -> Any:
    """Returns ``x`` with the scanned axis first, in the order of the steps."""
    order = [axis, *(each for each in range(rank(g, x)) if each != axis)]
    x = g.call("aten::permute", x, order) if axis else x
    return g.call("aten::flip", x, [0]) if is_backwards else x


def _put_back(g: Emitter, x, axis: int, is_backwards: int) -> Any:
    """Returns a stacked result with the steps along ``axis``."""
    x = g.call("aten::flip", x, [0]) if is_backwards else x
    place = axis_of(g, x, axis)
    order = [*range(1, place + 1), 0, *range(place + 1, rank(g, x))]
    return g.call("aten::permute", x, order) if place else x
