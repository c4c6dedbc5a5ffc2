"""One step of ONNX's recurrent layers with all of their attributes, as the subgraph of a scan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapters.qparams import dequantized
from tmconvert.frontends.onnx.adapters.standard.quantized import dynamic_quantize_linear
from tmconvert.frontends.onnx.adapters.values import reshaped
from tmconvert.ir.emitter import Emitter, empty_body
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term

STATES = {"LSTM": 2, "GRU": 1, "RNN": 1}
_DEFAULTS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}


class Function(NamedTuple):
    """An activation function with its parameters."""

    name: str
    alpha: float
    beta: float

    def __call__(self, x: Term) -> Term:
        return _FUNCTIONS[self.name](x, self.alpha, self.beta)


Functions: TypeAlias = tuple[Function, ...]


def _hard_sigmoid(x: Term, alpha: float, beta: float) -> Term:
    return (x * alpha + beta).clamp(0.0, 1.0)


_FUNCTIONS: dict[str, Callable[[Term, float, float], Term]] = {
    "affine": lambda x, alpha, beta: x * alpha + beta,
    "elu": lambda x, alpha, beta: x.call("elu", alpha=alpha),
    "hardsigmoid": _hard_sigmoid,
    "leakyrelu": lambda x, alpha, beta: x.call("leaky_relu", negative_slope=alpha),
    "relu": lambda x, alpha, beta: x.relu(),
    "scaledtanh": lambda x, alpha, beta: (x * beta).tanh() * alpha,
    "sigmoid": lambda x, alpha, beta: x.sigmoid(),
    "softplus": lambda x, alpha, beta: x.softplus(),
    "softsign": lambda x, alpha, beta: x.softsign(),
    "tanh": lambda x, alpha, beta: x.tanh(),
    "thresholdedrelu": lambda x, alpha, beta: x.call("threshold", threshold=alpha, value=0.0),
}
# (alpha, beta) of functions that have parameters; None for one that they lack
_PARAMETERS: dict[str, tuple[float | None, float | None]] = {
    "affine": (1.0, 0.0),
    "elu": (1.0, None),
    "hardsigmoid": (0.2, 0.5),
    "leakyrelu": (0.01, None),
    "scaledtanh": (1.0, 1.0),
    "thresholdedrelu": (1.0, None),
}


class Cell(NamedTuple):
    """Attributes of a recurrent operator; ``peepholes`` [directions, 3 H] are its tensor P.

    With ``rounds`` the operands of the products are quantized dynamically, as DynamicQuantizeLSTM does.
    """

    name: str
    clip: float | None
    input_forget: bool
    linear_before_reset: bool
    peepholes: Any
    rounds: bool = False


def functions_of(
    name: str, given: Sequence[str] | None, alphas: Sequence[float], betas: Sequence[float], directions: int
) -> list[Functions]:
    """Returns the functions of each direction. Parameters belong to the functions that have some, in turn."""
    names = [each.lower() for each in given or _DEFAULTS[name] * directions]
    each = len(_DEFAULTS[name])
    if len(names) != each * directions:
        raise Refusal(f"{name} has {len(names)} activations, not {each * directions}")
    if unknown := [word for word in names if word not in _FUNCTIONS]:
        raise Refusal(f"the activation {unknown[0]!r} is unknown")
    left = [list(alphas), list(betas)]
    made = []
    for word in names:
        values = [
            default if default is None or not rest else rest.pop(0)
            for default, rest in zip(_PARAMETERS.get(word, (None, None)), left, strict=True)
        ]
        made.append(Function(word, *(0.0 if value is None else float(value) for value in values)))
    return [tuple(made[start : start + each]) for start in range(0, len(made), each)]


def scanned(
    g: Emitter, cell: Cell, functions: Functions, x, weights: Sequence[Any], states: Sequence[Any], peepholes,
    lengths,
) -> tuple[Any, list[Any]]:  # fmt: skip
    """Runs one direction over ``x`` [T, N, I]; ``weights`` are W, R and B (or None). Returns the outputs
    [T, N, H], which are 0 after the end of a sequence, and the last states.
    """
    weight, recurrence, bias = weights
    own, kept = _biases(g, bias)
    slices = [
        _linear(_rounded(cell, Term(g, x)), Term(g, weight), None if own is None else Term(g, own)).value
    ]
    if lengths is not None:
        count = g.type(x).shape[0]
        steps = reshaped(g, g.call("aten::arange", 0, count, 1), [count, 1, 1])
        slices.append(g.call("aten::lt", steps, reshaped(g, lengths, [1, -1, 1])))
    around = [each for each in (recurrence, kept, peepholes) if each is not None]
    has = (kept is not None, peepholes is not None)
    types = [g.type(value) for value in (*states, *slices, *around)]
    for i in range(len(states), len(states) + len(slices)):
        types[i] = TensorType(types[i].dtype, types[i].shape[1:])
    inner, nodes = empty_body(f"{cell.name.lower()}_step", types, g.catalogue)
    terms = [Term(inner, node) for node in nodes]
    before = terms[: len(states)]
    given, *is_there = terms[len(states) : len(states) + len(slices)]
    rest = terms[len(states) + len(slices) :]
    new = _stepped(cell, functions, given, before, rest, has)
    row = new[0]
    if is_there:
        new = [is_there[0].where(*pair) for pair in zip(new, before, strict=True)]
        row = is_there[0].where(row, 0)
    inner.graph.set_result(tuple(term.value for term in (*new, row)))
    made = g.call("tm::scan", [*states, *slices, *around], len(states), len(slices), inner.graph)
    return made[-1], made[:-1]


def _biases(g: Emitter, bias) -> tuple[Any, Any]:
    if bias is None:
        return None, None
    half = g.type(bias).shape[0] // 2
    own, kept = (g.call("aten::slice", bias, 0, start, start + half, 1) for start in (0, half))
    return own, kept


def _stepped(
    cell: Cell, functions: Functions, given: Term, states: list[Term], around: list[Term],
    has: tuple[bool, bool],
) -> list[Term]:  # fmt: skip
    recurrence, *others = around
    bias = others.pop(0) if has[0] else None
    peepholes = others.pop(0) if has[1] else None
    if cell.name == "LSTM":
        return _lstm(cell, functions, given, states, recurrence, bias, peepholes)
    if cell.name == "GRU":
        return [_gru(cell, functions, given, states[0], recurrence, bias)]
    return [functions[0](_clipped(cell, given + _linear(states[0], recurrence, bias)))]


def _rounded(cell: Cell, x: Term) -> Term:
    if not cell.rounds:
        return x
    return Term(x.g, dequantized(x.g, *dynamic_quantize_linear(x.g, x.value)))


def _linear(x: Term, weight: Term, bias: Term | None) -> Term:
    return Term(x.g, x.g.call("aten::linear", x.value, weight.value, None if bias is None else bias.value))


def _clipped(cell: Cell, x: Term) -> Term:
    return x if cell.clip is None else x.clamp(-cell.clip, cell.clip)


def _parts(x: Term, count: int, axis: int = -1) -> list[Term]:
    width = x.type.shape[-1] // count
    return [Term(x.g, part) for part in x.g.call("aten::split_with_sizes", x.value, [width] * count, axis)]


def _lstm(
    cell: Cell, functions: Functions, given: Term, states: list[Term], recurrence: Term, bias: Term | None,
    peepholes: Term | None,
) -> list[Term]:  # fmt: skip
    """Gates are i, o, f, c; peepholes i, o, f."""
    gate, inner, outer = functions
    hidden, memory = states
    i, o, f, c = _parts(given + _linear(_rounded(cell, hidden), recurrence, bias), 4)
    looks = None if peepholes is None else _parts(peepholes, 3)
    if looks is not None:
        i, f = i + looks[0] * memory, f + looks[2] * memory
    entry = gate(_clipped(cell, i))
    kept = -entry + 1 if cell.input_forget else gate(_clipped(cell, f))
    memory = kept * memory + entry * inner(_clipped(cell, c))
    if looks is not None:
        o = o + looks[1] * memory
    return [gate(_clipped(cell, o)) * outer(memory), memory]


def _gru(
    cell: Cell, functions: Functions, given: Term, hidden: Term, recurrence: Term, bias: Term | None
) -> Term:
    """Gates are z, r, h."""
    gate, inner = functions
    g, width = given.g, hidden.type.shape[-1]
    sizes = [2 * width, width]
    gates, last = (Term(g, each) for each in g.call("aten::split_with_sizes", recurrence.value, sizes, 0))
    biases: list[Term | None] = [None, None]
    if bias is not None:
        biases = [Term(g, each) for each in g.call("aten::split_with_sizes", bias.value, sizes, 0)]
    own, h = (Term(g, each) for each in g.call("aten::split_with_sizes", given.value, sizes, -1))
    update, reset = _parts(gate(_clipped(cell, own + _linear(hidden, gates, biases[0]))), 2)
    if cell.linear_before_reset:
        new = inner(_clipped(cell, h + reset * _linear(hidden, last, biases[1])))
    else:
        new = inner(_clipped(cell, h + _linear(reset * hidden, last, biases[1])))
    return new + update * (hidden - new)
