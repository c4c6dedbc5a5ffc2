"""megengine.module."""

from .common import X, made, rows

MODULES = {
    **rows(__file__, "MODULES", globals()),
    **{f"activation.{name}": [made()(X)] for name in ("ReLU", "Sigmoid", "SiLU")},
}

SAMPLES = {f"megengine.module.{name}": calls for name, calls in MODULES.items()}
