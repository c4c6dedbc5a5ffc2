"""Adapters: torch's functions, tensor methods and ATen ops in aten-style ops.

An adapter is ``name(g, *arguments)`` with ATen's parameter names and defaults. ``ATEN`` has them by the name
of the op, for the function and the method alike; ``FUNCTIONS`` (by qualified name) and ``METHODS`` have what
differs: functions that torch itself writes in Python, methods that take their sizes one by one.
"""

from __future__ import annotations

from ...table import Table
from . import arithmetic, logic, reductions, shapes, sizes, types, unary

ATEN = Table.merged(arithmetic.ATEN, logic.ATEN, reductions.ATEN, shapes.ATEN, types.ATEN, unary.ATEN)
FUNCTIONS = Table.merged(sizes.FUNCTIONS)
METHODS = Table.merged(logic.METHODS, shapes.METHODS)
