"""Arithmetic on sizes in the graphs of TorchScript, which computes it in C++.

``torch.jit.trace`` represents a size by a tensor of rank 0 (``prim::NumToTensor``), and converts it back with
``aten::Int``. Here both are the number itself, so that sizes stay traced; an op that is no arithmetic gets a
tensor.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from tmconvert.frontends.torch.tracing.programs.script_layers import FUSED
from tmconvert.frontends.torch.tracing.sizes.integers import TRACED, TracedInt, untraced
from tmconvert.frontends.torch.tracing.sizes.replaced_functions import REPLACED


def _whole(number: Any) -> Any:
    if isinstance(number, int):
        return number
    return math.floor(number) if untraced(number) >= 0 else math.ceil(number)


def _appended(values: list[Any], value: object) -> list[Any]:
    values.append(value)
    return values


def _at(values: Any, place: object) -> Any:
    return values[plain(place)]


_NONE = type(None)
_FILLED = ("aten::tensor", "aten::as_tensor")  # whose elements C++ writes past all modes of torch
_LAYERS = ("aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu", *FUSED)
_LAYER_FAMILIES = ("aten::fft_", "aten::stft", "aten::istft")
_DIVISIONS: dict[str | None, Callable[..., Any]] = {
    None: operator.truediv,
    "floor": operator.floordiv,
    "trunc": lambda a, b: _whole(a / b),
}
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "aten::mul": operator.mul,
    "aten::floordiv": operator.floordiv,
    "aten::floor_divide": operator.floordiv,
    "aten::remainder": operator.mod,
    "aten::div": lambda a, b, rounding_mode=None: _DIVISIONS[rounding_mode](a, b),
    "aten::reciprocal": lambda a: 1 / a,
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
    "aten::Int": _whole,
    "aten::Bool": bool,
    "aten::__not__": operator.not_,
    "aten::pow": operator.pow,
    "aten::sqrt": math.sqrt,
    "prim::max": REPLACED["max"],
    "prim::min": REPLACED["min"],
}
_LOGIC: dict[str, Callable[..., Any]] = {
    "aten::__and__": operator.and_,
    "aten::__or__": operator.or_,
    "aten::__xor__": operator.xor,
}
_IDENTITY: dict[str, Callable[..., Any]] = {"aten::__is__": operator.is_, "aten::__isnot__": operator.is_not}

# of lists, tuples and dicts: C++ would get copies of them, whose sizes are plain numbers
_CONTAINERS: dict[str, Callable[..., Any]] = {
    "aten::__getitem__": _at,
    "aten::__contains__": operator.contains,
    "aten::_set_item": lambda values, key, value: operator.setitem(values, plain(key), value),
    "aten::Delete": lambda values, key: operator.delitem(values, plain(key)),
    "aten::add": operator.add,
    "aten::add_": operator.iadd,
    "aten::append": _appended,
    "aten::clear": lambda values: values.clear(),
    "aten::copy": lambda values: values.copy(),
    "aten::eq": operator.eq,
    "aten::extend": lambda values, more: values.extend(more),
    "aten::get": lambda values, key, default=None: values.get(key, default),
    "aten::insert": lambda values, place, value: values.insert(plain(place), value),
    "aten::items": lambda values: list(values.items()),
    "aten::keys": list,
    "aten::len": len,
    "aten::list": list,
    "aten::mul": lambda values, times: values * plain(times),
    "aten::ne": operator.ne,
    "aten::pop": lambda values, *key: values.pop(*map(plain, key)),
    "aten::reverse": lambda values: values.reverse(),
    "aten::slice": lambda values, start=None, end=None, step=1: values[plain(start) : plain(end) : step],
    "aten::update": lambda values, more: values.update(more),
    "aten::values": lambda values: list(values.values()),
    "prim::max": REPLACED["max"],
    "prim::min": REPLACED["min"],
}
# other ops that change containers
_OF_CONTAINERS = frozenset(("aten::popitem", "aten::remove", "aten::setdefault", "aten::sort"))
# of what the C++ functions of PyTorch call types of elements, by number
_DTYPES = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32),
    *(torch.float64, torch.complex32, torch.complex64, torch.complex128, torch.bool),
)


def inlined(script: Any) -> Any:
    """Returns the graph of a script without calls of other scripts. Raises RuntimeError for one of C++."""
    graph = script.inlined_graph
    torch._C._jit_pass_inline(graph)  # calls in functions that were inlined remain
    return graph


def is_followed(script: object, known: Sequence[str]) -> bool:
    """Whether a script can be run op by op: the kinds of all its nodes are ops of PyTorch, or ``known``."""
    try:
        return all(_is_followed(node, known) for node in _nodes(inlined(script)))
    except RuntimeError:  # a method of C++ has no graph
        return False


def has_layers(script: object) -> bool:
    """Whether a script has layers that C++ computes by libraries, steps or fused ops."""
    return _has(script, lambda kind: kind in _LAYERS or kind.startswith(_LAYER_FAMILIES))


def fills_tensors(script: object) -> bool:
    """Whether a script makes tensors of numbers of Python."""
    return _has(script, lambda kind: kind in _FILLED)


def makes_integers(script: object) -> bool:
    """Whether a script converts tensors or floats to integers."""
    return _has(script, lambda kind: kind in ("aten::Int", "aten::IntImplicit"))


def _has(script: object, is_meant: Callable[[str], bool]) -> bool:
    try:
        return any(is_meant(node.kind()) for node in _nodes(inlined(script)))
    except RuntimeError:  # a method of C++ has no graph
        return False


def computed(kind: str, args: Sequence[Any]) -> list[Any] | None:
    """Returns the results of a node that computes with numbers or Python's containers; None otherwise."""
    if kind == "aten::size":
        sizes = args[0].size(*args[1:])
        return [sizes if isinstance(sizes, int) else list(sizes)]
    if kind == "aten::numel":
        return [args[0].numel()]
    if kind == "aten::len" and isinstance(args[0], torch.Tensor):
        return [args[0].size(0)]
    if kind in _IDENTITY:
        return [_IDENTITY[kind](*args)]
    if kind in _CONTAINERS and args and isinstance(args[0], (list, tuple, dict)):
        return [_CONTAINERS[kind](*args)]
    if kind in ("aten::eq", "aten::ne") and not any(isinstance(arg, torch.Tensor) for arg in args):
        return [_ARITHMETIC[kind](*args)]  # of texts, too
    if all(isinstance(arg, (int, float, str, _NONE)) for arg in args):
        compute = _ARITHMETIC.get(kind) or _NUMBERS.get(kind)
    else:  # C++ would read a number that depends on data
        compute = {**_ARITHMETIC, **_LOGIC}.get(kind) if isinstance(args[0], (int, float)) else None
    return None if compute is None else [compute(*args)]


def is_arithmetic(kind: str) -> bool:
    """Whether a kind of node computes a number from numbers."""
    return kind in _ARITHMETIC or kind in _NUMBERS or kind in _LOGIC


def with_tensors(node: Any, args: list[Any]) -> list[Any]:
    """Returns the arguments of a node, with tensors of rank 0 for numbers outside of arithmetic.

    ``torch.jit.trace`` makes tensors of sizes, which are numbers in the run.
    """
    if node.kind() in _ARITHMETIC or node.kind() in _NUMBERS:
        return args
    return [as_tensor(each, arg) for each, arg in zip(node.inputs(), args, strict=True)]


def as_tensor(value: Any, known: object) -> Any:
    """Returns what is known of a value of a graph: a tensor if that is its type, and it is a number."""
    is_made = value.type().kind() == "TensorType" and isinstance(known, (int, float))
    return torch.tensor(known) if is_made else known


def plain(number: object) -> Any:
    """Returns a number as a plain one, which the size is noted to become."""
    if isinstance(number, TRACED):
        return int(number) if isinstance(number, TracedInt) else float(number)
    return number


def constant(node: Any) -> Any:
    """Returns the value of a constant: a number if it takes part in the arithmetic of sizes only."""
    value = node.output().toIValue()
    if not isinstance(value, torch.Tensor) or value.dim():
        return value
    uses = list(node.output().uses())
    return value.item() if uses and all(_is_size(use.user.output()) for use in uses) else value


def as_python(name: str, value: object) -> Any:
    """Returns an argument as Python passes it: a type of elements is a number in a graph."""
    if name == "dtype" and type(value) is int and value < len(_DTYPES):
        return _DTYPES[value]
    return value


def _nodes(block: Any) -> Iterator[Any]:
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from _nodes(inner)


def _is_followed(node: Any, known: Sequence[str]) -> bool:
    kind = node.kind()
    if kind in known or kind in _IDENTITY or kind in _NUMBERS:
        return True
    inputs = list(node.inputs())
    if kind in _OF_CONTAINERS and inputs and inputs[0].type().kind() in ("ListType", "DictType"):
        return False
    return torch._C._jit_get_operation(kind)[0] is not None


def _is_size(value: Any) -> bool:
    """Whether a tensor of rank 0 is a number of Python in the run: a size, or computed from such."""
    node = value.node()
    if node.kind() not in _ARITHMETIC:
        return bool(node.kind() == "prim::NumToTensor")
    given = [each for each in node.inputs() if each.type().kind() == "TensorType"]
    numbers = [each for each in given if each.node().kind() != "prim::Constant"]
    return bool(numbers) and all(_is_size(each) for each in numbers)
