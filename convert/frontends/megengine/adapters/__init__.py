"""Adapters: MegEngine's functions, tensor methods and builtin modules in aten-style ops.

An adapter is ``name(g, *arguments)`` with MegEngine's parameter names and defaults, so that a call
recorded in any release binds to it. ``g`` is an Emitter; tensors are its values, all else is a constant.
"""

from __future__ import annotations

from . import (
    activations,
    attention,
    creation,
    elemwise,
    fake_quant,
    lookup,
    math,
    matrices,
    modules,
    nn,
    operators,
    qat,
    quantized,
    rearranging,
    recurrent,
    sampling,
    softmax,
    sorting,
    tensor,
    vision,
)
from .table import Table

FUNCTIONS = Table.merged(
    attention.FUNCTIONS,
    lookup.FUNCTIONS,
    matrices.FUNCTIONS,
    softmax.FUNCTIONS,
    sorting.FUNCTIONS,
    activations.FUNCTIONS,
    creation.FUNCTIONS,
    elemwise.FUNCTIONS,
    fake_quant.FUNCTIONS,
    math.FUNCTIONS,
    nn.FUNCTIONS,
    operators.FUNCTIONS,
    rearranging.FUNCTIONS,
    rearranging.OPERATORS,
    sampling.FUNCTIONS,
    tensor.FUNCTIONS,
    vision.FUNCTIONS,
)
METHODS = Table.merged(elemwise.METHODS, math.METHODS, matrices.METHODS, rearranging.METHODS, tensor.METHODS)
MODULES = Table.merged(
    attention.MODULES,
    lookup.MODULES,
    matrices.MODULES,
    modules.MODULES,
    recurrent.MODULES,
    softmax.MODULES,
    qat.MODULES,
    quantized.MODULES,
)
