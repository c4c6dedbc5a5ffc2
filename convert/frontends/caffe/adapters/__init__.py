"""Adapters of Caffe's layers.

Each family of layers is a file with a table ``LAYERS``; ``index.json`` maps names to families.
"""

from __future__ import annotations

from tmconvert.frontends.shared.adapter_table import IndexedTable, read_index

_INDEX = read_index(__file__)
LAYERS = IndexedTable(__name__, _INDEX["LAYERS"], "LAYERS")
