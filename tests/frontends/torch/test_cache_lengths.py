"""Caches with sliding windows: stand-ins for the classes of transformers, which count positions in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert

WINDOW, WIDTH = 5, 4


class DynamicLayer:
    def __init__(self) -> None:
        self.keys = torch.zeros(1, 1, 0, WIDTH)

    def get_mask_sizes(self, new: int) -> tuple[int, int]:
        return self.keys.shape[-2] + new, 0

    def update(self, keys: torch.Tensor) -> torch.Tensor:
        self.keys = torch.cat([self.keys, keys], -2)
        return self.keys


class DynamicSlidingWindowLayer(DynamicLayer):
    def __init__(self) -> None:
        super().__init__()
        self.sliding_window, self.cumulative_length = WINDOW, 0

    def get_mask_sizes(self, new: int) -> tuple[int, int]:
        if self.cumulative_length >= self.sliding_window:
            return self.sliding_window - 1 + new, self.cumulative_length - self.sliding_window + 1
        return self.cumulative_length + new, 0

    def update(self, keys: torch.Tensor) -> torch.Tensor:
        self.cumulative_length += keys.shape[-2]
        whole = torch.cat([self.keys, keys], -2)
        self.keys = whole[:, :, -self.sliding_window + 1 :]
        return whole


class HybridCache:
    def __init__(self) -> None:
        self.layers = [DynamicSlidingWindowLayer(), DynamicLayer()]


@pytest.fixture(autouse=True)
def _of_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (DynamicLayer, DynamicSlidingWindowLayer, HybridCache):
        monkeypatch.setattr(each, "__module__", "transformers.cache_utils")


class Decoder(torch.nn.Module):
    """Attention over the positions of each layer: those in the window, or all."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor, cache: Any) -> Any:
        new, hidden = x.shape[-2], x
        for layer in cache.layers:
            length, offset = layer.get_mask_sizes(new)
            rows = torch.arange(new)[:, None] + (mask.shape[1] - new)
            columns = torch.arange(length) + offset
            visible = (columns <= rows) & (columns > rows - WINDOW) & mask[:, columns][:, None, None].bool()
            keys = layer.update(hidden)
            scores = (hidden @ keys.mT).masked_fill(~visible, -1e4)
            hidden = hidden + scores.softmax(-1) @ keys
        return hidden, cache


def _inputs(past: int, new: int) -> tuple[Any, ...]:
    """A cache after ``past`` positions, and the next ones."""
    x = torch.randn(1, 1, past + new, WIDTH, generator=torch.Generator().manual_seed(past))
    cache = HybridCache()
    Decoder()(x[:, :, :past], torch.ones(1, past), cache)
    return x[:, :, past:], torch.ones(1, past + new), cache


def test_positions_beyond_the_window(tmp_path: Path) -> None:
    """The size that is requested for both layers is at most that of the window in the first one."""
    import onnxruntime

    sizes = {"x": {2: "new"}, "mask": {1: "past+new"}, "cache.0.key": {2: "past"}, "cache.1.key": {2: "past"}}
    given, path = _inputs(3, 2), tmp_path / "decoder.onnx"
    report = tmconvert.to_onnx(Decoder(), path, example_inputs=given, dynamic_shapes=sizes)
    assert not report.ranges and not [note for note in report.notes if "specialized" in note]
    assert [each["shape"][2] for each in report.inputs[2:]] == ["min(past,4)", "past"]
    assert given[2].layers[0].cumulative_length == 3
    session = onnxruntime.InferenceSession(path)
    for past, new in ((2, 1), (4, 3), (5, 1), (11, 2)):
        x, mask, cache = _inputs(past, new)
        fed = [x, mask, *(layer.keys for layer in cache.layers)]
        names = [each.name for each in session.get_inputs()]
        made = session.run(None, {name: each.numpy() for name, each in zip(names, fed, strict=True)})
        hidden, cache = Decoder()(x, mask, cache)
        for one, two in zip(made, [hidden, *(layer.keys for layer in cache.layers)], strict=True):
            np.testing.assert_allclose(one, two.numpy(), rtol=1e-4, atol=1e-5)


def test_windows_alone_have_a_note() -> None:
    """Nothing tells how many positions there were before those that a full window keeps."""
    x, mask, cache = _inputs(2, 1)
    cache.layers.pop()
    sizes = {"mask": {1: "past+1"}, "cache.0.key": {2: "past"}}
    traced = tmconvert.trace(Decoder(), x, mask, cache, dynamic_shapes=sizes)
    assert [note for note in traced.notes if "at most 4 positions" in note]
