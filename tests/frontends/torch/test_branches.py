"""Python's branches on data: both sides are in the file, and each computes what the module does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import check

X = torch.linspace(-2, 3, 6).reshape(2, 3)
MASK = torch.tensor([[True, False, False], [False, True, False]])


class Layers(nn.Module):
    """Each side has a layer, and another module follows."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.end = nn.Linear(3, 3), nn.Linear(3, 3), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x * 2
        h = self.a(h) if x.sum() > 0 else self.b(h).tanh()
        return self.end(h + x)


class Returning(nn.Module):
    """Returns early in a submodule that is called several times."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return self.fc(x)
        return x


class Calling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = Returning(), Returning()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.two(self.one(self.one(x) - 1) * 2) + 1


class Optional(nn.Module):
    """A submodule returns None or a tensor: its caller goes on in two ways."""

    class Find(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor | None:
            y = x.exp()
            return y if (y > 10).any() else None

    def __init__(self) -> None:
        super().__init__()
        self.find, self.fc = self.Find(), nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = self.find(x)
        x = self.fc(x) if found is None else x + found
        return x.relu()


def nested(x: torch.Tensor) -> torch.Tensor:
    if x.max() > 5:
        return x - 5
    y = x.exp()
    if (y > 100).any():
        y = y.clamp(max=100.0)
    elif y.min() < 0.1:
        y = y * 2
    return y + x


def written_where_masked(x: torch.Tensor) -> Any:
    mask = x.abs() < 1
    y, total = torch.zeros_like(x), torch.zeros_like(x)
    y[~mask] = x[~mask]
    if torch.any(mask):
        if x[mask].max() > 1:
            raise ValueError("outside of the interval")
        y[mask], total[mask] = x[mask].exp(), x[mask] * 2
    return y, total.sum(-1)


def of_a_spectrum(x: torch.Tensor) -> torch.Tensor:
    spectrum = torch.fft.rfft(x)
    spectrum = spectrum * (1 + 2j) if x.sum() > 0 else (spectrum.cumsum(0) * 1j).exp() - 1
    return torch.view_as_real(spectrum)


def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    if mask.any():
        x = x.masked_fill(mask, 0.0)
    if not mask.any():  # decided before
        x = x + 1
    return x.sum(-1)


def original_and_changed(x: torch.Tensor) -> torch.Tensor:
    y = x
    if x.sum() > 0:
        y = x.cos()
    if x.max() > 2:
        return y * x
    return x - 2 * y


def swapped(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = x.sin(), x.cos()
    if torch.equal(x, x.abs()):
        a, b = b, a
    return a - 2 * b, b


def in_place(x: torch.Tensor) -> torch.Tensor:
    x = x.clone()
    if (x < 0).any():
        x[:, :2] += 5
    return x[:, 1:] * 2


def lists(x: torch.Tensor) -> torch.Tensor:
    parts = [x]
    if x.mean() > 0:
        parts.append(x.exp())
    return torch.stack(parts).sum(0)


CASES: dict[str, tuple[Any, ...]] = {
    "layers": (Layers(), (X,), (-X,)),
    "a module called again": (Calling(), (X,), (-X,), (X * 10,), (X * 0.1,)),
    "None or a tensor": (Optional(), (X,), (-X,), (X * 0.1,)),
    "nested": (nested, (X,), (X * 3,), (X * 0.1,), (-X * 4,), (X * 1.6,)),
    "writes where a mask is": (written_where_masked, (X,), (X * 100 + 50,), (X / 100,)),
    "complex tensors": (of_a_spectrum, (X,), (-X,)),
    "one mask twice": (masked, (X, MASK), (X, ~MASK), (X, MASK & False)),
    "aliases": (original_and_changed, (X,), (-X,), (X * 0.5,), (X - 4,)),
    "swapped": (swapped, (X,), (X.abs(),)),
    "in place": (in_place, (X,), (X.abs(),)),
    "a list that grows": (lists, (X,), (-X,)),
    "allclose": (lambda x: x + 1 if torch.allclose(x, x.abs()) else x.abs(), (X,), (X.abs(),)),
    "contains": (lambda x: x * 2 if 3.0 in x else x.tanh(), (X,), (-X,)),
    "found elements": (lambda x: x[x > 0] if x.sum() > 0 else x[x < 0], (X,), (-X - 1,)),
    "an element of a mask": (lambda x, m: x * 2 if m[0, 1].item() else x.tanh(), (X, MASK), (X, ~MASK)),
}


@pytest.mark.parametrize("name", CASES)
def test_both_sides(name: str) -> None:
    function, inputs, *others = CASES[name]
    for other in others:
        check(function, *inputs, second=other, opsets=(13,), tflite=other is others[0])


def test_what_fails_on_a_side_is_a_check() -> None:
    def positive(x: torch.Tensor) -> None:
        if (x < -100).any():
            raise ValueError("too small")

    def forward(x: torch.Tensor) -> torch.Tensor:
        try:
            positive(x)
        finally:
            x = x + 1
        return x

    assert any("a check of the data" in note for note in check(forward, X).notes)


def test_a_function_in_an_assertion_is_no_check() -> None:
    assert (
        check(lambda x: x.exp() if x.sum() > 0 else x, X, second=[-X]).notes[0].startswith("branches on data")
    )


def test_each_side_that_data_reaches_is_verified(tmp_path: Path) -> None:
    traced = tmconvert.trace(nested, X)
    assert any("leads to the side where the condition is True" in note for note in traced.notes)
    report = tmconvert.to_onnx(traced, tmp_path / "nested.onnx")
    assert report.verified
    assert "other sides of branches that were compared: 2" in report.notes


def two_sizes(x: torch.Tensor) -> torch.Tensor:
    return x if x.sum() > 0 else x[:, 1:]


def failing(x: torch.Tensor) -> torch.Tensor:
    return x @ x if (x > 1e30).all() and x.max() < 2e30 else x


def many(x: torch.Tensor) -> torch.Tensor:
    parts = [x]
    for n in range(9):
        if x.sum() > n:
            parts.append(x * n)
    return sum(parts)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (two_sizes, "the sides return different types: float32 [2, 3] and float32 [2, 2]"),
        (failing, "its other side fails on all data that was tried (RuntimeError: mat1 and mat2"),
        (many, "more than 16 runs and 8 decisions one after the other; most are at"),
        (lambda x: (x, x) if x.sum() > 0 else x, "the module returns another structure on each side"),
        (lambda x: x[x > 0] if x.sum() > 0 else x.reshape(-1), "of a data-dependent size"),
    ],
)
def test_what_cannot_be_joined(function: Any, reason: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.trace(function, X)
    assert caught.value.code == "TM2011"
    assert any(reason in text for _, text in caught.value.notes), caught.value.notes
    notes = tmconvert.trace(function, X, freeze_control_flow=True).notes
    assert any("decided by the example inputs" in note for note in notes)


@pytest.mark.parametrize(
    ("function", "is_branch"),
    [
        (lambda x: x * 2 - 1 if x.sum() > 0 else x, False),
        (lambda x: x.exp() if x.sum() > 0 else x, True),
    ],
)
def test_cheap_sides_are_selected(function: Any, is_branch: bool) -> None:
    graph = check(function, X, second=[-X], tflite=True).flatten().graph
    assert graph is not None
    assert any("torch.cond" in str(expr) for expr in graph) == is_branch
