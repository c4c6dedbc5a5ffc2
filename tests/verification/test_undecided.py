"""Three answers: right, wrong, and undecided, where rounding moves the source itself as far."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tmconvert
from tests.verification.test_references import reference_of
from tmconvert.conversion.report_text import verified
from tmconvert.errors import VerificationError
from tmconvert.symbolics.ops.special.erf import _erf
from tmconvert.symbolics.registry import catalogue
from tmconvert.verification import references
from tmconvert.verification.reference import OutOfBudget
from tmconvert.verification.rounding import Shaken
from tmconvert.verification.tolerance import LOOSEST, OWN, compare_within_limits, comparisons_of

TARGETS: dict[str, Callable[..., Any]] = {"onnx": tmconvert.to_onnx, "tflite": tmconvert.to_tflite}


class Queries(nn.Module):
    """A detector's choice of queries: the best scores inside of the graph, whose features go on."""

    def __init__(self, rank: Callable[[torch.Tensor], torch.Tensor], bias: float = -4.6) -> None:
        super().__init__()
        self.features, self.scores, self.box = nn.Linear(8, 8), nn.Linear(8, 3), nn.Linear(8, 4)
        nn.init.zeros_(self.scores.weight)
        nn.init.constant_(self.scores.bias, bias)
        self.rank = rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = self.features(x)
        chosen = self.rank(self.scores(features).amax(-1))
        return self.box(features.gather(1, chosen[..., None].expand(-1, -1, 8))).sigmoid()


RANKS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "topk": lambda s: s.topk(5, dim=1).indices,
    "sort": lambda s: s.sort(dim=1, descending=True).indices[:, :5],
    "argmax": lambda s: (s + 0.0 * s).relu().argmax(1, keepdim=True),  # of zeros
}


@pytest.mark.parametrize("target", TARGETS)
def test_a_choice_among_equal_values_is_undecided(target: str, tmp_path: Path):
    torch.manual_seed(0)
    model, x = Queries(RANKS["topk"]), torch.randn(1, 40, 8)
    report = TARGETS[target](model, tmp_path / f"o.{target}", example_inputs=(x,))
    if report.verification.undecided:  # the runtime chose as PyTorch did otherwise
        assert not report.verified and str(report).startswith("undecided in ")
        with pytest.raises(VerificationError, match="TM4006"):
            TARGETS[target](model, tmp_path / "p.x", example_inputs=(x,), require_verified=True)


@pytest.mark.parametrize("rank", RANKS)
def test_another_choice_is_undecided_and_another_result_wrong(rank: str):
    torch.manual_seed(0)
    reference = reference_of(Queries(RANKS[rank]), torch.randn(1, 40, 8))
    given, expected = reference.case(None)
    other = [each + np.float32(0.02) for each in expected]
    (found,) = comparisons_of(reference, given, other, expected, ["boxes"])
    assert found.is_undecided and not found.ok
    distinct = Queries(RANKS[rank], 1.0)
    nn.init.normal_(distinct.scores.weight)
    reference = reference_of(distinct, torch.randn(1, 40, 8))
    given, expected = reference.case(None)
    with pytest.raises(VerificationError, match="TM4001"):
        comparisons_of(reference, given, [each + np.float32(0.02) for each in expected], expected, ["boxes"])


def test_a_wrong_reading_does_not_make_its_own_rounding_large():
    """What rounding moves is measured on what runs, not against what is expected."""
    reference = reference_of(lambda x: F.gelu(x) @ x.T, torch.randn(6, 20))
    given, expected = reference.case(None)
    for off in (1.0, 3e-3):
        wrong = [each + np.float32(off) for each in expected]
        with pytest.raises(VerificationError, match="TM4001"):
            comparisons_of(reference, given, expected, wrong, ["y"])


class Counted(nn.Module):
    """Keeps the rows whose sum, which is 1 but for rounding, reaches 1: how many is arbitrary."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[x.softmax(1).sum(1) >= 1.0]


@pytest.fixture(scope="module")
def counted() -> tuple[Any, np.ndarray, np.ndarray]:
    x = torch.randn(400, 5, generator=torch.Generator().manual_seed(0))
    return tmconvert.trace(Counted(), x), x.numpy(), Counted()(x).numpy()


def written(path: Path, y: np.ndarray) -> Path:
    """A file that returns ``y`` whatever it is given."""
    given = onnx.helper.make_tensor_value_info("x", 1, [400, 5])
    made = onnx.helper.make_tensor_value_info("getitem_out", 1, None)
    node = onnx.helper.make_node("Constant", [], ["getitem_out"], value=onnx.numpy_helper.from_array(y))
    graph = onnx.helper.make_graph([node], "g", [given], [made])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]), path)
    return path


WRONG: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "empty": lambda y: y[:0],
    "few rows": lambda y: y[: len(y) // 3],
    "zeros": np.zeros_like,
    "zeros, other rows": lambda y: np.zeros_like(y[:-2]),
    "NaN": lambda y: np.full_like(y, np.nan),
    "some NaN": lambda y: np.where(np.arange(5) == 1, np.nan, y).astype(np.float32),
    "far values": lambda y: y[:-2] * 100,
    "another rank": lambda y: y[None],
    "another axis": lambda y: y[:, :4],
}


@pytest.mark.parametrize("change", WRONG)
def test_arbitrary_counts_do_not_explain(change: str, counted: Any, tmp_path: Path):
    traced, x, y = counted
    with pytest.raises(VerificationError, match="differ from those of its source"):
        tmconvert.verify(traced, written(tmp_path / "o.onnx", WRONG[change](y)), [x])


def test_arbitrary_counts_are_undecided(counted: Any, tmp_path: Path):
    traced, x, y = counted
    found = tmconvert.verify(traced, written(tmp_path / "o.onnx", y[2:]), [x])
    assert found.undecided == ("getitem_out",) and not found.tells
    assert f"getitem_out (shape [{len(y) - 2}, 5], expected [{len(y)}, 5])" in verified(found)


def test_absolute_errors_of_ops_with_one_result_or_many():
    """A split into one piece is no list."""
    reference = reference_of(
        lambda x: x.sigmoid().unbind(0)[0].flip(0).index_select(0, torch.tensor([1])), torch.randn(1, 4)
    )
    assert reference.kernel_errors(reference.case(None)[0], [0])[0] > 0


# ---- limits


def deep(layers: int) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(layers)))


class Amplified(nn.Module):
    """Loses four digits of what it is given, like a deep net."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 300).cumsum(1) - (x * 300).flip(1).cumsum(1).flip(1) + x


def test_the_limit_follows_the_rounding_of_the_source():
    reference = reference_of(Amplified(), torch.randn(4, 2000))
    given, expected = reference.case(None)
    (own,) = reference.own_errors(given)
    scale = float(np.abs(expected[0]).max())
    assert own > 0
    limit = min(OWN * own / scale, LOOSEST)
    (found,) = compare_within_limits(reference, given, expected, expected, ["y"])
    assert found.tolerance == 1e-4  # no laxer where that suffices
    off = max(limit, 1e-4) * scale * 1.5
    (found,) = compare_within_limits(reference, given, [expected[0] + np.float32(off)], expected, ["y"])
    assert not found.ok


def test_a_well_conditioned_model_keeps_its_limit():
    reference = reference_of(deep(3), torch.randn(5, 64))
    given, expected = reference.case(None)
    with pytest.raises(VerificationError, match="TM4001"):
        comparisons_of(reference, given, [expected[0] * np.float32(1.0002)], expected, ["y"])


# ---- the budget


def test_what_exceeds_the_budget_is_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(references, "ALLOWANCE", -1e6)
    x = torch.randn(2, 8)
    report = tmconvert.to_onnx(nn.Linear(8, 3), tmp_path / "o.onnx", example_inputs=(x,))
    assert report.verified
    assert [note for note in report.notes if "left out further inputs: --verify full" in note]
    report = tmconvert.to_onnx(nn.Linear(8, 3), tmp_path / "o.onnx", example_inputs=(x,), verification="full")
    assert report.verified and not report.notes


def test_the_reference_stops_at_the_deadline():
    reference = reference_of(lambda x: F.gelu(x), torch.randn(2, 3))
    reference.deadline = 0.0
    with pytest.raises(OutOfBudget):
        reference.run([np.ones((2, 3), np.float32)])


def test_erf_and_noise_are_fast():
    """A reference of a transformer spent minutes in both."""
    x = np.random.default_rng(0).standard_normal(1 << 21)
    started = time.process_time()
    exact = _erf(x)
    Shaken(catalogue(), 0).moved(x.astype(np.float32))
    assert time.process_time() - started < 3
    assert [exact[0], exact[-1]] == pytest.approx([math.erf(x[0]), math.erf(x[-1])], abs=1e-15)


# ---- inputs of the user


def test_the_users_own_inputs(tmp_path: Path):
    """A defect that only these show."""
    model, x = nn.Sequential(nn.ReLU6(), nn.Linear(4, 2)), torch.rand(3, 4)
    path = tmp_path / "in.npz"
    np.savez(path, in0=np.full((3, 4), 50, np.float32))
    report = tmconvert.to_onnx(model, tmp_path / "o.onnx", example_inputs=(x,), verify_with=path)
    assert report.verified
    report = tmconvert.to_onnx(model, tmp_path / "o.onnx", example_inputs=(x,), verify_with=[x.numpy()])
    assert report.verified
    with pytest.raises(tmconvert.errors.TmconvertError, match="TM6011"):
        tmconvert.to_onnx(model, tmp_path / "o.onnx", example_inputs=(x,), verify_with={"y": x.numpy()})
