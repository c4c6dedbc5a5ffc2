"""The vocabulary of models whose calls are ops of the catalogue: each call stays unchanged and keeps its
QParams."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tmconvert.errors import InternalError, Refusal
from tmconvert.frontends.shared.vocabulary import Adapter, AdapterVocabulary
from tmconvert.ir import Expr, TensorNode
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.fake_quant import rounding_of
from tmconvert.ir.symbolic.dims import LEAST, Size, Symbol, substituted
from tmconvert.ir.tree import map_leaves
from tmconvert.symbolics.op import Attribute, Tensor
from tmconvert.symbolics.registry import catalogue

IDENTIFIER = "aten"
# a size that attributes of other calls use: an expression of a symbol, by the extent of an axis of a tensor
SIZE = "tm::size"


class AtenVocabulary(AdapterVocabulary):
    identifier = IDENTIFIER
    framework = "the program that made it"
    has_all_qparams = True

    def find(self, expr: Expr, args: tuple[object, ...]) -> tuple[str, Adapter | None]:
        return self.name(expr), None

    def knows(self, name: str, is_method: bool) -> bool:
        return not is_method and (name == SIZE or name in catalogue())

    def help(self, name: str) -> str:
        return "`tmconvert ops` lists the ops and their signatures"

    def converted(self, g: Emitter, expr: Expr, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        name = self.name(expr)
        if name == SIZE:
            options: dict[str, Any] = kwargs
            return g.constant([_size(g.type(args[0]).shape, **options)])
        try:
            kwargs = _with_sizes(g, name, kwargs)
            made = g.call(name, *_tensors(g, name, args), **_resolved_shape(name, args, kwargs))
        except (InternalError, KeyError) as error:
            if isinstance(error, InternalError) and error.code != "TM3004":
                raise
            message = error.message if isinstance(error, InternalError) else str(error)
            raise Refusal(f"{name}: {message}", self.help(name)) from error
        results = list(made) if isinstance(made, (list, tuple)) else [made]
        for i, node in enumerate(expr.outputs):
            if isinstance(node, TensorNode) and node.qparams is not None:
                results[i] = g.quantized(results[i], node.qparams, rounding_of(node.qparams))
        return results if isinstance(made, (list, tuple)) else results[0]


def _size(shape: tuple[Any, ...], axis: int, extent: str, size: str) -> Size:
    """Returns ``size``, such as ``2*chunks+3``, where the axis has the ``extent`` ``4*chunks``."""
    from tmconvert.ir.symbolic.text import names_in, parse_size

    name = next(iter(names_in(extent)))
    symbol = Symbol(name, LEAST)
    unit = substituted([parse_size(extent, {name: symbol})], {name: 1})[0]
    found: Size = substituted([parse_size(size, {name: symbol})], {name: shape[axis] // unit})[0]
    return found


def _with_sizes(g: Emitter, name: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Returns the arguments with sizes in place of the tensors that have them."""
    attributes = {formal.name for formal in g.catalogue[name].args if isinstance(formal, Attribute)}

    def resolved(leaf: object) -> object:
        found = g.sizes(leaf) if _is_tensor(leaf) else None
        return leaf if found is None else found[0] if found.dtype == object else int(found[0])

    return {key: map_leaves(resolved, value) if key in attributes else value for key, value in kwargs.items()}


def _tensors(g: Emitter, name: str, args: tuple[Any, ...]) -> list[Any]:
    """Returns the arguments with constants instead of the numbers that stand for tensors."""
    arguments = g.catalogue[name].args
    dtype = next((g.type(arg).dtype for arg in args if _is_tensor(arg)), None)
    return [
        _constant(g, name, arg, dtype)
        if isinstance(arg, (bool, int, float)) and isinstance(formal, Tensor)
        else arg
        for arg, formal in zip(args, [*arguments, *[None] * len(args)], strict=False)
    ]


def _constant(g: Emitter, name: str, number: float, dtype: np.dtype | None) -> Any:
    """Returns a constant of the type of the other operand. Raises Refusal for a fraction among integers."""
    if dtype is not None and dtype.kind in "iub" and not float(number).is_integer():
        raise Refusal(
            f"{name}: {number} is not a value of {dtype.name}", "convert the other operand by aten::to first"
        )
    return g.constant(number, dtype)


def _is_tensor(value: object) -> bool:
    return isinstance(value, (TensorNode, np.ndarray))


def _resolved_shape(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Replaces the -1 in the shape of a reshape by a number."""
    shape = kwargs.get("shape")
    if name != "aten::reshape" or not shape or -1 not in shape:
        return kwargs
    whole, known = math.prod(args[0].shape), math.prod(extent for extent in shape if extent != -1)
    return {**kwargs, "shape": [whole // known if extent == -1 else extent for extent in shape]}


VOCABULARY = AtenVocabulary()
