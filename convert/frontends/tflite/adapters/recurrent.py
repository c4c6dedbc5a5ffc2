"""Recurrent layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.tflite.adapters.values import PREFIX
from tmconvert.ir.emitter import Emitter, empty_body
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.symbolics.registry import catalogue

OPERATORS = Table(PREFIX)
# inputs of UNIDIRECTIONAL_SEQUENCE_LSTM, by their first index
_FROM_INPUT, _RECURRENT, _PEEPHOLES, _BIASES, _PROJECTION, _STATES, _NORMS = 1, 5, 9, 12, 16, 18, 20


@OPERATORS.add("UNIDIRECTIONAL_SEQUENCE_LSTM")
def sequence_lstm(
    g,
    *inputs, time_major=False, cell_clip=0.0, proj_clip=0.0, fused_activation_function="NONE",
    diagonal_recurrent_tensors=False,
):  # fmt: skip
    """An LSTM whose states begin with zeros, or with what is given."""
    given = [*inputs, *[None] * (24 - len(inputs))]
    lacks_gate = given[_FROM_INPUT] is None or given[_RECURRENT] is None
    has_more = any(each is not None for each in (*given[_PEEPHOLES:_BIASES], *given[_NORMS:24]))
    if lacks_gate or has_more or diagonal_recurrent_tensors:
        raise Refusal("an LSTM with coupled gates, peepholes or normalization is not supported")
    if fused_activation_function != "TANH":
        raise Refusal(f"an LSTM with the activation {fused_activation_function} is not supported")
    weights, recurrent, biases = (
        g.call("aten::cat", given[first : first + 4], 0) for first in (_FROM_INPUT, _RECURRENT, _BIASES)
    )
    steps = g.type(given[0]).shape[0 if time_major else 1]
    if not _is_clipped(g, given, steps, cell_clip) and not proj_clip and given[_PROJECTION + 1] is None:
        return _whole(g, given, weights, recurrent, biases, time_major)
    x = given[0] if time_major else g.call("aten::permute", given[0], [1, 0, 2])
    made = _stepwise(g, given, g.call("aten::linear", x, weights, biases), recurrent, (cell_clip, proj_clip))
    return made if time_major else g.call("aten::permute", made, [1, 0, 2])


def _is_clipped(g: Emitter, given: list[Any], steps: Any, limit: float) -> bool:
    """Whether the state of a cell can leave the limit: a step adds less than 1 to its absolute value."""
    first = g.known(given[_STATES + 1])
    if not limit:
        return False
    return first is None or is_symbolic(steps) or float(np.abs(first).max(initial=0)) + steps > limit


def _whole(g: Emitter, given: list[Any], weights, recurrent, biases, time_major: bool) -> Any:
    zeros = g.constant(0.0, g.type(biases).dtype)
    second = g.call("aten::expand", zeros, list(g.type(biases).shape))
    params = [weights, recurrent, biases, second]
    params += [given[_PROJECTION]] if given[_PROJECTION] is not None else []
    states = [
        g.call("aten::reshape", each, [1, *g.type(each).shape]) for each in given[_STATES : _STATES + 2]
    ]
    layer = {"has_biases": True, "num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False}
    return g.call("aten::lstm", given[0], states, params, **layer, batch_first=not time_major)[0]


def _stepwise(g: Emitter, given: list[Any], gates, recurrent, limits: tuple[float, float]) -> Any:
    """An LSTM whose cells and projections are clipped in each step; ``gates`` are those of the inputs."""
    around = [recurrent, *(each for each in given[_PROJECTION : _PROJECTION + 2] if each is not None)]
    states = given[_STATES : _STATES + 2]
    row = g.type(gates)
    types = [*map(g.type, states), type(row)(row.dtype, row.shape[1:]), *map(g.type, around)]
    step, (hidden, cell, own, weight, *projection) = empty_body("step", types, catalogue())
    sums = step.call("aten::add", own, step.call("aten::linear", hidden, weight, None))
    width = g.type(states[1]).shape[-1]
    parts = step.call("aten::split_with_sizes", sums, [width] * 4, 1)
    enters, keeps, leaves = (step.call("aten::sigmoid", parts[place]) for place in (0, 1, 3))
    fresh = step.call("aten::mul", enters, step.call("aten::tanh", parts[2]))
    cell = _clipped(step, step.call("aten::add", step.call("aten::mul", keeps, cell), fresh), limits[0])
    hidden = step.call("aten::mul", leaves, step.call("aten::tanh", cell))
    if projection:
        bias = projection[1] if len(projection) > 1 else None
        hidden = _clipped(step, step.call("aten::linear", hidden, projection[0], bias), limits[1])
    step.graph.set_result((hidden, cell, hidden))
    return g.call("tm::scan", [*states, gates, *around], 2, 1, step.graph)[2]


def _clipped(g: Emitter, x, limit: float) -> Any:
    return g.call("aten::clamp", x, min=-limit, max=limit) if limit else x
