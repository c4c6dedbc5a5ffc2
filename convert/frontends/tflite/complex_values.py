"""Complex tensors inside of a model, in the place of which a graph of ops has two."""

from __future__ import annotations

from typing import Any

from tmconvert.frontends.tflite.adapters.values import PREFIX

# operators that apply to the parts of their first operand
MOVES = frozenset(
    PREFIX + name for name in ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SLICE", "STRIDED_SLICE")
)
# operators that take both
TAKES = frozenset(PREFIX + name for name in ("CAST", "REAL", "IMAG", "COMPLEX_ABS"))


class Complex:
    """The value of a complex tensor: its real and imaginary parts, which are values of an emitter."""

    __slots__ = ("imag", "real")

    def __init__(self, real: Any, imag: Any) -> None:
        self.real = real
        self.imag = imag
