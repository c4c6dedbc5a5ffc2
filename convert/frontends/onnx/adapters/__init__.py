"""Adapters of ONNX operators: each expresses one operator in ATen-style ops.

Each family of operators is a file with a table ``OPERATORS``.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from tmconvert.frontends.onnx.adapter_table import OperatorTable


def _tables() -> list[OperatorTable]:
    families = [import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__)]
    return [family.OPERATORS for family in families if hasattr(family, "OPERATORS")]


OPERATORS = OperatorTable.merged(*_tables())
