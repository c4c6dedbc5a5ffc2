"""Adapters of Caffe's layers, a file per family."""

from __future__ import annotations

from tmconvert.frontends.caffe.adapters import (
    convolutions,
    detection,
    elementwise,
    normalization,
    places,
    pooling,
    products,
    recurrent,
    reductions,
    resizing,
)
from tmconvert.frontends.shared.adapter_table import Table

_FAMILIES = (
    convolutions,
    detection,
    elementwise,
    normalization,
    places,
    pooling,
    products,
    recurrent,
    reductions,
    resizing,
)
LAYERS = Table.merged(*(family.LAYERS for family in _FAMILIES))
