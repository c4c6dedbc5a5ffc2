"""Built-in modules, converted by their functional forms with the module's attributes as arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.frontends.megengine.adapters.functions import modes, nn, tensor
from tmconvert.frontends.shared.adapter_table import Adapter, Table
from tmconvert.ir import TracedModule
from tmconvert.ir.emitter import Emitter

MODULES = Table("megengine.module.")

ACTIVATIONS = {"ReLU": "RELU", "Sigmoid": "SIGMOID", "SiLU": "SILU", "GELU": "GELU"}


def _activation(mode: str) -> Adapter:
    return lambda g, module, inputs: modes.applied(g, mode, inputs)


for _name, _mode in ACTIVATIONS.items():
    MODULES.add(f"activation.{_name}")(_activation(_mode))


def parameter(g: Emitter, module: TracedModule, name: str, array: np.ndarray | None = None) -> Any:
    """Returns a parameter, or ``array`` computed from it, as a constant named by its path, or None."""
    array = module.tensors.get(name) if array is None else array
    if array is None:
        return None
    return g.parameter(array, f"{module.name}.{name}" if module.name else name)


@MODULES.add("activation.LeakyReLU")
def leaky_relu(g, module, inputs):
    return modes.applied(g, "PRELU", inputs, module.attributes["negative_slope"])


@MODULES.add("activation.PReLU")
def prelu(g, module, inputs):
    return modes.applied(g, "PRELU", inputs, parameter(g, module, "weight"))


@MODULES.add("padding.Pad")
def pad(g, module, src):
    attributes = module.attributes
    return nn.pad(g, src, attributes["pad_width"], attributes["mode"], attributes.get("pad_val", 0.0))


@MODULES.add("identity.Identity", "dropout.Dropout", "quant_dequant.QuantStub", "quant_dequant.DequantStub")
def identity(g, module, inputs):
    return inputs


MODULES.add("concat.Concat")(lambda g, module, tensors, axis=0: tensor.concat(g, tensors, axis))


@MODULES.add("elemwise.Elemwise")
def elemwise_module(g, module, *inps):
    return modes.applied(g, module.attributes["method"], *inps)
