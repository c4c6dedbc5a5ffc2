"""megengine.module.rnn."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ....errors import Refusal
from ....ir import TracedModule
from ....ir.emitter import Emitter
from .modules import parameter
from .table import Table

MODULES = Table("megengine.module.rnn.")


def _gates(g: Emitter, module: TracedModule, inp: Any, hidden: Any) -> Any:
    """What the gates of a cell add up: W x + b + W' h + b'; without a hidden state it is zero."""
    weight_ih, weight_hh, bias_ih, bias_hh = (
        parameter(g, module, name) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    given = g.call("aten::linear", inp, weight_ih, bias_ih)
    kept = bias_hh if hidden is None else g.call("aten::linear", hidden, weight_hh, bias_hh)
    return g.call("aten::add", given, kept)


@MODULES.add("RNNCell")
def rnn_cell(g: Emitter, module: TracedModule, input: Any, hx: Any = None) -> Any:
    return g.call(f"aten::{_nonlinearity(module)}", _gates(g, module, input, hx))


def _nonlinearity(module: TracedModule) -> str:
    name = str(module.attributes["nonlinearity"]).lower()
    if name not in ("tanh", "relu"):
        raise Refusal(f"the nonlinearity {name!r} is not supported")
    return name


@MODULES.add("LSTMCell")
def lstm_cell(g: Emitter, module: TracedModule, input: Any, hx: Any = None) -> list[Any]:
    hidden, cell = (None, None) if hx is None else hx
    gates = _gates(g, module, input, hidden)
    width = g.type(gates).shape[-1] // 4
    i, f, step, o = (g.call("aten::slice", gates, 1, n * width, (n + 1) * width, 1) for n in range(4))
    i, f, o = (g.call("aten::sigmoid", gate) for gate in (i, f, o))
    new = g.call("aten::mul", i, g.call("aten::tanh", step))
    if cell is not None:
        new = g.call("aten::add", g.call("aten::mul", f, cell), new)
    return [g.call("aten::mul", o, g.call("aten::tanh", new)), new]


@MODULES.add("RNN")
def rnn(g: Emitter, module: TracedModule, input: Any, hx: Any = None) -> list[Any]:
    (state,) = _first_states(g, module, input, 1) if hx is None else (hx,)
    return _layers(g, module, f"aten::rnn_{_nonlinearity(module)}", input, state, gates=1)


@MODULES.add("LSTM")
def lstm(g: Emitter, module: TracedModule, input: Any, hx: Any = None) -> list[Any]:
    """The outputs, and the last states as a pair."""
    states = _first_states(g, module, input, 2) if hx is None else list(hx)
    output, hidden, cell = _layers(g, module, "aten::lstm", input, states, gates=4)
    return [output, [hidden, cell]]


def _directions(module: TracedModule) -> int:
    return 2 if module.attributes["bidirectional"] else 1


def _first_states(g: Emitter, module: TracedModule, input: Any, count: int) -> list[Any]:
    attributes, type_ = module.attributes, g.type(input)
    batch = type_.shape[0 if attributes["batch_first"] else 1]
    states = _directions(module) * attributes["num_layers"]
    zeros = g.constant(np.zeros((states, 1, attributes["hidden_size"])), type_.dtype)
    return [g.call("aten::expand", zeros, [states, batch, attributes["hidden_size"]])] * count


def _layers(g: Emitter, module: TracedModule, op: str, input: Any, states: Any, *, gates: int) -> list[Any]:
    attributes = module.attributes
    if attributes.get("proj_size"):
        raise Refusal("an LSTM with projections is not supported: MegEngine itself cannot run it")
    return g.call(
        op,
        input,
        states,
        _parameters(g, module, gates),
        bool(attributes["bias"]),
        attributes["num_layers"],
        0.0,
        False,
        bool(attributes["bidirectional"]),
        bool(attributes["batch_first"]),
    )


def _parameters(g: Emitter, module: TracedModule, gates: int) -> list[Any]:
    """The weights and biases of each direction of each layer, which one flat parameter holds in a row."""
    flat, shapes = module.tensors["_flatten_weights"].reshape(-1), _shapes(module, gates)
    sizes = [math.prod(shape) for shape in shapes.values()]
    if sum(sizes) != flat.size:
        raise Refusal(f"the weights of an RNN are {flat.size} numbers, not {sum(sizes)}")
    ends = itertools.accumulate(sizes)
    prefix = f"{module.name}." if module.name else ""
    return [
        g.parameter(flat[end - size : end].reshape(shape), prefix + name)
        for (name, shape), size, end in zip(shapes.items(), sizes, ends, strict=True)
    ]


def _shapes(module: TracedModule, gates: int) -> dict[str, tuple[int, ...]]:
    """The shapes of the parameters in the order in which they are stored, by PyTorch's names."""
    attributes = module.attributes
    hidden, width = attributes["hidden_size"], attributes["input_size"]
    rows = gates * hidden
    shapes: dict[str, tuple[int, ...]] = {}
    for layer in range(attributes["num_layers"]):
        for suffix in (f"_l{layer}", f"_l{layer}_reverse")[: _directions(module)]:
            shapes["weight_ih" + suffix] = (rows, width)
            shapes["weight_hh" + suffix] = (rows, hidden)
            if attributes["bias"]:
                shapes["bias_ih" + suffix] = shapes["bias_hh" + suffix] = (rows,)
        width = hidden * _directions(module)
    return shapes
