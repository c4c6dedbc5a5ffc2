"""Decompositions of elementwise ops written as formulas: Python's operators on tensors call aten ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.types import TensorType
from ..op import Attribute, Op

if TYPE_CHECKING:
    from ...ir.emitter import Emitter


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
        """The result of ``op``, of aten where no other is named; numbers become constants."""
        name = op if "::" in op else f"aten::{op}"
        operands = [self.value, *(self.like(arg).value for arg in args)]
        return Term(self.g, self.g.call(name, *operands, **attributes))

    def like(self, other: Any) -> Term:
        """``other`` itself if it is a Term, else a constant of this dtype."""
        return other if isinstance(other, Term) else Term(self.g, self.g.constant(other, self.dtype))

    def to(self, dtype: Any) -> Term:
        name = np.dtype(dtype).name
        return self if self.dtype.name == name else self.call("to", dtype=name)

    def horner(self, coefficients: Sequence[float]) -> Term:
        """The polynomial of this, from the highest power on."""
        result = self * coefficients[0] + coefficients[1]
        for coefficient in coefficients[2:]:
            result = result * self + coefficient
        return result

    def where(self, then: Any, otherwise: Any) -> Term:
        """``then`` where this is true; one of the two may be a number."""
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


def formula(op: Op) -> Callable[[Callable[..., Term]], Callable[..., Term]]:
    """Declares the decorated function of Terms (and attributes) as the decomposition of ``op``."""
    attributes = {argument.name for argument in op.args if isinstance(argument, Attribute)}

    def declare(function: Callable[..., Term]) -> Callable[..., Term]:
        def decomposition(g: Emitter, **arguments: Any) -> Any:
            terms = {
                name: value if name in attributes or value is None else Term(g, value)
                for name, value in arguments.items()
            }
            return function(**terms).value

        op.decompose(decomposition)
        return function

    return declare
