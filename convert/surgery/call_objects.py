"""Objects among the arguments of a call of a model."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from tmconvert.frontends.torch.customization import SUPPORTED_TYPES
from tmconvert.ir.tree import map_leaves


def opened(tree: object) -> Any:
    """Returns arguments as tracing records them: dataclasses as dicts, and objects of the classes of
    ``register_supported_type`` as lists of their parts.
    """
    return map_leaves(_opened, tree)


def _opened(leaf: Any) -> Any:
    if is_dataclass(leaf) and not isinstance(leaf, type):
        parts = {field.name: getattr(leaf, field.name) for field in fields(leaf)}
        return opened({name: part for name, part in parts.items() if part is not None})
    supported = SUPPORTED_TYPES.get(type(leaf))
    return leaf if supported is None else opened(list(supported.flatten(leaf)[0]))
