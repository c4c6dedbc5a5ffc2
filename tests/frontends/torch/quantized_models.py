"""Small models of torch's quantization, and what their files make of data."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.ao.quantization as quantization
from torch import nn
from torch.ao.nn.quantized import FloatFunctional

import tmconvert
from tests.frontends.torch.harness import run_onnx_on_each

IMAGES = (3, 8, 8)
LAYERS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")


class Eager(nn.Module):
    """Stubs, fused layers, a residual sum and, if asked for, a concatenation of FloatFunctional."""

    def __init__(self, *, joined: bool = False) -> None:
        super().__init__()
        self.joined = joined
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.conv1, self.bn1, self.relu1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1, bias=False, groups=2), nn.BatchNorm2d(8)
        self.add = FloatFunctional()
        if joined:
            self.cat = FloatFunctional()
        self.conv3, self.relu3 = nn.Conv2d(8, 4, 1), nn.ReLU()
        self.pool, self.fc = nn.MaxPool2d(2), nn.Linear((12 if joined else 4) * 4 * 4, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu1(self.bn1(self.conv1(self.quant(x))))
        x = self.add.add_relu(x, self.bn2(self.conv2(x)))
        y = self.relu3(self.conv3(x))
        x = self.cat.cat([x, y], 1) if self.joined else y
        return self.dequant(self.fc(torch.flatten(self.pool(x), 1)))

    def prepared(self, qconfig: Any) -> nn.Module:
        """For quantization-aware training, trained a little."""
        layers = [["conv1", "bn1", "relu1"], ["conv2", "bn2"], ["conv3", "relu3"]]
        self.qconfig = qconfig
        net = quantization.prepare_qat(quantization.fuse_modules_qat(self.train(), layers))
        return trained(net)


class Plain(nn.Module):
    """Calls that FX finds by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.conv3, self.fc = nn.Conv2d(8, 4, 1), nn.Linear(12, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(x + self.conv2(x))
        x = torch.cat([x, torch.sigmoid(self.conv3(x))], 1)
        x = nn.functional.adaptive_avg_pool2d(nn.functional.max_pool2d(x, 2), 1)
        return self.fc(torch.flatten(x, 1))


def trained(net: nn.Module, steps: int = 3) -> nn.Module:
    """Trains by plain gradient descent: torch's optimizers import its compiler, for seconds."""
    parameters = list(net.parameters())
    for _ in range(steps):
        loss = (net(torch.randn(8, *IMAGES)) - 1).abs().mean()
        for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
            parameter.data.add_(gradient, alpha=-0.05)
    return net.eval()


def images(count: int) -> torch.Tensor:
    return torch.randn(count, *IMAGES, generator=torch.Generator().manual_seed(7))


def outputs(net: Any, x: torch.Tensor) -> np.ndarray:
    """What torch computes, image by image."""
    with torch.no_grad():
        return torch.cat([net(image) for image in x.split(1)]).numpy()


class IntegerFile:
    """An integer TFLite file of a model: its operators, and what it computes with plain kernels."""

    def __init__(self, model: Any, **options: Any) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.tflite"
            self.report = tmconvert.to_tflite(model, path, quantized=True, io_layout="source", **options)
            self.interpreter = Interpreter(
                model_content=path.read_bytes(),
                experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            )
        self.interpreter.allocate_tensors()
        self.operators = Counter(each["op_name"] for each in self.interpreter._get_ops_details())
        self.types = {np.dtype(each["dtype"]).name for each in self.interpreter.get_tensor_details()}
        layers = [each for each in self.interpreter._get_ops_details() if each["op_name"] in LAYERS]
        self.least = min(int(self.interpreter.get_tensor(each["inputs"][1]).min()) for each in layers)
        self.step = float(self.interpreter.get_output_details()[0]["quantization"][0])

    def weight_scales(self) -> np.ndarray:
        """Those of the first layer."""
        details = {each["index"]: each for each in self.interpreter.get_tensor_details()}
        layers = [each for each in self.interpreter._get_ops_details() if each["op_name"] in LAYERS]
        return np.asarray(details[layers[0]["inputs"][1]]["quantization_parameters"]["scales"])

    def __call__(self, x: np.ndarray) -> np.ndarray:
        given = self.interpreter.get_input_details()[0]
        made = self.interpreter.get_output_details()[0]
        scale, zero_point = given["quantization"]
        steps = np.rint(x * (np.float32(1) / np.float32(scale))) + zero_point
        self.interpreter.set_tensor(given["index"], np.clip(steps, -128, 127).astype(np.int8))
        self.interpreter.invoke()
        result = self.interpreter.get_tensor(made["index"]).astype(np.float32)
        return (result - made["quantization"][1]) * np.float32(self.step)


def check(
    net: Any,
    *,
    truth: Any = None,
    count: int = 100,
    most_off: float = 0.001,
    batches: bool = True,
    **options: Any,
) -> IntegerFile:
    """The interpreter, clean float ONNX, Q/DQ ONNX and integer TFLite of a model in evaluation.

    The interpreter computes all images in one batch, unless the model does not take ``batches``.
    Files in integers are within one step of the output for 99.9 % of its elements, or but for ``most_off``
    in TFLite, which ``options`` are for.
    """
    x = images(count)
    traced = tmconvert.trace(net, x[:1])
    want = outputs(truth or net, x)
    file = IntegerFile(traced, **options)
    if batches:
        made = np.asarray(tmconvert.trace(net, x)(x.numpy()))
    else:
        made = np.concatenate([np.asarray(traced(image.numpy())) for image in x.split(1)])
    assert_within_a_step(made, want, file.step)
    made = np.concatenate([file(image.numpy()) for image in x.split(1)])
    assert_within_a_step(made, want, file.step, most_off)
    assert file.types <= {"int8", "int32"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        tmconvert.to_onnx(traced, path, quantized=True)
        made = np.concatenate(
            [made for (made,) in run_onnx_on_each(path, ([image.numpy()] for image in x.split(1)))]
        )
        assert_within_a_step(made, want, file.step)
        tmconvert.to_onnx(traced, path)
        assert not {"Div", "BatchNormalization", "QuantizeLinear", "Round"} & operators_of(path)
    return file


def operators_of(path: Path) -> set[str]:
    import onnx

    return {node.op_type for node in onnx.load(path).graph.node}


def assert_within_a_step(made: np.ndarray, want: np.ndarray, step: float, most: float = 0.001) -> None:
    off = np.abs(made - want) / step
    assert np.mean(off > 1.01) <= most and off.max() < 3.01, (
        f"{np.mean(off > 1.01):.2%} beyond a step, up to {off.max():.2f}"
    )
