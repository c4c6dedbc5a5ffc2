"""Classification of torch functions: mutating, constant, data-dependent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import torch

from tmconvert.frontends.torch.customization import FOLLOWED_OPS
from tmconvert.frontends.torch.names import Name, aten_name, functional, join_of
from tmconvert.frontends.torch.tracing.recording.tape import Value
from tmconvert.frontends.torch.vocabulary import VOCABULARY
from tmconvert.ir.tree import leaves


def knows(name: Name) -> bool:
    """Whether the vocabulary has an adapter for the function, so that it is recorded as one call."""
    return VOCABULARY.knows(name.text, name.is_method)


def forgets_data(name: Name) -> bool:
    """Whether the result depends only on the shapes of the operands, not on their data."""
    own = aten_name(name.text, name.is_method)
    return own.startswith("new_") or (own.endswith("_like") and not own.startswith("rand"))


def is_constant(name: Name, arguments: object) -> bool:
    """Whether the function creates a tensor from Python numbers; the tensor is captured as a constant.

    This includes functions such as ``linspace``, whose last bits depend on the vector registers of the
    processor.
    """
    own = aten_name(name.text, name.is_method)
    return own in CONSTANTS or (
        own == "arange" and any(isinstance(leaf, float) for leaf in leaves(arguments))
    )


def autograd_follows(args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Whether autograd may have to differentiate the call."""
    return any(getattr(leaf, "requires_grad", False) is True for leaf in leaves((args, kwargs)))


def is_assertion(name: Name) -> bool:
    """Whether the function is an assertion; it held for the example, and a file does not repeat it."""
    own = aten_name(name.text, name.is_method)
    return own.startswith(("_assert", "_check"))


_CONSTANTS = "tensor as_tensor asarray from_numpy scalar_tensor frombuffer Tensor linspace logspace range"
CONSTANTS = frozenset(_CONSTANTS.split())
# functions whose results have as many elements as the data says
_OPEN = """nonzero argwhere masked_select unique unique_consecutive _unique2 unique_dim bincount
    torchvision::nms torchvision.ops.boxes.batched_nms"""
OPEN = frozenset(_OPEN.split())
# functions whose arguments of one integer are sizes
_SIZED = """arange zeros ones empty full rand randn randint new_zeros new_ones new_empty new_full expand view
    reshape repeat tile narrow pad unflatten"""
SIZED = frozenset(_SIZED.split())
INTEGERS = ("int64", "int32", "int16", "int8")


def rejoined(recorder: Any, name: Name, *call: Any) -> Any:
    """Returns what a join of all parts of a tensor records; None for other calls."""
    if join_of(name) is None:
        return None
    from tmconvert.frontends.torch.tracing.sizes import cat_of_parts

    return cat_of_parts.rejoined(recorder, name, *call)


def is_open(name: Name, args: tuple[object, ...], kwargs: dict[str, object], values: Sequence[Value]) -> bool:
    """Whether the result shapes are data-dependent; ``values`` are those among the arguments."""
    own = aten_name(name.text, name.is_method)
    if own in OPEN:
        return any(value.depends for value in values)
    if own in ("__getitem__", "index", "_unsafe_index"):
        return any(value.dtype in ("bool", "uint8") and value.depends for value in values[1:])
    if own == "where":
        return len(values) == 1 and values[0].depends
    if own == "one_hot":
        return values[0].depends and (*args[1:2], *kwargs.values()) in ((), (-1,))
    if own == "tensor_split":
        # of a number of parts the adapter says that it may not be computed
        return any(value.depends and value.shape != () for value in values[1:])
    if own in SIZED and any(
        value.depends and value.dtype in INTEGERS and value.shape == () for value in values
    ):
        return True
    if own == "repeat_interleave":
        repeats = kwargs.get("repeats", (*args, None)[min(len(args), 2) - 1])
        return isinstance(repeats, Value) and repeats.depends
    return False


def may_write(name: Name, function: object, args: tuple[object, ...], kwargs: dict[str, object]) -> bool:
    """Whether the call may write to one of its operands."""
    own = aten_name(name.text, name.is_method)
    if functional(own) is not None or own in ("__setitem__", "data.__set__") or "out" in kwargs:
        return True
    if updates_statistics(name) or own.startswith("_foreach"):
        return True
    return name.is_python and any(
        {**dict(zip(_parameters(function), args, strict=False)), **kwargs}.get(option) for option in WRITING
    )


WRITING = ("inplace", "max_norm")  # arguments that make Python functions of torch write to an operand


@cache
def _parameters(function: Any) -> tuple[str, ...]:
    return function.__code__.co_varnames[: function.__code__.co_argcount]


def resizes(name: Name) -> bool:
    """Whether the function may give its operand another shape in place, or another storage."""
    return aten_name(name.text, name.is_method).startswith(("resize", "data.__set__", "set_", "squeeze_"))


def lays_out(name: Name) -> bool:
    """Whether the function changes the axes of its operand in place, but not the elements."""
    return aten_name(name.text, name.is_method) in LAYING_OUT


_LAYING_OUT = "t_ transpose_ swapaxes_ swapdims_ squeeze_ unsqueeze_"
LAYING_OUT = frozenset(_LAYING_OUT.split())


def written_by_schema(function: object, args: tuple[object, ...], kwargs: dict[str, object]) -> list[Any]:
    """Returns the operands that an ATen op's schema marks as written; versions do not change there."""
    schema = getattr(function, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    given = dict(zip((argument.name for argument in schema.arguments), args, strict=False)) | kwargs
    writes = (each for each in schema.arguments if each.alias_info is not None and each.alias_info.is_write)
    return [leaf for argument in writes for leaf in leaves(given.get(argument.name))]


def written_by_name(name: Name, args: tuple[object, ...], kwargs: dict[str, object]) -> list[Any]:
    """Returns the operands that a call mutates by its name; tensors of inference mode have no versions."""
    own = aten_name(name.text, name.is_method)
    if functional(own) is not None or own == "__setitem__" or kwargs.get("inplace"):
        return [args[0]]
    return list(leaves(kwargs.get("out")))


def looks_at_memory(name: Name) -> bool:
    """Whether the function reads elements by their memory offsets."""
    return aten_name(name.text, name.is_method) == "as_strided"


def writes_to_memory(name: Name) -> bool:
    """Whether the function returns a copy with elements replaced by memory offset."""
    return aten_name(name.text, name.is_method) == "as_strided_scatter"


def updates_statistics(name: Name) -> bool:
    return aten_name(name.text, name.is_method).rpartition("_norm")[0].endswith(("batch", "instance"))


def is_number(function: Any, args: tuple[Any, ...]) -> bool:
    """Whether C++ made the first argument of an ATen op, a tensor, from a Python number."""
    return bool(args) and isinstance(args[0], (bool, int, float)) and "Tensor self" in str(function._schema)


def decomposition(function: Any) -> Any:
    """Returns the decomposition of an ATen op; see ``torch._decomp`` and ``backward.py``."""
    try:
        if not function._schema.is_mutable and function._can_decompose():
            return function.decompose
    except (AttributeError, RuntimeError):
        pass
    if function._schema.is_mutable:
        return None
    from torch._decomp import decomposition_table

    from tmconvert.frontends.torch.tracing.special import backward

    return backward.decomposition(function) or decomposition_table.get(function)


def body_call(function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Callable[[], Any] | None:
    """Returns the call of a custom op's Python body with ``trace_through``; None for other functions."""
    if not FOLLOWED_OPS:
        return None
    if not isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return None
    packet: Any = getattr(function, "overloadpacket", function)
    name = str(packet._qualified_op_name)
    if name not in FOLLOWED_OPS:
        return None
    from torch._library.custom_ops import OPDEFS

    definition = OPDEFS.get(name)
    return None if definition is None else partial(definition._init_fn, *args, **kwargs)
