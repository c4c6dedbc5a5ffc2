"""Adapters of TFLite's operators: each expresses one operator in ATen-style ops.

Each family of operators is a file with a table ``OPERATORS``. The inputs of an operator are positional, None
for one that is omitted; its options have the names of the schema.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from tmconvert.frontends.shared.adapter_table import Table


def _tables() -> list[Table]:
    families = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
    return [family.OPERATORS for family in families if hasattr(family, "OPERATORS")]


OPERATORS = Table.merged(*_tables())
