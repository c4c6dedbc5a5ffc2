"""Inputs and outputs that a model itself permutes to or from channels-first keep their axes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert

torch = pytest.importorskip("torch")
FIRST, LAST = (0, 3, 1, 2), (0, 2, 3, 1)


class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, before: Any, after: Any) -> None:
        super().__init__()
        self.conv, self.before, self.after = torch.nn.Conv2d(3, 4, 3), before, after

    def forward(self, image: Any) -> Any:
        return self.after(self.conv(self.before(image)))


CASES = {
    "permuted": (lambda x: x.permute(FIRST).float() / 255, lambda y: y, "uint8", (1, 6, 6, 4)),
    "scaled, then permuted": (
        lambda x: ((x.float() / 255 - 0.4) / 0.2).permute(FIRST),
        lambda y: y.relu().permute(LAST) * 2,
        "uint8",
        (1, 6, 6, 4),
    ),
    "float": (lambda x: x.permute(FIRST), lambda y: y.permute(LAST), "float32", (1, 6, 6, 4)),
}


@pytest.mark.parametrize("options", [{}, {"io_layout": "nhwc"}, {"io_layout": {"image": "nhwc"}}], ids=str)
@pytest.mark.parametrize("case", CASES)
def test_what_is_channels_last_stays(case: str, options: Any, tmp_path: Path) -> None:
    before, after, dtype, shape = CASES[case]
    x = torch.from_numpy(np.random.default_rng(0).integers(0, 255, (1, 8, 8, 3)).astype(dtype))
    net, path = Net(before, after).eval(), tmp_path / "net.tflite"
    assert tmconvert.to_tflite(net, path, example_inputs=[x], **options).verified
    found = tmconvert.inspect(path)
    assert [each.shape for each in found.inputs] == [(1, 8, 8, 3)]
    assert [each.shape for each in found.outputs] == [shape]
    assert "TRANSPOSE" not in found.operators


def test_what_is_channels_first_is_moved(tmp_path: Path) -> None:
    net = Net(lambda x: x, lambda y: y).eval()
    tmconvert.to_tflite(net, tmp_path / "net.tflite", example_inputs=[torch.ones(1, 3, 8, 8)])
    assert [each.shape for each in tmconvert.inspect(tmp_path / "net.tflite").inputs] == [(1, 8, 8, 3)]
