"""Models that find scales in the data as they run: what they compute, in plain ops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.ao.nn.quantized.dynamic as dynamic
import torch.ao.quantization as quantization
from torch import nn
from torch.ao.quantization.quantize_fx import convert_fx, prepare_fx

import tmconvert
from tests.frontends.torch.harness import check
from tmconvert.errors import UnsupportedError, UsageError

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor, torch.quantize_per_channel and other"),
    pytest.mark.filterwarnings("ignore:The current implementation of the Dynamic"),
    pytest.mark.filterwarnings("ignore:Please use quant_min and quant_max"),
]
CLOSE = {"tolerance": 1e-5}


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(3)


def test_linear_layers(tmp_path: Path):
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
    made = quantization.quantize_dynamic(net, {nn.Linear})
    x = torch.randn(2, 5, 16)
    traced = check(made, x, tflite=True, **CLOSE)
    check(made, torch.zeros(2, 16), second=[torch.randn(2, 16) * 1e-7 - 1e-6], **CLOSE)
    if "fbgemm" in torch.backends.quantized.supported_engines:  # only it packs float16, and it needs AVX2
        check(quantization.quantize_dynamic(net, {nn.Linear}, dtype=torch.float16), x, **CLOSE)
    with pytest.raises(UsageError, match="the model has no quantization"):  # that a file could name
        tmconvert.to_onnx(traced, tmp_path / "m.onnx", quantized=True)
    mapping = quantization.QConfigMapping().set_global(quantization.default_dynamic_qconfig)
    check(convert_fx(prepare_fx(net, mapping, (x,))), x, **CLOSE)


@pytest.mark.parametrize(
    "layer", [nn.Conv1d(3, 4, 3, stride=2), nn.Conv2d(3, 4, 3, padding=1), nn.Conv3d(3, 4, 2)]
)
def test_convolutions(layer: nn.Module):
    layer.qconfig = quantization.default_dynamic_qconfig
    made = getattr(dynamic, type(layer).__name__).from_float(layer.eval())
    check(made, torch.randn(2, 3, *[6] * (layer.weight.dim() - 2)), **CLOSE)


def test_recurrent_layers_are_refused():
    net = quantization.quantize_dynamic(nn.Sequential(nn.LSTM(4, 4)).eval(), {nn.LSTM})
    with pytest.raises(UnsupportedError, match="a recurrent layer with dynamic quantization"):
        tmconvert.to_onnx(tmconvert.trace(net, torch.randn(2, 1, 4)), "unwritten.onnx")


def test_fake_quantization_by_computed_scales():
    def of_the_data(x):
        scale = x.abs().amax() / 127
        return torch.fake_quantize_per_tensor_affine(x, scale, torch.zeros(1).int()[0], -127, 127)

    check(of_the_data, torch.randn(3, 4), **CLOSE)


def pair(choose, *settings, is_token=False):
    """What exported programs do where a quantizer asks for dynamic scales."""

    def rounded(x):
        import torch.ao.quantization.fx._decomposed

        ops = torch.ops.quantized_decomposed
        scale, zero = getattr(ops, choose)(x, *settings)
        kind = "per_token" if is_token else "per_tensor"
        ends = (scale, zero, -128, 127, torch.int8)
        steps = getattr(ops, f"quantize_{kind}")(x, *ends)
        others = (torch.float32,) if is_token else ()
        return getattr(ops, f"dequantize_{kind}")(steps, *ends, *others)

    return rounded


@pytest.mark.parametrize(
    "rounded",
    [
        pair("choose_qparams", -128, 127, 1e-5, torch.int8),
        pair("choose_qparams_symmetric", -127, 127, 1e-5, torch.int8),
        pair("choose_qparams_per_token", torch.int8, is_token=True),
        pair("choose_qparams_per_token_asymmetric", torch.int8, is_token=True),
    ],
)
def test_pairs_of_exported_programs(rounded):
    x = torch.randn(3, 4, 5)
    check(rounded, x, **CLOSE)
    program = torch.export.export(Called(rounded), (x,))
    np.testing.assert_allclose(
        np.asarray(tmconvert.trace(program.module(), x)(x.numpy())), rounded(x).numpy(), atol=1e-5
    )


class Called(nn.Module):
    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


class Halves(torch.Tensor):
    """A weight in steps of 0.5, which says itself what a linear layer does with it."""

    steps: torch.Tensor

    @staticmethod
    def __new__(cls, steps: torch.Tensor) -> Halves:
        made = torch.Tensor._make_wrapper_subclass(cls, steps.shape, dtype=torch.float32)
        made.steps = steps
        return made

    def __tensor_flatten__(self):
        return ["steps"], None

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is nn.functional.linear:
            x, weight, bias = args
            whole = torch._int_mm(x.round().to(torch.int8), weight.steps.t())
            return whole.to(torch.float32) * 0.5 + bias
        if function is torch.Tensor.matmul:
            return function(*args)
        return super().__torch_function__(function, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.detach.default:
            return Halves(args[0].steps)
        raise NotImplementedError(function)


def test_weights_that_are_made_of_tensors():
    """As those of torchao are."""
    layer = nn.Linear(16, 8).eval()
    layer.weight = nn.Parameter(Halves(torch.randint(-9, 9, (8, 16), dtype=torch.int8)), requires_grad=False)
    traced = check(nn.Sequential(layer), torch.randn(18, 16) * 3, **CLOSE)
    assert traced.get("0.weight_steps").dtype == np.int8
    with pytest.raises(UnsupportedError, match="cannot be traced"):
        tmconvert.trace(lambda x: x.matmul(layer.weight), torch.randn(3, 8))


def test_products_of_integers():
    weight = torch.randint(-9, 9, (32, 16), dtype=torch.int8)
    check(lambda x: torch._int_mm(x.to(torch.int8), weight.t()), torch.randn(18, 16) * 9, tflite=True)
