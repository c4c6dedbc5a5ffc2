"""Decompositions of elementwise ops written as formulas: Python operators on Terms emit aten ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from tmconvert.ir.emitter import EagerEmitter, Emitter, empty_body
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import Attribute, Op


def _plain(op: str) -> Callable[[Term, Any], Term]:
    return lambda x, other: x.call(op, other)


def _reflected(op: str) -> Callable[[Term, Any], Term]:
    return lambda x, other: x.like(other).call(op, x)


class Term:
    """A tensor in a formula.

    ``x + 1`` calls aten::add with a constant of the dtype of ``x``, ``x.exp()`` or ``x.pow(2)`` the
    op of that name, a comparison its op with a result of bools, on which ``& | ~`` are logical.
    """

    def __init__(self, g: Emitter, value: Any) -> None:
        self.g = g
        self.value = value

    @property
    def type(self) -> TensorType:
        return self.g.type(self.value)

    @property
    def dtype(self) -> np.dtype:
        return self.type.dtype

    def call(self, op: str, *args: Any, **attributes: Any) -> Term:
        """Emits ``op``, an aten op by default; numbers become constants."""
        name = op if "::" in op else f"aten::{op}"
        operands = [self.value, *(self.like(arg).value for arg in args)]
        return Term(self.g, self.g.call(name, *operands, **attributes))

    def like(self, other: Any) -> Term:
        """Returns ``other`` if it is a Term, else as a constant of this dtype."""
        return other if isinstance(other, Term) else Term(self.g, self.g.constant(other, self.dtype))

    def to(self, dtype: Any) -> Term:
        name = np.dtype(dtype).name
        return self if self.dtype.name == name else self.call("to", dtype=name)

    def clamp(self, min: Any = None, max: Any = None) -> Term:
        """Clamps to bounds, one of which may be a symbolic size."""
        if not is_symbolic((min, max)):
            return self.call("clamp", min=min, max=max)
        lower = self if min is None else self.call("maximum", min)
        return lower if max is None else lower.call("minimum", max)

    def horner(self, coefficients: Sequence[float]) -> Term:
        """Evaluates a polynomial, whose coefficients start with the highest power."""
        result = self * coefficients[0] + coefficients[1]
        for coefficient in coefficients[2:]:
            result = result * self + coefficient
        return result

    def where(self, then: Any, otherwise: Any) -> Term:
        """``then`` where this is true; one of the two may be a number."""
        known = self.g.known(self.value)
        if known is not None and not known.ndim:
            chosen, left = (then, otherwise) if known else (otherwise, then)
            if isinstance(chosen, Term) and not isinstance(left, Term):
                return chosen
        then = then if isinstance(then, Term) else otherwise.like(then)
        return self.call("where", then, then.like(otherwise))

    def __getattr__(self, op: str) -> Callable[..., Term]:
        if op.startswith("__"):  # asked for by copy and pickle
            raise AttributeError(op)
        return lambda *args, **attributes: self.call(op, *args, **attributes)

    def __neg__(self) -> Term:
        return self.call("neg")

    def __invert__(self) -> Term:
        return self.call("logical_not")

    __add__, __radd__ = _plain("add"), _reflected("add")
    __sub__, __rsub__ = _plain("sub"), _reflected("sub")
    __mul__, __rmul__ = _plain("mul"), _reflected("mul")
    __truediv__, __rtruediv__ = _plain("div"), _reflected("div")
    __pow__ = _plain("pow")
    # no == and !=, on which Python relies; a formula says x.eq(0)
    __lt__, __le__ = _plain("lt"), _plain("le")
    __gt__, __ge__ = _plain("gt"), _plain("ge")
    __and__ = _plain("logical_and")
    __or__ = _plain("logical_or")
    __xor__ = _plain("logical_xor")


def formula(
    op: Op, *, is_kernel: bool = False, **since: int
) -> Callable[[Callable[..., Term]], Callable[..., Term]]:
    """Declares the decorated function of Terms (and attributes) as the decomposition of ``op``.

    With ``is_kernel`` the reference is the same formula, computed at once. ``since`` are the versions of
    targets from which on they have the ops of the formula, as for ``Op.decompose``.
    """
    attributes = {argument.name for argument in op.args if isinstance(argument, Attribute)}

    def declare(function: Callable[..., Term]) -> Callable[..., Term]:
        def decomposition(g: Emitter, **arguments: Any) -> Any:
            terms = {
                name: value if name in attributes or value is None else Term(g, value)
                for name, value in arguments.items()
            }
            return function(**terms).value

        op.decompose(decomposition, needs_itself=False, **since)
        if is_kernel:

            @op.reference
            @wraps(function)
            def kernel(**arguments: Any) -> Any:
                from tmconvert.symbolics.registry import catalogue  # which is made of the ops

                return decomposition(EagerEmitter(catalogue()), **arguments)

        return function

    return declare


Step = Callable[[list[Term], list[Term]], tuple[Term, list[Term]]]


def repeated(wanted: Term, state: Sequence[Term], around: Sequence[Term], step: Step) -> list[Term]:
    """Emits a loop of ``step(state, around)``, which returns whether to continue and the new state.

    ``wanted`` says so at first. The loop ends where no element wants a step; those that want none have them,
    too, unless the step sees to it. It sees no other Terms than those that it is given.
    """
    given = [*state, *around]
    body, inputs = empty_body("step", [term.type for term in given], wanted.g.catalogue)
    inner = [Term(body, value) for value in inputs]
    again, after = step(inner[: len(state)], inner[len(state) :])
    body.graph.set_result((_any(again).value, *(term.value for term in after)))
    g = wanted.g
    results = g.call("tm::loop", _any(wanted).value, [term.value for term in given], len(state), body.graph)
    return [Term(g, value) for value in (results if len(state) > 1 else [results])]


def _any(flags: Term) -> Term:
    """Whether any element is true; by a sum, as the maximum of an empty tensor differs between runtimes."""
    return flags.to(np.float32).sum() > 0
