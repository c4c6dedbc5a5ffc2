"""Calls with function arguments: torch.cond, torch.while_loop, autograd.Functions with a symbolic.

The functions are passed as traced modules. ``captured`` has, for each of them, the values that it captures
from the surrounding code.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.values import cast, is_tensor, reshaped
from tmconvert.ir import TensorNode
from tmconvert.ir.complex_values import from_parts, parts_of
from tmconvert.ir.emitter import Emitter, empty_body
from tmconvert.ir.subgraphs import emitted, inlined
from tmconvert.ir.symbolic.choices import where
from tmconvert.ir.tree import leaves
from tmconvert.symbolics.registry import catalogue

FUNCTIONS, COMPLEX = Table("torch."), Table()


@FUNCTIONS.add("cond")
def cond(g, pred, true_fn, false_fn, operands, captured, choice=None):
    """``choice`` is the condition as a size, 1 or 0, where sizes decide."""
    given = [[*leaves(operands), *each] for each in captured]
    if isinstance(choice, int):  # one side at all sizes
        body, values = ((false_fn, given[1]), (true_fn, given[0]))[choice]
        return tuple(emitted(g, body, values))
    around = _tensors(pred, *given[0], *given[1])
    (then, form), (otherwise, other) = (
        where(choice, taken, partial(_body, g, body, each, around))
        for taken, body, each in zip((1, 0), (true_fn, false_fn), given, strict=True)
    )
    if [type(each) for each in form] != [type(each) for each in other]:
        raise Refusal("one side returns a complex tensor where the other returns a real one")
    return _results(form, g.call("tm::cond", _bool(g, pred), around, then, otherwise, choice))


@FUNCTIONS.add("while_loop")
def while_loop(g, cond_fn, body_fn, carried, captured):
    state = parts_of(carried)
    slots, found = _slots(g, state), _tensors(*captured[0], *captured[1])
    given = from_parts(carried, slots)
    condition, _ = _body(g, cond_fn, [*given, *captured[0]], [*slots, *found])
    body, _ = _body(g, body_fn, [*given, *captured[1]], [*slots, *found])
    around = [*state, *found]
    step, inputs = empty_body("step", [g.type(value) for value in around], catalogue())
    after = inlined(step, body, inputs)
    (goes_on,) = inlined(step, condition, [*after, *inputs[len(state) :]])
    step.graph.set_result((_bool(step, goes_on), *after))
    (first,) = inlined(g, condition, around)
    return _results(carried, g.call("tm::loop", _bool(g, first), around, len(state), step.graph))


@FUNCTIONS.add("scan")
def scan(g, combine_fn, init, xs, captured):
    """Scans over the first axis of ``xs``; torch has moved the scanned axis there."""
    state, rows = parts_of(init), parts_of(xs)
    slots, found = _slots(g, state), _tensors(*captured[0])
    slices = [TensorNode("slice", type_.shape[1:], type_.dtype) for type_ in map(g.type, rows)]
    given = [*from_parts(init, slots), *from_parts(xs, slices), *captured[0]]
    step, form = _body(g, combine_fn, given, [*slots, *slices, *found])
    return _results(form, g.call("tm::scan", [*state, *rows, *found], len(state), len(rows), step))


for _name, _function in (("cond", cond), ("while_loop", while_loop), ("scan", scan)):
    COMPLEX.add(_name)(_function)  # whose operands may be pairs


@FUNCTIONS.add("autograd.Function.apply")
def apply(g, function, given, operators, results, inputs, captured):
    """``inputs`` are the inputs of ``operators``; see ``symbolics/ops/control_flow/function.py``."""
    around = _tensors(*inputs, *leaves(given), *captured[0])
    body, form = _body(g, function, [*filter(is_tensor, leaves(given)), *captured[0]], around)
    numbers = {id(value): number for number, value in enumerate(around)}
    places = [numbers[id(value)] for value in inputs]

    def moved(number: int | None) -> int | None:
        """Returns the index of a value among all arguments of the call."""
        if number is None:
            return None
        return places[number] if number < len(inputs) else number - len(inputs) + len(around)

    said = [[type_, list(map(moved, operands)), *rest] for type_, operands, *rest in operators]
    return _results(form, g.call("tm::function", around, body, said, list(map(moved, results))))


def _body(g: Emitter, function: Any, given: Sequence[Any], around: Sequence[Any]) -> Any:
    """Returns the subgraph of a function, and its results; complex ones are pairs."""
    made = g.body(function, given, around)
    form = made.result
    made.set_result(tuple(made.outputs))
    return made, form


def _slots(g: Emitter, values: Sequence[Any]) -> list[TensorNode]:
    """Placeholders for loop-carried tensors, distinct from those that the body captures."""
    if not all(map(is_tensor, values)):
        raise Refusal("a loop-carried value is not a tensor")
    return [TensorNode("slot", type_.shape, type_.dtype) for type_ in map(g.type, values)]


def _tensors(*values) -> list[Any]:
    """Returns the tensors among values, and the parts of complex ones, without duplicates."""
    return list({id(value): value for value in parts_of(values) if is_tensor(value)}.values())


def _bool(g, value):
    return cast(g, reshaped(g, value, []), np.bool_)


def _results(like, results) -> tuple[Any, ...]:
    """Returns the results of an op, those of ``like`` that are pairs as complex tensors."""
    return tuple(from_parts(like, results if isinstance(results, (list, tuple)) else (results,)))
