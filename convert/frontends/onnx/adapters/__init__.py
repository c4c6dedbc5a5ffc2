"""Adapters of ONNX operators: each expresses one operator in ATen-style ops.

Each family of operators is a file with a table ``OPERATORS``; ``index.py`` maps names to families.
"""

from __future__ import annotations

from tmconvert.frontends.onnx.adapters import index
from tmconvert.frontends.shared.adapter_table import IndexedTable

OPERATORS = IndexedTable(__name__, index.OPERATORS, "OPERATORS")
