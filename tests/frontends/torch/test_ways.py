"""Which way through a module the tracer takes, and what it makes of torch's own Python functions."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

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
        tmconvert.trace(lambda x: x + round(x.sum().item()), torch.randn(3))
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
    (note,) = traced.notes
    assert note.startswith(
        "the module writes to steps; each run of the file starts from the initial values; "
    )


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


def test_checks_of_the_data_are_no_part_of_the_model():
    def checked(x: torch.Tensor) -> torch.Tensor:
        assert (x > -100).all(), f"the least is {x.min()}"
        if (x > 100).any() or x.isnan().any():
            raise ValueError(f"the largest is {x.max()}")
        if x.sum().item() > 1000:
            warnings.warn(f"the sum is {x.sum()}", stacklevel=1)
        torch._check(bool(x.max() < 100), lambda: f"the largest is {x.max()}")
        return x + 1

    traced = check(checked, torch.randn(3, 2))
    assert sum("a check of the data" in note for note in traced.notes) == 4


def branching(x: torch.Tensor) -> torch.Tensor:
    if (x > 0).all():
        return x
    return -x


def handled(x: torch.Tensor) -> torch.Tensor:
    try:
        if (x > 0).all():
            raise ValueError("positive")
    except ValueError:
        return x
    return -x


def kept(x: torch.Tensor) -> torch.Tensor:
    if (n := x.sum().item()) > 100:
        raise ValueError("large")
    return x + n


def _positive(x: torch.Tensor) -> None:
    if (x > 0).any():
        raise ValueError("positive")


def handled_by_the_caller(x: torch.Tensor) -> torch.Tensor:
    try:
        _positive(x)
    except ValueError:
        return x
    return -x


def suppressed(x: torch.Tensor) -> torch.Tensor:
    with contextlib.suppress(ValueError):
        _positive(x)
        return -x
    return x


class Counting(torch.nn.Module):
    """Has a method with the name of one of loggers."""

    def info(self) -> None:
        self.factor = 2.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.factor = 1.0
        if (x > 0).any():
            self.info()
        return x * self.factor


@pytest.mark.parametrize("function", [branching, handled, handled_by_the_caller, suppressed, Counting()])
def test_branches_on_data_are_no_checks(function: Any) -> None:
    check(function, -torch.rand(3), second=[torch.rand(3)])


def test_a_number_that_a_check_keeps() -> None:
    check(kept, -torch.rand(3))


def test_checks_whose_exception_is_raised_again() -> None:
    def checked(x: torch.Tensor) -> torch.Tensor:
        try:
            _positive(x)
        except ValueError as error:
            raise RuntimeError("no negative numbers") from error
        finally:
            x = x - 1
        return x

    check(checked, -torch.rand(3))


def test_arguments_of_distributions_are_checked():
    def entropy(x: torch.Tensor) -> torch.Tensor:
        return torch.distributions.Normal(x, x.exp(), validate_args=True).log_prob(x * 2)

    check(entropy, torch.randn(3, 2))


def test_elements_in_texts_of_messages():
    def described(x: torch.Tensor) -> torch.Tensor:
        message = f"{x.sum()} {x}"
        if x.shape[0] > 5:
            raise ValueError(message)
        return x + 1

    assert any("an element becomes text" in note for note in check(described, torch.randn(3, 2)).notes)


def test_elements_in_texts_that_decide():
    def by_text(x: torch.Tensor) -> torch.Tensor:
        text = f"{x[0].int()}"
        return x + 1 if text == "1" else x

    with pytest.raises(UnsupportedError, match="on other data") as caught:
        tmconvert.trace(by_text, torch.tensor([1.5, 2.0]))
    assert caught.value.code == "TM2011"


def test_tracing_is_said_where_sizes_are_dynamic():
    def interpolated(x: torch.Tensor) -> torch.Tensor:
        if not torch.jit.is_tracing() and x.shape[1] == 4:
            return x
        return F.interpolate(x[None], size=x.shape[1], mode="linear")[0]

    shapes = {"x": {1: "n"}}
    assert tmconvert.trace(interpolated, torch.randn(2, 4), dynamic_shapes=shapes).dynamic_shapes == shapes
    assert not torch.jit.is_tracing()


def test_modules_that_fail_when_they_are_exported():
    def failing(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(5) if torch.compiler.is_exporting() else x + 1

    assert any("code path for torch.export" in note for note in check(failing, torch.randn(3)).notes)
