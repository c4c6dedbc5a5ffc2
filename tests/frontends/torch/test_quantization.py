"""Torch's quantized models as sources: fake quantization, converted modules, exported pairs."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
import torch.ao.quantization as quantization
from torch import nn
from torch.ao.quantization.quantize_fx import (
    convert_fx,
    convert_to_reference_fx,
    prepare_fx,
    prepare_qat_fx,
)

import tmconvert
from tests.frontends.torch.quantized_models import Eager, IntegerFile, Plain, check, images, outputs, trained
from tmconvert.errors import UsageError

pytestmark = [
    pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor, torch.quantize_per_channel and other"),
    pytest.mark.filterwarnings("ignore:Please use quant_min and quant_max"),
    pytest.mark.filterwarnings("ignore:_aminmax is deprecated"),
    pytest.mark.filterwarnings("ignore:All inputs of this cat operator"),
]
NARROW = {"quant_min": -127, "quant_max": 127, "dtype": torch.qint8}
PER_CHANNEL = quantization.FusedMovingAvgObsFakeQuantize.with_args(
    observer=quantization.MovingAveragePerChannelMinMaxObserver,
    qscheme=torch.per_channel_symmetric,
    **NARROW,
)
PER_TENSOR = quantization.FusedMovingAvgObsFakeQuantize.with_args(
    qscheme=torch.per_tensor_symmetric, **NARROW
)
UINT8 = quantization.FusedMovingAvgObsFakeQuantize.with_args(quant_min=0, quant_max=255)
INT8 = quantization.FakeQuantize.with_args(
    observer=quantization.MovingAverageMinMaxObserver,
    dtype=torch.qint8,
    quant_min=-128,
    quant_max=127,
)
QCONFIGS = {
    "uint8, per channel": quantization.QConfig(UINT8, PER_CHANNEL),
    "uint8, per tensor": quantization.QConfig(UINT8, PER_TENSOR),
    "int8, per channel": quantization.QConfig(INT8, PER_CHANNEL),
    "seven bits": quantization.QConfig(quantization.get_default_qat_qconfig("x86").activation, PER_CHANNEL),
}


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(3)


def resting(net: nn.Module) -> nn.Module:
    """A copy that no longer observes."""
    return copy.deepcopy(net).apply(quantization.disable_observer)


@pytest.mark.slow
@pytest.mark.parametrize("name", QCONFIGS)
def test_quantization_aware_training(name):
    net = Eager().prepared(QCONFIGS[name])
    before = {key: value.clone() for key, value in net.state_dict().items()}
    file = check(net, truth=resting(net))
    assert file.operators["CONV_2D"] == 3 and file.operators["FULLY_CONNECTED"] == 1
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())


def test_the_interpreter_computes_what_torch_computes_bit_for_bit():
    net = Eager().prepared(QCONFIGS["uint8, per channel"])
    x = images(5)
    traced = tmconvert.trace(net, x[:1])
    made = np.concatenate([np.asarray(traced(image.numpy())) for image in x.split(1)])
    np.testing.assert_array_equal(made, outputs(resting(net), x))


@pytest.mark.slow
def test_weights_of_128():
    """Torch's own settings have them; kernels for some processors sum two products of these in 16 bits."""
    net = Eager().prepared(quantization.get_default_qat_qconfig("x86"))
    told = "weights of -128 are clipped to -127"
    file = check(net, truth=resting(net))  # activations of seven bits: they are never -128 themselves
    assert not any(told in note for note in file.report.notes)
    assert file.least == -128
    net = Eager().prepared(quantization.get_default_qat_qconfig("qnnpack"))
    file = check(net, truth=resting(net), most_off=0.01)
    assert any(told in note for note in file.report.notes)
    assert file.least == -127
    file = check(net, truth=resting(net), wide_weights=True)
    assert not any(told in note for note in file.report.notes)
    assert file.least == -128


def test_weights_with_zero_points():
    """Torch's fused fake quantization gives one to a channel whose weights have one sign."""

    def product(x, weight, scale, zero_point):
        x = torch.fake_quantize_per_tensor_affine(x, 0.03, 7, -128, 127)
        weight = torch.fake_quantize_per_channel_affine(weight, scale, zero_point.int(), 0, -128, 127)
        return torch.fake_quantize_per_tensor_affine(nn.functional.linear(x, weight), 0.05, 2, -128, 127)

    x, weight = torch.randn(40, 6), torch.randn(3, 6) * 0.1
    weight[1].abs_()
    weight[2].clamp_(-0.1, 0.1)
    scales, zeros = torch.tensor([0.004, 0.001, 0.002]), torch.tensor([0.0, -128.0, -60.0])
    net = Called(product, weight, scales, zeros)
    file = IntegerFile(tmconvert.trace(net, x))
    found = file.weight_scales()
    assert found[[0, 2]] == pytest.approx(scales[[0, 2]].numpy()) and found[1] > 0.0011
    off = np.abs(file(x.numpy()) - net(x).detach().numpy()) / file.step
    assert off[:, [0, 2]].max() < 1.01 and np.mean(off > 0.01) < 0.2


@pytest.mark.slow
def test_concatenation():
    """Its operands are brought to one scale, rounded once."""
    net = Eager(joined=True).prepared(QCONFIGS["uint8, per channel"])
    file = check(net, truth=resting(net))
    assert file.operators["CONCATENATION"] == 1 and file.operators["MUL"] >= 1


@pytest.mark.slow
def test_converted_modules_keep_their_integers():
    net = Eager().prepared(QCONFIGS["seven bits"])  # torch's own sums overflow with eight on some processors
    converted = quantization.convert(copy.deepcopy(net))
    check(converted)
    x = images(5)
    traced = tmconvert.trace(converted, x[:1])
    made = np.concatenate([np.asarray(traced(image.numpy())) for image in x.split(1)])
    np.testing.assert_array_equal(made, outputs(converted, x))
    weight = traced.get("conv1.weight")
    np.testing.assert_array_equal(weight, converted.conv1.weight().dequantize().numpy())
    assert weight.qparams.channel_axis == 0


@pytest.mark.slow
def test_fx():
    mapping = quantization.get_default_qat_qconfig_mapping("x86").set_global(QCONFIGS["seven bits"])
    net = trained(prepare_qat_fx(Plain().train(), mapping, (images(2),)))
    check(net, truth=resting(net))
    check(convert_fx(copy.deepcopy(net)))
    check(convert_to_reference_fx(copy.deepcopy(net)))


def test_after_training():
    mapping = quantization.get_default_qconfig_mapping("fbgemm")
    net = prepare_fx(Plain().eval(), mapping, (images(2),))
    net(images(30))
    observed = {key: value.clone() for key, value in net.state_dict().items()}
    traced = tmconvert.trace(net, images(1))  # observers let pass what they are given
    np.testing.assert_allclose(np.asarray(traced(images(1).numpy())), outputs(net, images(1)), atol=1e-6)
    net.load_state_dict(observed)
    with pytest.raises(UsageError, match="has observers, but was not converted to quantized ops") as error:
        tmconvert.to_onnx(traced, "unwritten.onnx", quantized=True)
    assert "convert_fx" in str(error.value)
    check(convert_fx(net))


def test_an_input_in_float_and_in_integers(tmp_path):
    """Of one that the source rounds for some of its users only, the others get what they got."""

    def both(x):
        whole = torch.fake_quantize_per_tensor_affine(x, 0.02, 3, -128, 127)
        made = torch.fake_quantize_per_tensor_affine(whole * whole, 0.03, -128, -128, 127)
        return made, x.exp()

    traced = tmconvert.trace(both, images(1))
    report = tmconvert.to_tflite(traced, tmp_path / "m", quantized=True, io_type="float32")
    assert report.verified


def test_what_the_source_computed_is_looked_at(tmp_path):
    traced = tmconvert.trace(Eager().prepared(QCONFIGS["int8, per channel"]), images(1))
    told = "the source's framework computed other outputs"
    report = tmconvert.to_onnx(traced, tmp_path / "m", quantized=True)
    assert not any(told in note for note in report.notes)
    traced.example = traced.example._replace(outputs=(-traced.example.outputs[0],))
    report = tmconvert.to_onnx(traced, tmp_path / "m", quantized=True)
    assert any(told in note for note in report.notes)


# ---- calls


class Called(nn.Module):
    """``function`` with an input and fixed tensors, between two roundings."""

    def __init__(self, function, *fixed: torch.Tensor) -> None:
        super().__init__()
        self.function = function
        self.fixed = nn.ParameterList(nn.Parameter(each, requires_grad=False) for each in fixed)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, *self.fixed)


def bits(function, *fixed: torch.Tensor, shape: tuple[int, ...] = (4, 6, 5)):
    """A traced call that gives what torch gives, bit for bit, also halfway between two steps."""
    x = torch.randn(shape)
    x.view(-1)[:20] = (torch.arange(20) - 10.5) * 0.125
    module = Called(function, *fixed)
    traced = tmconvert.trace(module, x)
    made = np.asarray(traced(x.numpy()))
    np.testing.assert_array_equal(made, module(x).detach().numpy())
    return traced, made


SCALES, ZEROS = torch.tensor([0.125, 0.03, 0.25, 0.1, 0.02, 1.5]), torch.tensor([0, 3, -5, 7, 0, 1])


def test_calls_of_fake_quantization():
    def per_tensor(x):
        return torch.fake_quantize_per_tensor_affine(x, 0.125, 3, -128, 127)

    def of_tensors(x, scale, zero_point):
        return torch.fake_quantize_per_tensor_affine(x, scale, zero_point.int(), 0, 255)

    def per_channel(x, scale, zero_point):
        return torch.fake_quantize_per_channel_affine(x, scale, zero_point.int(), 1, -128, 127)

    def learnable(x, scale, zero_point):
        return torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero_point, -8, 7, 1.0)

    def learnable_channels(x, scale, zero_point):
        return torch._fake_quantize_learnable_per_channel_affine(x, scale, zero_point, 1, -8, 7, 1.0)

    bits(per_tensor)
    bits(of_tensors, torch.tensor([0.125]), torch.tensor([100.0]))
    bits(per_channel, SCALES, ZEROS.float())
    bits(learnable, torch.tensor([0.125]), torch.tensor([1.3]))
    bits(learnable_channels, SCALES, ZEROS.float() * 0.9)


def test_zero_points_between_integers_are_computed():
    def embedded(x, scale, zero_point):
        return torch.fake_quantize_per_channel_affine(x, scale, zero_point, 1, 0, 15)

    x = torch.rand(4, 6, 5)
    module = Called(embedded, SCALES, torch.linspace(0.5, 7, 6))
    made = np.asarray(tmconvert.trace(module, x)(x.numpy()))
    np.testing.assert_allclose(made, module(x).detach().numpy(), atol=1e-5)


def test_quantized_tensors():
    def round_trip(x):
        return torch.quantize_per_tensor(x, 0.125, 3, torch.qint8).dequantize()

    def channels(x, scale, zero_point):
        return torch.quantize_per_channel(x, scale, zero_point.int(), 1, torch.qint8).dequantize()

    def through(x):
        q = torch.quantize_per_tensor(x, 0.125, 30, torch.quint8)
        q = torch.nn.functional.avg_pool2d(torch.relu(q).reshape(4, 6, 1, 5), (1, 2))
        return torch.cat([q, q.clone()], 1).dequantize() * q.q_scale()

    def whole(x):
        return torch.quantize_per_tensor(x, 0.125, 3, torch.qint8).int_repr()

    bits(round_trip)
    bits(channels, SCALES, ZEROS.float())
    bits(through)
    bits(whole)


def test_layers_of_quantized_tensors():
    """Each keeps the grid that torch gives its result."""

    def through(x):
        q = torch.quantize_per_tensor(x, 0.05, 128, torch.quint8)
        ops = torch.ops.quantized
        q = ops.add(q, ops.mul(q, q, 0.1037, 10), 0.1171, 40)
        q = ops.leaky_relu(ops.add_scalar(q, 0.5), 0.1, False, 0.1319, 12)
        q = ops.cat([ops.hardswish(q, 0.0717, 20), ops.elu(q, 0.0531, 30, 1.0)], 1, 0.0617, 33)
        return torch.sigmoid(q).dequantize()

    x = torch.randn(4, 6, 5)
    traced = tmconvert.trace(Called(through), x)
    want = through(x).numpy()
    off = np.abs(np.asarray(traced(x.numpy())) - want)
    assert np.mean(off > 1e-6) < 0.02 and off.max() < 0.02  # a step of hardswish, through the sigmoid


def test_slopes_whose_grid_has_no_one():
    """Torch multiplies what is positive by the largest of its steps."""

    def through(x, weight):
        q = torch.quantize_per_tensor(x, 0.05, 100, torch.quint8)
        slopes = torch.quantize_per_tensor(weight, 0.002, 0, torch.quint8)
        return torch.ops.quantized.prelu(q, slopes, 0.03, 90).dequantize()

    x, weight = torch.randn(4, 6, 5), torch.rand(6) * 0.5
    made = np.asarray(tmconvert.trace(Called(through, weight), x)(x.numpy()))
    off = np.abs(made - through(x, weight).numpy())
    assert np.mean(off > 1e-6) < 0.1 and off.max() < 0.031  # halfway between two steps


def test_normalization_by_keyword():
    def through(x):
        q = torch.quantize_per_tensor(x, 0.05, 100, torch.quint8)
        settings = {"weight": None, "bias": None, "eps": 1e-5, "output_scale": 0.04, "output_zero_point": 99}
        return torch.ops.quantized.layer_norm(q, [5], **settings).dequantize()

    x = torch.randn(4, 6, 5)
    made = np.asarray(tmconvert.trace(Called(through), x)(x.numpy()))
    assert np.mean(np.abs(made - through(x).numpy()) > 1e-6) < 0.02


@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (lambda: nn.Embedding(9, 8), torch.quint8),
        (lambda: nn.EmbeddingBag(9, 8, mode="sum"), torch.quint8),
        (lambda: nn.EmbeddingBag(9, 8, mode="sum"), torch.quint4x2),
    ],
)
def test_tables(make, dtype):
    import torch.ao.nn.quantized as quantized

    table = make()
    rows = torch.ao.quantization.PerChannelMinMaxObserver(
        dtype=dtype, qscheme=torch.per_channel_affine_float_qparams, ch_axis=0
    )
    indices = torch.randint(0, 9, (2, 3))
    table.qconfig = quantization.QConfig(quantization.default_observer, lambda: copy.deepcopy(rows))
    made = getattr(quantized, type(table).__name__).from_float(table)
    traced = tmconvert.trace(made, indices)
    # of four bits torch has the scales in 16
    np.testing.assert_allclose(np.asarray(traced(indices.numpy())), made(indices).numpy(), atol=2e-3)


def test_second_results_serve_a_gradient():
    def masked(x):
        x, _ = torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(x, 0.125, 3, -128, 127)
        scales, zeros = torch.full((6,), 0.25), torch.zeros(6, dtype=torch.int32)
        return torch.ops.aten.fake_quantize_per_channel_affine_cachemask(x, scales, zeros, 1, -8, 7)[0]

    bits(masked)


# ---- pairs of exported programs


class Pairs(nn.Module):
    """What convert_pt2e makes of a convolution, a sum and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        import torch.ao.quantization.fx._decomposed

        self.register_buffer("weight", torch.randint(-127, 128, (4, 3, 3, 3), dtype=torch.int8))
        self.register_buffer("scales", torch.rand(4) * 0.01 + 0.001)
        self.register_buffer("zeros", torch.zeros(4, dtype=torch.int64))
        self.register_buffer("matrix", torch.randint(-127, 128, (10, 64), dtype=torch.int8))
        self.bias = nn.Parameter(torch.randn(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ops = torch.ops.quantized_decomposed

        def rounded(x: torch.Tensor, scale: float, zero_point: int) -> torch.Tensor:
            q = ops.quantize_per_tensor(x, scale, zero_point, -128, 127, torch.int8)
            return ops.dequantize_per_tensor(q, scale, zero_point, -128, 127, torch.int8)

        weight = ops.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8)
        x = rounded(x, 0.03, 5)
        x = rounded(torch.relu(torch.conv2d(x, weight, self.bias, padding=1)), 0.08, -128)
        x = rounded(x + x.flip(2), 0.16, -128)
        matrix = ops.dequantize_per_tensor(self.matrix, 0.002, 0, -127, 127, torch.int8)
        x = nn.functional.linear(torch.flatten(nn.functional.max_pool2d(x, 2), 1), matrix)
        return rounded(x, 0.3, 2)


@pytest.mark.slow
def test_pairs_of_exported_programs(tmp_path):
    net = Pairs().eval()
    check(net)
    program = torch.export.export(net, (images(1),))
    check(program.module(), truth=net, batches=False)
    torch.export.save(program, tmp_path / "model.pt2")
    file = IntegerFile(tmp_path / "model.pt2")
    assert file.operators["CONV_2D"] == 1 and file.types <= {"int8", "int32"}


def test_integers_that_are_used_as_such():
    def halves(x):
        import torch.ao.quantization.fx._decomposed

        ops = torch.ops.quantized_decomposed
        q = ops.quantize_per_tensor(x, 0.125, 3, -128, 127, torch.int8)
        return ops.dequantize_per_tensor(q // 2, 0.25, 1, -128, 127, torch.int8)

    bits(halves)
