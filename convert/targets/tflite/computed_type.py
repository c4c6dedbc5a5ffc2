"""The element type in which an operator computes, where its kernel does not support that of the operands.

Integers of few bits are computed in a type that holds them all, and cast back.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir.types import name_of
from tmconvert.targets.tflite.operators import spec

# The types that hold every value of one, the cheapest first.
_WIDER = {**dict.fromkeys(("bool", "uint8", "int8", "int16"), ("int32", "int64")), "int32": ("int64",)}


def computed_type(
    operator: str, dtype: np.dtype, runs: Callable[[str], bool] = lambda name: True
) -> np.dtype:
    """Returns the type in which the operator computes ``dtype``. Raises Refusal where no type is suitable.

    ``runs`` says whether the runtime has the operator for a type.
    """
    own, known = name_of(dtype), spec(operator)
    wider = _WIDER.get(own, ())
    if known.moves and "int32" in wider:
        wider = (*wider, "float32")  # which holds integers of 16 bits, and none are computed
    names = [name for name in (own, *wider) if known.types is None or name in known.types]
    if not names:
        raise Refusal(f"TFLite's {operator} does not support {own}", "convert the model to float32")
    return np.dtype(next(filter(runs, names), names[0]))
