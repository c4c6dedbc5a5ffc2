"""Float models whose operators have no integer kernels become integer models throughout."""

from __future__ import annotations
