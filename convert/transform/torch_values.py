"""Values with which a function of torch tensors is called, to record its calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tmconvert.frontends.shared.recording import plain
from tmconvert.frontends.torch.names import name_of
from tmconvert.ir import CallFunction, CallMethod, Expr, Node
from tmconvert.ir.expr import short_label
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.ir.types import Kwargs

# the method that tracing records for an operator
_OPERATORS = {
    **{f"__{name}__": name for name in ("add", "sub", "mul", "matmul", "pow", "neg", "abs")},
    **{f"__{name}__": name for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "__truediv__": "div",
    "__radd__": "add",
    "__rmul__": "mul",
    "__rtruediv__": "__rdiv__",
    **{name: name for name in ("__rsub__", "__getitem__", "__floordiv__", "__mod__", "__and__", "__or__")},
    **{name: name for name in ("__rpow__", "__invert__", "__xor__", "__rmatmul__")},
}


class Calls(Protocol):
    """Takes calls that have no results yet, and returns these."""

    def record(self, expr: Expr) -> Any: ...


class TorchValue:
    """A node of a graph in torch's words: functions of torch, methods and operators record themselves."""

    def __init__(self, node: Node, calls: Calls) -> None:
        self._node = node
        self._calls = calls

    @classmethod
    def __torch_function__(
        cls, function: object, types: object, args: tuple[object, ...] = (), kwargs: Kwargs | None = None
    ) -> Any:
        calls = next(leaf._calls for leaf in leaves((args, kwargs or {})) if isinstance(leaf, TorchValue))
        name = name_of(function)
        return _recorded(calls, name.text, args, kwargs or {}, is_method=name.is_method)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: _recorded(self._calls, name, (self, *args), kwargs, is_method=True)

    __hash__ = object.__hash__


def _operator(method: str) -> Callable[..., Any]:
    def operate(self: TorchValue, *args: object) -> Any:
        return _recorded(self._calls, method, (self, *args), {}, is_method=True)

    return operate


for _name, _method in _OPERATORS.items():
    setattr(TorchValue, _name, _operator(_method))


def called_with_torch_values(function: Callable[..., Any], calls: Calls, nodes: Sequence[object]) -> Any:
    """Returns the nodes that a function of torch tensors gives for nodes, or constants."""
    values = [TorchValue(node, calls) if isinstance(node, Node) else node for node in nodes]
    return map_leaves(_node, function(*values))


def _recorded(calls: Calls, name: str, args: tuple[object, ...], kwargs: Kwargs, *, is_method: bool) -> Any:
    args, kwargs = map_leaves(_node, (tuple(args), kwargs))
    call = (
        CallMethod(name, args, kwargs)
        if is_method
        else CallFunction(name, args, kwargs, label=short_label(name))
    )
    made = calls.record(call)
    return map_leaves(lambda leaf: TorchValue(leaf, calls) if isinstance(leaf, Node) else leaf, made)


def _node(leaf: object) -> Any:
    """Returns an argument as a graph has it: nodes, dtypes by name; tensors as they are."""
    if isinstance(leaf, TorchValue):
        return leaf._node
    return leaf if hasattr(leaf, "detach") else plain(leaf)
