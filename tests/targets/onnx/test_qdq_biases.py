"""Biases of Q/DQ files are int32 that hold them: ONNX Runtime quantizes those that it finds in float."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import tmconvert
from tmconvert.targets.onnx.verify.sessions import saturates_here

torch = pytest.importorskip("torch")
LEAST = 35.0  # decibels


def ratio(made: np.ndarray, wanted: np.ndarray) -> float:
    noise = np.sum(np.square(made.astype(np.float64) - wanted))
    return float(10 * np.log10(np.sum(np.square(wanted.astype(np.float64))) / noise))


def layer(kind: str) -> tuple[Any, tuple[int, ...]]:
    """A layer with a channel whose weights are small beside its bias, and the shape of its input."""
    nn = torch.nn
    made, shape = {
        "convolution": (lambda: nn.Conv2d(3, 8, 3), (1, 3, 12, 12)),
        "of one axis": (lambda: nn.Conv1d(3, 8, 3), (1, 3, 20)),
        "of each channel": (lambda: nn.Conv2d(8, 8, 3, groups=8), (1, 8, 12, 12)),
        "transposed": (lambda: nn.ConvTranspose2d(4, 8, 3, stride=2), (1, 4, 9, 9)),
        "dense": (lambda: nn.Linear(16, 8), (2, 16)),
        "normalized": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)), (1, 3, 12, 12)),
    }[kind]
    torch.manual_seed(0)
    net = made()
    with torch.no_grad():
        if kind == "normalized":
            net[1].running_var[2] = 1e9
            net[1].bias[2] = 3
        else:
            weight = net.weight.transpose(0, 1) if kind == "transposed" else net.weight
            weight[2] *= 1e-7
            net.bias[2] = 3
    return net.eval(), shape


def check(path: Path, net: Any, x: Any, *, saturates: bool = False) -> None:
    """Checks the outputs and the biases; integer kernels that saturate on this processor are not used."""
    options = onnxruntime.SessionOptions()
    if saturates and saturates_here():
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    session = onnxruntime.InferenceSession(str(path), options)
    (made,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert ratio(made, net(x).detach().numpy()) > LEAST
    graph = onnx.load(path).graph
    makers = {name: node.op_type for node in graph.node for name in node.output}
    biases = [node.input[2] for node in graph.node if node.op_type in ("Conv", "ConvTranspose", "Gemm")]
    assert biases and all(makers.get(name) == "DequantizeLinear" for name in biases)


@pytest.mark.parametrize("activations", ["int8", "uint8", "uint16"])
@pytest.mark.parametrize(
    "kind", ["convolution", "of one axis", "of each channel", "transposed", "dense", "normalized"]
)
def test_a_bias_that_is_large_beside_its_weights(tmp_path: Path, kind: str, activations: str) -> None:
    net, shape = layer(kind)
    samples = [torch.randn(shape) for _ in range(8)]
    path = tmp_path / "net.onnx"
    opset = 21 if activations == "uint16" else 17
    options = {"quantized": True, "activations": activations, "calibration": samples, "opset": opset}
    assert tmconvert.to_onnx(net, path, example_inputs=[samples[0]], **options).verified
    check(path, net, samples[1], saturates=activations == "int8")  # whose weights are int8, too


@pytest.mark.parametrize("zero", [0, 7])
def test_weights_with_one_scale_get_one_for_each_channel(tmp_path: Path, zero: int) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.weight = torch.nn.Parameter(torch.randn(8, 3, 3, 3) * 1e-6)
            self.bias = torch.nn.Parameter(torch.tensor([3.0] + 7 * [1e-6]))

        def forward(self, x: Any) -> Any:
            x = torch.fake_quantize_per_tensor_affine(x, 0.03, 0, -128, 127)
            weight = torch.fake_quantize_per_tensor_affine(self.weight, 3e-8, zero, -128, 127)
            x = torch.nn.functional.conv2d(x, weight, self.bias)
            return torch.fake_quantize_per_tensor_affine(x[:, 1:], 3e-7, 0, -128, 127)

    net, x = Net().eval(), torch.randn(1, 3, 8, 8)
    path = tmp_path / "net.onnx"
    assert tmconvert.to_onnx(net, path, example_inputs=[x], quantized=True, weight_type="int8").verified
    check(path, net, x)
