"""Writes to tensors: in place, through views, to what other tensors share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tmconvert

from .harness import check

X = torch.arange(4 * 4 * 6, dtype=torch.float32).reshape(4, 4, 6) - 40


def _written(write: Callable[..., Any]) -> Callable[..., Any]:
    """Writes to a copy of ``x``, and reads the whole of it afterwards."""

    def function(x: torch.Tensor, *more: torch.Tensor) -> tuple[torch.Tensor, Any]:
        y = x.clone()
        result = write(y, *more)
        return y * 1, None if result is None else result

    return function


# each a view of y: to be written to
VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "item": lambda y: y[1],
    "last item": lambda y: y[-1, 0],
    "a single number": lambda y: y[0, 1, 2],
    "slice": lambda y: y[1:3, ::2],
    "negative slice": lambda y: y[-3:, :-1, -4:-1:2],
    "new axis": lambda y: y[:, None, 1:],
    "dots": lambda y: y[..., 0],
    "bool": lambda y: y[True],
    "transpose": lambda y: y.transpose(0, 2),
    "negative transpose": lambda y: y.transpose(-1, -2),
    "t": lambda y: y[0].t(),
    "T": lambda y: y[0].T,
    "mT": lambda y: y.mT,
    "permute": lambda y: y.permute(2, 0, 1),
    "movedim": lambda y: y.movedim(0, -1),
    "swapaxes": lambda y: torch.swapaxes(y, 0, 1),
    "view": lambda y: y.view(8, 12),
    "view of -1": lambda y: y.view(-1),
    "reshape": lambda y: y.reshape(2, 2, -1),
    "flatten": lambda y: y.flatten(1),
    "unflatten": lambda y: y.unflatten(2, (2, 3)),
    "ravel": lambda y: y.ravel(),
    "squeeze": lambda y: y[:1].squeeze(0),
    "squeeze all": lambda y: y[:, :1].squeeze(),
    "unsqueeze": lambda y: y.unsqueeze(1),
    "narrow": lambda y: y.narrow(2, 1, 3),
    "narrow from the end": lambda y: torch.narrow(y, -1, -4, 2),
    "select": lambda y: y.select(1, -2),
    "diagonal": lambda y: y.diagonal(dim1=0, dim2=1),
    "diagonal above": lambda y: torch.diagonal(y, 2, 1, 2),
    "linalg diagonal": lambda y: torch.linalg.diagonal(y, offset=-1),
    "unbind": lambda y: y.unbind(1)[2],
    "iterated": lambda y: list(y)[3],
    "split": lambda y: y.split(4, 2)[1],
    "split sizes": lambda y: y.split([1, 2, 1])[1],
    "split function": lambda y: torch.split(y, [1, 2, 1], dim=1)[-1],
    "chunk": lambda y: y.chunk(4, -1)[1],
    "tensor_split": lambda y: y.tensor_split(4, 2)[0],
    "tensor_split at": lambda y: torch.tensor_split(y, (1, 3), -1)[1],
    "hsplit": lambda y: y.hsplit(2)[1],
    "vsplit": lambda y: y.vsplit(2)[0],
    "dsplit": lambda y: y.dsplit([2, 3])[1],
    "as_strided": lambda y: y.as_strided((3, 2), (7, 1), 5),
    "torch.as_strided": lambda y: torch.as_strided(y, (4,), (25,)),
    "unfold": lambda y: y.unfold(2, 2, 3),
    "view_as": lambda y: y.view_as(torch.empty(16, 6)),
    "expand one": lambda y: y[:, :1].expand(4, 1, 6),
    "data": lambda y: y.data,
    "detach": lambda y: y.detach()[2],
    "contiguous": lambda y: y.contiguous()[1],
    "to": lambda y: y.to(torch.float32)[1],
    "real": lambda y: y.real[2],
    "alias": lambda y: torch.ops.aten.alias(y)[0],
    "aten slice": lambda y: torch.ops.aten.slice(y, 1, 1, 9223372036854775807, 2),
    "aten select": lambda y: torch.ops.aten.select.int(y, 2, -1),
    "H": lambda y: y[1].H,
    "adjoint": lambda y: y.adjoint(),
    "squeeze of two": lambda y: y[:1, 1:2].squeeze((0, 1)),
    "moveaxis of two": lambda y: torch.moveaxis(y, (0, 1), (1, 2)),
    "atleast": lambda y: torch.atleast_2d(y[0, 0]),
    "split twice": lambda y: y.split(2)[1].split(3, 2)[0],
    "a tensor place": lambda y: y[torch.tensor(1)],
    "index": lambda y: y[(1, slice(None), 2)],
    "broadcast_to": lambda y: torch.broadcast_to(y, (4, 4, 6)),
    "nested": lambda y: y[1:][:, 0].t()[2:],
    "deep": lambda y: y.view(2, 2, 4, 6)[1].transpose(1, 2)[..., ::2].unbind(0)[1].diagonal()[1:],
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_written(view: str) -> None:
    made = VIEWS[view]

    def write(y: torch.Tensor) -> torch.Tensor:
        part = made(y)
        part += 100
        part.mul_(2)
        return part + 1

    check(_written(write), X)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_sees_what_is_written_elsewhere(view: str) -> None:
    made = VIEWS[view]

    def write(y: torch.Tensor) -> Any:
        part = made(y)
        y[:, 1:, ::2] = 7
        before = part * 2
        y.view(-1)[::5].neg_()
        part.add_(1000)
        return before, part, y[0]

    check(_written(write), X)


def _overlapping(y: torch.Tensor) -> Any:
    left, right = y[:3], y[1:]
    left += 1
    right *= 2
    left.sub_(right.clone())
    return left, right


def _copied_over(y: torch.Tensor) -> None:
    y[0].copy_(y[1])
    y[:, :2] = y[:, 2:].clone()
    y.copy_(y.flip(0))
    y[1].copy_(torch.arange(6))


def _rows(y: torch.Tensor) -> Any:
    for place, row in enumerate(y):
        row[place] = place
        row[place:, 0].fill_(-1)
    return y.sum()


def _swap(y: torch.Tensor) -> None:
    y[0], y[1] = y[1].clone(), y[0].clone()


def _not_swapped(y: torch.Tensor) -> None:
    y[0], y[1] = y[1], y[0]


def _of_copies(y: torch.Tensor) -> Any:
    copied = y[[0, 1]]
    copied += 1000
    reshaped = y.transpose(0, 1).reshape(-1)
    reshaped += 1000
    masked = y[y > 0]
    masked.zero_()
    contiguous = y.transpose(0, 2).contiguous()
    contiguous.neg_()
    return copied, reshaped


def _out(y: torch.Tensor) -> Any:
    result = torch.empty(4, 4, 6)
    torch.add(y, 1, out=result)
    torch.mul(result, 2, out=y)
    part = y[1]
    torch.sub(part, 3, out=part)
    torch.where(y > 0, y, y * 2, out=result)
    return result


def _many_out(y: torch.Tensor) -> Any:
    values, places = torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.max(y, 1, out=(values, places))
    return values, places


def _activations(y: torch.Tensor) -> Any:
    nn.functional.relu(y[0], inplace=True)
    nn.functional.leaky_relu_(y[1], 0.5)
    nn.functional.hardtanh(y[2], inplace=True)
    torch.relu_(y[3, :2])
    nn.functional.dropout(y[3], 0.5, training=False, inplace=True)
    return nn.ReLU(inplace=True)(y[1, 1:])


def _filled(y: torch.Tensor) -> None:
    y[0].fill_(3)
    y[1].zero_()
    y[2].masked_fill_(y[2] > 0, -1)
    y[3, 0].fill_(y[0, 0, 0])
    y[3].fill_diagonal_(9)
    y[..., 1].clamp_(-3, 3)
    y.index_fill_(2, torch.tensor([5]), 8)


def _indexed(y: torch.Tensor) -> None:
    y.index_add_(0, torch.tensor([0, 0, 2]), torch.ones(3, 4, 6), alpha=2)
    y[1:].index_copy_(1, torch.tensor([3, 0]), torch.zeros(3, 2, 6))
    y[0].scatter_(1, torch.tensor([[0, 1], [2, 3]]), 5.5)
    y[0].scatter_add_(0, torch.tensor([[1, 1, 1]]), torch.ones(1, 3))
    y[1].index_put_((torch.tensor([0, 0]), torch.tensor([1, 1])), torch.tensor(10.0), accumulate=True)
    y[2].masked_scatter_(y[2] > 0, torch.arange(24.0))
    y[3].put_(torch.tensor([1, -1]), torch.tensor([3.0, 4.0]))


def _augmented(y: torch.Tensor) -> Any:
    y[0] += 1
    y[:, 2:] *= y[:, :2]
    y[y > 50] -= 50
    y[..., [0, 2]] /= 2
    y //= 3
    y **= 2
    y %= 7
    return y


def _read_between(y: torch.Tensor) -> Any:
    part = y[0]
    first = part + 0
    part += 1
    second = part + 0
    y.zero_()
    return first, second, part


def _written_as_statement(y: torch.Tensor) -> Any:
    part = y.view(16, 6)
    part[3] = part[4] * 2
    part[:, 1][5:].copy_(part[:11, 0])
    y.transpose(0, 1)[1:, 2] = 5
    return part


def _of_an_expression(y: torch.Tensor) -> Any:
    z = y + 1
    part = z[0]
    z.transpose_(0, 1)
    part.zero_()
    return z, part


def _shape_in_place(y: torch.Tensor) -> Any:
    z = y.clone()
    z.unsqueeze_(0).squeeze_(0)
    z[0].t_()[1] = 3
    z.swapaxes_(0, 2)
    z[0] = 1
    return z


def _data(y: torch.Tensor) -> Any:
    y.data.mul_(2)
    y.data = y.data + 1
    return y


def _repeated(y: torch.Tensor) -> Any:
    total = torch.zeros(4, 6)
    for part in y.unbind(0):
        total += part
        part.add_(total)
    return total


def _complex_chain(y: torch.Tensor) -> Any:
    a = y[1:]
    b = a[:, 0]
    c = b.t()
    d = c[2:]
    d += 1
    a *= 2
    c[0] = -1
    y[2] = 0
    return a, b, c, d


STORIES = [
    _overlapping,
    _copied_over,
    _rows,
    _swap,
    _not_swapped,
    _of_copies,
    _out,
    _many_out,
    _activations,
    _filled,
    _indexed,
    _augmented,
    _read_between,
    _written_as_statement,
    _of_an_expression,
    _shape_in_place,
    _data,
    _repeated,
    _complex_chain,
]


@pytest.mark.parametrize("write", STORIES)
def test_story(write: Callable[..., Any]) -> None:
    check(_written(write), X)


def test_computed_places_in_views() -> None:
    def function(x: torch.Tensor, i: torch.Tensor) -> Any:
        y = x.clone()
        part = y[1:]
        part[:, i] = part[:, i] * 2
        y.transpose(0, 1)[i[0]] += 1
        y[i[1]].mul_(3)
        row = y[:, i[0]]
        row[2] = 9
        return y, part, row

    check(function, X, torch.tensor([1, 3]), second=(X * 2, torch.tensor([0, -1])))


# ---- what is not of the run


def test_the_input_stays_as_it_is() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> Any:
        x += 1
        y[0].zero_()
        return x + y

    x, y = X.clone(), X.clone()
    traced = tmconvert.trace(function, x, y)
    assert torch.equal(x, X)
    assert torch.equal(y, X)
    want = function(X.clone(), X.clone())
    assert torch.equal(torch.from_numpy(traced(X.numpy(), X.numpy())), want)
    check(lambda x, y: function(x.clone(), y.clone()), X, X * 2)


class Cache(nn.Module):
    """Keys and values of earlier places, as language models keep them."""

    keys: torch.Tensor
    count: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.arange(2 * 5 * 3, dtype=torch.float32).reshape(2, 5, 3))
        self.register_buffer("count", torch.tensor(2))

    def forward(self, key: torch.Tensor, place: torch.Tensor) -> Any:
        self.keys[:, place] = key
        self.keys[:, 0] += 1
        self.keys.index_copy_(1, place + 1, key * 2)
        self.count += 1
        seen = self.keys[:, :3]
        self.keys[1].neg_()
        return seen.sum(-1), self.keys * self.count, self.count


def test_buffers_are_written_and_restored() -> None:
    module = Cache()
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    key, place = torch.randn(2, 2, 3), torch.tensor([1, 3])
    traced = tmconvert.trace(module, key, place)
    for name, tensor in module.state_dict().items():
        assert torch.equal(tensor, before[name])
    want = module(key, place)
    for result, wanted in zip(traced(key.numpy(), place.numpy()), want, strict=True):
        assert torch.equal(torch.as_tensor(result), wanted)


class Statistics(nn.Module):
    """Batch norm in training, and buffers that are set anew."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("mean", torch.zeros(4))
        self.weight = nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        self.mean = self.mean * 0.9 + y.mean(0)
        self.weight.data.mul_(2)
        self.norm.weight.data = self.norm.weight.data + 1
        return (y + self.mean) * self.weight + self.norm.weight


def test_state_is_restored() -> None:
    module = Statistics()
    before = {name: (tensor, tensor.clone()) for name, tensor in module.state_dict(keep_vars=True).items()}
    data = {name: tensor.data_ptr() for name, tensor in module.state_dict().items()}
    x = torch.randn(5, 4)
    traced = tmconvert.trace(module, x, training=True)
    for name, tensor in module.state_dict(keep_vars=True).items():
        assert tensor is before[name][0]
        assert torch.equal(tensor, before[name][1]), name
        assert tensor.data_ptr() == data[name]
    want = module(x)
    assert torch.allclose(torch.from_numpy(traced(x.numpy())), want, atol=1e-5)


def test_state_is_restored_after_an_error() -> None:
    class Failing(Cache):
        def forward(self, key: torch.Tensor) -> Any:
            self.keys[0] = key
            self.keys.t_() if self.keys.ndim == 2 else self.keys.transpose_(0, 1)
            raise RuntimeError("stop")

    module = Failing()
    before = module.keys.clone()
    with pytest.raises(RuntimeError, match="stop"):
        tmconvert.trace(module, torch.randn(5, 3))
    assert torch.equal(module.keys, before)


class Inner(nn.Module):
    def forward(self, x: torch.Tensor, to: list[torch.Tensor]) -> torch.Tensor:
        x[0] += 1
        to.append(x[1:])
        to[0][:, 1] = 5
        return to[0].t()


class Outer(nn.Module):
    """Writes in one module what others read."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Inner(), Inner()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: torch.Tensor) -> Any:
        y, kept = x * 1, []
        part = y[:, 2:]
        flat = self.first(y, kept)
        flat.mul_(2)
        self.second(y[1:], kept)
        self.relu(part)
        return y, kept[0], kept[1], flat, part


def test_writes_across_modules() -> None:
    check(Outer(), torch.randn(4, 6))


def test_results_written_in_place_of_others() -> None:
    def function(x: torch.Tensor) -> Any:
        double = torch.zeros(4, 4, 6, dtype=torch.float64)
        torch.add(x, 1, out=double)
        part = torch.zeros(2, 4, 6)
        torch.neg(x[1], out=part[0])
        flags = torch.empty(4, 4, 6, dtype=torch.bool)
        torch.gt(x, 0, out=flags)
        joined = torch.empty(0)
        torch.cat([x, x], out=joined)
        return double, part, flags, joined

    check(function, X)


def test_in_place_keeps_the_type() -> None:
    def function(x: torch.Tensor, n: torch.Tensor) -> Any:
        y, m = x.clone(), n.clone()
        y += torch.tensor(1.5, dtype=torch.float64)
        m *= 3
        m[0] = 2.9
        m.copy_(y[:2, 0, 0] * 10)
        m.clamp_(max=50)
        y.copy_(n[0])
        return y, m

    check(function, X, torch.tensor([7, -8]))
    with pytest.raises(RuntimeError, match="can't be cast"):
        tmconvert.trace(lambda n: n.add_(1.5), torch.tensor([1]))


def test_lists_of_tensors() -> None:
    def function(x: torch.Tensor) -> Any:
        parts = list(x.clone().unbind(0))
        parts[0] += parts[1]
        parts[1], parts[2] = parts[2], parts[1]
        parts[2].zero_()
        return torch.stack(parts)

    check(function, X)


def test_functions_within_functions_write() -> None:
    """``combinations`` writes to a mask, below what counts the versions of tensors."""
    check(lambda x: (torch.combinations(x[0], 2), torch.combinations(x[0], 3, True)), torch.randn(2, 5))
    check(lambda x: x[0] * torch.hamming_window(5), torch.randn(2, 5))


def test_places_in_memory() -> None:
    def function(x: torch.Tensor) -> Any:
        y = x + 1
        turned = y.transpose(0, 2)[2:].as_strided((2, 2), (6, 1))
        turned += 100
        part = (x * 2)[2:].as_strided((2,), (1,))
        return y, y[1:].as_strided((3, 2), (2, 1)), x.mT.as_strided((2,), (1,), 3), part

    check(function, X)


class Sharing(nn.Module):
    """A buffer, a part of it, and a parameter seen without its gradient."""

    buffer: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("buffer", torch.zeros(4, 6))
        self.part = self.buffer[1]
        self.weight = nn.Parameter(torch.ones(6))
        self.plain = self.weight.detach()

    def forward(self, x: torch.Tensor) -> Any:
        first = self.part + 0
        self.buffer.add_(1)
        second = self.part * x[0]
        self.part.mul_(3)
        third = self.buffer * x
        with torch.no_grad():
            self.weight.mul_(0.5)
        fourth = self.plain + x
        self.buffer.zero_()
        self.plain.fill_(1)
        return first, second, third, fourth


def test_tensors_that_share_memory_from_the_start() -> None:
    check(Sharing(), torch.randn(4, 6))
    module = Sharing()
    tmconvert.trace(module, torch.randn(4, 6))
    assert module.buffer.eq(0).all()
    assert module.weight.eq(1).all()


def test_inference_mode() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode():
            y = x + 1
            y[0] = 5
            y[:, 1].mul_(2)
            torch.add(y, 1, out=y)
        return y

    check(function, X)


def test_views_of_open_sizes() -> None:
    def function(x: torch.Tensor) -> Any:
        y = x + 1
        y.view(y.shape[0], 2, 3)[:, 1] += 5
        y[:, : y.shape[1] // 2] *= 2
        y.t()[1] = 0
        y.narrow(0, 1, y.shape[0] - 1).mul_(3)
        first, second = y.chunk(2)
        second.sub_(first[:1])
        return y, second

    traced = tmconvert.trace(function, torch.randn(4, 6), dynamic_shapes={"x": {0: "n"}})
    for count in (2, 5, 7):
        x = torch.randn(count, 6)
        for result, wanted in zip(traced(x.numpy()), function(x), strict=True):
            assert torch.allclose(torch.from_numpy(result), wanted)


def test_writes_through_what_changes_nothing_keep_sizes_open() -> None:
    """Dropout in evaluation, and an expansion that adds nothing, are views of their operand."""

    def model(x: torch.Tensor) -> Any:
        y, z, w = x * 2, x + 1, x - 1
        dropped = torch.nn.functional.dropout(y, 0.1, training=False)
        dropped *= x > 0
        torch.nn.functional.dropout1d(z, 0.1, False).mul_(3)
        w.expand_as(x).add_(z)
        return y, z, w

    traced = tmconvert.trace(model, torch.randn(2, 3), dynamic_shapes={"x": {0: "rows", 1: "columns"}})
    assert not traced.notes
    x = torch.randn(4, 5)
    for found, expected in zip(traced(x.numpy()), model(x), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
