"""Calls as earlier releases recorded them mean what they meant then."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.release_differences import NEWEST, Release, as_of, release_called
from tmconvert.frontends.megengine.vocabulary import vocabulary_of
from tmconvert.ir import CallFunction, TensorNode
from tmconvert.ir.emitter import EagerEmitter
from tmconvert.symbolics.registry import catalogue

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)


def recorded(name: str, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """What the adapter of a function gets: the parameters of the newest release by name."""

    def now(g: Any, *given: Any, **named: Any) -> dict[str, Any]:
        return {**{str(i): value for i, value in enumerate(given)}, **named}

    release = kwargs.pop("release")
    return as_of(release, f"megengine.functional.{name}", now)(None, *args, **kwargs)


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("1.6", (1, 6)),
        ("1.12.4", (1, 12, 4)),
        ("1.13.0+cu118", (1, 13, 0)),
        ("9999.dev", (9999,)),
        ("", NEWEST),
        ("dev", NEWEST),
        ("9" * 5000, (9999,)),
    ],
)
def test_releases(version: str, release: Release) -> None:
    assert release_called(version) == release


@pytest.mark.parametrize("release", [(1, 6), (1, 7, 0), (1, 9, 1)])
def test_transposed_convolutions_had_no_output_padding(release: Release) -> None:
    args = ("x", "w", "b", 2, 1, 3, 4, "cross_correlation", "default")
    names = ("inp", "weight", "bias", "stride", "padding", "dilation", "groups", "conv_mode", "compute_mode")
    assert recorded("nn.conv_transpose2d", *args, release=release) == dict(zip(names, args, strict=True))
    assert recorded("nn.conv_transpose3d", *args[:7], release=release) == dict(
        zip(names[:7], args, strict=False)
    )
    assert recorded("nn.conv_transpose2d", "x", "w", stride=2, release=release) == {
        "inp": "x",
        "weight": "w",
        "stride": 2,
    }


def test_newer_ones_have_it() -> None:
    args = ("x", "w", "b", 2, 1, 0, 3, 4, "cross_correlation", "default")
    for release in ((1, 10, 0), (1, 11, 1), NEWEST):
        found = recorded("nn.conv_transpose2d", *args, release=release)
        assert list(found.values()) == list(args)


def test_names_and_defaults_of_their_time() -> None:
    assert recorded("nn.pad", "x", pad_witdth=1, release=(1, 6)) == {
        "0": "x",
        "1": 1,
        "2": "constant",
        "3": 0.0,
    }
    assert recorded("nn.prelu", weight="w", inp="x", release=(1, 6)) == {"0": "x", "1": "w"}
    assert recorded("math.sign", inp="x", release=(1, 9, 1)) == {"0": "x"}
    assert recorded("math.topk", "x", 2, release=(1, 12, 0))["2"] is False
    assert recorded("math.topk", "x", 2, release=(1, 12, 4)) == {"0": "x", "1": 2}
    assert recorded("tensor.full", (2,), 1, release=(1, 6))["dtype"] == "float32"
    assert recorded("tensor.full", (2,), 1, release=(1, 7, 0)) == {"0": (2,), "1": 1}


@pytest.mark.parametrize(("release", "dtype"), [((1, 11, 1), "float32"), ((1, 12, 0), "int32")])
def test_square_gave_float32(release: Release, dtype: str) -> None:
    expr = CallFunction("megengine.functional.elemwise.square", (TensorNode("x"),), result=TensorNode("y"))
    value = vocabulary_of(release).apply(EagerEmitter(catalogue()), expr, (X.astype(np.int32),), {})
    assert np.asarray(value).dtype == dtype
    np.testing.assert_array_equal(np.asarray(value), X**2)


def test_names_of_another_time_are_refused() -> None:
    expr = CallFunction("megengine.functional.nn.pad", (TensorNode("x"),), result=TensorNode("y"))
    for release, name in (((1, 6), "pad_width"), (NEWEST, "pad_witdth")):
        with pytest.raises(
            Refusal, match="arguments that do not fit its signature: missing a required argument"
        ):
            vocabulary_of(release).apply(
                EagerEmitter(catalogue()), expr, (X,), {name: ((0, 0), (1, 1)), "mode": "constant"}
            )


@pytest.mark.parametrize(("release", "results"), [((1, 6, 0), 5), ((1, 7, 0), 4), (NEWEST, 4)])
def test_the_batch_norm_operator_of_1_6_had_another_memory(release: Release, results: int) -> None:
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    ones = np.ones((1, 2, 1, 1), np.float32)
    state = {"fwd_mode": "INFERENCE", "epsilon": 0.0, "param_dim": "DIM_1C11"}
    args = (x, ones, ones, ones, ones)
    expr = CallFunction("opdef.BatchNorm", args, state)
    made = vocabulary_of(release).apply(EagerEmitter(catalogue()), expr, args, state)
    assert len(made) == results
    np.testing.assert_array_equal(made[-1], x)
