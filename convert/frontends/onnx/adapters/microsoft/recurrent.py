"""Recurrent layers of com.microsoft with quantized weights."""

from __future__ import annotations

import numpy as np

from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.standard.recurrent import recurrent_layer
from tmconvert.frontends.onnx.adapters.values import cast, reshaped
from tmconvert.symbolics.idioms.formulas import Term

OPERATORS = OperatorTable("com.microsoft")


@OPERATORS.add("DynamicQuantizeLSTM")
def dynamic_quantize_lstm(
    g, X, W, R, B, sequence_lens, initial_h, initial_c, P, W_scale, W_zero_point, R_scale, R_zero_point,
    **attributes,
):  # fmt: skip
    """W is [directions, I, 4 H] and R [directions, H, 4 H]: not as in LSTM."""
    weight = _transposed(g, W, W_scale, W_zero_point)
    recurrence = _transposed(g, R, R_scale, R_zero_point)
    states = [initial_h, initial_c]
    return recurrent_layer(
        g, "LSTM", X, weight, recurrence, B, sequence_lens, states, P, rounds=True, **attributes
    )


def _transposed(g, weight, scale, zero):
    """Dequantizes a weight with parameters [directions], or [directions, 4 H] of its columns."""
    count = g.type(weight).shape[0]
    steps, zeros = (cast(g, each, np.float32) for each in (weight, zero))
    made = (Term(g, steps) - Term(g, reshaped(g, zeros, [count, 1, -1]))) * Term(
        g, reshaped(g, scale, [count, 1, -1])
    )
    return g.call("aten::permute", made.value, [0, 2, 1])
