"""aten::lstm_cell, gru_cell, rnn_tanh_cell and rnn_relu_cell.

Shapes: input [N, I], states [N, H], weights [G H, I] and [G H, H], biases [G H]; G gates one below the other
(LSTM: i f g o; GRU: r z n). Source: torch.nn.LSTMCell, GRUCell, RNNCell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term
from tmconvert.symbolics.idioms.recurrent_steps import STEPS, products, rows_of
from tmconvert.symbolics.op import FLOATS, Op, Tensor, Tensors
from tmconvert.symbolics.ops.layers.recurrent import TABLE

Array = np.ndarray


def _op(name: str) -> Op:
    cell, gates, states = TABLE[name]
    several = states > 1

    def result(x: TensorType, hx: Any, w_ih: TensorType, w_hh: TensorType, **biases: Any) -> list[TensorType]:
        given = hx if several else [hx]
        hidden = w_hh.shape[-1]
        if len(given) != states or any(state.shape != (x.shape[0], hidden) for state in given):
            raise ValueError(f"states {given[0]} do not fit {x} and {hidden} hidden features")
        if w_ih.shape != (gates * hidden, x.shape[1]) or w_hh.shape != (gates * hidden, hidden):
            raise ValueError(f"the weights {w_ih} and {w_hh} do not fit {x}")
        return list(given)

    op = Op(
        f"aten::{name}_cell",
        args=[
            Tensor("x", FLOATS, ranks=(2,)),
            Tensors("hx", FLOATS, ranks=(2,)) if several else Tensor("hx", FLOATS, ranks=(2,)),
            Tensor("w_ih", FLOATS, ranks=(2,)), Tensor("w_hh", FLOATS, ranks=(2,)),
            Tensor("b_ih", FLOATS, optional=True), Tensor("b_hh", FLOATS, optional=True),
        ],
        result=result,
    )  # fmt: skip

    @op.reference
    def cell_ref(x: Array, hx: Any, w_ih: Array, w_hh: Array, b_ih: Array | None, b_hh: Array | None) -> Any:
        given = hx if several else [hx]
        from_input = x @ w_ih.T + (0 if b_ih is None else b_ih)
        from_state = given[0] @ w_hh.T + (0 if b_hh is None else b_hh)
        new = [state.astype(x.dtype) for state in cell(from_input, from_state, given)]
        return new if several else new[0]

    @op.decompose
    def cell_step(g, x, hx, w_ih, w_hh, b_ih, b_hh):
        given = [Term(g, state) for state in (hx if several else [hx])]
        pairs = ((x, w_ih, b_ih), (given[0].value, w_hh, b_hh))
        from_input, from_state = (
            [Term(g, each) for each in products(g, of, *(rows_of(g, name, part) for part in parts))]
            for of, *parts in pairs
        )
        new = [state.value for state in STEPS[name](from_input, from_state, given)]
        return new if several else new[0]

    return op


OPS = [_op(name) for name in STEPS]
