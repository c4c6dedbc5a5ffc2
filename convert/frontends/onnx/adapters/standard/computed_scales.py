"""Scales of Resize that the graph divides two sizes for, as old exporters do to reach another size."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.expr import CallFunction
from tmconvert.ir.symbolic.dims import of, same_size, symbols_of
from tmconvert.ir.symbolic.journal import current_journal
from tmconvert.ir.symbolic.rounded import MOST, Rounded, Steps, differing_sizes, fraction
from tmconvert.symbolics.onnx_resizing import Axis

_VIEWS = ("aten::to", "aten::reshape", "aten::unsqueeze", "aten::squeeze")


def scales_of(g: Emitter, value: Any, what: str) -> list[Any]:
    """Returns the scales: numbers, and ``Steps`` for quotients of two sizes. Raises Refusal."""
    found = _elements(g, value)
    if found is None and _is_of_data(g, value):
        raise Refusal(f"{what} is computed from the data", "make it a constant of the model")
    if found is None:
        raise Refusal(
            f"{what} is neither a constant nor a quotient of two sizes",
            "make it a constant of the model, or give Resize sizes instead of scales",
        )
    return found


def _elements(g: Emitter, value: Any) -> list[Any] | None:
    sizes = g.sizes(value)
    if sizes is not None:
        numbers = sizes.reshape(-1).tolist()
        return [int(each) if isinstance(each, float) and each.is_integer() else each for each in numbers]
    call = value.expr
    if not isinstance(call, CallFunction):
        return None
    if call.function in _VIEWS:
        return _elements(g, call.args[0])
    if call.function == "aten::cat":
        parts = [_elements(g, part) for part in call.inputs]
        return None if None in parts else [each for part in parts for each in part or ()]
    pair = [_elements(g, part) for part in call.args] if call.function == "aten::div" else []
    if len(pair) != 2 or not all(pair):
        return None
    left, right = (part * (max(map(len, filter(None, pair))) // len(part)) for part in pair if part)
    return [Steps("truediv", *each) for each in zip(left, right, strict=True)]


def _is_of_data(g: Emitter, value: Any) -> bool:
    """Whether a value depends on more than sizes of inputs and constants."""
    pending, seen = [value], set[Any]()
    while pending:
        each = pending.pop()
        if each in seen or g.sizes(each) is not None:
            continue
        seen.add(each)
        if not isinstance(each.expr, CallFunction):
            return True
        pending += each.expr.inputs
    return False


def axis_of_quotient(extent: Any, scale: Steps) -> Axis:
    """Returns the axis of ``extent`` elements that a quotient of sizes gives another size.

    ONNX Runtime multiplies the extent again, in float32. Where this is not the size that was divided, the
    file is out of its range.
    """
    outputs, divisor = scale.left, scale.right
    if not same_size(divisor, extent):
        raise Refusal(
            f"a scale of Resize is the quotient {outputs} / {divisor}, not of the size {extent} of its axis",
            "give Resize sizes instead of scales",
        )
    ratio = outputs // extent
    if isinstance(ratio, int) and ratio and same_size(outputs, ratio * extent):
        return Axis(extent, outputs, float(ratio))
    product = Steps("mul", Steps("float32", scale, 0), extent)
    steps = Steps("float32", product, 0)
    if len(symbols_of([outputs, extent])) not in MOST or differing_sizes("floor", steps):
        made = of(Rounded(*fraction(steps), "floor", steps))
        current_journal().assume(made - outputs, frozenset({0}))
    return Axis(extent, outputs)
