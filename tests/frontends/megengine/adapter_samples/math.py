"""megengine.functional.math: reductions."""

from .common import ARG_REDUCTION, CUBE, FLAGS, REDUCTION, SCALAR, SHORTS, WHOLE, X, call

REDUCED = [
    *(call(FLAGS), call(FLAGS, 1), call(CUBE, ()), call(SCALAR, 0), call(SCALAR), call(WHOLE, ())),
    *(call(SHORTS, 1, True), call(CUBE, (-1, 0)), call(X, (1, 2, 3), True)),
]
ARGUMENTS = [call(CUBE, (0, 2)), call(CUBE, [0, -1], True), call(SHORTS, 0)]
MATH = {
    **dict.fromkeys(("mean", "sum", "max", "min"), REDUCTION + REDUCED),
    **dict.fromkeys(("argmax", "argmin"), ARG_REDUCTION + ARGUMENTS),
}

SAMPLES = {f"megengine.functional.math.{name}": calls for name, calls in MATH.items()}
