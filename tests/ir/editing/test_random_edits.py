"""Models after random edits run, are saved, and convert to files that compute the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import tmconvert
from tests.ir.editing.models import DATA, Block, graph_of
from tests.ir.editing.random_edits import Edits
from tmconvert.errors import TmconvertError, UnsupportedError
from tmconvert.ir import TracedModule
from tmconvert.ir.tree import leaves

EDITS = 25


class Net(torch.nn.Module):
    """A module that is called twice, and values that two calls take."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block(3)
        self.norm = torch.nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        first = self.block(x) + y
        second = self.block(first.relu()) * self.norm(y)
        return torch.cat([first, second], dim=1).mean(dim=(2, 3))


def model(name: str) -> TracedModule:
    if name == "traced":
        torch.manual_seed(0)
        return tmconvert.trace(Net().eval(), torch.rand(1, 3, 8, 8), torch.rand(1, 3, 8, 8))
    return tmconvert.load(DATA / f"{name}.tm")


def flat(tree: object) -> list[np.ndarray]:
    return [leaf for leaf in leaves(tree) if isinstance(leaf, np.ndarray)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["traced", "op_nested_reuse", "sr_espcn", "op_multi_io"])
def test_random_edits(name: str, seed: int, tmp_path: Path) -> None:
    module = model(name)
    edits = Edits(module, seed)
    while edits.is_sound and edits.done + edits.refused < EDITS:
        edits.step()
    if not edits.is_sound:
        with pytest.raises(TmconvertError):
            graph_of(module).lint()
        return
    assert edits.done > EDITS // 4
    rng = np.random.default_rng(seed)
    inputs = [
        rng.random(node.shape, np.float32).astype(node.dtype)  # type: ignore[attr-defined]
        for node in graph_of(module).inputs[1:]
    ]
    expected = flat(module(*inputs))
    module.save(tmp_path / "m.tm")
    for other in (tmconvert.load(tmp_path / "m.tm"), module.flatten()):
        for found, wanted in zip(flat(other(*inputs)), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    for convert, suffix in ((tmconvert.to_onnx, "onnx"), (tmconvert.to_tflite, "tflite")):
        try:
            report = convert(module, tmp_path / f"m.{suffix}", example_inputs=inputs)
        except UnsupportedError:  # such as a result that is an input
            continue
        assert report.verification is not None
