"""megengine.module.rnn."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.modules.functional_forms import parameter
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir import TracedModule
from tmconvert.ir.emitter import Emitter

MODULES = Table("megengine.module.rnn.")


def _gates(g: Emitter, module: TracedModule, inp, hidden) -> Any:
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    return gates(g, inp, hidden, *(parameter(g, module, name) for name in names))


def gates(g, inp, hidden, weight_ih, weight_hh, bias_ih, bias_hh):
    """Pre-activations of the gates: W x + b + W' h + b'; without a hidden state it is zero."""
    given = g.call("aten::linear", inp, weight_ih, bias_ih)
    kept = bias_hh if hidden is None else g.call("aten::linear", hidden, weight_hh, bias_hh)
    return g.call("aten::add", given, kept)


@MODULES.add("RNNCell")
def rnn_cell(g, module, input, hx=None):
    return g.call(f"aten::{nonlinearity(module.attributes['nonlinearity'])}", _gates(g, module, input, hx))


def nonlinearity(mode) -> str:
    name = str(mode).lower()
    if name not in ("tanh", "relu"):
        raise Refusal(f"the nonlinearity {name!r} is not supported")
    return name


@MODULES.add("LSTMCell")
def lstm_cell(g, module, input, hx=None):
    hidden, cell = (None, None) if hx is None else hx
    return lstm_step(g, _gates(g, module, input, hidden), cell)


def lstm_step(g: Emitter, sums, cell) -> list[Any]:
    """Returns the new hidden and cell states from the gates' pre-activations; a missing ``cell`` is zero."""
    width = g.type(sums).shape[-1] // 4
    i, f, step, o = (g.call("aten::slice", sums, 1, n * width, (n + 1) * width, 1) for n in range(4))
    i, f, o = (g.call("aten::sigmoid", gate) for gate in (i, f, o))
    new = g.call("aten::mul", i, g.call("aten::tanh", step))
    if cell is not None:
        new = g.call("aten::add", g.call("aten::mul", f, cell), new)
    return [g.call("aten::mul", o, g.call("aten::tanh", new)), new]


@MODULES.add("RNN")
def rnn(g, module, input, hx=None):
    (state,) = _first_states(g, module, input, 1) if hx is None else (hx,)
    name = nonlinearity(module.attributes["nonlinearity"])
    return _of_module(g, module, f"aten::rnn_{name}", input, state, 1)


@MODULES.add("LSTM")
def lstm(g, module, input, hx=None):
    """The outputs, and the last states as a pair."""
    states = _first_states(g, module, input, 2) if hx is None else list(hx)
    output, hidden, cell = _of_module(g, module, "aten::lstm", input, states, 4)
    return [output, [hidden, cell]]


def _directions(attributes: Mapping[str, Any]) -> int:
    return 2 if attributes["bidirectional"] else 1


def _first_states(g: Emitter, module: TracedModule, input, count: int) -> list[Any]:
    attributes, type_ = module.attributes, g.type(input)
    batch = type_.shape[0 if attributes["batch_first"] else 1]
    states = _directions(attributes) * attributes["num_layers"]
    zeros = g.constant(np.zeros((states, 1, attributes["hidden_size"])), type_.dtype)
    return [g.call("aten::expand", zeros, [states, batch, attributes["hidden_size"]])] * count


def _of_module(g: Emitter, module: TracedModule, op: str, input, states, gates: int) -> list[Any]:
    flat, prefix = module.tensors["_flatten_weights"], f"{module.name}." if module.name else ""
    return layers(g, op, input, states, flat.reshape(-1), module.attributes, prefix, gates)


def layers(
    g: Emitter, op: str, input, states, flat: np.ndarray, attributes: Mapping[str, Any], prefix: str,
    gates: int,
) -> list[Any]:  # fmt: skip
    """A recurrent network with weights concatenated in ``flat``; ``prefix`` is prepended to their names."""
    if attributes.get("proj_size"):
        raise Refusal("an LSTM with projections is not supported: MegEngine itself cannot run it")
    return g.call(
        op,
        input,
        states,
        _parameters(g, flat, attributes, prefix, gates),
        bool(attributes["bias"]),
        attributes["num_layers"],
        0.0,
        False,
        bool(attributes["bidirectional"]),
        bool(attributes["batch_first"]),
    )


def _parameters(
    g: Emitter, flat: np.ndarray, attributes: Mapping[str, Any], prefix: str, gates: int
) -> list[Any]:
    """Splits the flat parameter into weights and biases of each layer and direction."""
    shapes = _shapes(attributes, gates)
    sizes = [math.prod(shape) for shape in shapes.values()]
    if sum(sizes) != flat.size:
        raise Refusal(f"the flat weight of an RNN has {flat.size} elements, expected {sum(sizes)}")
    ends = itertools.accumulate(sizes)
    return [
        g.parameter(flat[end - size : end].reshape(shape), prefix + name)
        for (name, shape), size, end in zip(shapes.items(), sizes, ends, strict=True)
    ]


def _shapes(attributes: Mapping[str, Any], gates: int) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the parameters in storage order, by PyTorch's names."""
    hidden, width = attributes["hidden_size"], attributes["input_size"]
    rows = gates * hidden
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(attributes["num_layers"]):
        for suffix in (f"_l{layer}", f"_l{layer}_reverse")[: _directions(attributes)]:
            shapes["weight_ih" + suffix] = (rows, width)
            shapes["weight_hh" + suffix] = (rows, hidden)
            if attributes["bias"]:
                shapes["bias_ih" + suffix] = shapes["bias_hh" + suffix] = (rows,)
        width = hidden * _directions(attributes)
    return shapes
