"""megengine.functional.tensor."""

from .common import (
    rows,
)

TENSOR = rows(__file__, "TENSOR", globals())

SAMPLES = {f"megengine.functional.tensor.{name}": calls for name, calls in TENSOR.items()}
