"""``x[...]`` and ``x[...] = value`` in all their forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from .harness import check

X = torch.arange(2 * 3 * 4 * 5, dtype=torch.float32).reshape(2, 3, 4, 5)
I2 = torch.tensor([1, -1])
I22 = torch.tensor([[0, 2], [1, -3]])
KNOWN = torch.tensor([True, False, True])

READS: dict[str, Callable[..., Any]] = {
    "ints": lambda x: x[1, -1, 2],
    "all ints": lambda x: x[1, -1, 2, 0],
    "slices": lambda x: x[:, -2:, 1:-1:2, :-1],
    "beyond the ends": lambda x: x[-9:9, 5:, 3:1],
    "none and dots": lambda x: x[None, ..., None, 1:3],
    "dots in the middle": lambda x: x[0, ..., -1],
    "nothing": lambda x: x[()],
    "scalar bools": lambda x: (x[True], x[False], x[:, True], x[0, True, [0, 1]]),
    "a list": lambda x: x[[1, 0, 1]],
    "lists": lambda x: x[[0, 1], :, [3, -1]],
    "a list of lists": lambda x: x[[[0, 1], [2, 0]]],
    "tensors side by side": lambda x: x[:, I22, I2],
    "tensors apart": lambda x: x[I2, :, I2],
    "a number beside tensors": lambda x: x[1, :, :, I2],
    "a number between tensors": lambda x: x[I2, 0, I2],
    "tensors without axes": lambda x: (x[torch.tensor(1), :, torch.tensor(-1)], x[torch.tensor(1), :, I2]),
    "tensors and none": lambda x: (x[None, I2, None, I2], x[I2, None]),
    "a known mask": lambda x: (x[:, KNOWN], x[:, KNOWN, 1:, I2]),
    "bools": lambda x: x[:, [True, False, True]],
    "bytes": lambda x: x[:, KNOWN.to(torch.uint8)],
    "an empty list": lambda x: x[:, []],
    "int32": lambda x: x[I2.int()],
    "negative": lambda x: x[..., torch.tensor([[-1, -5], [0, 4]])],
    "aten": lambda x: torch.ops.aten.index(x, [None, I22, I2]),
    "aten without axes": lambda x: torch.ops.aten.index(x, [torch.tensor(1), None, I2]),
}


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence", "ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("form", READS)
def test_read(form: str) -> None:
    check(READS[form], X)


COMPUTED: dict[str, Callable[..., Any]] = {
    "one": lambda x, i: x[i],
    "two": lambda x, i: x[i, :, i],
    "a number": lambda x, i: x[i[0]],
    "a number and a tensor": lambda x, i: x[i[0], :, i],
    "numbers": lambda x, i: x[i[0], i[1] + 1, ..., -1],
    "a list of tensors": lambda x, i: x[[i, i]],
    "a list with a tensor": lambda x, i: x[:, [i[0], 2]],
    "gathered by itself": lambda x, i: x[i][i],
    "index_select": lambda x, i: torch.index_select(x, -1, i.abs()),
}


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize("form", COMPUTED)
def test_computed_places(form: str) -> None:
    check(COMPUTED[form], X, torch.tensor([1, 0]), second=(X + 1, torch.tensor([-1, 1])))


MASKED: dict[str, Callable[..., Any]] = {
    "whole": lambda x: x[x > 40],
    "rows": lambda x: x[:, x.sum((0, 2, 3)) > 800],
    "with a number": lambda x: x[1, x[1] > 90],
    "beside a tensor": lambda x: x[x[:, 0, 0, 0] > -1, [1]],
    "masked_select": lambda x: torch.masked_select(x, x[0] > 30),
    "nonzero": lambda x: torch.nonzero(x > 100),
    "as tuple": lambda x: x[torch.nonzero(x > 100, as_tuple=True)],
    "where": lambda x: x[torch.where(x > 100)],
    "argwhere": lambda x: torch.argwhere(x > 100),
    "without axes": lambda x: x[x.sum() > 0],
}


@pytest.mark.parametrize("form", MASKED)
def test_masks_of_the_data(form: str) -> None:
    check(MASKED[form], X, second=(X.flip(0, 1, 2, 3) - 3,))


def _after(write: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
        y = x * 1
        write(y, *more)
        return y

    return function


def _set(*index: Any) -> Callable[..., Any]:
    def write(y: torch.Tensor, value: Any) -> None:
        y[index if len(index) > 1 else index[0]] = value

    return write


V = torch.tensor([[-1.5], [-2.5]])
WRITES: dict[str, tuple[Any, Any]] = {
    "a number": ((1, -1), 7),
    "a bool": ((0,), True),
    "a slice": ((slice(None), slice(-2, None), slice(1, None, 2)), 0.5),
    "broadcast": ((slice(None), 1, slice(2)), torch.arange(5)),
    "axes of one in front": ((0, 0), torch.ones(1, 1, 4, 5)),
    "dots": ((Ellipsis, 0), 1j.real),
    "all": ((Ellipsis,), torch.tensor(3)),
    "none": ((None, 0), 4),
    "nothing": ((slice(3, 1),), 9),
    "a list": (([1, 0],), torch.randn(2, 1, 1, 5)),
    "apart": (([0, 1], slice(None), [3, -1]), torch.randn(2, 3, 5)),
    "beside a number": ((1, slice(None), slice(None), [0, -1]), V.new_zeros(3, 4, 2)),
    "a known mask": ((slice(None), KNOWN), 2),
    "a known mask, each": ((0, KNOWN), torch.randn(2, 4, 5)),
    "tensors": ((I22, I22), torch.randn(2, 2, 4, 5)),
    "doubles": ((slice(None), slice(None), 0), torch.full((5,), 1e-3, dtype=torch.float64)),
    "scalar bools": ((True,), 3),
    "false": ((False,), 3),
}
WRITES["tensors"] = ((torch.tensor([0, 1]), torch.tensor([[0], [2]])), torch.randn(2, 2, 4, 5))


@pytest.mark.parametrize("form", WRITES)
def test_write(form: str) -> None:
    index, value = WRITES[form]
    write = _set(*index)
    check(_after(lambda y: write(y, value)), X)
    if isinstance(value, torch.Tensor):
        check(_after(write), X, value)


COMPUTED_WRITES: dict[str, Callable[..., Any]] = {
    "a mask": lambda y, i: _set(y > 40)(y, 0),
    "a mask of rows": lambda y, i: _set(slice(None), y.sum((0, 2, 3)) > 800)(y, 1),
    "a mask, each": lambda y, i: _set(y > 40)(y, (y * 2)[y > 40]),
    "a mask, rows": lambda y, i: _set(y[:, 0, 0, 0] > 30)(y, torch.arange(5.0)),
    "a mask without axes": lambda y, i: _set(y.sum() > 0)(y, 3),
    "a place": lambda y, i: _set(i[0])(y, -1),
    "a place behind a slice": lambda y, i: _set(slice(None), i[0], 1)(y, torch.arange(5)),
    "a place and places": lambda y, i: _set(i[1], slice(None), i)(y, -1),
    "places": lambda y, i: _set(i, i + 1)(y, y[i, i]),
    "index_put": lambda y, i: y.index_put_((i, i), torch.tensor(2.0)),
    "adds": lambda y, i: y.index_put_((i * 0,), y[0] * 0 + 1, accumulate=True),
    "put": lambda y, i: y.put_(i, torch.tensor([8.0, 9.0])),
    "adding": lambda y, i: _set(slice(None), i)(y, y[:, i].add_(100)),
    "in place": lambda y, i: y[i, 1:].mul_(0),
}


@pytest.mark.parametrize("form", COMPUTED_WRITES)
def test_computed_write(form: str) -> None:
    check(_after(COMPUTED_WRITES[form]), X, torch.tensor([1, 0]), second=(X + 1, torch.tensor([-1, 1])))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool, torch.float64])
def test_values_take_the_type(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[0] = 2.7
        y[1, 1:] = torch.tensor(5, dtype=torch.int16)
        return y

    check(function, torch.arange(6).reshape(2, 3).to(dtype))


def test_large_numbers_keep_their_digits() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[0] = (1 << 40) + 1
        return y

    check(function, torch.arange(4))
