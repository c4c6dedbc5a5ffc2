"""Matrix products of MegEngine, as functions, operators of Tensor and modules."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import modes
from tmconvert.frontends.megengine.adapters.modules.functional_forms import parameter
from tmconvert.frontends.megengine.adapters.modules.layers import batch_norm
from tmconvert.frontends.megengine.adapters.values import cast, promoted, rank, reshaped
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir import TracedModule
from tmconvert.ir.emitter import Emitter

FUNCTIONS = Table("megengine.functional.")
METHODS = Table()
MODULES = Table("megengine.module.")


def _operands(g: Emitter, x, y) -> tuple[Any, Any]:
    """Casts operands to one dtype; the product of int8 is int32."""
    x, y = promoted(g, x, y)
    if g.type(x).dtype == np.int8:
        return cast(g, x, np.int32), cast(g, y, np.int32)
    return x, y


def _transposed(g, x):
    order = list(range(rank(g, x)))
    return g.call("aten::permute", x, [*order[:-2], order[-1], order[-2]])


@FUNCTIONS.add("math.matmul")
def matmul(g, inp1, inp2, transpose_a=False, transpose_b=False, compute_mode="default", format="default"):
    """A vector is one row as first operand, one column as second, before either is transposed."""
    x, y = _operands(g, inp1, inp2)
    ranks = rank(g, x), rank(g, y)
    if transpose_a and ranks[0] == 1 and ranks[1] > 1:
        x = reshaped(g, x, [1, -1])
    if transpose_b and ranks[1] == 1 and ranks[0] > 1:
        y = reshaped(g, y, [-1, 1])
    x = _transposed(g, x) if transpose_a and rank(g, x) > 1 else x
    y = _transposed(g, y) if transpose_b and rank(g, y) > 1 else y
    product = g.call("aten::matmul", x, y)
    for value, before, axis in ((x, ranks[0], -2), (y, ranks[1], -1)):
        if rank(g, value) != before:
            shape = list(g.type(product).shape)
            del shape[axis]
            product = reshaped(g, product, shape)
    return product


METHODS.add("__matmul__", "__imatmul__")(lambda g, x, y: matmul(g, x, y))
METHODS.add("__rmatmul__")(lambda g, x, y: matmul(g, y, x))


@FUNCTIONS.add("math.dot")
def dot(g, inp1, inp2):
    if (rank(g, inp1), rank(g, inp2)) != (1, 1):
        raise Refusal(f"dot of {g.type(inp1)} and {g.type(inp2)}, which are not both vectors")
    return matmul(g, inp1, inp2)


@FUNCTIONS.add("math.matinv")
def matinv(g, inp):
    return g.call("aten::linalg_inv", inp)


@FUNCTIONS.add("nn.linear")
def linear(g, inp, weight, bias=None, compute_mode="default"):
    x, w = _operands(g, inp, weight)
    type_ = g.type(w)
    if type_.rank != 2 or type_.dtype.kind != "f":
        product = matmul(g, x, w, transpose_b=True)
        return product if bias is None else modes.applied(g, "ADD", product, bias)
    if bias is None or (g.type(bias).dtype, g.type(bias).shape) == (type_.dtype, type_.shape[:1]):
        return g.call("aten::linear", x, w, bias)
    return modes.applied(g, "ADD", g.call("aten::linear", x, w, None), bias)


@MODULES.add("linear.Linear")
def linear_module(g, module, inp):
    return linear(g, inp, parameter(g, module, "weight"), parameter(g, module, "bias"))


MODULES.add("linear.LinearRelu")(lambda g, module, inp: g.call("aten::relu", linear_module(g, module, inp)))


@MODULES.add("linear_bn.LinearBn1d")
def linear_bn1d(g, module, inp):
    return batch_norm(g, module.children["bn"], linear_module(g, module.children["linear"], inp))


@MODULES.add("linear_bn.LinearBnRelu1d")
def linear_bn_relu1d(g, module, inp):
    return g.call("aten::relu", linear_bn1d(g, module, inp))


@MODULES.add("batch_matmul_activation.BatchMatMulActivation")
def batch_matmul_activation(g, module, x):
    return multiplied(g, module, x, parameter(g, module, "weight"), parameter(g, module, "bias"))


def multiplied(g: Emitter, module: TracedModule, x, weight, bias) -> Any:
    """A BatchMatMulActivation with this weight and bias in place of its own."""
    result = matmul(g, weight, x)
    if bias is not None:
        result = modes.applied(g, "ADD", result, bias)
    mode = str(module.attributes["nonlinear_mode"])
    return g.call("aten::relu", result) if mode == "relu" else result
