"""Rounding to the grids of integer types."""

from __future__ import annotations

import numpy as np

from tmconvert.ir import QParams
from tmconvert.ir.fake_quant import fake_quantize, round_half_away, with_clear_ties, with_qparams

INT8 = QParams("int8", (0.5,), (0,), -128, 127, symmetric=True)
UINT8 = QParams("uint8", (0.5,), (3,), 0, 255)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_halves_go_away_from_zero() -> None:
    x = f32(-2.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, -0.49999997, 8388609.0)
    assert round_half_away(x).tolist() == [-3, -1, 1, 2, 3, 0, 0, 8388609.0]


def test_the_formula() -> None:
    assert fake_quantize(f32(0.3, -0.26, 100, -100), INT8).tolist() == [0.5, -0.5, 63.5, -64]
    assert fake_quantize(f32(0.3, -0.26, 200, -100), UINT8).tolist() == [0.5, -0.5, 126, -1.5]


def test_each_channel_has_its_own_scale() -> None:
    qparams = QParams("int8", (0.5, 2.0), (0, 1), -4, 3, 1)
    assert fake_quantize(np.full((1, 2, 1), 1.2, np.float32), qparams).tolist() == [[[1.0], [2.0]]]


def test_only_the_array_itself_remembers() -> None:
    marked = with_qparams(f32(1, 2), INT8)
    assert marked.qparams == INT8  # type: ignore[attr-defined]
    for other in (marked + 1, marked[:1], marked.copy(), marked.reshape(2, 1)):
        assert getattr(other, "qparams", None) is None


def test_means_of_integers_that_lie_in_the_middle() -> None:
    noise = f32(0.75 - 1e-7, -0.75 + 1e-7, 0.74)
    assert fake_quantize(with_clear_ties(noise, INT8), INT8).tolist() == [1.0, -1.0, 0.5]
    assert fake_quantize(with_clear_ties(noise, UINT8), UINT8).tolist() == [1.0, -0.5, 0.5]
