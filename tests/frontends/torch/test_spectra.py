"""Singular values and eigenvalues by Jacobi's rotations, on matrices that are hard for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.errors import TmconvertError
from tmconvert.frontends.torch.adapters.linalg.jacobi import _pairs

from .harness import assert_close, check, run_onnx, run_tflite

GENERATOR = np.random.default_rng(3)


def hard_matrices(rows: int, columns: int) -> np.ndarray:
    """Matrices of full and low rank, of zeros, with equal, graded and nearly equal singular values."""
    count = min(rows, columns)
    left = np.linalg.qr(GENERATOR.normal(size=(rows, rows)))[0][:, :count]
    right = np.linalg.qr(GENERATOR.normal(size=(columns, columns)))[0][:, :count]
    spectra = [
        np.arange(count, 0, -1.0),
        np.ones(count),
        np.where(np.arange(count) < 1, 2.0, 0.0),
        np.where(np.arange(count) < count - 1, 1.0, 1e-7),
        10.0 ** -np.arange(count),
        1 + 1e-6 * np.arange(count),
        1e18 * np.arange(count, 0, -1.0),
        1e-18 * np.arange(count, 0, -1.0),
        np.zeros(count),
    ]
    made = [(left * spectrum) @ right.T for spectrum in spectra]
    diagonal = np.eye(rows, columns) * np.arange(columns)
    return np.stack([*made, diagonal, np.ones((rows, columns))]).astype(np.float32)


def parts(x: torch.Tensor) -> Any:
    """What does not depend on the choice of vectors."""
    left, values, right = torch.linalg.svd(x)
    count = values.shape[-1]
    thin = torch.linalg.svd(x, full_matrices=False)[0]
    again = (left[..., :count] * values[..., None, :]) @ right[..., :count, :]
    return values, again, left.mT @ left, right @ right.mT, thin.mT @ thin


@pytest.mark.parametrize(("rows", "columns"), [(3, 3), (7, 4), (2, 5), (1, 3), (4, 1)])
def test_singular_values_of_hard_matrices(rows: int, columns: int) -> None:
    x = hard_matrices(rows, columns)
    traced = tmconvert.trace(parts, torch.from_numpy(x))
    values, again, *products = traced(x)
    expected = np.linalg.svd(x.astype(np.float64), compute_uv=False)
    scale = np.maximum(expected[:, :1], 1e-30)
    np.testing.assert_allclose(values / scale, expected / scale, atol=2e-6)
    np.testing.assert_allclose(again / scale[..., None], x / scale[..., None], atol=4e-6)
    for product in products:
        np.testing.assert_allclose(
            product, np.broadcast_to(np.eye(product.shape[-1]), product.shape), atol=4e-6
        )


@pytest.mark.parametrize("count", [3, 6])
def test_eigenvalues_of_hard_matrices(count: int) -> None:
    x = hard_matrices(count, count)
    x = x + x.swapaxes(1, 2)

    def model(x: torch.Tensor) -> Any:
        values, vectors = torch.linalg.eigh(x)
        return values, (vectors * values[..., None, :]) @ vectors.mT, vectors.mT @ vectors

    values, again, product = tmconvert.trace(model, torch.from_numpy(x))(x)
    expected = np.linalg.eigvalsh(x.astype(np.float64))
    scale = np.maximum(np.abs(expected).max(-1, keepdims=True), 1e-30)
    np.testing.assert_allclose(values / scale, expected / scale, atol=3e-6)
    np.testing.assert_allclose(again / scale[..., None], x / scale[..., None], atol=5e-6)
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(count), product.shape), atol=4e-6)


def test_each_pair_meets_once_in_a_sweep() -> None:
    for count in range(2, 12):
        rounds = _pairs(count)
        met = [(own, other) for partner in rounds for own, other in enumerate(partner) if own < other]
        assert len(met) == len(set(met)) == count * (count - 1) // 2
        assert all((partner[partner] == np.arange(count)).all() for partner in rounds)


@pytest.mark.slow
def test_what_follows_from_singular_values() -> None:
    def model(x: torch.Tensor) -> Any:
        left, values, right = torch.svd(x)
        norms = [torch.linalg.matrix_norm(x, ord, dim=(2, 0), keepdim=True) for ord in ("nuc", 2, -2)]
        low = x[..., :1] @ x[..., :1].mT
        inverses = (torch.linalg.pinv(x, rtol=0.5), torch.linalg.pinv(low, atol=1e-3))
        return left @ torch.diag_embed(values) @ right.mT, *norms, *inverses, torch.linalg.cond(x)

    check(model, torch.randn(2, 4, 3))


def test_files_of_rotations_with_an_open_batch(tmp_path: Path) -> None:
    def aligned(x: torch.Tensor) -> torch.Tensor:
        """The rotation that aligns points with fixed ones: Kabsch's algorithm."""
        left, _, right = torch.linalg.svd(x.mT @ POINTS)
        sign = torch.linalg.det(left @ right).sign()
        return left * torch.stack([sign * 0 + 1, sign * 0 + 1, sign], -1)[:, None, :] @ right

    x = torch.randn(2, 5, 3)
    options: dict[str, Any] = {"example_inputs": [x], "dynamic_shapes": {"x": {0: "batch"}}}
    tmconvert.to_onnx(aligned, tmp_path / "m.onnx", **options)
    x = torch.randn(6, 5, 3)
    assert_close("ONNX Runtime", run_onnx(tmp_path / "m.onnx", [x.numpy()]), [aligned(x).numpy()], [], None)
    (found,) = run_tflite(tmconvert.trace(aligned, x), [[x.numpy()]])
    assert_close("LiteRT", found, [aligned(x).numpy()], [], None)


@pytest.mark.slow
def test_vectors_themselves_are_not_those_of_torch(tmp_path: Path) -> None:
    """Their signs are arbitrary; a model that returns them is found out."""
    model = lambda x: torch.linalg.eigh(x @ x.mT)[1]  # noqa: E731
    with pytest.raises(TmconvertError, match="differ"):
        tmconvert.to_onnx(model, tmp_path / "m.onnx", example_inputs=[torch.randn(3, 3)])


POINTS = torch.randn(5, 3)
