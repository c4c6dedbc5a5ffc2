"""Recurrent layers."""

from __future__ import annotations

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.tflite.adapters.values import PREFIX

OPERATORS = Table(PREFIX)
# inputs of UNIDIRECTIONAL_SEQUENCE_LSTM, by their first index
_FROM_INPUT, _RECURRENT, _PEEPHOLES, _BIASES, _PROJECTION, _STATES, _NORMS = 1, 5, 9, 12, 16, 18, 20


@OPERATORS.add("UNIDIRECTIONAL_SEQUENCE_LSTM")
def sequence_lstm(
    g,
    *inputs,
    time_major=False,
    cell_clip=0.0,
    proj_clip=0.0,
    fused_activation_function="NONE",
    diagonal_recurrent_tensors=False,
):
    """An LSTM whose states begin with zeros, or with what is given."""
    given = [*inputs, *[None] * (24 - len(inputs))]
    lacks_gate = given[_FROM_INPUT] is None or given[_RECURRENT] is None
    has_more = any(each is not None for each in (*given[_PEEPHOLES:_BIASES], *given[_NORMS:24]))
    is_clipped = bool(cell_clip or proj_clip) or diagonal_recurrent_tensors
    if lacks_gate or has_more or is_clipped or given[_PROJECTION + 1] is not None:
        raise Refusal("an LSTM with coupled gates, peepholes, normalization or clipping is not supported")
    if fused_activation_function != "TANH":
        raise Refusal(f"an LSTM with the activation {fused_activation_function} is not supported")
    weights, recurrent, biases = (
        g.call("aten::cat", given[first : first + 4], 0) for first in (_FROM_INPUT, _RECURRENT, _BIASES)
    )
    zeros = g.constant(0.0, g.type(biases).dtype)
    second = g.call("aten::expand", zeros, list(g.type(biases).shape))
    params = [weights, recurrent, biases, second]
    params += [given[_PROJECTION]] if given[_PROJECTION] is not None else []
    states = [
        g.call("aten::reshape", each, [1, *g.type(each).shape]) for each in given[_STATES : _STATES + 2]
    ]
    return g.call(
        "aten::lstm", given[0], states, params, has_biases=True, num_layers=1, batch_first=not time_major
    )[0]
