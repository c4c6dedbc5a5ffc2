"""Adapters: MegEngine's functions, tensor methods and builtin modules in aten-style ops.

An adapter is ``name(g, *arguments)`` with MegEngine's parameter names and defaults, so that a call recorded
in any release binds to it. ``g`` is an Emitter; tensors are its values, other arguments are constants.
Each family is a file with tables of these names; ``OPERATORS`` are those of MegEngine's C++, which a model
may call as functions. ``index.py`` maps names to families.
"""

from __future__ import annotations

from tmconvert.frontends.megengine.adapters import index
from tmconvert.frontends.shared.adapter_table import IndexedTable

FUNCTIONS = IndexedTable(__name__, index.FUNCTIONS, "FUNCTIONS", "OPERATORS")
METHODS = IndexedTable(__name__, index.METHODS, "METHODS")
MODULES = IndexedTable(__name__, index.MODULES, "MODULES")
