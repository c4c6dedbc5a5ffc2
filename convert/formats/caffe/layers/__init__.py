"""Records of Caffe's layer types, one each, in a file per family. Source: BVLC Caffe, src/caffe/layers.

A type has a definition, in NumPy, where what it computes is public; nets are checked by it.
"""

from __future__ import annotations

from tmconvert.formats.caffe.layers import (
    convolution,
    data_movement,
    elementwise,
    normalization,
    pooling,
    products,
    recurrent,
    reductions,
    resizing,
    training,
    undefined,
)
from tmconvert.formats.caffe.layers.layer import Layer

_FAMILIES = (
    convolution,
    elementwise,
    normalization,
    data_movement,
    pooling,
    products,
    recurrent,
    reductions,
    resizing,
    training,
    undefined,
)
LAYERS: dict[str, Layer] = {name: layer for family in _FAMILIES for name, layer in family.LAYERS.items()}
TRAINING = frozenset(name for name, layer in LAYERS.items() if layer.trains)
BVLC = frozenset(name for name, layer in LAYERS.items() if not layer.is_of_fork) - TRAINING
