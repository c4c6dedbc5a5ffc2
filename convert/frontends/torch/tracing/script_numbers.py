"""Arithmetic on sizes in the graphs of TorchScript, which computes it in C++.

``torch.jit.trace`` represents a size by a tensor of rank 0 (``prim::NumToTensor``), and converts it back with
``aten::Int``. Here both are the number itself, so that sizes stay traced.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from tmconvert.frontends.torch.tracing.sizes import untraced

_RECURRENT = ("aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu")
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "aten::mul": operator.mul,
    "aten::floordiv": operator.floordiv,
    "aten::floor_divide": operator.floordiv,
    "aten::remainder": operator.mod,
    "aten::div": operator.truediv,
    "aten::neg": operator.neg,
    "aten::floor": math.floor,
    "aten::ceil": math.ceil,
    "aten::add": lambda a, b, alpha=1: a + alpha * b,
    "aten::sub": lambda a, b, alpha=1: a - alpha * b,
    "aten::rsub": lambda a, b, alpha=1: b - alpha * a,
    **{f"aten::{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}
# where a tensor of rank 0 becomes a number again
_NUMBERS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("prim::NumToTensor", "aten::IntImplicit", "aten::ScalarImplicit"), lambda number: number
    ),
    **dict.fromkeys(("aten::Float", "aten::FloatImplicit"), lambda number: number * 1.0),
    "aten::Int": lambda number: _whole(number),
    "aten::Bool": bool,
    "aten::__not__": operator.not_,
    "aten::pow": operator.pow,
    "aten::sqrt": math.sqrt,
}
_IDENTITY: dict[str, Callable[..., Any]] = {"aten::__is__": operator.is_, "aten::__isnot__": operator.is_not}


def _whole(number: Any) -> Any:
    if isinstance(number, int):
        return number
    return math.floor(number) if untraced(number) >= 0 else math.ceil(number)


def _appended(values: list[Any], value: Any) -> list[Any]:
    values.append(value)
    return values


_CONTAINERS: dict[str, Callable[..., Any]] = {
    "aten::__getitem__": operator.getitem,
    "aten::__contains__": operator.contains,
    "aten::append": _appended,
    "aten::add": operator.add,
    "aten::list": list,
    "aten::slice": lambda values, start=None, end=None, step=1: values[start:end:step],
}
# ops that lists and dicts have in scripts, whose elements Python does not pass to C++
_OF_CONTAINERS = frozenset(
    f"aten::{name}"
    for name in (
        *("_set_item", "extend", "insert", "pop", "keys", "values", "items", "get", "setdefault", "popitem"),
        *(
            "update",
            "copy",
            "sort",
            "sorted",
            "reverse",
            "clear",
            "remove",
            "count",
            "Delete",
            "dict",
            "slice",
        ),
    )
)
# of what the C++ functions of PyTorch call types of elements, by number
_DTYPES = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32),
    *(torch.float64, torch.complex32, torch.complex64, torch.complex128, torch.bool),
)


def is_followed(script: Any, known: Sequence[str]) -> bool:
    """Whether a script can be run op by op: the kinds of all its nodes are ops of PyTorch, or ``known``.

    A tensor that was made of a number may take part in arithmetic only.
    """
    try:
        return all(_is_followed(node, known) for node in _nodes(script.inlined_graph))
    except RuntimeError:  # a method of C++ has no graph
        return False


def is_recurrent(script: Any) -> bool:
    """Whether a script has a recurrent layer, which C++ takes apart into a call of a library or steps."""
    try:
        return any(node.kind() in _RECURRENT for node in _nodes(script.inlined_graph))
    except RuntimeError:
        return False


def computed(kind: str, args: Sequence[Any]) -> list[Any] | None:
    """Returns the results of a node that computes with numbers or Python's containers; None otherwise."""
    if kind == "aten::size":
        sizes = args[0].size(*args[1:])
        return [sizes if isinstance(sizes, int) else list(sizes)]
    if kind == "aten::len":
        return [args[0].size(0) if isinstance(args[0], torch.Tensor) else len(args[0])]
    if kind in _IDENTITY:
        return [_IDENTITY[kind](*args)]
    if kind in _CONTAINERS and args and isinstance(args[0], (list, tuple, dict)):
        return [_CONTAINERS[kind](*args)]
    if not all(isinstance(arg, (int, float)) for arg in args):
        return None
    compute = _ARITHMETIC.get(kind) or _NUMBERS.get(kind)
    return None if compute is None else [compute(*args)]


def constant(node: Any) -> Any:
    """Returns the value of a constant: a number if it takes part in the arithmetic of sizes only."""
    value = node.output().toIValue()
    if not isinstance(value, torch.Tensor) or value.dim():
        return value
    uses = list(node.output().uses())
    return value.item() if uses and all(_is_size(use.user.output()) for use in uses) else value


def as_python(name: str, value: Any) -> Any:
    """Returns an argument as Python passes it: a type of elements is a number in a graph."""
    is_code = name == "dtype" and type(value) is int and value < len(_DTYPES)
    return _DTYPES[value] if is_code else value


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _is_followed(node: Any, known: Sequence[str]) -> bool:
    kind = node.kind()
    if kind == "prim::NumToTensor":
        return _counts_only(node.output())
    if kind in known or kind in _IDENTITY or kind in _NUMBERS:
        return True
    inputs = list(node.inputs())
    if kind in _OF_CONTAINERS and inputs and inputs[0].type().kind() in ("ListType", "DictType"):
        return False
    return torch._C._jit_get_operation(kind)[0] is not None


def _counts_only(value: Any) -> bool:
    """Whether a number is used by arithmetic, and where numbers are expected."""
    for use in value.uses():
        node = use.user
        if node.kind() in _ARITHMETIC:
            if not (_is_size(node.output()) and _counts_only(node.output())):
                return False
        elif node.kind() not in _NUMBERS:
            return False
    return True


def _is_size(value: Any) -> bool:
    """Whether a tensor of rank 0 is a number of Python in the run: a size, or computed from such."""
    node = value.node()
    if node.kind() not in _ARITHMETIC:
        return bool(node.kind() == "prim::NumToTensor")
    given = [each for each in node.inputs() if each.type().kind() == "TensorType"]
    numbers = [each for each in given if each.node().kind() != "prim::Constant"]
    return bool(numbers) and all(_is_size(each) for each in numbers)
