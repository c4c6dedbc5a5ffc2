"""Adapters: MegEngine's functions, tensor methods and builtin modules in aten-style ops.

An adapter is ``name(g, *arguments)`` with MegEngine's parameter names and defaults, so that a call
recorded in any release binds to it. ``g`` is an Emitter; tensors are its values, all else is a constant.
"""

from __future__ import annotations

from . import (
    creation,
    elemwise,
    fake_quant,
    math,
    modules,
    nn,
    operators,
    qat,
    quantized,
    rearranging,
    tensor,
    vision,
)
from .table import Table

FUNCTIONS = Table.merged(
    creation.FUNCTIONS,
    elemwise.FUNCTIONS,
    fake_quant.FUNCTIONS,
    math.FUNCTIONS,
    nn.FUNCTIONS,
    operators.FUNCTIONS,
    rearranging.FUNCTIONS,
    rearranging.OPERATORS,
    tensor.FUNCTIONS,
    vision.FUNCTIONS,
)
METHODS = Table.merged(elemwise.METHODS, math.METHODS, rearranging.METHODS, tensor.METHODS)
MODULES = Table.merged(modules.MODULES, qat.MODULES, quantized.MODULES)
