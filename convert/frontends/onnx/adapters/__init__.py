"""Adapters of ONNX operators: each expresses one operator in ATen-style ops.

Each family of operators is a file with a table ``OPERATORS``; ``index.json`` maps names to families.
"""

from __future__ import annotations

from tmconvert.frontends.shared.adapter_table import IndexedTable, read_index

_INDEX = read_index(__file__)
OPERATORS = IndexedTable(__name__, _INDEX["OPERATORS"], "OPERATORS")
