"""Models larger than memory: other numbers take the place of weights while they are traced."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.frontends.torch.tracing.recording.arrays import has_stand_ins
from tmconvert.frontends.torch.tracing.special import stand_ins
from tmconvert.frontends.torch.tracing.special.stand_ins import (
    clone_in_scratch,
    put_stand_ins,
    stored_weights,
)

pytestmark = pytest.mark.torch


class Net(torch.nn.Module):
    """A table of vectors and two products, the second with the table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(40, 16)
        self.inner = torch.nn.Linear(16, 16)
        self.last = torch.nn.Linear(16, 40, bias=False)
        self.last.weight = self.table.weight

    def forward(self, tokens: torch.Tensor, past: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        state = torch.cat([past, self.inner(self.table(tokens))], 1)
        return self.last(state.cumsum(1)), state


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch) -> Net:
    monkeypatch.setattr(stand_ins, "LARGE_MODEL", 1000)
    monkeypatch.setattr(stand_ins, "LARGE", 500)
    torch.manual_seed(0)
    return Net().eval()


def test_large_parameters_get_other_numbers_and_small_ones_keep_theirs(net: Net) -> None:
    table, bias = net.table.weight.detach().clone(), net.inner.bias.detach().clone()
    put_stand_ins(net)
    assert has_stand_ins(net) and net.last.weight is net.table.weight
    assert not torch.equal(net.table.weight, table) and torch.equal(net.inner.bias, bias)
    assert net.table.weight.data_ptr() != net.inner.weight.data_ptr()
    with stored_weights(net):
        assert torch.equal(net.table.weight, table)
    assert not torch.equal(net.table.weight, table)


def test_other_models_stay(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stand_ins, "LARGE_MODEL", 1 << 20)
    before = net.table.weight.detach().clone()
    put_stand_ins(net)
    assert not has_stand_ins(net) and torch.equal(net.table.weight, before)


def test_the_file_has_the_stored_numbers(net: Net, tmp_path: Path) -> None:
    inputs = [torch.tensor([[1, 39, 7]]), torch.randn(1, 2, 16)]
    expected = net(*inputs)
    sizes = {"tokens": {0: "batch", 1: "new"}, "past": {0: "batch", 1: "past"}}

    def convert(name: str) -> bytes:
        report = tmconvert.to_onnx(net, tmp_path / name, example_inputs=inputs, dynamic_shapes=sizes)
        assert report.verified
        return (tmp_path / name).read_bytes()

    plain = convert("plain.onnx")
    put_stand_ins(net)
    assert convert("stand_ins.onnx") == plain
    module = tmconvert.trace(net, *inputs, dynamic_shapes=sizes)
    made = module(*(each.numpy() for each in inputs))
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_allclose(one, other.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("shape", [(), (3, 5), (2048, 2049)])  # the last one is in a file
def test_copies_of_inputs_have_memory_of_their_own(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    tensor = torch.ones(shape).to(dtype).T.contiguous().T if shape else torch.ones(shape, dtype=dtype)
    copy = clone_in_scratch(tensor)
    assert copy.dtype == dtype and torch.equal(copy, tensor)
    copy.zero_()
    assert tensor.all()
