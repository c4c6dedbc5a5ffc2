"""Which way through a module the tracer takes, and what it makes of torch's own Python functions."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import check


def test_modules_that_ask_are_told_that_they_are_exported():
    def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting() and mask.all():
            return x + 1
        return (x + 1) * mask

    check(masked, torch.randn(3), torch.ones(3), second=(torch.randn(3), torch.tensor([1.0, 0, 1])))
    assert not torch.compiler.is_exporting() and not torch.compiler.is_compiling()


def test_the_flags_are_put_back_after_an_error():
    with pytest.raises(UnsupportedError):
        tmconvert.trace(lambda x: x + 1 if x.sum() > 0 else x, torch.randn(3))
    assert not torch.compiler.is_exporting() and not torch.compiler.is_compiling()


def test_assertions_are_no_part_of_the_model():
    def function(x: torch.Tensor) -> torch.Tensor:
        torch._assert(x.shape[0] == 3, "the number of rows")
        torch._assert((x > -100).all(), "no outliers")
        torch._check(x.shape[1] > 1)
        return x + 1

    check(function, torch.randn(3, 2))
    with pytest.raises(AssertionError, match="rows"):
        tmconvert.trace(function, torch.randn(2, 2))


def test_messages_are_no_part_of_the_model():
    def function(x: torch.Tensor) -> torch.Tensor:
        torch._check_tensor_all(x > -100, lambda: "no outliers")
        assert x.shape[0] == 3, f"a message of {x}"
        message = f"the numbers are {x}"
        return x + len(message[:1])

    check(function, torch.randn(3, 2))


def test_a_number_in_a_name_decides():
    with pytest.raises(UnsupportedError, match="reads the data of a tensor"):
        tmconvert.trace(lambda x, part: x + {"part 1": 1}[f"part {part}"], torch.randn(3), torch.tensor(1))


def test_a_python_method_that_calls_that_of_its_base():
    check(lambda x: x.unflatten(-1, (2, 3)) * 2, torch.randn(4, 6))


def test_what_a_module_only_reads_is_not_reported_as_written():
    table = torch.nn.Embedding(5, 3)
    assert tmconvert.trace(table, torch.tensor([1, 2])).notes == []


def test_what_a_module_writes_is_put_back_and_reported():
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("steps", torch.zeros(1, 2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.steps[0].add_(1)
            F.relu(self.steps, inplace=True)
            return x * self.steps

    module = Counter()
    traced = tmconvert.trace(module, torch.randn(2))
    assert module.steps.tolist() == [[0, 0]]
    assert traced.notes == ["the module writes to steps; each run of the file starts from the initial values"]


def test_what_is_found_may_be_nothing():
    """A mixture of experts, or of modalities, of which a batch has none."""

    def function(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x.masked_scatter(mask, x[mask] * 2)

    x = torch.randn(2, 3)
    some, none = (
        torch.tensor([[True, False, True], [False, False, True]]),
        torch.zeros(2, 3, dtype=torch.bool),
    )
    check(function, x, some, second=(x, none))
