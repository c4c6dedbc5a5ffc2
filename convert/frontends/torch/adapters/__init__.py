"""Adapters: torch's functions, tensor methods and ATen ops in aten-style ops.

An adapter is ``name(g, *arguments)`` with ATen's parameter names and defaults. ``ATEN`` has them by the name
of the op, for the function and the method alike; ``FUNCTIONS`` (by qualified name) and ``METHODS`` have the
exceptions: functions that torch implements in Python, and methods that take sizes as separate arguments.
``COMPLEX`` has the adapters of calls with complex operands. Each family is a file with its own tables of
these names; ``index.json`` maps names to families.
"""

from __future__ import annotations

from tmconvert.frontends.shared.adapter_table import IndexedTable, read_index

_INDEX = read_index(__file__)
ATEN = IndexedTable(__name__, _INDEX["ATEN"], "ATEN")
FUNCTIONS = IndexedTable(__name__, _INDEX["FUNCTIONS"], "FUNCTIONS")
METHODS = IndexedTable(__name__, _INDEX["METHODS"], "METHODS")
COMPLEX = IndexedTable(__name__, _INDEX["COMPLEX"], "COMPLEX")
