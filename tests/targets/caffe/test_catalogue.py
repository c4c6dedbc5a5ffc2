"""Samples of every op that Caffe has, those of other targets included: right or refused, never wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tests.symbolics.ops.harness import Const, assert_target_matches, normal, reference
from tests.symbolics.ops.samples import SAMPLES
from tmconvert.conversion.support import op_support
from tmconvert.errors import UnsupportedError, VerificationError
from tmconvert.ir.tree import leaves
from tmconvert.symbolics.dialects import DIALECTS
from tmconvert.symbolics.registry import catalogue

MOST = 3  # samples of an op, if these will do
OPS = [name for name, op in catalogue().items() if op_support(op, "caffe", 0).support != "no"]
OPENCV = DIALECTS.index("opencv")
# right by the definition of the layers; OpenCV makes NaN of an infinity times 0, and has no negative zero
OPENCV_WRONG = ("aten::atan2", "aten::hypot", "aten::log1p")


def others(name: str) -> list[Any]:
    """The samples that ``test_catalogue.py`` leaves out for Caffe."""
    left = [sample for sample in SAMPLES[name] if "caffe" not in sample.targets]
    return [sample for sample in left if name not in OPENCV_WRONG or is_finite(sample.args)]


def is_finite(args: list[Any]) -> bool:
    arrays = [leaf.array if isinstance(leaf, Const) else leaf for leaf in leaves(args)]
    return all(array is None or np.isfinite(np.asarray(array, np.float64)).all() for array in arrays)


@pytest.mark.parametrize("name", OPS)
def test_right_or_refused(name: str) -> None:
    """And of an op that Caffe has at least one sample is right."""
    is_seen = any("caffe" in sample.targets for sample in SAMPLES[name])
    for number, sample in enumerate(others(name)):
        if is_seen and number >= MOST:
            break
        is_seen = is_right(name, sample) or is_seen
    assert is_seen, f"no sample of {name} is right in Caffe: add one, or say unsupported"


# where erfinv is infinite, the product with 0 by which that dialect chooses is NaN; histc counts in one axis
@pytest.mark.parametrize("name", [name for name in OPS if name not in ("aten::erfinv", "aten::histc")])
def test_right_or_refused_in_opencv(name: str) -> None:
    """What the dialect of OpenCV says in other layers, in OpenCV itself, which mistakes blobs of one axis."""
    for sample in [sample for sample in SAMPLES[name] if is_finite(sample.args) and is_flat(sample.args)][
        :MOST
    ]:
        is_right(name, sample, OPENCV)


def is_flat(args: list[Any]) -> bool:
    return all(leaf is None or isinstance(leaf, Const) or leaf.ndim > 1 for leaf in leaves(args))


def is_right(name: str, sample: Any, dialect: int = 0) -> bool:
    """Whether the sample is right; False if it is refused."""
    expected = reference(name, sample.args, sample.attributes)
    try:
        assert_target_matches("caffe", dialect, name, sample.args, sample.attributes, expected)
    except AssertionError as error:
        if not is_refusal(error.__cause__):
            raise
        return False
    return True


def is_refusal(error: BaseException | None) -> bool:
    """Whether the op's graph could not be lowered, which the harness asserts, or be decomposed, or its inputs
    are not exact in Caffe.
    """
    if isinstance(error, VerificationError):
        return "float32, the type of Caffe's blobs, does not hold" in error.message
    return (isinstance(error, AssertionError) and not error.__cause__) or type(
        error
    ).__name__ == "Undecomposed"


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_infinities_are_filled_in_where_products_choose(infinity: float) -> None:
    """As in masks of attention."""
    x, mask, filler = normal(0, 3, 4), normal(1, 3, 4) > 0, np.array(infinity, np.float32)
    for args in ([mask, Const(filler), x], [mask, x, Const(filler)]):
        expected = reference("aten::where", args, {})
        assert_target_matches("caffe", OPENCV, "aten::where", args, {}, expected)


TOO_PRECISE = (1 << 24) + 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + torch.tensor([TOO_PRECISE, 1, 5]),
        lambda x: x + TOO_PRECISE,
        lambda x: x * -TOO_PRECISE,
        lambda x: x >= TOO_PRECISE,
        lambda x: torch.where(x > 3, torch.tensor(TOO_PRECISE), x),
        lambda x: (x, torch.tensor([TOO_PRECISE])),
    ],
)
def test_integers_that_float32_does_not_hold_are_refused(function: Any, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="is not exact in float32") as caught:
        tmconvert.to_caffe(function, tmp_path / "m.prototxt", example_inputs=(torch.ones(2, 3).long(),))
    assert str(TOO_PRECISE) in str(caught.value)


@pytest.mark.parametrize("limit", [torch.iinfo(torch.int64).max, torch.iinfo(torch.int32).max])
def test_limits_of_integers_are_no_outputs(limit: int, tmp_path: Path) -> None:
    """They may start a minimum or maximum, but not be chosen elsewhere."""
    with pytest.raises(UnsupportedError, match="is not exact in float32") as caught:
        tmconvert.to_caffe(
            lambda x: torch.where(x > 3, torch.tensor(limit), x),
            tmp_path / "m.prototxt",
            example_inputs=(torch.arange(6)[None],),
        )
    assert str(limit) in str(caught.value)


def test_inputs_that_float32_does_not_hold_are_refused(tmp_path: Path) -> None:
    given = torch.tensor([[TOO_PRECISE, 2]])
    with pytest.raises(VerificationError, match=f"the input x has the integer {TOO_PRECISE}, which float32"):
        tmconvert.to_caffe(lambda x: x + 1, tmp_path / "m.prototxt", example_inputs=(given,))


def test_multiples_of_large_powers_of_two_are_exact(tmp_path: Path) -> None:
    report = tmconvert.to_caffe(
        lambda x: x * (1 << 40), tmp_path / "m.prototxt", example_inputs=(torch.ones(2, 3).long(),)
    )
    assert report.paths
