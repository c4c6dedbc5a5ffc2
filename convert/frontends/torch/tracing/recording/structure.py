"""Converts nested inputs and outputs to plain tuples, lists and dicts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch

Tensors = Mapping[str, torch.Tensor]  # by the names of inputs
LEAVES = (torch.Tensor, str, bytes, int, float, complex, bool, type(None), torch.dtype, torch.device)


def _leaf(value: object) -> Any:
    return None


def plain_structure(tree: object, content: Callable[[Any], Any] = _leaf) -> Any:
    """Returns the tree with dataclasses and mappings as dicts; dataclass fields that are None are omitted.

    Containers that are registered with torch's pytree are flattened, as are objects for which ``content``
    returns their content; all else is a leaf.
    """
    if isinstance(tree, LEAVES):
        return tree
    if isinstance(tree, (tuple, list)):
        if isinstance(tree, torch.Size):
            return tuple(tree)
        children = [plain_structure(child, content) for child in tree]
        if isinstance(tree, list):
            return children
        return tuple.__new__(type(tree), children) if hasattr(tree, "_fields") else tuple(children)
    if isinstance(tree, Mapping) and not any(isinstance(key, torch.Tensor) for key in tree.keys()):  # noqa: SIM118
        return {str(key): plain_structure(child, content) for key, child in tree.items()}
    if isinstance(tree, slice):
        return tree
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        fields = {field.name: getattr(tree, field.name) for field in dataclasses.fields(tree)}
        return {name: plain_structure(value, content) for name, value in fields.items() if value is not None}
    opened = None if isinstance(tree, Mapping) else _opened(tree)  # one with tensors as keys
    if opened is None:
        opened = content(tree)
    return tree if opened is None else plain_structure(opened, content)


def _opened(tree: object) -> Any:
    """Returns the children of a node that was registered with torch's pytree, by name or as a list."""
    from torch.utils import _pytree

    definition = _pytree.SUPPORTED_NODES.get(type(tree))
    if definition is None:
        return None
    with_keys = getattr(definition, "flatten_with_keys_fn", None)
    if with_keys is not None:
        pairs, _ = with_keys(tree)
        return {_pytree.keystr((key,)).strip(".[]'\""): child for key, child in pairs}
    return list(definition.flatten_fn(tree)[0])
