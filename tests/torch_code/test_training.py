"""The digits CNN of a .tm is trained on in PyTorch, and converted again."""

from __future__ import annotations

import copy
import importlib.util
import io
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tmconvert

torch = pytest.importorskip("torch")

SAMPLES = Path(__file__).parents[2] / "samples"
DIGITS = SAMPLES / "digits.tm"


@pytest.fixture(scope="module")
def sample() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fine_tune", SAMPLES / "surgery" / "fine_tune.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_fine_tuning(sample: ModuleType, tmp_path: Path) -> None:
    net, before, after = sample.fine_tuned()
    assert before > 0.98
    assert after >= before
    images, labels = sample.held_out()
    traced = tmconvert.trace(net, images[:2], dynamic_shapes={"x": {0: "batch"}})
    (logits,) = [traced(images[sample.TRAINED :].numpy())]
    assert np.mean(logits.argmax(axis=1) == labels[sample.TRAINED :].numpy()) == pytest.approx(after)
    tmconvert.to_onnx(traced, tmp_path / "tuned.onnx")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # PyTorch's, that this API has a successor
def test_training_with_fake_quantization(sample: ModuleType, tmp_path: Path) -> None:
    """torch.ao finds the convolutions, batch norms and the linear layer; integers read as well as floats."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    import torch.ao.quantization as quantization
    from torch.ao.quantization.quantize_fx import prepare_qat_fx

    images, labels = sample.held_out()
    net = tmconvert.load(DIGITS).to_torch()
    before = sample.accuracy(net, images[sample.TRAINED :], labels[sample.TRAINED :])
    config = quantization.QConfig(
        activation=quantization.FusedMovingAvgObsFakeQuantize.with_args(quant_min=0, quant_max=255),
        weight=quantization.default_per_channel_weight_fake_quant,
    )
    mapping = quantization.QConfigMapping().set_global(config)
    prepared = prepare_qat_fx(net.train(), mapping, (images[:2],))
    sample.train(prepared, images[: sample.TRAINED], labels[: sample.TRAINED])
    prepared.apply(quantization.disable_observer)
    assert sample.accuracy(prepared, images[sample.TRAINED :], labels[sample.TRAINED :]) >= before
    path = tmp_path / "digits.tflite"
    tmconvert.to_tflite(tmconvert.trace(prepared.eval(), images[:1]), path, quantized=True)
    model = interpreter.Interpreter(str(path))
    model.allocate_tensors()
    source, result = model.get_input_details()[0], model.get_output_details()[0]
    scale, zero = source["quantization"]
    right = 0
    for image, label in zip(images[sample.TRAINED :].numpy(), labels[sample.TRAINED :], strict=True):
        integers = np.clip(np.rint(image.transpose(1, 2, 0) / scale) + zero, -128, 127).astype(np.int8)
        model.set_tensor(source["index"], integers[None])
        model.invoke()
        right += int(model.get_tensor(result["index"]).argmax() == label)
    assert right >= round(before * (len(labels) - sample.TRAINED))


@pytest.mark.slow
def test_the_module_is_one_like_any_other() -> None:
    net = tmconvert.load(DIGITS).to_torch()
    x = torch.rand(3, 1, 8, 8)
    expected = net(x)
    copied = copy.deepcopy(net)
    assert type(copied) is type(net)
    assert torch.equal(copied(x), expected)
    stored = io.BytesIO()
    torch.save(net, stored)
    stored.seek(0)
    assert torch.equal(torch.load(stored, weights_only=False)(x), expected)
    exported = torch.export.export(net, (x,)).module()(x)
    assert torch.allclose(exported, expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript() -> None:
    net = tmconvert.load(DIGITS).to_torch()
    x = torch.rand(3, 1, 8, 8)
    for scripted in (torch.jit.script(net), torch.jit.trace(net, x)):
        assert torch.allclose(scripted(x), net(x), atol=1e-6)


def test_training_mode_is_that_of_the_source() -> None:
    """Dropout and batch norms are modules again: tracing in evaluation mode left the first out."""

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(4, momentum=0.25)
            self.drop = torch.nn.Dropout(0.75)
            self.scale = torch.nn.Parameter(torch.tensor(3.0))
            self.register_buffer("shift", torch.ones(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.drop(self.norm(x)) * torch.exp(self.scale) + self.shift

    source = Net().eval()
    x = torch.randn(64, 4)
    traced = tmconvert.trace(source, x[:2], dynamic_shapes={"x": {0: "batch"}})
    net = traced.to_torch()
    assert set(net.state_dict()) == set(source.state_dict())
    assert [name for name, _ in net.named_parameters()] == [name for name, _ in source.named_parameters()]
    assert torch.allclose(net(x), source(x))
    for module in (source.train(), net.train()):
        torch.manual_seed(0)
        module(x).sum().backward()
    assert torch.allclose(net.norm.running_mean, source.norm.running_mean)
    assert torch.allclose(net.scale.grad, source.scale.grad)
    assert torch.allclose(net.norm.weight.grad, source.norm.weight.grad)


def test_functional_dropout_drops_in_training() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.nn.functional.dropout(self.linear(x), 0.75, self.training)
            return torch.nn.functional.dropout(x, p=0.5, training=self.training) + self.inner(y)

    source, x = Net().eval(), torch.randn(64, 4)
    traced = tmconvert.trace(source, x)
    net = traced.to_torch()
    assert torch.allclose(net(x), source(x))
    for module in (source.train(), net.train()):
        torch.manual_seed(0)
        module(x).sum().backward()
    torch.manual_seed(0)
    expected = source(x)
    torch.manual_seed(0)
    assert torch.equal(net(x), expected)
    assert torch.equal(net.linear.weight.grad, source.linear.weight.grad)


def test_fake_quantization_of_torch_ao_is_kept() -> None:
    """Outputs, gradients and the buffers of scales are those of the prepared module."""
    from torch.ao import quantization

    from tests.frontends.torch.quantized_models import Eager, images

    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = Eager().prepared(quantization.get_default_qat_qconfig("fbgemm"))
    source.apply(quantization.disable_observer).zero_grad()
    x = images(16)
    net = tmconvert.trace(source, x).to_torch()
    assert torch.equal(net(x), source(x))
    for module in (source, net):
        module(x).square().sum().backward()
    for name, parameter in net.named_parameters():
        assert torch.allclose(parameter.grad, source.get_parameter(name).grad, atol=1e-6), name
    assert "self.scale, self.zero_point, 0, -128, 127)" in tmconvert.trace(source, x).code
