"""Adapters of Caffe's layers, by family: each has a table ``LAYERS``; ``index.json`` has their names."""

from __future__ import annotations

from tmconvert.frontends.shared.adapter_table import IndexedTable, read_index

_INDEX = read_index(__file__)
LAYERS = IndexedTable(__name__, _INDEX["LAYERS"], "LAYERS")
