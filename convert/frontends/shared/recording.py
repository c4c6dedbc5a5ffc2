"""Records calls that a user makes on nodes: names of functions and methods, and constants."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.frontends.shared.multi_source import name_of_edit, vocabulary_of_edits
from tmconvert.ir.inert import GlobalRef

if TYPE_CHECKING:
    from tmconvert.frontends.shared.vocabulary import AdapterVocabulary
    from tmconvert.ir.traced_module import Vocabulary


def function_name(function: object) -> tuple[str, bool]:
    """Returns the name of a function, given as text or as an object, and whether it is a method of tensors.

    >>> function_name("aten::relu")
    ('aten::relu', False)
    """
    if isinstance(function, str):
        return function, False
    package, own = getattr(function, "__module__", None) or "", getattr(function, "__name__", "")
    if package in ("_operator", "operator"):
        return f"__{own.strip('_')}__", True
    return name_of_edit(function)


def vocabulary_of_method(own: AdapterVocabulary, method: str) -> Vocabulary | None:
    """Returns the vocabulary that knows a method of tensors: ``own``, else PyTorch's; None without any."""
    return next((each for each in (own, vocabulary_of_edits()) if each.knows(method, True)), None)


def plain(leaf: object) -> Any:
    """Returns a constant as a graph stores it: tensors as arrays, dtypes by name."""
    if not type(leaf).__module__.startswith("torch"):
        return leaf.item() if isinstance(leaf, np.generic) else leaf
    convert: Callable[[], Any] | None = getattr(leaf, "detach", None)
    if convert is not None:
        return np.array(convert().cpu().numpy(), order="C")
    name = str(leaf)
    return GlobalRef("torch", name.removeprefix("torch.")) if name.startswith("torch.") else name
