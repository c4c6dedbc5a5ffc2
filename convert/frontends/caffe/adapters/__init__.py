"""Adapters of Caffe's layers.

Each family of layers is a file with a table ``LAYERS``; ``index.py`` maps names to families.
"""

from __future__ import annotations

from tmconvert.frontends.caffe.adapters import index
from tmconvert.frontends.shared.adapter_table import IndexedTable

LAYERS = IndexedTable(__name__, index.LAYERS, "LAYERS")
