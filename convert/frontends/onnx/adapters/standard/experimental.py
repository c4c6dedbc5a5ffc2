"""Operators of opset 1 that the standard dropped; files of those years have them, and ONNX Runtime runs them.

Source: the tables of contributed operators in ONNX Runtime's documentation, and ONNX 1.3's Operators.md.
"""

from __future__ import annotations

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapter_table import OperatorTable
from tmconvert.frontends.onnx.adapters.values import like, rank
from tmconvert.symbolics.idioms.formulas import Term

OPERATORS = OperatorTable()


OPERATORS.add("Affine")(lambda g, X, *, alpha=1.0, beta=0.0: (Term(g, X) * alpha + beta).value)


@OPERATORS.add("ImageScaler")
def image_scaler(g, input, *, bias=(), scale=1.0):
    """Multiplies a picture, and adds a number to each of its channels."""
    scaled = g.call("aten::mul", input, like(g, input, scale))
    if not bias:
        return scaled
    offsets = np.array(bias).reshape(-1, *[1] * (rank(g, input) - 2))
    return g.call("aten::add", scaled, like(g, input, offsets))


@OPERATORS.add("Crop")
def crop(g, input, *, border=(), scale=()):
    """Cuts (left, top, right, bottom) off a picture; with ``scale``, keeps as many rows and columns."""
    if len(border) != 4 or len(scale) not in (0, 2) or rank(g, input) != 4:
        raise Refusal(f"Crop by {list(border)} to {list(scale)} of a tensor of rank {rank(g, input)}")
    left, top, right, bottom = border
    height, width = g.type(input).shape[2:]
    ends = (top + scale[0], left + scale[1]) if scale else (height - bottom, width - right)
    rows = g.call("aten::slice", input, 2, top, ends[0], 1)
    return g.call("aten::slice", rows, 3, left, ends[1], 1)


@OPERATORS.add("ParametricSoftplus")
def parametric_softplus(g, X, *, alpha, beta):
    return ((Term(g, X) * beta).softplus() * alpha).value


OPERATORS.add("ScaledTanh")(lambda g, input, *, alpha, beta: ((Term(g, input) * beta).tanh() * alpha).value)


@OPERATORS.add("Scale")
def scale(g, input, *, scale=1.0):
    return g.call("aten::mul", input, like(g, input, scale))
