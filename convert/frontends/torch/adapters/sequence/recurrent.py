"""Recurrent layers, built of the catalogue's recurrent ops."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter

ATEN = Table()


def _layer(name: str) -> None:
    def padded(
        g: Emitter, input: Any, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float,
        train: bool, bidirectional: bool, batch_first: bool,
        *, lengths: Any = None,
    ) -> Any:  # fmt: skip
        """Recurrent layer with padded sequences; ``lengths`` are those of packed sequences."""
        if train and dropout > 0 and num_layers > 1:
            raise Refusal(f"{name} in training mode applies dropout", "leave out --training (training=True)")
        settings = (has_biases, num_layers, 0.0, False, bidirectional, batch_first)
        return tuple(g.call(f"aten::{name}", input, hx, list(params), *settings, lengths=lengths))

    ATEN.add(name)(padded)


for _name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
    _layer(_name)
