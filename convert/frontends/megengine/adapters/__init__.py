"""Adapters: MegEngine's functions, tensor methods and builtin modules in aten-style ops.

An adapter is ``name(g, *arguments)`` with MegEngine's parameter names and defaults, so that a call
recorded in any release binds to it. ``g`` is an Emitter; tensors are its values, all else is a constant.
"""

from __future__ import annotations

from . import elemwise, math, modules, nn, operators, tensor, vision
from .table import Table

FUNCTIONS = Table.merged(
    elemwise.FUNCTIONS,
    math.FUNCTIONS,
    nn.FUNCTIONS,
    operators.FUNCTIONS,
    tensor.FUNCTIONS,
    vision.FUNCTIONS,
)
METHODS = Table.merged(elemwise.METHODS, math.METHODS, tensor.METHODS)
MODULES = modules.MODULES
