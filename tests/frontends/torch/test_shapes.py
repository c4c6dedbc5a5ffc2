"""Shapes, parts, creation and elements by their places."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tmconvert
from tmconvert.errors import UnsupportedError
from tmconvert.ir.tree import leaves

from .harness import check, run_onnx

X = torch.arange(2 * 3 * 4, dtype=torch.float32).reshape(2, 3, 4) - 10
M = torch.arange(12, dtype=torch.float32).reshape(3, 4) - 5
V = torch.tensor([3.0, -1.0, 2.0, 5.0, 4.0])
N = torch.tensor([4, 1, 3, 1, 0])

SHAPES: dict[str, Callable[..., Any]] = {
    "view": lambda x: (x.view(4, -1), x.view((6, 4)), x.view(-1), x.view(size=(24,))),
    "reshape": lambda x: (torch.reshape(x, (3, 8)), x.reshape(3, 8), x.reshape([2, -1])),
    "view_as": lambda x: (x.view_as(torch.empty(4, 6)), x.reshape_as(torch.empty(24))),
    "flatten": lambda x: (
        x.flatten(),
        x.flatten(1),
        torch.flatten(x, 0, -2),
        torch.flatten(input=x, end_dim=1),
    ),
    "of a scalar": lambda x: (x[0, 0, 0].flatten(), x[0, 0, 0].squeeze(), x[0, 0, 0].unsqueeze(-1)),
    "unflatten": lambda x: (x.unflatten(-1, (2, -1)), torch.unflatten(x, 1, [3, 1])),
    "squeeze": lambda x: (x[:1].squeeze(), x[:1].squeeze(0), x.squeeze(1), x[:1, :1].squeeze((0, -2))),
    "unsqueeze": lambda x: (x.unsqueeze(0), x.unsqueeze(-1), torch.unsqueeze(x, dim=-2)),
    "expand": lambda x: (x[:, :1].expand(2, 5, 4), x[:, :1].expand(-1, 5, -1), x.expand(3, -1, -1, -1)),
    "expand_as": lambda x: (x[0, :1].expand_as(x), torch.broadcast_to(x[0], (5, 3, 4))),
    "repeat": lambda x: (x.repeat(1, 2, 3), x.repeat((2, 1, 1, 2)), x.tile(2), torch.tile(x, (2, 1, 1, 2))),
    "permute": lambda x: (x.permute(2, 0, 1), torch.permute(x, (-1, 0, 1)), x.permute([1, 0, 2])),
    "transpose": lambda x: (x.transpose(0, -1), torch.swapaxes(x, 0, 1), x.swapdims(1, 2), x.swapaxes(0, 1)),
    "movedim": lambda x: (x.movedim(0, 2), torch.moveaxis(x, (0, 2), (-1, 0)), x.movedim([2, 1], [0, 1])),
    "t": lambda x: (x[0].t(), x[0, 0].t(), x[0].T, x.mT, x[0].H, x.mH, x.adjoint(), torch.adjoint(x)),
    "ravel": lambda x: (x.ravel(), torch.ravel(x[0, 0, 0])),
    "as_strided": lambda x: (x.as_strided((2, 3), (1, 2), 4), torch.as_strided(x, (5,), (3,))),
    "same": lambda x: (x.cpu() + 1, x.detach() + 1, x.contiguous(memory_format=torch.contiguous_format) + 1),
    "requires_grad": lambda x: (x.clone().requires_grad_(False) + 1, x.to("cpu") + 1),
    "atleast": lambda x: (
        torch.atleast_1d(x[0, 0, 0]),
        torch.atleast_2d(x[0, 0]),
        torch.atleast_3d(x[0], x[0, 0]),
    ),
    "narrow": lambda x: (
        x.narrow(1, 1, 2),
        torch.narrow(x, -1, -3, 2),
        x.select(2, -1),
        torch.select(x, 0, 1),
    ),
    "aten slice": lambda x: torch.ops.aten.slice(x, -1, -3, 9223372036854775807, 2),
    "unbind": lambda x: (x.unbind(), torch.unbind(x, -1), list(x[0])),
    "split": lambda x: (x.split(3, -1), torch.split(x, [1, 3], dim=2), x.split([2, 1], 1), x.split(5)),
    "chunk": lambda x: (x.chunk(2, 1), torch.chunk(x, 3, 2), x.chunk(5, -1)),
    "tensor_split": lambda x: (
        x.tensor_split(3, 2),
        torch.tensor_split(x, (1, 1, 3), dim=1),
        x.tensor_split(3),
    ),
    "tensor_split by tensors": lambda x: torch.tensor_split(x, torch.tensor([1, -1]), -1),
    "hsplit": lambda x: (x.hsplit(3), torch.hsplit(x, [1]), x[0, 0].hsplit(2)),
    "vsplit": lambda x: (x.vsplit(2), torch.vsplit(x, (1,)), x.dsplit(2), torch.dsplit(x, [1, 3])),
    "unfold": lambda x: (x.unfold(2, 2, 1), x.unfold(-1, 3, 2), x.unfold(1, 3, 1)),
    "unfold of little": lambda x: (
        x[0, 0, 0].unfold(0, 1, 1),
        x[0, 0, 0].unfold(-1, 0, 3),
        x.unfold(1, 0, 2),
        torch.unfold_copy(x, -1, 2, 2),
    ),
    "stack": lambda x: (torch.stack([x, x + 1]), torch.stack((x, x * 2), -1), torch.stack([x, x], dim=1)),
    "cat": lambda x: (torch.cat([x, x], -2), torch.concat((x, x[:1])), torch.concatenate([x, x], axis=1)),
    "cat of types": lambda x: torch.cat([x, torch.ones(1, 3, 4, dtype=torch.int64), torch.empty(0)]),
    "hstack": lambda x: (
        torch.hstack([x, x]),
        torch.hstack((x[0, 0], x[0, 1])),
        torch.hstack([x[0, 0, 0]] * 2),
    ),
    "vstack": lambda x: (torch.vstack([x, x]), torch.row_stack((x[0, 0], x[0, 1])), torch.dstack((x, x))),
    "dstack": lambda x: (torch.dstack((x[0], x[1])), torch.column_stack((x[0, 0], x[0].t()))),
    "block_diag": lambda x: (torch.block_diag(x[0], x[0, 0], x[0, 0, 1]), torch.block_diag(x[1])),
    "meshgrid": lambda x: (
        torch.meshgrid(x[0, 0], x[0, :, 1], indexing="ij"),
        torch.meshgrid([x[0, 0], x[0, :, 1]], indexing="xy"),
    ),
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x, x[0, :1], x[0, 0, 0]),
    "products": lambda x: (torch.cartesian_prod(x[0, 0], x[0, :, 1]), torch.combinations(x[0, 0], 2)),
    "flip": lambda x: (x.flip(0, -1), torch.flip(x, [1]), x.flip((1, 2)), x.fliplr(), torch.flipud(x)),
    "rot90": lambda x: (x.rot90(), torch.rot90(x, -1, [1, 2]), x.rot90(2, (0, 2)), x.rot90(4)),
    "roll": lambda x: (
        x.roll(1),
        x.roll(-2, 1),
        torch.roll(x, (1, -1), dims=(0, 2)),
        x.roll(shifts=5, dims=-1),
    ),
    "diagonal": lambda x: (x.diagonal(), torch.diagonal(x, 1, 1, 2), x.diagonal(-1, dim1=-1, dim2=0)),
    "diag": lambda x: (x[0].diag(), torch.diag(x[0, 0], 1), torch.diagflat(x[0], -1), torch.diag_embed(x, 1)),
    "tril": lambda x: (x.tril(), torch.triu(x, 1), x.tril(diagonal=-1)),
    "repeat_interleave": lambda x: (
        x.repeat_interleave(2),
        torch.repeat_interleave(x, 3, dim=-1),
        x.repeat_interleave(torch.tensor([0, 2, 1]), 1),
    ),
    "scatters": lambda x: (
        torch.select_scatter(x, torch.ones(2, 4), 1, -1),
        torch.slice_scatter(x, torch.ones(2, 2, 4), 1, -2),
        torch.slice_scatter(x, torch.ones(2, 3, 2), 2, 0, 9223372036854775807, 2),
        torch.diagonal_scatter(x, torch.ones(4, 2), 1),
    ),
    "scatters in memory": lambda x: (
        torch.as_strided_scatter(x, x[0, :2], (2, 4), (2, 3), 1),
        x.as_strided_scatter(torch.tensor([[-1.0, -2], [-3, -4]]), (2, 2), (1, 1), 5),
        torch.as_strided_scatter(x[1:], x[0, 0], (4,), (2,)),
        torch.as_strided_scatter(x * 2, torch.tensor(9.0), (), (), 3),
    ),
}


@pytest.mark.filterwarnings("ignore:torch.row_stack")
@pytest.mark.parametrize("form", SHAPES)
def test_shapes(form: str) -> None:
    check(SHAPES[form], X)


PADS: list[tuple[str, list[int], Any]] = [
    ("constant", [1, 2], None),
    ("constant", [1, -2, -1, 3], 2.5),
    ("constant", [0, 0, 0, 0, 1, 0], -1),
    ("reflect", [1, 2], None),
    ("reflect", [2, 1, 1, 1], None),
    ("replicate", [3, 0, 0, 5], None),
    ("circular", [1, 2, 2, 0], None),
    ("reflect", [-2, 3], None),
    ("reflect", [2, -4, -1, 2], None),
    ("replicate", [-5, 6, 2, -4], None),
    ("replicate", [-2, -1, -1, 6], None),
]


@pytest.mark.parametrize(("mode", "pad", "value"), PADS)
def test_pad(mode: str, pad: list[int], value: Any) -> None:
    x = torch.randn(2, 3, 4, 5)
    check(lambda x: F.pad(x, pad, mode, value), x if len(pad) != 2 or mode == "constant" else x[0])


def test_pad_of_other_types() -> None:
    check(lambda x: F.pad(x, (1, -1), value=2.7), torch.arange(6).reshape(2, 3))
    check(lambda x: F.pad(x > 2, (1, 1), value=True), torch.arange(6).reshape(2, 3))
    check(lambda x: torch.nn.ZeroPad2d((1, 0, -1, 2))(x), torch.randn(1, 2, 3, 4))
    check(lambda x: torch.nn.ReflectionPad1d(2)(x), torch.randn(2, 3, 4))


def test_scatters_in_memory_out_of_order() -> None:
    with pytest.raises(UnsupportedError, match="not contiguous"):
        tmconvert.trace(lambda x: torch.as_strided_scatter(x.mT, x[0, 0], (4,), (2,)), X)


def test_windows_and_paddings_of_no_elements() -> None:
    def function(x: torch.Tensor) -> Any:
        padded = F.pad(x, (1, 2, 0, 1), mode="reflect"), F.pad(x, (0, 2, 3, 0), mode="replicate")
        return *padded, F.unfold(x, (2, 3))

    check(function, torch.randn(0, 2, 4, 5))
    check(lambda x: F.batch_norm(x, torch.zeros(0), torch.ones(0)), torch.randn(0))


PLACES = torch.tensor([[0, 2, 1, 0], [1, -0, 0, 2]])
PICKS: dict[str, Callable[..., Any]] = {
    "gather": lambda x, i: (x.gather(0, i), torch.gather(x, -1, i[:, :3]), torch.gather(x[0], 0, i[0])),
    "gather by one": lambda x, i: (x[0].gather(0, i[0, 0]), x[0, 0].gather(0, i[0, 0] * 0)),
    "scatter": lambda x, i: (
        x.scatter(0, i[:1], x[1:]),
        x.scatter(1, i, 7),
        torch.scatter(x, 1, i[:, 1:3], x),
    ),
    "scatter with": lambda x, i: (
        x.scatter(0, i, x[:2], reduce="add"),
        x.scatter(0, i, 2.0, reduce="multiply"),
    ),
    "scatter_add": lambda x, i: (x.scatter_add(0, i, x[:2]), torch.scatter_add(x, 1, i, x[1:])),
    "scatter_reduce": lambda x, i: [
        x.scatter_reduce(0, i, x[:2], how, include_self=own)
        for how in ("sum", "prod", "mean", "amax", "amin")
        for own in (True, False)
    ],
    "index_select": lambda x, i: (x.index_select(1, i[0]), torch.index_select(x, 0, i[0, 1])),
    "index_add": lambda x, i: (x.index_add(0, i[0, :3], x), x.index_add(-1, i[0], x, alpha=2)),
    "index_copy": lambda x, i: (x.index_copy(0, i[0, :3], x + 1), x[0].index_copy(0, i[1, 0], x[0, 0])),
    "index_fill": lambda x, i: (x.index_fill(0, i[0, :1], 9), x.index_fill(1, i[0, 1:3], x[0, 0])),
    "index_reduce": lambda x, i: x.index_reduce(0, i[0, :3], x * 2, "amax"),
    "index_put": lambda x, i: (
        x.index_put((i[0], i[1] * 0), x[0]),
        torch.index_put(x, [i[0]], x[0], accumulate=True),
        x.index_put((x > 2,), torch.tensor(0.5)),
    ),
    "take": lambda x, i: (x.take(i), torch.take(x, i - 12), x.take_along_dim(i[:1], 0), x.take_along_dim(i)),
    "masked": lambda x, i: (
        x.masked_fill(x > 0, -9),
        torch.masked_fill(x, i[:1].bool(), x[0, 0]),
        x.masked_fill((i > 0)[:, None], float("-inf")),
        x.masked_scatter(x > 1, x.flatten() * 10),
        x.masked_select(x > 3),
    ),
    "one_hot": lambda x, i: (F.one_hot(i, 5), F.one_hot(torch.tensor([0, 2]))),
    "bucketize": lambda x, i: (
        torch.bucketize(x, torch.tensor([-2, 0, 3])),
        torch.bucketize(i, torch.tensor([0.5, 1.0]), right=True, out_int32=True),
        torch.searchsorted(torch.tensor([-2.0, 0, 3]), x, side="right"),
        torch.searchsorted(torch.tensor([-2.0, 0, 3]), 1.5),
    ),
    "histc": lambda x, i: torch.histc(x, 4, -6, 6),
    "bincount": lambda x, i: torch.bincount(torch.tensor([1, 3, 1]), minlength=5) + i[0, 0],
    "unique": lambda x, i: (torch.unique(i), torch.unique(i, return_inverse=True, return_counts=True)),
    "consecutive": lambda x, i: torch.unique_consecutive(i, return_counts=True),
    "repeat_interleave": lambda x, i: x.repeat_interleave(i[0, :3], 0),
    "nonzero": lambda x, i: (i.nonzero(), torch.nonzero(x > 0, as_tuple=True), torch.where(x > 0)),
    "take by axis": lambda x, i: torch.take_along_dim(x, x.argsort(1), dim=1),
}


@pytest.mark.filterwarnings("ignore:The reduce argument", "ignore:index_reduce")
@pytest.mark.parametrize("form", PICKS)
def test_picks(form: str) -> None:
    check(PICKS[form], M, PLACES, second=(M.flip(0) * 1.5, PLACES.flip(1)))


CREATED: dict[str, Callable[..., Any]] = {
    "zeros": lambda x: (
        torch.zeros(2, 3),
        torch.zeros((2,)),
        torch.zeros(()),
        torch.ones(2, dtype=torch.int32),
    ),
    "by name": lambda x: (torch.zeros(size=(2, 3)), x.new_ones(size=(2,), dtype=torch.bool)),
    "full": lambda x: (torch.full((2,), 3), torch.full((2, 2), 1.5), torch.full([1], True)),
    "full of a tensor": lambda x: (torch.full((2,), x[0, 0, 0]), torch.full_like(x, 2, dtype=torch.int64)),
    "like": lambda x: (torch.zeros_like(x), torch.ones_like(x, dtype=torch.uint8), torch.full_like(x, 0.3)),
    "new": lambda x: (x.new_zeros(2, 3), x.new_full((2,), 7), x.new_ones((1, 2)), x.new_tensor([1, 2])),
    "empty": lambda x: (torch.empty(2, 3).fill_(2), torch.empty_like(x).copy_(x), x.new_empty(3).zero_()),
    "arange": lambda x: (torch.arange(5), torch.arange(2, 9, 3), torch.arange(5.0), torch.arange(1, 2, 0.3)),
    "arange down": lambda x: (torch.arange(5, 0, -2), torch.arange(start=1, end=4), torch.arange(end=3)),
    "arange of types": lambda x: (
        torch.arange(3, dtype=torch.float64),
        torch.arange(0.5, 4, dtype=torch.int32),
    ),
    "arange of sizes": lambda x: (torch.arange(x.shape[1]), torch.arange(0, x.size(2), 2, device=x.device)),
    "arange of small steps": lambda x: (torch.arange(0, 1, 0.1), torch.arange(-0.7, 3.1, 0.07)),
    "linspace": lambda x: (torch.linspace(0, 1, 7), torch.linspace(-3, 10, 50), torch.linspace(2, 1, 1)),
    "linspace of types": lambda x: (
        torch.linspace(0, 9, 4, dtype=torch.int64),
        torch.linspace(0, 1, 9).double(),
    ),
    "linspace of doubles": lambda x: torch.linspace(0.1, 0.7, 33, dtype=torch.float64),
    "logspace": lambda x: (torch.logspace(0, 2, 5), torch.logspace(-1, 3, 7, base=2)),
    "eye": lambda x: (torch.eye(3), torch.eye(2, 4, dtype=torch.int64), torch.eye(x.shape[1])),
    "indices": lambda x: (torch.tril_indices(3, 4, 1), torch.triu_indices(3, 3, offset=-1)),
    "tensor": lambda x: (
        torch.tensor([x.shape[0], 2.5]),
        torch.tensor(x.shape),
        torch.tensor([[1, 2], [3, 4]]),
    ),
    "as_tensor": lambda x: (torch.as_tensor(x) + 1, torch.scalar_tensor(3), torch.tensor(True)),
    "windows": lambda x: (torch.hann_window(6), torch.hamming_window(5, False), torch.kaiser_window(4)),
    "ops of them": lambda x: (torch.arange(4) + x, torch.ones(4) * x.size(0), torch.zeros(3, 4).add_(x[0])),
    "range": lambda x: torch.range(1, 4),
    "vander": lambda x: torch.vander(x[0, 0], 3),
}


@pytest.mark.filterwarnings("ignore:torch.range", "ignore:To copy construct", "ignore:torch.searchsorted")
@pytest.mark.parametrize("form", CREATED)
def test_creation(form: str) -> None:
    def function(x: torch.Tensor) -> Any:
        return CREATED[form](x), x + 1

    check(function, X)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.float32, torch.float64, torch.int8, torch.int32, torch.int64]
)
def test_rows_are_torchs_own_to_the_last_bit(dtype: torch.dtype) -> None:
    ends = [(-39, 42), (10, -23), (-7.505, 3.44), (3.808, -7.23), (0, 0)]
    counts = (0, 1, 2, 7, 16, 100)

    def function(x: torch.Tensor) -> Any:
        rows = [torch.linspace(*bounds, count, dtype=dtype) for bounds in ends for count in counts]
        powers = [torch.logspace(low / 40, high / 40, 50, dtype=dtype) for low, high in ends]
        steps = torch.arange(
            -6.8, 8.2, 0.1 if dtype.is_floating_point else 1.5, dtype=dtype if dtype.itemsize < 8 else None
        )
        return x + 1, rows, powers, steps

    traced = tmconvert.trace(function, torch.ones(2))
    _, *found = leaves(traced(np.ones(2, np.float32)))
    for row, tensor in zip(found, list(leaves(function(torch.ones(2))))[1:], strict=True):
        assert row.dtype == tensor.numpy().dtype
        assert np.array_equal(row, tensor.numpy())


def test_whole_numbers_between_two_as_many_as_a_size_says(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> Any:
        return torch.linspace(0, 10, x.shape[0], dtype=torch.int64), x + 1

    traced = tmconvert.trace(function, torch.ones(7), dynamic_shapes={"x": {0: "n"}})
    tmconvert.to_onnx(traced, tmp_path / "out.onnx", verify=False)
    for count in (2, 7, 50):
        row, _ = run_onnx(tmp_path / "out.onnx", [np.ones(count, np.float32)])
        assert np.array_equal(row, function(torch.ones(count))[0].numpy())


RANDOM: dict[str, Callable[..., Any]] = {
    "rand": lambda x: x + torch.rand(4),
    "randn_like": lambda x: x + torch.randn_like(x),
    "randperm": lambda x: x[..., torch.randperm(4)],
    "normal_": lambda x: x.clone().normal_(),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "uniform_": lambda x: torch.empty(4).uniform_() + x,
    "multinomial": lambda x: torch.multinomial(x[0].abs(), 2),
    "randint": lambda x: x + torch.randint(0, 5, (4,)),
    "exponential_": lambda x: x.clone().exponential_(),
}


@pytest.mark.parametrize("form", RANDOM)
def test_random_numbers_are_refused(form: str, tmp_path: Path) -> None:
    traced = tmconvert.trace(RANDOM[form], X)
    for convert in (tmconvert.to_onnx, tmconvert.to_tflite):
        with pytest.raises(UnsupportedError, match="random"):
            convert(traced, tmp_path / "out.model")
    assert not list(tmp_path.iterdir())


def test_bytes_of_another_type_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="another element type"):
        check(lambda x: x.view(torch.int32), X)


def test_empty_tensors() -> None:
    x = torch.empty(0, 3)
    check(lambda x: (x.reshape(3, 0), x.t(), torch.cat([x, x]), x.expand(2, 0, 3), x[:, :2], x.flatten()), x)


def test_parts_without_elements_are_not_concatenated(tmp_path: Path) -> None:
    import onnx

    path = tmp_path / "net.onnx"
    tmconvert.to_onnx(lambda x: torch.cat([x, x[:, 3:]], 1) * 2, path, example_inputs=[torch.ones(2, 3)])
    assert [node.op_type for node in onnx.load(path).graph.node] == ["Mul"]


def test_tracing_needs_no_copy_of_sizes() -> None:
    traced = tmconvert.trace(lambda x: x.view(x.size(0), -1).unsqueeze(1), X)
    assert "view" in str(traced.graph)


def test_broadcast_to_takes_sizes_one_by_one() -> None:
    check(lambda x: x.broadcast_to(4, 2, 3) + x.broadcast_to((4, 1, 3)), torch.randn(1, 3))
