"""PyTorch's vocabulary: which adapter says a call in aten-style ops. Nothing here needs torch itself."""

from __future__ import annotations

from functools import cache
from typing import Any

from ...ir import CallFunction, CallMethod, Expr
from ...symbolics.registry import catalogue
from ..vocabulary import Adapter, AdapterVocabulary
from .names import aten_name, functional

IDENTIFIER = "torch"


class TorchVocabulary(AdapterVocabulary):
    """The meaning of the calls of torch: of its functions, tensor methods and ATen ops.

    A name is looked up as it is, then by that of its ATen op, then among the ops of the catalogue; a name
    that says that its operand is written to (``add_``) means what the plain one does.
    """

    identifier = IDENTIFIER
    framework = "PyTorch"

    def find(self, expr: Expr, args: tuple[Any, ...]) -> tuple[str, Adapter | None]:
        if isinstance(expr, CallMethod):
            return self.name(expr), _adapter(expr.method, True)
        assert isinstance(expr, CallFunction)
        return self.name(expr), _adapter(expr.function, False)

    def knows(self, name: str, is_method: bool) -> bool:
        """Whether there is an adapter for a function, or a method of tensors."""
        return _adapter(name, is_method) is not None

    def help(self, name: str) -> str:
        if name.startswith("torch.ops.") and not name.startswith("torch.ops.aten"):
            return "give its meaning with tmconvert.register_symbolic, or a --plugin file"
        return "write this part of the model with functions that `tmconvert ops` lists"


VOCABULARY = TorchVocabulary()


@cache
def _adapter(name: str, is_method: bool) -> Adapter | None:
    from .adapters import ATEN, FUNCTIONS, METHODS
    from .adapters.forms import called, generic, in_place

    own = aten_name(name, is_method)
    table = METHODS if is_method else FUNCTIONS
    adapter = table.get(name) or ATEN.get(own)
    if adapter is not None:
        return called(adapter)
    op = catalogue().get(own if "::" in own else f"aten::{own}")
    if op is not None:
        return generic(op)
    plain = functional(own)
    found = None if plain is None else _adapter(plain, True) or _adapter(plain, False)
    return None if found is None else in_place(found)
