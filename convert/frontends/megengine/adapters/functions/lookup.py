"""Rows of tables and parts of the unit matrix: embedding, one_hot, indexing_one_hot."""

from __future__ import annotations

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.modules.functional_forms import parameter
from tmconvert.frontends.megengine.adapters.values import axis_of, cast, reshaped, static_int
from tmconvert.frontends.shared.adapter_table import Table

FUNCTIONS = Table("megengine.functional.nn.")
MODULES = Table("megengine.module.")


def _indices(g, x):
    return x if g.type(x).dtype.name in ("int32", "int64") else cast(g, x, np.int32)


@FUNCTIONS.add("embedding")
def embedding(g, inp, weight, padding_idx=None, max_norm=None, norm_type=None):
    if (padding_idx, max_norm, norm_type) != (None, None, None):
        raise Refusal("an embedding with padding_idx, max_norm or norm_type is not supported")
    return g.call("aten::embedding", weight, _indices(g, inp))


@MODULES.add("embedding.Embedding")
def embedding_module(g, module, inputs):
    options = (module.attributes.get(name) for name in ("padding_idx", "max_norm", "norm_type"))
    return embedding(g, inputs, parameter(g, module, "weight"), *options)


@FUNCTIONS.add("one_hot")
def one_hot(g, inp, num_classes):
    """Returns one-hot vectors of the element type of the indices."""
    flags = g.call("aten::one_hot", _indices(g, inp), static_int(g, num_classes, "a number of classes"))
    return cast(g, flags, g.type(inp).dtype)


@FUNCTIONS.add("indexing_one_hot")
def indexing_one_hot(g, src, index, axis=1, keepdims=False):
    """The element of each row along ``axis`` that ``index`` (without that axis) names."""
    where = axis_of(g, src, axis)
    shape = list(g.type(src).shape)
    shape[where] = 1
    picked = g.call("aten::gather", src, where, reshaped(g, _indices(g, index), shape))
    return picked if keepdims else reshaped(g, picked, shape[:where] + shape[where + 1 :])
