"""Raw operators (``Apply`` in MegEngine) of layers: normalization and recurrent networks.

After the result they return values that only training needs: statistics, which are computed, too, and
workspace with undefined content, for which the adapters return None.
"""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import modes, normalization
from tmconvert.frontends.megengine.adapters.modules import recurrent
from tmconvert.frontends.megengine.adapters.values import rank, reshaped
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter

OPERATORS = Table("opdef.")


@OPERATORS.add("BatchNorm")
def batch_norm(g, inp, *parameters, fwd_mode, epsilon, param_dim, **state):
    """Returns mean and variance unchanged, the workspace, and the result."""
    if len(parameters) != 4 or str(fwd_mode).upper() != "INFERENCE":
        raise Refusal(
            "batch_norm with the statistics of the batch is not inference",
            "call model.eval() before tracing, or give running_mean and running_var",
        )
    weight, bias, mean, variance = parameters
    result = normalization.batch_norm(g, inp, mean, variance, weight, bias, eps=epsilon, param_dim=param_dim)
    return [mean, variance, None, result]


def _statistics(g: Emitter, x, axes: list[int], eps: float, inverse: bool) -> list[Any]:
    """The mean over ``axes``, and the variance, or 1 / sqrt(variance + eps)."""
    mean = g.call("aten::mean", x, axes, True)
    variance = g.call("aten::mean", g.call("aten::square", g.call("aten::sub", x, mean)), axes, False)
    mean = g.call("aten::mean", x, axes, False)
    if not inverse:
        return [mean, variance]
    return [mean, g.call("aten::rsqrt", modes.applied(g, "ADD", variance, eps))]


@OPERATORS.add("LayerNorm")
def layer_norm(g, inp, *parameters, affine, eps, normalized_dim, **state):
    axes = list(range(rank(g, inp)))[-normalized_dim:]
    shape = [g.type(inp).shape[axis] for axis in axes]
    result = normalization.layer_norm(g, inp, shape, affine, *parameters, eps=eps)
    return [result, *_statistics(g, inp, axes, eps, inverse=True)]


@OPERATORS.add("GeneralNorm")
def general_norm(g, inp, *parameters, affine, eps, axis_start, axis_end):
    axes = list(range(axis_start, axis_end))
    result = normalization.general_norm(g, inp, axes, affine, *parameters, eps=eps)
    return [result, *_statistics(g, inp, axes, eps, inverse=True)]


@OPERATORS.add("GroupNorm")
def group_norm(g, inp, *parameters, affine, eps, group, **state):
    result = normalization.group_norm(g, inp, group, affine, *parameters, eps=eps)
    return [result, *_group_statistics(g, inp, group, eps)]


@OPERATORS.add("InstanceNorm")
def instance_norm(g, inp, *parameters, affine, eps, **state):
    result = normalization.instance_norm(g, inp, affine, *parameters, eps=eps)
    return [result, *_group_statistics(g, inp, g.type(inp).shape[1], eps)]


def _group_statistics(g: Emitter, inp, groups: int, eps: float) -> list[Any]:
    rows = reshaped(g, inp, [g.type(inp).shape[0], groups, -1])
    return _statistics(g, rows, [2], eps, inverse=False)


# ---- recurrent networks


@OPERATORS.add("RNNCell")
def rnn_cell(g, inp, weight_ih, bias_ih, hx, weight_hh, bias_hh, *, nonlineMode):
    gates = recurrent.gates(g, inp, hx, weight_ih, weight_hh, bias_ih, bias_hh)
    mode = str(nonlineMode).upper()
    return gates if mode == "IDENTITY" else modes.applied(g, mode, gates)


@OPERATORS.add("LSTMCell")
def lstm_cell(g, inp, weight_ih, bias_ih, hx, weight_hh, bias_hh, cx):
    """Returns the new hidden and cell states, and the workspace."""
    gates = recurrent.gates(g, inp, hx, weight_ih, weight_hh, bias_ih, bias_hh)
    return [*recurrent.lstm_step(g, gates, cx), None]


@OPERATORS.add("RNN")
def rnn(g, inp, hx, weights, *, nonlineMode, **state):
    name = recurrent.nonlinearity(nonlineMode)
    return [*_layers(g, f"aten::rnn_{name}", inp, hx, weights, state, 1), None]


@OPERATORS.add("LSTM")
def lstm(g, inp, hx, cx, weights, **state):
    return [*_layers(g, "aten::lstm", inp, [hx, cx], weights, state, 4), None]


def _layers(g: Emitter, op: str, inp, states, weights, state: dict[str, Any], gates: int) -> list[Any]:
    flat = g.known(weights)
    if flat is None:
        raise Refusal("the weights of a recurrent network are computed from the data; they must be constants")
    size = {**state, "input_size": g.type(inp).shape[-1], "batch_first": False}
    return recurrent.layers(g, op, inp, states, flat.reshape(-1), size, "", gates)
