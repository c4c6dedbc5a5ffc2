"""megengine.functional.math."""

from .common import ARG_REDUCTION, REDUCTION

MATH = {
    **dict.fromkeys(("mean", "sum", "max", "min"), REDUCTION),
    **dict.fromkeys(("argmax", "argmin"), ARG_REDUCTION),
}

SAMPLES = {f"megengine.functional.math.{name}": calls for name, calls in MATH.items()}
