"""Inverse trigonometric functions by halving the angle, without comparison layers, which OpenCV lacks.

tan(a / 2) is y / (x + sqrt(x^2 + y^2)), which a quarter of the circle takes to 0 to 1, and again to 0.4143.
Good to 3e-7. OpenCV knows no negative zero.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tmconvert.symbolics.idioms import caffe_numbers
from tmconvert.symbolics.idioms.caffe import reshaped, spread

if TYPE_CHECKING:
    from tmconvert.lowering.builder import Builder
    from tmconvert.lowering.target_graph import Value

# less than what matters, and its inverse is finite
_TINY = 1e-37
# atan(z) / z in z^2 to tan(pi / 8)^2, by Chebyshev's interpolation: off by less than 2e-8
ARC = (0.07973791189, -0.1384773543, 0.1997401256, -0.3333278376, 0.9999999812)


def _times(g: Builder, x: Value, other: Value) -> Value:
    return g.op("Eltwise", x, other, operation="PROD")


def _sum(g: Builder, x: Value, other: Value) -> Value:
    return g.op("Eltwise", x, other, operation="SUM")


def _over(g: Builder, x: Value, other: Value, shift: float = 0.0) -> Value:
    """x / (other + shift)."""
    return _times(g, x, g.op("Power", other, power=-1.0, shift=shift))


def _arc(g: Builder, tangent: Value, times: float) -> Value:
    """Returns ``times`` the arctangent of a value from -1 to 1."""
    root = g.op("Power", _times(g, tangent, tangent), power=0.5, shift=1.0)
    half = _over(g, tangent, root, 1.0)
    square = _times(g, half, half)
    series = g.op("Power", square, scale=ARC[0], shift=ARC[1])
    for coefficient in ARC[2:]:
        series = g.op("Power", _times(g, series, square), shift=coefficient)
    return g.op("Power", _times(g, series, half), scale=2 * times)


def _to_the_right(g: Builder, y: Value, x: Value, times: float) -> Value:
    """Returns ``times`` the angle of the point (x, y), with x not negative and not both 0."""
    root = g.op("Power", _sum(g, _times(g, x, x), _times(g, y, y)), power=0.5)
    return _arc(g, _over(g, y, _sum(g, x, root)), 2 * times)


def arc_sine(g: Builder, x: Value) -> Value:
    rest = _times(g, g.op("Power", x, scale=-1.0, shift=1.0), g.op("Power", x, shift=1.0))
    return _arc(g, _over(g, x, g.op("Power", rest, power=0.5), 1.0), 2.0)


def arc_cosine(g: Builder, x: Value) -> Value:
    """Arccosine: 1 - x and 1 + x are twice the squared sine and cosine of half the angle."""
    sine, cosine = (g.op("Power", x, power=0.5, scale=scale, shift=0.5) for scale in (-0.5, 0.5))
    return _arc(g, _over(g, sine, cosine, 1.0), 4.0)


def arc_tangent(g: Builder, x: Value) -> Value:
    """The angle of (1, x), scaled close to 1 so that squares do not overflow."""
    nearer = g.op("Power", g.op("AbsVal", x), power=-1.0, shift=1.0)
    return _to_the_right(g, _times(g, x, nearer), nearer, 1.0)


def angle(g: Builder, y: Value, x: Value, shape: tuple[int, ...]) -> Value:
    """The angle of the point (x, y), with signed zeros like C's atan2, in the broadcast ``shape``.

    On the left of the axis it is half a turn, of the sign of y, less that of the mirrored point.
    """
    full = (1, *shape) if len(shape) < 2 else shape
    like = x if y.is_constant else y
    y, x = (caffe_numbers.filled(g, v, like) if v.is_constant else v for v in (y, x))
    y, x = spread(g, y, full), spread(g, x, full)
    height, width = g.op("AbsVal", y), g.op("AbsVal", x)
    size = g.op("Eltwise", height, width, operation="SUM", coeff=[0.25, 0.25])  # the sum could be infinite
    nearer = g.op("Power", size, power=-1.0, shift=_TINY)
    right = _times(g, g.op("Power", width, shift=_TINY), nearer)
    right = _to_the_right(g, _times(g, y, nearer), right, 1.0)
    # 1, or -1 below zero and of the negative zero, whose inverse is infinite: tanh of 10 and more is 1
    above, side = (
        g.op("TanH", g.op("Power", _times(g, value, nearer), power=-1.0, scale=0.01)) for value in (y, x)
    )
    left = g.op("Power", side, scale=-math.pi / 2, shift=math.pi / 2)
    return reshaped(g, _sum(g, _times(g, side, right), _times(g, above, left)), shape)
