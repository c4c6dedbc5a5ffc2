"""Argument conversions of torch's adapters: those of all frontends, and torch's type promotion."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.arguments import (
    axes_of,
    axis_of,
    cast,
    is_tensor,
    rank,
    reshaped,
    static_int,
    static_ints,
)
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.symbolic.dims import Dim

__all__ = [
    "axes_of", "axis_of", "cast", "common_type", "constant", "dtype_called", "floating", "indices",
    "is_number", "is_tensor", "kind_of", "promoted", "rank", "reshaped", "static_int", "static_ints", "typed",
    "varargs",
]  # fmt: skip

DEFAULT = np.dtype(np.float32)
_NAMES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}
_ORDER = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}


class SizeFloat:
    """A float computed of symbolic sizes in ``steps``; a tensor where a tensor is computed with it."""

    steps: Any

    def as_tensor(self, g: Emitter) -> Any:
        """Returns the value as a float32 tensor of rank 0."""
        raise NotImplementedError

    def _refused(self, *_: Any) -> Any:
        raise Refusal(
            "a fraction of a size is used as a number",
            "round it to an integer first (math.floor, math.ceil), or keep this size static",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mod__ = __rmod__ = __floordiv__ = __rfloordiv__ = _refused
    __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __int__ = __float__ = __index__ = _refused
    __pow__ = __rpow__ = __floor__ = __ceil__ = __trunc__ = _refused


def dtype_called(value) -> np.dtype:
    """Returns NumPy's dtype of torch's (GlobalRef ``torch.float32``), or of a Python type. Raises Refusal."""
    name = value.name if isinstance(value, GlobalRef) else str(getattr(value, "name", value))
    name = _NAMES.get(name, name) if isinstance(value, GlobalRef) and value.module == "torch" else name
    if isinstance(value, GlobalRef) and value.module == "builtins":
        name = {"float": "float64", "int": "int64"}.get(name, name)
    if name == "bfloat16":
        import ml_dtypes  # the package that teaches NumPy the name

        return np.dtype(ml_dtypes.bfloat16)
    try:
        return np.dtype(name)
    except TypeError:
        raise Refusal(f"the element type {name} is not supported") from None


def is_number(value) -> bool:
    return isinstance(value, (bool, int, float, complex, Dim, np.generic))


def kind_of(dtype: np.dtype) -> int:
    """Returns the category of an element type: 0 bool, 1 integer, 2 float, 3 complex."""
    return 2 if dtype.name == "bfloat16" else _ORDER[dtype.kind]


def common_type(g: Emitter, *values) -> np.dtype:
    """Returns the element type of an operation on these operands: torch's ``result_type``.

    Tensors of rank 1 or more decide the type; tensors of rank 0, then Python numbers, do only if they have a
    higher category. https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc
    """
    groups: list[list[np.dtype]] = [[], [], []]
    for value in values:
        if is_tensor(value):
            type_ = g.type(value)
            groups[0 if type_.rank else 1].append(type_.dtype)
        elif is_number(value):
            groups[2].append(_of_number(value))
        elif isinstance(value, SizeFloat):
            groups[2].append(DEFAULT)
        elif value is not None:
            raise Refusal(f"{value!r} is neither a tensor nor a number")
    result: np.dtype | None = None
    for group in groups:
        if not group:
            continue
        dtype = functools.reduce(_promoted, group)
        if result is None or kind_of(dtype) > kind_of(result):
            result = dtype
    if result is None:
        raise Refusal("none of the operands is a tensor")
    return result


def _of_number(value) -> np.dtype:
    if isinstance(value, (bool, np.bool_)):
        return np.dtype(bool)
    return np.dtype(np.int64) if isinstance(value, (int, Dim, np.integer)) else DEFAULT


def _promoted(first: np.dtype, second: np.dtype) -> np.dtype:
    if first == second:
        return first
    if kind_of(first) != kind_of(second):
        return max(first, second, key=kind_of)
    if "bfloat16" in (first.name, second.name):
        return max(first, second, DEFAULT, key=lambda dtype: dtype.itemsize)
    return np.promote_types(first, second)


def promoted(g: Emitter, *values: Any, to_float: bool = False, dtype: Any = None) -> list[Any]:
    """Returns the operands as tensors of their common type; with ``to_float`` integers become float32."""
    dtype = common_type(g, *values) if dtype is None else np.dtype(dtype)
    if to_float and kind_of(dtype) < 2:
        dtype = DEFAULT
    return [cast(g, value, dtype) if is_tensor(value) else constant(g, value, dtype) for value in values]


def constant(g: Emitter, value: Any, dtype: Any) -> Any:
    """Returns a number as a tensor; integers out of range wrap around, as in torch."""
    if isinstance(value, Dim):
        return g.constant(value, dtype)
    if isinstance(value, SizeFloat):
        return cast(g, value.as_tensor(g), dtype)
    return g.constant(_wrapped(value, np.dtype(dtype)))


def number_of(dtype: np.dtype, value) -> Any:
    """Converts an attribute to a number of ``dtype`` as torch: integers wrap, fractions are truncated."""
    return value if kind_of(dtype) >= 2 or isinstance(value, Dim) else int(_wrapped(value, dtype))


def _wrapped(value, dtype: np.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)


def typed(g, x, dtype):
    """Casts ``x`` to the argument ``dtype`` of a call, if any."""
    return x if dtype is None else cast(g, x, dtype_called(dtype))


def indices(g, x):
    """Casts indices and counts to int64, which torch uses for them."""
    return cast(g, x, np.int64)


def floating(g, x):
    """Returns ``x`` if it is a float tensor, else ``x`` cast to float32."""
    return x if kind_of(g.type(x).dtype) >= 2 else cast(g, x, DEFAULT)


def varargs(args: tuple[Any, ...]) -> Any:
    """Returns a list that a method takes as one or several arguments: ``view(2, 3)``, ``view([2, 3])``."""
    if len(args) == 1 and (isinstance(args[0], (list, tuple)) or args[0] is None):
        return args[0]
    return list(args)
