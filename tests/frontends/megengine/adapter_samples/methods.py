"""Methods and operators of Tensor."""

from .common import (
    BINARY,
    CHANNEL,
    REDUCTION,
    REFLECTED,
    UNARY,
    rows,
)
from .elemwise import POWERS  # noqa: F401 (rows have it)

METHODS = {
    **rows(__file__, "METHODS", globals()),
    **{f"__{prefix}{name}__": BINARY for prefix in ("", "i") for name in ("add", "sub", "mul")},
    **{
        f"__{prefix}{name}__": [each for each in BINARY if each.args[1] is not CHANNEL]
        for prefix in ("", "i")
        for name in ("truediv", "floordiv")
    },
    **{f"__r{name}__": REFLECTED for name in ("add", "sub", "mul", "truediv", "floordiv")},
    **dict.fromkeys(("__neg__", "__abs__"), UNARY),
    **dict.fromkeys(("mean", "sum", "max", "min"), REDUCTION),
}

SAMPLES = {f"Tensor.{name}": calls for name, calls in METHODS.items()}
