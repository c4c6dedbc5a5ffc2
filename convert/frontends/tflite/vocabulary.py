"""The vocabulary of TFLite: maps calls of operators to adapters."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.arguments import cast
from tmconvert.frontends.shared.vocabulary import Adapter, AdapterVocabulary
from tmconvert.frontends.tflite.adapters import OPERATORS
from tmconvert.frontends.tflite.data_slices import DataSlice
from tmconvert.frontends.tflite.layout import ChannelsFirst, channels_last
from tmconvert.frontends.tflite.refused import reason_of
from tmconvert.ir import CallFunction, Expr, TensorNode
from tmconvert.ir.complex_values import Complex
from tmconvert.ir.emitter import Emitter

_CAST = "tflite.CAST"
# of complex numbers: operators that apply to both parts of their first operand, and those that take them
_MOVES = frozenset(
    f"tflite.{name}" for name in ("RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "SLICE", "STRIDED_SLICE")
)
_TAKES = frozenset((_CAST, "tflite.REAL", "tflite.IMAG", "tflite.COMPLEX_ABS"))


class TfliteVocabulary(AdapterVocabulary):
    """Converts operators such as ``tflite.CONV_2D``."""

    identifier = "tflite"
    framework = "LiteRT"
    may_open = frozenset(("tflite.RESHAPE", "tflite.CONCATENATION"))
    has_all_qparams = True
    is_channels_last = True

    def find(self, expr: Expr, args: tuple[object, ...]) -> tuple[str, Adapter | None]:
        name = self.name(expr)
        return name, OPERATORS.get(name) if isinstance(expr, CallFunction) else None

    def knows(self, name: str, is_method: bool) -> bool:
        return not is_method and name in OPERATORS

    def help(self, name: str) -> str:
        return "register a conversion with register_symbolic, or convert the model without this operator"

    def reason(self, name: str) -> str | None:
        return reason_of(name)

    def converted(self, g: Emitter, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Converts a call; those that move complex numbers are calls for both of their parts."""
        name, first = self.name(expr), args[0] if args else None
        if not isinstance(first, Complex) or name in _TAKES:
            return super().converted(g, expr, args, kwargs)
        if name not in _MOVES:
            raise Refusal(f"{name} of complex numbers is not supported", self.help(name))
        real = super().converted(g, expr, (first.real, *args[1:]), kwargs)
        return Complex(real, super().converted(g, expr, (first.imag, *args[1:]), kwargs))

    def resolved(self, g: Emitter, expr: Expr, args: tuple[object, ...], result: Any) -> Any:
        """Returns as many results as the operator has, of the types and with the QParams of its tensors."""
        nodes = expr.result if isinstance(expr.result, tuple) else (expr.result,)
        values = list(result) if type(result) in (list, tuple) else [result]
        if len(values) < len(nodes):
            raise Refusal(f"{self.name(expr)} has {len(nodes)} results, not {len(values)}")
        if self.name(expr) == _CAST:
            values = [_between_integers(g, expr, values[0])]
        if isinstance(values[0], DataSlice) and not _is_joined(nodes[0]):
            values[0] = values[0].computed(g)
        made = [_typed(g, node, value) for node, value in zip(nodes, values, strict=False)]
        return tuple(made) if isinstance(expr.result, tuple) else made[0]


def _between_integers(g: Emitter, expr: Expr, value: Any) -> Any:
    """Returns the operand of CAST, which converts the integers that are stored, not the real numbers."""
    source, target = expr.args[0], expr.outputs[0]
    if isinstance(source, TensorNode) and source.holds_integers and source.qparams is not None:
        qparams = source.qparams
        scale, zero_point = (_constant(g, numbers) for numbers in (qparams.scale, qparams.zero_point))
        steps = g.call("aten::round", g.call("aten::div", value, scale))
        value = g.call(
            "aten::clamp",
            g.call("aten::add", steps, zero_point),
            min=qparams.quant_min,
            max=qparams.quant_max,
        )
    if isinstance(target, TensorNode) and target.holds_integers and target.qparams is not None:
        qparams = target.qparams
        scale, zero_point = (_constant(g, numbers) for numbers in (qparams.scale, qparams.zero_point))
        steps = g.call("aten::sub", cast(g, value, np.float32), zero_point)
        value = g.call("aten::mul", steps, scale)
    return value


def _is_joined(node: Any) -> bool:
    """Whether a tensor is used by concatenations only."""
    users, graph = node.users, node.expr.graph
    return not graph.is_output(node) and all(
        isinstance(user, CallFunction) and user.function == "tflite.CONCATENATION" for user in users
    )


def _is_move(expr: Expr) -> bool:
    return isinstance(expr, CallFunction) and expr.function in _MOVES


def _refuse_complex() -> NoReturn:
    raise Refusal("complex numbers are supported as results of RFFT2D only")


def _constant(g: Emitter, numbers: tuple[float, ...]) -> Any:
    if len(numbers) != 1:
        raise Refusal("CAST of a tensor that is quantized per channel is not supported")
    return g.constant(float(numbers[0]), np.float32)


def _typed(g: Emitter, node: Any, value: Any) -> Any:
    """Returns a result in the layout of the file, with the type and the QParams of its tensor."""
    assert isinstance(node, TensorNode)
    if isinstance(value, DataSlice):
        return value
    is_complex = node.dtype is not None and node.dtype.kind == "c"
    if isinstance(value, Complex):
        if is_complex:
            return value
        value = value.real  # what CAST keeps
    if is_complex:  # the part of a number, or one that is made complex
        return value if node.expr is not None and _is_move(node.expr) else _refuse_complex()
    inner = value.value if isinstance(value, ChannelsFirst) else value
    if node.holds_integers and node.qparams is not None:
        inner = g.quantized(inner, node.qparams)
    elif node.dtype is not None:
        inner = cast(g, inner, node.dtype)
    if not isinstance(value, ChannelsFirst):
        return inner
    made = channels_last(g, inner)
    return g.quantized(made, node.qparams) if node.holds_integers and node.qparams is not None else made


VOCABULARY = TfliteVocabulary()
