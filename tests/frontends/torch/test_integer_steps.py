"""Float models are integers throughout in TFLite, whatever their operators, once they are calibrated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from ai_edge_litert import interpreter as litert
from torch import Tensor, nn

import tmconvert
from tests.models.integers import OWN_KERNELS, WITH_XNNPACK, census
from tmconvert.errors import UnsupportedError
from tmconvert.targets.tflite.verify.observed import in_steps

SAMPLES, TESTS = 24, 8


class Net(nn.Module):
    """``function`` of the parts and the input."""

    def __init__(self, function: Callable[..., Tensor], **parts: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(self, *inputs)


def data(*shape: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Numbers of which some are three times as large as others."""

    def make(random: np.random.Generator, count: int) -> np.ndarray:
        spread = 3.0 ** random.uniform(-0.5, 0.5, (count, *shape[:1], *[1] * (len(shape) - 1)))
        return (random.normal(size=(count, *shape)) * spread).astype(np.float32)

    return make


def tokens(random: np.random.Generator, count: int) -> np.ndarray:
    return random.integers(0, 20, (count, 10))


IMAGE, ROWS = data(8, 6, 6), data(10, 16)


def attention(net: Any, x: Tensor) -> Tensor:
    """By hand, as many models have it."""
    q, k, v = net.qkv(x).reshape(*x.shape[:-1], 3, 2, 8).permute(2, 0, 3, 1, 4)
    weights = ((q @ k.transpose(-2, -1)) / 8**0.5).softmax(-1)
    return net.out((weights @ v).transpose(1, 2).reshape(x.shape))


def masked(net: Any, x: Tensor) -> Tensor:
    q, k, v = net.qkv(x).reshape(*x.shape[:-1], 3, 2, 8).permute(2, 0, 3, 1, 4)
    seen = torch.ones(10, 10, dtype=torch.bool).tril()
    return net.out(F.scaled_dot_product_attention(q, k, v, seen).transpose(1, 2).reshape(x.shape))


def block(net: Any, x: Tensor) -> Tensor:
    x = x + attention(net, net.first(x))
    return x + net.down(F.gelu(net.up(net.second(x))))


def parts() -> dict[str, nn.Module]:
    return {"qkv": nn.Linear(16, 48), "out": nn.Linear(16, 16)}


def with_conv(function: Callable[[Tensor], Tensor]) -> Callable[[], Net]:
    return lambda: Net(lambda net, x: net.last(function(net.conv(x))), conv=conv(), last=conv())


def with_linear(function: Callable[[Tensor], Tensor], width: int = 16) -> Callable[[], Net]:
    return lambda: Net(
        lambda net, x: net.last(function(net.first(x))), first=nn.Linear(16, 16), last=nn.Linear(width, 4)
    )


def conv() -> nn.Conv2d:
    return nn.Conv2d(8, 8, 3, padding=1)


# name: (model, data, least ratio of signal to noise)
MODELS: dict[str, tuple[Callable[[], Net], Any, float]] = {
    "layer_norm": (lambda: Net(lambda net, x: net.norm(x), norm=nn.LayerNorm(16)), ROWS, 31),
    "norm of a norm": (lambda: Net(lambda net, x: F.layer_norm(F.layer_norm(x, [16]), [16])), ROWS, 31),
    "rms_norm": (lambda: Net(lambda net, x: net.norm(x), norm=nn.RMSNorm(16)), ROWS, 31),
    "group_norm": (with_conv(nn.GroupNorm(4, 8)), IMAGE, 31),
    "instance_norm": (with_conv(nn.InstanceNorm2d(8, affine=True)), IMAGE, 31),
    "norm and relu": (with_conv(lambda x: F.relu(F.group_norm(x, 2))), IMAGE, 31),
    "gelu": (with_linear(F.gelu), ROWS, 31),
    "gelu tanh": (with_linear(lambda x: F.gelu(x, approximate="tanh")), ROWS, 31),
    "silu": (with_linear(F.silu), ROWS, 31),
    "mish and softplus": (with_linear(lambda x: F.softplus(F.mish(x))), ROWS, 31),
    "hard": (with_conv(lambda x: F.hardswish(x) * F.hardsigmoid(x)), IMAGE, 31),
    "softmax of rows": (with_linear(lambda x: x.softmax(1)), ROWS, 40),
    "blocks of pixels": (
        lambda: Net(
            lambda net, x: net.last(F.pixel_shuffle(net.first(F.pixel_unshuffle(x, 2)), 2)),
            first=nn.Conv2d(32, 32, 1),
            last=conv(),
        ),
        IMAGE,
        29,
    ),
    "normalize": (with_linear(lambda x: F.normalize(x, dim=-1)), ROWS, 31),
    "std and var": (with_linear(lambda x: x * x.std(-1, keepdim=True) + x.var(1, keepdim=True)), ROWS, 28),
    "division": (with_linear(lambda x: x / (x.sigmoid() + 0.3)), ROWS, 29),
    "powers": (with_linear(lambda x: (x * x + 1).rsqrt() + x.abs().sqrt() - x.pow(3) / 50), ROWS, 29),
    "einsum": (with_linear(lambda x: torch.einsum("bnc,bmc->bnm", x, x), 10), ROWS, 28),
    "attention": (lambda: Net(attention, **parts()), ROWS, 29),
    "masked attention": (lambda: Net(masked, **parts()), ROWS, 29),
    "block": (
        lambda: Net(
            block,
            **parts(),
            first=nn.LayerNorm(16),
            second=nn.LayerNorm(16),
            up=nn.Linear(16, 32),
            down=nn.Linear(32, 16),
        ),
        ROWS,
        31,
    ),
    "embedding": (
        lambda: Net(
            lambda net, x: net.norm(net.words(x) + net.places.weight),
            words=nn.Embedding(20, 16),
            places=nn.Embedding(10, 16),
            norm=nn.LayerNorm(16),
        ),
        tokens,
        37,
    ),
    "lstm": (lambda: Net(lambda net, x: net.cells(x)[0], cells=nn.LSTM(16, 8, batch_first=True)), ROWS, 31),
    "gru": (
        lambda: Net(
            lambda net, x: net.cells(x)[0], cells=nn.GRU(16, 8, batch_first=True, bidirectional=True)
        ),
        ROWS,
        31,
    ),
}


def ratio(signal: np.ndarray, actual: np.ndarray) -> float:
    return float(10 * np.log10(np.sum(signal**2.0) / np.sum((signal - actual) ** 2.0)))


def in_litert(path: Path, tests: np.ndarray, mode: object) -> np.ndarray:
    interpreter = litert.Interpreter(str(path), num_threads=1, experimental_op_resolver_type=mode)
    interpreter.allocate_tensors()
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    scale, zero_point = made["quantization"]
    found = []
    for each in tests:
        interpreter.set_tensor(given["index"], in_steps(each[None], given))
        interpreter.invoke()
        found.append((interpreter.get_tensor(made["index"]).astype(np.float32) - zero_point) * scale)
    return np.concatenate(found)


def prepared(name: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """The traced model, the data to calibrate with, and what the model makes of the first of it."""
    torch.manual_seed(0)
    build, make, _ = MODELS[name]
    net, samples = build().eval(), make(np.random.default_rng(0), SAMPLES)
    with torch.no_grad():
        truth = net(torch.from_numpy(samples[:TESTS])).numpy()
    return tmconvert.trace(net, torch.from_numpy(samples[:1])), samples, truth


def calibrated(traced: Any, samples: np.ndarray, **options: Any) -> Any:
    return tmconvert.calibrate(traced, {traced.graph.inputs[1].expr.name: samples}, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_calibrated_model_has_no_float(name: str, tmp_path: Path) -> None:
    traced, samples, truth = prepared(name)
    made = calibrated(traced, samples)
    path = tmp_path / "m.tflite"
    report = tmconvert.to_tflite(made, path, quantized=True, io_layout="source")
    assert report.verified
    assert not census(path).in_float
    for mode in (WITH_XNNPACK, OWN_KERNELS):
        assert ratio(truth, in_litert(path, samples[:TESTS], mode)) > MODELS[name][2]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["block", "division", "gelu", "group_norm", "lstm", "blocks of pixels"])
def test_in_sixteen_bits_too(name: str, tmp_path: Path) -> None:
    traced, samples, truth = prepared(name)
    made, path = calibrated(traced, samples, rules={"*": "int16x8"}), tmp_path / "m.tflite"
    assert tmconvert.to_tflite(made, path, quantized=True, io_layout="source").verified
    assert not census(path).in_float
    assert ratio(truth, in_litert(path, samples[:TESTS], OWN_KERNELS)) > 40


@pytest.mark.slow
def test_onnx_of_the_same_model_has_whole_operators(tmp_path: Path) -> None:
    traced, samples, truth = prepared("block")
    calibrated(traced, samples).save(tmp_path / "m.tm")
    made = tmconvert.load(tmp_path / "m.tm")
    report = tmconvert.to_onnx(made, tmp_path / "m.onnx", quantized=True)
    assert report.verified
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    found = [session.run(None, {session.get_inputs()[0].name: each[None]})[0] for each in samples[:TESTS]]
    assert ratio(truth, np.concatenate(found)) > 31
    types = [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]
    assert types.count("LayerNormalization") == 2 and "ReduceMean" not in types
    assert tmconvert.to_tflite(made, tmp_path / "m.tflite", quantized=True).verified
    assert not census(tmp_path / "m.tflite").in_float


@pytest.mark.parametrize("name", ["layer_norm", "lstm", "masked attention", "powers"])
def test_what_lies_beyond_the_samples_is_clamped(name: str, tmp_path: Path) -> None:
    """Places in tables, too: no file stops at an input."""
    traced, samples, _ = prepared(name)
    path = tmp_path / "m.tflite"
    tmconvert.to_tflite(calibrated(traced, samples[:1] / 10), path, quantized=True, io_layout="source")
    for far in (samples[:2] * 100, samples[:2] * 0):
        assert np.isfinite(in_litert(path, far, OWN_KERNELS)).all()


@pytest.mark.slow
def test_a_layer_may_have_only_zeros(tmp_path: Path) -> None:
    traced, samples, _ = prepared("lstm")
    made = calibrated(traced, samples * 0)
    path = tmp_path / "m.tflite"
    assert tmconvert.to_tflite(made, path, quantized=True, io_layout="source").verified
    assert np.isfinite(in_litert(path, samples[:2], OWN_KERNELS)).all()


def test_what_has_no_integer_form_is_one_error(tmp_path: Path) -> None:
    torch.manual_seed(0)
    net, samples = (
        with_linear(lambda x: torch.atan2(x, x.abs() + 1.0))().eval(),
        ROWS(np.random.default_rng(0), 4),
    )
    traced, path = tmconvert.trace(net, torch.from_numpy(samples[:1])), tmp_path / "m.tflite"
    made = calibrated(traced, samples)
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.to_tflite(made, path, activations="int16", quantized=True)
    text = str(caught.value)
    assert text.startswith("error[TM2003]: TFLite has no kernel for ATAN2 in int16")
    assert f"--> {__file__}:" in text and " = aten::atan2(" in text
    assert "help: --allow-float keeps it in float, between DEQUANTIZE and QUANTIZE" in text
    assert "--activations int8 has more kernels" in text
    assert "; so does a calibration with --rule 'atan2_out=float'" in text
    assert not path.exists()
    assert tmconvert.to_tflite(made, path, activations="int16", quantized=True, allow_float=True).verified
    in_part = calibrated(traced, samples, rules={"atan2_out": "float"})
    report = tmconvert.to_tflite(in_part, path, activations="int16", quantized=True)
    assert report.verified and any("operators kept in float," in note for note in report.notes)
