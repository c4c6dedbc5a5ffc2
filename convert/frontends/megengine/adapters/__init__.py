"""Adapters: MegEngine's functions, tensor methods and builtin modules in aten-style ops.

An adapter is ``name(g, *arguments)`` with MegEngine's parameter names and defaults, so that a call
recorded in any release binds to it. ``g`` is an Emitter; tensors are its values, all else is a constant.
"""

from __future__ import annotations

from ...table import Table
from . import (
    activations,
    attention,
    convolutions,
    creation,
    elemwise,
    fake_quant,
    image_operators,
    index_operators,
    layer_operators,
    layers,
    lookup,
    matching,
    math,
    matrices,
    modules,
    nn,
    normalization,
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
    window_operators,
    windows,
)

FUNCTIONS = Table.merged(
    attention.FUNCTIONS,
    convolutions.FUNCTIONS,
    lookup.FUNCTIONS,
    matrices.FUNCTIONS,
    softmax.FUNCTIONS,
    sorting.FUNCTIONS,
    activations.FUNCTIONS,
    creation.FUNCTIONS,
    elemwise.FUNCTIONS,
    fake_quant.FUNCTIONS,
    matching.FUNCTIONS,
    image_operators.OPERATORS,
    index_operators.OPERATORS,
    layer_operators.OPERATORS,
    math.FUNCTIONS,
    nn.FUNCTIONS,
    normalization.FUNCTIONS,
    operators.FUNCTIONS,
    quantized.FUNCTIONS,
    rearranging.FUNCTIONS,
    rearranging.OPERATORS,
    sampling.FUNCTIONS,
    tensor.FUNCTIONS,
    vision.FUNCTIONS,
    window_operators.OPERATORS,
    windows.FUNCTIONS,
)
METHODS = Table.merged(elemwise.METHODS, math.METHODS, matrices.METHODS, rearranging.METHODS, tensor.METHODS)
MODULES = Table.merged(
    attention.MODULES,
    layers.MODULES,
    lookup.MODULES,
    matrices.MODULES,
    modules.MODULES,
    recurrent.MODULES,
    softmax.MODULES,
    qat.MODULES,
    quantized.MODULES,
)
