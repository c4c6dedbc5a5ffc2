"""Complex tensors inside a model, as pairs of real tensors that adapters exchange.

No target has complex tensors, so inputs and outputs of a model cannot be complex. torch.view_as_complex,
torch.polar, Fourier transforms and captured tensors create them; torch.view_as_real, abs() and others convert
them to real tensors. ``COMPLEX`` has the adapters of calls with complex operands; those of calls that only
move elements, or are linear in each operand, are built from the adapters for real tensors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.vocabulary import Adapter
from tmconvert.frontends.torch.adapters.shapes.creation import filled
from tmconvert.frontends.torch.adapters.values import (
    cast,
    common_type,
    constant,
    is_number,
    is_tensor,
    kind_of,
    reshaped,
)
from tmconvert.ir.broadcasting import broadcast_shapes
from tmconvert.ir.complex_values import PART_NAMES, Complex
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.inert import GlobalRef
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.symbolics.idioms.formulas import Term

ATEN, COMPLEX = Table(), Table()


def is_complex(leaf) -> bool:
    return isinstance(leaf, (Complex, complex))


def received(g: Emitter, leaf: Any) -> Any:
    """Returns a captured complex tensor as its real and imaginary part; other values unchanged."""
    if not is_tensor(leaf) or getattr(leaf.dtype, "kind", "") != "c":
        return leaf
    array = g.known(leaf)
    if array is None:
        raise Refusal("a complex tensor that an unknown function computes is not supported")
    name = getattr(getattr(leaf, "expr", None), "name", None) or getattr(leaf, "name", "")
    parts = {"real": array.real, "imag": array.imag}
    return Complex(
        **{part: g.parameter(np.ascontiguousarray(data), f"{name}.{part}") for part, data in parts.items()}
    )


def zeros_like(g, x):
    return g.call("aten::expand", g.constant(0, g.type(x).dtype), list(g.type(x).shape))


def of_real(g: Emitter, x, dtype: np.dtype) -> Complex:
    """Converts a real tensor to a complex one of the complex ``dtype``."""
    real = cast(g, x, part_type(dtype))
    return Complex(real, zeros_like(g, real))


def part_type(dtype: np.dtype) -> np.dtype:
    """Returns the element type of the real and imaginary parts."""
    return np.dtype(np.float64 if dtype.itemsize == 16 else np.float32)


def aligned(g: Emitter, *values: Any) -> list[tuple[Any, Any]]:
    """Real and imaginary parts of operands, cast to one type; the imaginary part of real operands is None."""
    dtype = common_type(g, *(value.real if is_complex(value) else value for value in values))
    dtype = np.dtype(np.float32) if kind_of(dtype) < 2 else dtype

    def part(value):
        return constant(g, value, dtype) if is_number(value) else cast(g, value, dtype)

    return [
        (part(value.real), part(value.imag)) if is_complex(value) else (part(value), None) for value in values
    ]


def terms(g: Emitter, *values) -> list[tuple[Term, Term]]:
    """Like ``aligned``, for formulas; missing imaginary parts are zeros."""
    return [
        (Term(g, real), Term(g, g.constant(0, g.type(real).dtype) if imag is None else imag))
        for real, imag in aligned(g, *values)
    ]


def made(g: Emitter, real, imag) -> Complex:
    """Returns the complex tensor of two tensors or Terms, broadcast against each other."""
    parts = [part.value if isinstance(part, Term) else part for part in (real, imag)]
    shape = broadcast_shapes(*(g.type(part).shape for part in parts))
    return Complex(*(_expanded(g, part, shape) for part in parts))


def _expanded(g: Emitter, x, shape: tuple[Any, ...]) -> Any:
    return x if g.type(x).shape == shape else g.call("aten::expand", x, list(shape))


# ---- coming and going


@ATEN.add("view_as_complex")
def view_as_complex(g, input):
    return Complex(*(g.call("aten::select", input, -1, part) for part in (0, 1)))


ATEN.add("complex")(lambda g, real, imag: made(g, real, imag))


@ATEN.add("polar")
def polar(g, abs, angle):
    length, turn = (Term(g, value) for value in (abs, angle))
    return made(g, length * turn.cos(), length * turn.sin())


@COMPLEX.add("view_as_real")
def view_as_real(g, input):
    parts = [reshaped(g, part, [*g.type(part).shape, 1]) for part in (input.real, input.imag)]
    return g.call("aten::cat", parts, dim=-1)


@COMPLEX.add("real")
def real(g, input):
    return input.real


@COMPLEX.add("imag")
def imag(g, input):
    return input.imag


@COMPLEX.add("abs", "absolute", "__abs__")
def abs_(g, input):
    return g.call("aten::hypot", input.real, input.imag)


@COMPLEX.add("angle")
def angle(g, input):
    return g.call("aten::atan2", input.imag, input.real)


@COMPLEX.add("full_like")
def full_like(g, input, fill_value, *, dtype=None, **options):
    type_ = g.type(input.real)
    if dtype is not None:
        raise Refusal("full_like of a complex tensor in another element type is not supported")
    return filled(g, list(type_.shape), fill_value, np.result_type(type_.dtype, np.complex64))


COMPLEX.add("ones_like")(lambda g, input, **options: full_like(g, input, 1, **options))


# ---- arithmetic


def _declare_sum(name: str, *names: str, sign: int, is_reflected: bool = False) -> None:
    def adapter(g, input, other, *, alpha=1):
        if is_reflected:
            input, other = other, input
        other = other if alpha == 1 else COMPLEX["mul"](g, other, alpha)
        (a, b), (c, d) = terms(g, input, other)
        return made(g, a + c, b + d) if sign > 0 else made(g, a - c, b - d)

    COMPLEX.add(name, *names)(adapter)


_declare_sum("add", "__add__", "__radd__", sign=1)
_declare_sum("sub", "subtract", "__sub__", sign=-1)
_declare_sum("rsub", "__rsub__", sign=-1, is_reflected=True)


@COMPLEX.add("mul", "multiply", "__mul__", "__rmul__")
def mul(g, input, other):
    pairs = aligned(g, input, other)
    operands = [real if imag is None else Complex(real, imag) for real, imag in pairs]
    return multilinear(lambda g, x, y: g.call("aten::mul", x, y))(g, *operands)


@COMPLEX.add("div", "true_divide", "divide", "__truediv__")
def div(g, input, other):
    if not is_complex(other):
        (a, b), (c, _) = terms(g, input, other)
        return made(g, a / c, b / c)
    (_, _), (c, d) = terms(g, input, other)
    size = c * c + d * d
    return mul(g, input, made(g, c / size, -d / size))


COMPLEX.add("__rtruediv__", "__rdiv__")(lambda g, input, other: div(g, other, input))
COMPLEX.add("reciprocal")(lambda g, input: div(g, 1, input))
COMPLEX.add("square")(lambda g, input: mul(g, input, input))


@COMPLEX.add("pow", "__pow__")
def pow(g, input, exponent):
    """Power: small integer exponents by multiplication, others by the logarithm."""
    if isinstance(exponent, int) and 1 <= exponent <= 4:
        result: Any = input
        for _ in range(exponent - 1):
            result = mul(g, result, input)
        return result
    return exp(g, mul(g, exponent, log(g, input)))


@COMPLEX.add("__rpow__")
def rpow(g, input, other):
    if is_number(other) and other.real > 0:
        return exp(g, mul(g, input, float(np.log(other))))
    return pow(g, other, input)


@COMPLEX.add("exp")
def exp(g, input):
    return polar(g, g.call("aten::exp", input.real), input.imag)


@COMPLEX.add("log")
def log(g, input):
    ((a, b),) = terms(g, input)
    return made(g, a.hypot(b).log(), b.atan2(a))


@COMPLEX.add("sqrt")
def sqrt(g, input):
    ((a, b),) = terms(g, input)
    return polar(g, a.hypot(b).sqrt().value, (b.atan2(a) * 0.5).value)


@COMPLEX.add("conj", "conj_physical", "_conj")
def conj(g, input):
    if not isinstance(input, Complex):
        return input
    return Complex(input.real, g.call("aten::neg", input.imag))


@COMPLEX.add("sgn")
def sgn(g, input):
    """z / |z|, and 0 where z is 0."""
    ((a, b),) = terms(g, input)
    size = a.hypot(b)
    size = (size.eq(0)).where(1, size)
    return made(g, a / size, b / size)


for _name, _parts in {"sin": ("sin", "cos", 1), "cos": ("cos", "sin", -1)}.items():

    def _wave(g: Emitter, input: Complex, _parts: Any = _parts) -> Any:
        ((a, b),) = terms(g, input)
        own, other, sign = _parts
        return made(g, a.call(own) * b.cosh(), a.call(other) * b.sinh() * sign)

    COMPLEX[_name] = _wave


def _declare_question(name: str, *names: str, joined: str, of_pairs: bool = False) -> None:
    """Declares a predicate that is computed from both parts."""

    def adapter(g, *operands):
        (first, *rest) = terms(g, *operands)
        answers = [part.call(name, *(other[i] for other in rest)) for i, part in enumerate(first)]
        return answers[0].call(joined, answers[1]).value

    COMPLEX.add(name, *names)(adapter)


_declare_question("eq", "__eq__", joined="logical_and")
_declare_question("ne", "__ne__", "not_equal", joined="logical_or")
_declare_question("isnan", joined="logical_or")
_declare_question("isinf", joined="logical_or")
_declare_question("isfinite", joined="logical_and")


# ---- made of adapters for real numbers


def multilinear(adapter: Adapter) -> Adapter:
    """Applies a multilinear function: the sum over all choices of real and imaginary parts."""

    def combined(g, *args, **kwargs):
        given = (args, kwargs)
        found = [leaf for leaf in leaves(given) if is_complex(leaf)]
        sums: list[Any] = [None, None]
        for choice in itertools.product((0, 1), repeat=len(found)):
            parts = iter([(leaf.real, leaf.imag)[part] for leaf, part in zip(found, choice, strict=True)])
            chosen = map_leaves(_replacing(parts), given)
            product, power = adapter(g, *chosen[0], **chosen[1]), sum(choice)
            total = sums[power % 2]
            if total is None:
                sums[power % 2] = product if power < 2 else g.call("aten::neg", product)
            else:
                sums[power % 2] = g.call("aten::add" if power % 4 < 2 else "aten::sub", total, product)
        return Complex(*sums)

    return combined


def with_bias(adapter: Adapter, axes: int) -> Adapter:
    """Multiplies input and weight, and adds the bias once; ``axes`` counts the axes after the channels."""
    product = multilinear(adapter)

    def biased(g, input, weight, bias=None, *args, **kwargs):
        result = product(g, input, weight, None, *args, **kwargs)
        if bias is None:
            return result
        channels = by_parts(lambda g, x: reshaped(g, x, [*g.type(x).shape, *[1] * axes]))(g, bias)
        return COMPLEX["add"](g, result, channels)

    return biased


def _replacing(parts: Iterator[Any]) -> Callable[[Any], Any]:
    return lambda leaf: next(parts) if is_complex(leaf) else leaf


def by_parts(adapter: Adapter, values_from: int | None = None) -> Adapter:
    """Applies a function that only moves elements to the real and to the imaginary parts.

    Real tensors in a list with complex ones, and arguments from place ``values_from`` on, are values too.
    """

    def twice(g, *args, **kwargs):
        given = list(args)
        if any(isinstance(each, str) and each == "multiply" for each in (*args, *kwargs.values())):
            raise Refusal("multiplying complex elements where they are scattered is not supported")
        if values_from is not None:
            kwargs = {key: _as_value(g, arg) if key in VALUE_NAMES else arg for key, arg in kwargs.items()}
        if values_from is not None and is_tensor(given[0]) and kind_of(g.type(given[0]).dtype) == 2:
            raise Refusal("writing complex values into a real tensor is not supported")
        for place, arg in enumerate(given):
            if isinstance(arg, (list, tuple)) and any(is_complex(item) for item in arg):
                given[place] = [_as_value(g, item) for item in arg]
            elif values_from is not None and place >= values_from:
                given[place] = _as_value(g, arg)
        results = [adapter(g, *_of_part(given, part), **_of_part(kwargs, part)) for part in ("real", "imag")]
        return _paired(*results)

    return twice


def _as_value(g, value):
    if isinstance(value, (bool, int, float)):
        return complex(value)
    if is_tensor(value):
        real = value if kind_of(g.type(value).dtype) == 2 else cast(g, value, np.float32)
        return Complex(real, zeros_like(g, real))
    return value


def _of_part(tree, part: str) -> Any:
    def chosen(leaf):
        if isinstance(leaf, GlobalRef) and leaf.name in PART_NAMES:
            return GlobalRef("torch", PART_NAMES[leaf.name])
        return getattr(leaf, part) if is_complex(leaf) else leaf

    return map_leaves(chosen, tree)


def _paired(real: Any, imag: Any) -> Any:
    if is_tensor(real):
        return Complex(real, imag)
    if isinstance(real, (list, tuple)):
        return type(real)(_paired(*pair) for pair in zip(real, imag, strict=True))
    return real


_MOVES = """
    alias atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors broadcast_to cat channel_shuffle chunk
    clone column_stack concat concatenate contiguous cpu cumsum data detach diag diag_embed diagflat diagonal
    diagonal_scatter diff dstack empty_like expand expand_as fft_fftshift fft_ifftshift flatten flip
    fliplr flipud gather __getitem__ hstack index index_add index_copy index_select linalg_diagonal
    masked_select mean meshgrid moveaxis movedim mT nan_to_num narrow __neg__ neg negative new_empty
    new_zeros numel numpy_T permute pixel_shuffle pixel_unshuffle
    __pos__ positive ravel repeat repeat_interleave requires_grad_ reshape reshape_as resolve_conj
    resolve_neg roll rot90 scatter_add select select_copy select_scatter size slice slice_scatter split
    split_with_sizes squeeze _stack stack sum swapaxes swapdims T t take take_along_dim tensor_split tile
    trace transpose tril triu unbind unbind_copy unflatten unfold unsafe_chunk unsafe_split _unsafe_view
    unsqueeze view view_as view_copy vstack zero zeros_like
"""
_PRODUCTS = """
    matmul __matmul__ mm bmm mv dot inner outer ger einsum tensordot kron chain_matmul linalg_multi_dot
"""
# where values begin among the arguments
VALUES_FROM = {
    **dict.fromkeys(("where", "fill", "copy"), 1),
    **dict.fromkeys(("__setitem__", "masked_fill", "masked_scatter", "index_put", "put", "new_full"), 2),
    **dict.fromkeys(("constant_pad_nd", "pad_sequence"), 2),
    **dict.fromkeys(("pad", "scatter", "index_fill"), 3),
}
VALUE_NAMES = frozenset(("value", "values", "fill_value", "padding_value", "src", "source", "other"))
# products to which a bias is added, with the axes of the result behind those of the channels
BIASED = {
    "linear": 0,
    **{f"conv{axes}d": axes for axes in (1, 2, 3)},
    **{f"conv_transpose{axes}d": axes for axes in (1, 2, 3)},
}
# how the results of both parts become one real tensor
JOINED = {"var": "aten::add", "std": "aten::hypot", "any": "aten::logical_or"}
MOVES, PRODUCTS = frozenset(_MOVES.split()), frozenset(_PRODUCTS.split())


CONJUGATED_FIRST = frozenset(("vdot", "linalg_vecdot"))  # products with the conjugate of the first operand
# what takes the conjugate as well
CONJUGATED = frozenset(("mH", "H", "matrix_H", "adjoint"))


def made_of_real(own: str, adapter: Adapter | None) -> Adapter | None:
    """Returns the complex adapter of an ATen op, built from ``adapter``, its adapter for real tensors."""
    if adapter is None:
        return None
    if own in PRODUCTS:
        return multilinear(adapter)
    if own in BIASED:
        return with_bias(adapter, BIASED[own])
    if own in JOINED:
        return lambda g, x, *args, **kwargs: g.call(
            JOINED[own], *(adapter(g, part, *args, **kwargs) for part in (x.real, x.imag))
        )
    if own in MOVES or own in VALUES_FROM:
        return by_parts(adapter, VALUES_FROM.get(own))
    if own in CONJUGATED_FIRST:
        return lambda g, first, *args, **kwargs: multilinear(adapter)(g, conj(g, first), *args, **kwargs)
    if own in CONJUGATED:
        moved = by_parts(adapter)
        return lambda g, *args: conj(g, moved(g, *args))
    return None
