"""Elementwise arithmetic of two or three tensors, decomposed into other ops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tmconvert.ir.types import TensorType
from tmconvert.symbolics.idioms.formulas import Term, formula
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, NUMBERS, Op, Tensor, number
from tmconvert.symbolics.results import broadcast, fits, same_as
from tmconvert.symbolics.traits import SeesSignOfZero, Trait

Array = np.ndarray


def _op(name: str, *names: str, dtypes: tuple[str, ...] = FLOATS, traits: Sequence[Trait] = ()) -> Op:
    args = [Tensor(each, dtypes) for each in ("x", *names)]
    return Op(f"aten::{name}", args=args, result=broadcast("x", *names), layout=ANY, traits=traits)


hypot, copysign = _op("hypot", "other"), _op("copysign", "other", traits=[SeesSignOfZero(1)])
fmax, fmin = _op("fmax", "other"), _op("fmin", "other")
heaviside = _op("heaviside", "values", dtypes=NUMBERS)
lerp = _op("lerp", "end", "weight")

hypot.reference(lambda x, other: np.hypot(x, other))
copysign.reference(lambda x, other: np.copysign(x, other))
fmax.reference(lambda x, other: np.fmax(x, other))
fmin.reference(lambda x, other: np.fmin(x, other))
heaviside.reference(lambda x, values: np.where(x == 0, values, x > 0).astype(x.dtype))


@formula(hypot)  # of the longer side, whose square alone could overflow
def hypot_scaled(x: Term, other: Term) -> Term:
    limits = np.finfo(x.dtype)
    longer, shorter = x.abs().maximum(other.abs()), x.abs().minimum(other.abs())
    ratio = shorter / longer.clamp(min=float(limits.tiny), max=float(limits.max))
    return longer * (ratio * ratio + 1).sqrt()


formula(copysign)(lambda x, other: other.signbit().where(-x.abs(), x.abs()))


@formula(fmax)  # a number rather than NaN
def fmax_where(x: Term, other: Term) -> Term:
    return x.isnan().where(other, other.isnan().where(x, x.maximum(other)))


formula(fmin)(lambda x, other: x.isnan().where(other, other.isnan().where(x, x.minimum(other))))
formula(heaviside)(lambda x, values: x.eq(0).where(values, (x > 0).to(x.dtype)))


@lerp.reference
def lerp_ref(x: Array, end: Array, weight: Array) -> Array:
    """Interpolates from the nearer end, so that a weight of 1 returns exactly ``end``."""
    gap = end - x
    return np.where(np.abs(weight) < 0.5, x + weight * gap, end - gap * (1 - weight))


@formula(lerp)
def lerp_sum(x: Term, end: Term, weight: Term) -> Term:
    known = x.g.known(weight.value)
    if known is not None and (np.abs(known) < 0.5).all():
        return x + weight * (end - x)
    if known is not None and (np.abs(known) >= 0.5).all():
        return end - (end - x) * (1 - weight)
    return x * (1 - weight) + end * weight


def _added(name: str, dtypes: tuple[str, ...]) -> Op:
    """x + value * tensor1 * tensor2, or with the quotient."""
    tensors = [Tensor(each, dtypes) for each in ("x", "tensor1", "tensor2")]
    return Op(f"aten::{name}", args=[*tensors, number("value", 1)], result=_broadcast_all, layout=ANY)


def _broadcast_all(value: float, **types: TensorType) -> TensorType:
    if not fits(value, types["x"].dtype):
        raise ValueError(f"{value} does not have the type of {types['x']}")
    return broadcast("x", "tensor1", "tensor2")(**types)


addcmul, addcdiv = _added("addcmul", NUMBERS), _added("addcdiv", FLOATS)
addcmul.reference(lambda x, tensor1, tensor2, value: x + np.array(value, x.dtype) * tensor1 * tensor2)
addcdiv.reference(lambda x, tensor1, tensor2, value: x + np.array(value, x.dtype) * (tensor1 / tensor2))


@formula(addcmul)
def addcmul_sum(x: Term, tensor1: Term, tensor2: Term, value: float) -> Term:
    product = tensor1 * tensor2
    return x + (product if value == 1 else product * value)


@formula(addcdiv)
def addcdiv_sum(x: Term, tensor1: Term, tensor2: Term, value: float) -> Term:
    quotient = tensor1 / tensor2
    return x + (quotient if value == 1 else quotient * value)


nan_to_num = Op(
    "aten::nan_to_num",
    args=[Tensor("x", FLOATS), number("nan", None), number("posinf", None), number("neginf", None)],
    result=same_as("x"),
    layout=ANY,
)


@nan_to_num.reference
def nan_to_num_ref(x: Array, nan: float | None, posinf: float | None, neginf: float | None) -> Array:
    """Infinities become the largest finite numbers by default, and NaN becomes zero."""
    return np.nan_to_num(x, nan=nan or 0, posinf=posinf, neginf=neginf)


@formula(nan_to_num)
def nan_to_num_where(x: Term, nan: float | None, posinf: float | None, neginf: float | None) -> Term:
    limits = np.finfo(x.dtype)
    result = x.isnan().where(0 if nan is None else nan, x)
    result = x.eq(np.inf).where(float(limits.max) if posinf is None else posinf, result)
    return x.eq(-np.inf).where(float(limits.min) if neginf is None else neginf, result)


OPS = [hypot, copysign, fmax, fmin, heaviside, lerp, addcmul, addcdiv, nan_to_num]
