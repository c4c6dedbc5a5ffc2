"""Adapters: MegEngine's functions, tensor methods and builtin modules in aten-style ops.

An adapter is ``name(g, *arguments)`` with MegEngine's parameter names and defaults, so that a call recorded
in any release binds to it. ``g`` is an Emitter; tensors are its values, other arguments are constants.
Each family is a file with tables of these names; ``OPERATORS`` are those of MegEngine's C++, which a model
may call as functions. ``index.json`` maps names to families.
"""

from __future__ import annotations

from tmconvert.frontends.shared.adapter_table import IndexedTable, read_index

_INDEX = read_index(__file__)
FUNCTIONS = IndexedTable(__name__, _INDEX["FUNCTIONS"], "FUNCTIONS", "OPERATORS")
METHODS = IndexedTable(__name__, _INDEX["METHODS"], "METHODS")
MODULES = IndexedTable(__name__, _INDEX["MODULES"], "MODULES")
