"""Calls with keywords: adapters take every name that torch has for an argument."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tmconvert.frontends.torch.adapters import ATEN, METHODS
from tmconvert.frontends.torch.adapters.adapter_factories import DROPPED, OTHERS

from .harness import check

X = torch.arange(12, dtype=torch.float32).reshape(2, 6) - 5

CALLS: dict[str, Callable[..., Any]] = {
    "reshape": lambda x: x.reshape(shape=(3, 4)),
    "view": lambda x: x.view(size=(3, 4)),
    "view_copy": lambda x: torch.view_copy(x, size=(3, 4)),
    "swapaxes": lambda x: torch.swapaxes(x, axis0=0, axis1=1),
    "unsafe_split": lambda x: x.unsafe_split(split_size=3, dim=1),
    "tensor_split": lambda x: x.tensor_split(tensor_indices_or_sections=torch.tensor([2, 3]), dim=1),
    "tensorsolve": lambda x: torch.linalg.tensorsolve(torch.eye(6) + x.T @ x, other=x[0]),
    "isin": lambda x: (torch.isin(x, test_element=0), torch.isin(element=1.0, test_elements=x)),
    "polygamma": lambda x: (x.exp().polygamma(n=1), torch.polygamma(n=1, input=x.exp())),
    "pow": lambda x: torch.pow(self=2, exponent=x),
    "as_strided": lambda x: torch.as_strided(input=x, size=(2, 2), stride=(1, 2), storage_offset=1),
    "empty_permuted": lambda x: torch.empty_permuted(size=(2, 6), physical_layout=(0, 1)).zero_() + x,
    "addmm": lambda x: torch.addmm(input=x, mat1=x @ x.T, mat2=x, beta=2, alpha=3),
    "scatter": lambda x: x.scatter(dim=1, index=torch.tensor([[1], [2]]), value=2.0, reduce="multiply"),
    "arange": lambda x: torch.arange(start=0, end=12, step=2) + x,
    "sum": lambda x: x.sum(axis=1, keepdims=True),
}
# methods with one list of integers take its elements as arguments, too
BY_POSITION: dict[str, Callable[..., Any]] = {
    "broadcast_to": lambda x: x[:, :1].broadcast_to(3, 2, 6),
    "count_nonzero": lambda x: x.relu().count_nonzero(0, 1),
    "expand": lambda x: x[:, :1].expand(3, 2, 6),
    "flip": lambda x: x.flip(0, 1),
    "new_zeros": lambda x: x.new_zeros(2, 1) + x,
    "permute": lambda x: x.permute(1, 0),
    "repeat": lambda x: x.repeat(2, 1),
    "reshape": lambda x: x.reshape(3, 4),
    "squeeze": lambda x: x[:1, :1].squeeze(0, 1),
    "tile": lambda x: x.tile(2, 1),
    "view": lambda x: x.view(3, 4),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_with_keywords(name: str) -> None:
    check(CALLS[name], X)


@pytest.mark.parametrize("name", BY_POSITION)
def test_methods_with_integers_by_position(name: str) -> None:
    check(BY_POSITION[name], X)


# Python's forms of these take the argument by position, under another name, or are adapters of their own.
ONLY_IN_ATEN = {
    *("_grouped_mm: mat2", "_pad_circular: pad", "dequantize: qtensor", "einsum: a", "orgqr: input2"),
    *(
        f"{kind}: {name}"
        for kind in ("gru", "lstm", "rnn_relu", "rnn_tanh")
        for name in ("data", "batch_sizes")
    ),
    *("split: split_sizes", "tensordot: dims_self", "view: dtype", "view_copy: dtype"),
}


def _refused(name: str, adapter: Any) -> list[str]:
    """The argument names of an op's overloads that its adapter does not know."""
    own = inspect.signature(adapter).parameters
    if any(each.kind in (each.VAR_KEYWORD, each.VAR_POSITIONAL) for each in own.values()):
        return []
    packet = getattr(torch.ops.aten, name, None)
    refused = []
    for overload in packet.overloads() if hasattr(packet, "overloads") else ():
        schema = getattr(packet, overload)._schema
        first = schema.arguments[0] if schema.arguments else None
        if first is None or str(first.type) != "Tensor" or schema.is_mutable or "Dimname" in str(schema):
            continue  # TorchScript's own overloads are of numbers and strings
        for argument in (each.name for each in schema.arguments):
            known = argument in own or any(other in own for other in OTHERS.get(argument, ()))
            if not known and argument not in IGNORED and f"{name}: {argument}" not in ONLY_IN_ATEN:
                refused.append(f"{name}: {argument}")
    return refused


IGNORED = DROPPED | {
    "self",
    "input",
    "generator",
    "device",
    "layout",
    "pin_memory",
    "memory_format",
    "non_blocking",
}


@pytest.mark.parametrize("table", [ATEN, METHODS], ids=["ATEN", "METHODS"])
def test_adapters_know_the_argument_names_of_torch(table: Any) -> None:
    assert [text for name in table for text in _refused(name, table[name])] == []


def test_outer_products_promote_types():
    def products(x: torch.Tensor, y: torch.Tensor) -> Any:
        return torch.outer(x, y), y.ger(x), torch.addr(torch.zeros(3, 2), x, y)

    check(products, torch.randn(3), torch.randn(2, dtype=torch.float64))
