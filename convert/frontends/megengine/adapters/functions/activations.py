"""The elementwise activations of megengine.functional.nn."""

from __future__ import annotations

from tmconvert.frontends.megengine.adapters.functions import modes
from tmconvert.frontends.megengine.adapters.functions.elemwise import unary
from tmconvert.frontends.shared.adapter_table import Adapter, Table

FUNCTIONS = Table("megengine.functional.nn.")

# name of the function -> mode; its argument is x
OF_X = {
    "relu": "RELU",
    "relu6": "RELU6",
    "sigmoid": "SIGMOID",
    "hsigmoid": "HSIGMOID",
    "hswish": "H_SWISH",
    "gelu": "GELU",
    "silu": "SILU",
}
# the same with the argument inp
OF_INP = {"softplus": "SOFTPLUS", "logsigmoid": "LOGSIGMOID"}


def _of_inp(mode: str) -> Adapter:
    return lambda g, inp: modes.applied(g, mode, inp)


for _name, _mode in OF_X.items():
    FUNCTIONS.add(_name)(unary(_mode))
for _name, _mode in OF_INP.items():
    FUNCTIONS.add(_name)(_of_inp(_mode))


@FUNCTIONS.add("leaky_relu")
def leaky_relu(g, inp, negative_slope=0.01):
    return modes.applied(g, "PRELU", inp, negative_slope)


@FUNCTIONS.add("prelu")
def prelu(g, x=None, y=None, *, inp=None, weight=None):
    """PReLU; before 1.10 the parameters were named inp and weight."""
    return modes.applied(g, "PRELU", inp if x is None else x, weight if y is None else y)
