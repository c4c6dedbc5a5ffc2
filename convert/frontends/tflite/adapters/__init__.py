"""Adapters of TFLite's operators: each expresses one operator in ATen-style ops.

Each family of operators is a file with a table ``OPERATORS``; ``index.json`` maps names to families. The
inputs of an operator are positional, None for one that is omitted; its options have the names of the schema.
"""

from __future__ import annotations

from tmconvert.frontends.shared.adapter_table import IndexedTable, read_index

_INDEX = read_index(__file__)
OPERATORS = IndexedTable(__name__, _INDEX["OPERATORS"], "OPERATORS")
