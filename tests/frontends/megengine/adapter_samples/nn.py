"""megengine.functional.nn."""

from .common import (
    ACTIVATION,
    BYTES,
    WHOLE,
    call,
    rows,
)

NN = {
    **rows(__file__, "NN", globals()),
    **{name: [*ACTIVATION, call(WHOLE), call(BYTES)] for name in ("relu", "relu6", "hsigmoid")},
    **dict.fromkeys(("sigmoid", "hswish", "silu"), ACTIVATION),
}

SAMPLES = {f"megengine.functional.nn.{name}": calls for name, calls in NN.items()}
