"""The ops: a folder per family, a file per op or per table of similar ops, imported on first use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from tmconvert.symbolics.op import Op

# The ops of each file, those of aten without their prefix, in the order of the table that users see.
MODULES: dict[str, str] = json.loads(Path(__file__).with_name("index.json").read_bytes())


class ShippedOps(Mapping[str, Op]):
    """All ops by name, in the order of MODULES. Names are known without importing files."""

    def __init__(self) -> None:
        self._modules = {
            name if "::" in name else f"aten::{name}": module
            for module, names in MODULES.items()
            for name in names.split()
        }
        self._loaded: dict[str, Op] = {}

    def __getitem__(self, name: str) -> Op:
        if name not in self._loaded:
            self._loaded |= ops_of(self._modules[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


def ops_of(module: str) -> dict[str, Op]:
    """Returns the ops of a file: its list ``OPS``, or its only op."""
    names = vars(import_module(f".{module}", __name__))
    return {op.name: op for op in names.get("OPS", names.values()) if isinstance(op, Op)}
