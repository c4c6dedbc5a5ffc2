"""Adapters of TFLite's operators: each expresses one operator in ATen-style ops.

Each family of operators is a file with a table ``OPERATORS``; ``index.py`` maps names to families. The
inputs of an operator are positional, None for one that is omitted; its options have the names of the schema.
"""

from __future__ import annotations

from tmconvert.frontends.shared.adapter_table import IndexedTable
from tmconvert.frontends.tflite.adapters import index

OPERATORS = IndexedTable(__name__, index.OPERATORS, "OPERATORS")
