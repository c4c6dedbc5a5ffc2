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
from tmconvert.ir.emitter import Emitter, empty_body
from tmconvert.ir.subgraphs import emitted, inlined
from tmconvert.ir.symbolic.choices import where
from tmconvert.ir.tree import leaves
from tmconvert.symbolics.registry import catalogue

FUNCTIONS = Table("torch.")


@FUNCTIONS.add("cond")
def cond(g, pred, true_fn, false_fn, operands, captured, choice=None):
    """``choice`` is the condition as a size, 1 or 0, where sizes decide."""
    given = [[*leaves(operands), *each] for each in captured]
    if isinstance(choice, int):  # one side at all sizes
        body, values = ((false_fn, given[1]), (true_fn, given[0]))[choice]
        return _results(emitted(g, body, values))
    around = _tensors(pred, *given[0], *given[1])
    then, otherwise = (
        where(choice, taken, partial(g.body, body, each, around))
        for taken, body, each in zip((1, 0), (true_fn, false_fn), given, strict=True)
    )
    return _results(g.call("tm::cond", _bool(g, pred), around, then, otherwise, choice))


@FUNCTIONS.add("while_loop")
def while_loop(g, cond_fn, body_fn, carried, captured):
    slots, found = _slots(g, carried), _tensors(*captured[0], *captured[1])
    condition = g.body(cond_fn, [*slots, *captured[0]], [*slots, *found])
    body = g.body(body_fn, [*slots, *captured[1]], [*slots, *found])
    around = [*carried, *found]
    step, inputs = empty_body("step", [g.type(value) for value in around], catalogue())
    after = inlined(step, body, inputs)
    (goes_on,) = inlined(step, condition, [*after, *inputs[len(carried) :]])
    step.graph.set_result((_bool(step, goes_on), *after))
    (first,) = inlined(g, condition, around)
    return _results(g.call("tm::loop", _bool(g, first), around, len(carried), step.graph))


@FUNCTIONS.add("scan")
def scan(g, combine_fn, init, xs, captured):
    """Scans over the first axis of ``xs``; torch has moved the scanned axis there."""
    slots, found = _slots(g, init), _tensors(*captured[0])
    slices = [TensorNode("slice", type_.shape[1:], type_.dtype) for type_ in map(g.type, xs)]
    step = g.body(combine_fn, [*slots, *slices, *captured[0]], [*slots, *slices, *found])
    return _results(g.call("tm::scan", [*init, *xs, *found], len(init), len(xs), step))


@FUNCTIONS.add("autograd.Function.apply")
def apply(g, function, given, operators, results, inputs, captured):
    """``inputs`` are the inputs of ``operators``; see ``symbolics/ops/control_flow/function.py``."""
    around = _tensors(*inputs, *leaves(given), *captured[0])
    body = g.body(function, [*filter(is_tensor, leaves(given)), *captured[0]], around)
    numbers = {id(value): number for number, value in enumerate(around)}
    places = [numbers[id(value)] for value in inputs]

    def moved(number: int | None) -> int | None:
        """Returns the index of a value among all arguments of the call."""
        if number is None:
            return None
        return places[number] if number < len(inputs) else number - len(inputs) + len(around)

    said = [[type_, list(map(moved, operands)), *rest] for type_, operands, *rest in operators]
    return _results(g.call("tm::function", around, body, said, list(map(moved, results))))


def _slots(g: Emitter, values: Sequence[Any]) -> list[TensorNode]:
    """Placeholders for loop-carried tensors, distinct from those that the body captures."""
    if not all(map(is_tensor, values)):
        raise Refusal("a loop-carried value is not a tensor")
    return [TensorNode("slot", type_.shape, type_.dtype) for type_ in map(g.type, values)]


def _tensors(*values) -> list[Any]:
    """Returns the tensors among values, without duplicates."""
    return list({id(value): value for value in values if is_tensor(value)}.values())


def _bool(g, value):
    return cast(g, reshaped(g, value, []), np.bool_)


def _results(results) -> tuple[Any, ...]:
    return tuple(results) if isinstance(results, (list, tuple)) else (results,)
