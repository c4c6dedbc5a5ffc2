"""Integer TFLite files with an open batch: what converts with a fixed one, at the same accuracy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert

torch = pytest.importorskip("torch")
litert = pytest.importorskip("ai_edge_litert.interpreter")
nn = torch.nn


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.up, self.last = nn.ConvTranspose2d(16, 8, 2, stride=2), nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, input: Any) -> Any:
        x = self.first(input).relu()
        return self.last(torch.cat([x, self.up(self.down(x).relu())], 1))


def between(function: Any) -> Any:
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), function, nn.Conv2d(8, 4, 1))


MODELS = {
    "U-Net": UNet,
    **{
        each.__name__: lambda each=each: between(each())
        for each in (nn.GELU, nn.ELU, nn.Mish, nn.Softplus, nn.SELU, nn.LogSigmoid, nn.Softsign)
    },
}


def ratio(made: np.ndarray, wanted: np.ndarray) -> float:
    noise = np.sum(np.square(made.astype(np.float64) - wanted))
    return float(10 * np.log10(np.sum(np.square(wanted.astype(np.float64))) / noise))


@pytest.mark.parametrize("name", MODELS)
def test_an_open_batch_costs_nothing(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    net = MODELS[name]().eval()
    samples = [torch.randn(2, 3, 8, 8) for _ in range(8)]
    path = tmp_path / "net.tflite"
    report = tmconvert.to_tflite(
        net,
        path,
        example_inputs=[samples[0]],
        quantized=True,
        calibration=samples,
        dynamic_shapes={"input": {0: "n"}},
        io_type="float32",
        io_layout="source",
    )
    assert report.verified and report.verification.decibels > 25
    runner = litert.Interpreter(str(path))
    (given,), (result,) = runner.get_input_details(), runner.get_output_details()
    assert given["shape_signature"][0] == -1
    x = torch.randn(5, 3, 8, 8)
    runner.resize_tensor_input(given["index"], x.shape)
    runner.allocate_tensors()
    runner.set_tensor(given["index"], x.numpy())
    runner.invoke()
    assert ratio(runner.get_tensor(result["index"]), net(x).detach().numpy()) > 20
