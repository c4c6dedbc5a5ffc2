"""Operators applied directly: shapes, numbers, indices."""

import numpy as np

from .common import BYTES, CUBE, HALVES, VECTOR, WHOLE, Known, call, numbers, rows

SMALL_INTS = WHOLE.astype(np.int8)
ALL_AXES = 2**31 - 1
COLUMN = numbers(1, 3, 1)
SQUARE = numbers(2, 2)
ROWS = Known([[1, 0], [0, 2]])
GRID = numbers(2, 3, 4, 5)


def at(axis):
    """An item that names numbers of an axis."""
    return [axis, False, False, False, True]


def cut(axis, start=False, stop=False, step=False):
    return [axis, start, stop, step, False]


def reductions(mode, *inputs):
    return [call(x, axis=0, mode=mode) for x in inputs] + [
        call(CUBE, axis=1, mode=mode, keepdim=False),
        call(CUBE, axis=-1, mode=mode),
        call(CUBE, axis=ALL_AXES, mode=mode),
        call(CUBE, Known(1, 3, 4), mode=mode),
        call(CUBE, Known([1]), mode=mode),
    ]


NUMBERS = [VECTOR, WHOLE, HALVES, BYTES, SMALL_INTS]
SHAPES = rows(__file__, "SHAPES", globals())
MATH = rows(__file__, "MATH", globals())
CREATION = rows(__file__, "CREATION", globals())
READ = rows(__file__, "READ", globals())
WRITTEN = rows(__file__, "WRITTEN", globals())

SAMPLES = {
    f"opdef.{name}": calls for part in (SHAPES, MATH, CREATION, READ, WRITTEN) for name, calls in part.items()
}
