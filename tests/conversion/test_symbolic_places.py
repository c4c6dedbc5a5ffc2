"""TM9005, for code of ours without symbolic sizes, names the place: the call and its line, or the pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import tmconvert
from tmconvert.errors import InternalError
from tmconvert.lowering.lower import _Lowerer
from tmconvert.passes.eliminate_common_subexpressions import EliminateCommonSubexpressions


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(x)
        z = torch.sigmoid(y)
        return torch.exp(z)


LINE = Net.forward.__code__.co_firstlineno


@pytest.fixture
def traced() -> Any:
    return tmconvert.trace(Net(), torch.randn(2, 3), dynamic_shapes={"x": {0: "n"}})


def fails(*_: Any, **__: Any) -> None:
    raise TypeError("an int was expected")


def failure(traced: Any, tmp_path: Path) -> InternalError:
    with pytest.raises(InternalError) as caught:
        tmconvert.to_onnx(traced, tmp_path / "o.onnx")
    assert caught.value.code == "TM9005"
    assert caught.value.notes == (("help", "convert without --dynamic, and report this as a defect"),)
    assert list(tmp_path.iterdir()) == []
    return caught.value


@pytest.mark.parametrize(("op", "offset"), [("tanh", 1), ("sigmoid", 2), ("exp", 3)])
def test_lowering(op: str, offset: int, traced: Any, tmp_path: Path, monkeypatch: Any) -> None:
    """It goes through the calls in order, when all of them have been normalized."""
    results = _Lowerer._symbolic_results

    def fails_at(self: Any, expr: Any) -> Any:
        return fails() if expr.function == f"aten::{op}" else results(self, expr)

    monkeypatch.setattr(_Lowerer, "_symbolic_results", fails_at)
    error = failure(traced, tmp_path)
    assert error.message == f"{op}_out (aten::{op}) does not support symbolic sizes (an int was expected)"
    assert error.source is not None and error.source.line == LINE + offset


@pytest.mark.parametrize(("op", "offset"), [("tanh", 1), ("sigmoid", 2), ("exp", 3)])
def test_an_adapter(op: str, offset: int, traced: Any, tmp_path: Path, monkeypatch: Any) -> None:
    vocabulary = type(traced.vocabulary)
    apply = vocabulary.apply

    def fails_at(self: Any, g: Any, expr: Any, args: Any, kwargs: Any) -> Any:
        return fails() if op in self.name(expr) else apply(self, g, expr, args, kwargs)

    monkeypatch.setattr(vocabulary, "apply", fails_at)
    error = failure(traced, tmp_path)
    assert error.message.startswith(f"{op}_out (")
    assert error.source is not None and error.source.line == LINE + offset


def test_a_pass(traced: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(EliminateCommonSubexpressions, "run", fails)
    error = failure(traced, tmp_path)
    name = "the pass eliminate_common_subexpressions"
    assert error.message == f"{name} does not support symbolic sizes (an int was expected)"
    assert error.source is None


def test_with_plain_sizes_it_is_any_defect(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(EliminateCommonSubexpressions, "run", fails)
    with pytest.raises(TypeError, match="an int was expected"):
        tmconvert.to_onnx(tmconvert.trace(Net(), torch.randn(2, 3)), tmp_path / "o.onnx")
