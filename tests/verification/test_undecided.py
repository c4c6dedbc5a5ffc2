"""Three answers: right, wrong, and undecided, where rounding moves the source itself as far."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import tmconvert
from tests.verification.test_references import reference_of
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
