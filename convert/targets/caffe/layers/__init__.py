"""Layers by their definition, one family a file: shapes and NumPy. Source: BVLC Caffe, src/caffe/layers.

Layers of forks are here where what they compute is public. What is missing has no definition that a net
could be judged by.
"""

from __future__ import annotations

from tmconvert.targets.caffe.layers import (
    convolution,
    elementwise,
    normalization,
    places,
    pooling,
    products,
    recurrent,
    reductions,
    resizing,
)
from tmconvert.targets.caffe.layers.layer import Layer

FAMILIES = (
    convolution,
    elementwise,
    normalization,
    places,
    pooling,
    products,
    recurrent,
    reductions,
    resizing,
)
LAYERS: dict[str, Layer] = {name: layer for family in FAMILIES for name, layer in family.LAYERS.items()}
