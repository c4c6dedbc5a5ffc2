"""What an edited model computes: run, saved and loaded, flattened, and converted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tmconvert
from tests.surgery.models import graph_of
from tmconvert.errors import InternalError, TmconvertError, VerificationError
from tmconvert.ir import TensorNode, TracedModule
from tmconvert.ir.tree import leaves

RIGHT = "right"


def arrays_of(tree: object) -> list[np.ndarray]:
    """Returns the arrays of a result, in order."""
    return [leaf for leaf in leaves(tree) if isinstance(leaf, np.ndarray)]


def inputs_of(module: TracedModule, examples: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
    """Returns inputs of the types that a model takes now: the examples where they fit, else random ones."""
    rng = np.random.default_rng(seed)
    rest = list(examples)
    found = []
    for node in graph_of(module).inputs[1:]:
        assert isinstance(node, TensorNode) and node.dtype is not None
        if rest and rest[0].shape == node.shape and rest[0].dtype == node.dtype:
            found.append(rest.pop(0))
        else:
            found.append((rng.random(node.shape) * 0.8 + 0.1).astype(node.dtype))
    return found


def outcomes(
    module: TracedModule, inputs: Sequence[np.ndarray], folder: Path, *, quantized: bool = False
) -> dict[str, str]:
    """Returns, for each use of a model, "right", or the code of the error that it raised.

    Raises AssertionError where two uses compute different values, InternalError and VerificationError where
    a use fails by our fault.
    """
    done: dict[str, str] = {}
    expected: list[np.ndarray] = []

    def run() -> None:
        expected[:] = arrays_of(module(*inputs))

    def saved() -> None:
        module.save(folder / "m.tm")
        compare(tmconvert.load(folder / "m.tm")(*inputs), expected)

    uses: dict[str, Callable[[], Any]] = {
        "run": run,
        "save": saved,
        "flatten": lambda: compare(module.flatten()(*inputs), expected),
        "onnx": lambda: converted(tmconvert.to_onnx, module, folder / "m.onnx", inputs),
        "tflite": lambda: converted(tmconvert.to_tflite, module, folder / "m.tflite", inputs),
    }
    if quantized:
        uses["integers"] = lambda: converted(
            tmconvert.to_tflite, module, folder / "i.tflite", inputs, quantized=True
        )
    for name, use in uses.items():
        done[name] = _tried(use)
        if done["run"] != RIGHT:
            break
    return done


def _tried(use: Callable[[], Any]) -> str:
    try:
        use()
    except (InternalError, VerificationError):
        raise
    except TmconvertError as error:
        return error.code
    return RIGHT


def converted(
    convert: Any, module: TracedModule, path: Path, inputs: Sequence[np.ndarray], **options: Any
) -> None:
    """Converts a model; the written file is run, and compared with the model."""
    report = convert(module, path, example_inputs=list(inputs), **options)
    assert report.verification is not None


def compare(found: object, expected: Sequence[np.ndarray], tolerance: float = 1e-4) -> None:
    """Raises AssertionError for other values; the tolerance is relative to the largest element."""
    for mine, right in zip(arrays_of(found), expected, strict=True):
        finite = np.abs(right[np.isfinite(right)]) if right.dtype.kind in "fc" else np.abs(right)
        scale = float(finite.max()) if finite.size else 1.0
        np.testing.assert_allclose(mine, right, rtol=tolerance, atol=tolerance * max(scale, 1e-3))
