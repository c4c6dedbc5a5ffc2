"""Operators applied directly."""

from .common import VECTOR, X, call

OPDEF = {"GetVarShape": [call(X), call(X, axis=1), call(X, axis=-1), call(VECTOR)]}

SAMPLES = {f"opdef.{name}": calls for name, calls in OPDEF.items()}
