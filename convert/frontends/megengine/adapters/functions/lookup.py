"""Rows of tables and parts of the unit matrix: embedding, one_hot, indexing_one_hot."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.modules.functional_forms import parameter
from tmconvert.frontends.megengine.adapters.values import axis_of, cast, reshaped, static_int
from tmconvert.frontends.shared.adapter_table import AdapterValue, Table
from tmconvert.ir import TracedModule
from tmconvert.ir.emitter import Emitter

FUNCTIONS = Table("megengine.functional.nn.")
MODULES = Table("megengine.module.")


def _indices(g: Emitter, x: AdapterValue) -> Any:
    return x if g.type(x).dtype.name in ("int32", "int64") else cast(g, x, np.int32)


@FUNCTIONS.add("embedding")
def embedding(
    g: Emitter,
    inp: AdapterValue,
    weight: AdapterValue,
    padding_idx: AdapterValue = None,
    max_norm: AdapterValue = None,
    norm_type: AdapterValue = None,
) -> Any:
    if (padding_idx, max_norm, norm_type) != (None, None, None):
        raise Refusal("an embedding with padding_idx, max_norm or norm_type is not supported")
    return g.call("aten::embedding", weight, _indices(g, inp))


@MODULES.add("embedding.Embedding")
def embedding_module(g: Emitter, module: TracedModule, inputs: AdapterValue) -> Any:
    options = (module.attributes.get(name) for name in ("padding_idx", "max_norm", "norm_type"))
    return embedding(g, inputs, parameter(g, module, "weight"), *options)


@FUNCTIONS.add("one_hot")
def one_hot(g: Emitter, inp: AdapterValue, num_classes: AdapterValue) -> Any:
    """Returns one-hot vectors of the element type of the indices."""
    flags = g.call("aten::one_hot", _indices(g, inp), static_int(g, num_classes, "a number of classes"))
    return cast(g, flags, g.type(inp).dtype)


@FUNCTIONS.add("indexing_one_hot")
def indexing_one_hot(
    g: Emitter, src: AdapterValue, index: AdapterValue, axis: AdapterValue = 1, keepdims: bool = False
) -> Any:
    """The element of each row along ``axis`` that ``index`` (without that axis) names."""
    where = axis_of(g, src, axis)
    shape = list(g.type(src).shape)
    shape[where] = 1
    picked = g.call("aten::gather", src, where, reshaped(g, _indices(g, index), shape))
    return picked if keepdims else reshaped(g, picked, shape[:where] + shape[where + 1 :])
