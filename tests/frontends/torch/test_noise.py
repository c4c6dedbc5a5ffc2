"""Random numbers as inputs of the file: PyTorch runs with the same noise, and computes the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tmconvert
from tests.frontends.torch.harness import run_onnx, run_tflite
from tmconvert.errors import TmconvertError

X = torch.randn(2, 3, generator=torch.Generator().manual_seed(0))
NORMAL, UNIFORM, EXPONENTIAL = "normal(0, 1)", "uniform [0, 1)", "exponential(1)"


class Vae(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = torch.nn.Linear(3, 6), torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean, variance = self.encoder(x).chunk(2, -1)
        return self.decoder(mean + torch.exp(0.5 * variance) * torch.randn_like(variance))


# what draws numbers, what the note says of them, and what is computed of noise
DRAWS: dict[str, tuple[Any, str, Callable[[Any], Any] | None]] = {
    "vae": (Vae(), NORMAL, None),
    "randn": (lambda x: x + torch.randn(2, 3), NORMAL, lambda n: X + n),
    "rand": (lambda x: x * torch.rand((2, 3), dtype=torch.float64).float(), UNIFORM, lambda n: X * n),
    "rand_like": (lambda x: x * torch.rand_like(x), UNIFORM, lambda n: X * n),
    "normal": (lambda x: torch.normal(x, 2.0), NORMAL, lambda n: n * 2 + X),
    "normal_": (lambda x: x + torch.empty(2, 3).normal_(1, 2), NORMAL, lambda n: X + n * 2 + 1),
    "uniform_": (lambda x: x + torch.zeros_like(x).uniform_(-1, 1), UNIFORM, lambda n: X + n * 2 - 1),
    "log_normal_": (lambda x: x + torch.zeros_like(x).log_normal_(0, 1), NORMAL, lambda n: X + n.exp()),
    "bernoulli": (lambda x: torch.bernoulli(x.sigmoid()), UNIFORM, lambda n: (n < X.sigmoid()).float()),
    "bernoulli_": (lambda x: x * torch.zeros(3).bernoulli_(0.4), UNIFORM, lambda n: X * (n < 0.4)),
    "exponential_": (lambda x: x * torch.zeros_like(x).exponential_(2.0), EXPONENTIAL, lambda n: X * n / 2),
    "randint": (lambda x: x + torch.randint(2, 5, (2, 3)), "integers [2, 5)", lambda n: X + n),
    "index": (lambda x: x[:, torch.randint(3, (4,))], "integers [0, 3)", lambda n: X[:, n]),
    "randperm": (lambda x: x[:, torch.randperm(3)], UNIFORM, lambda n: X[:, n.argsort()]),
    "multinomial": (lambda x: torch.multinomial(x.abs() + 0.1, 2), EXPONENTIAL, None),
    "with replacement": (lambda x: torch.multinomial(x.abs() + 0.1, 4, True), UNIFORM, None),
    "dropout": (lambda x: F.dropout(x, 0.25), UNIFORM, lambda n: X * (n >= 0.25) / 0.75),
    "channels": (lambda x: F.dropout2d(x[None, :, :, None], 0.4), UNIFORM, None),
    "gumbel": (lambda x: F.gumbel_softmax(x, 0.5), EXPONENTIAL, lambda n: ((X - n.log()) * 2).softmax(-1)),
    "hard gumbel": (lambda x: F.gumbel_softmax(x, hard=True), EXPONENTIAL, None),
    "rrelu": (
        lambda x: F.rrelu(x, 0.1, 0.3, True),
        UNIFORM,
        lambda n: torch.where(X >= 0, X, X * (n * 0.2 + 0.1)),
    ),
    "distribution": (lambda x: torch.distributions.Normal(x, 2.0).rsample(), NORMAL, lambda n: X + n * 2),
}


@pytest.mark.parametrize("name", DRAWS)
def test_noise_is_an_input_that_is_verified(tmp_path: Path, name: str) -> None:
    module, distribution, compute = DRAWS[name]
    traced = tmconvert.trace(module, X, noise="input", training=True)
    report = tmconvert.to_onnx(traced, tmp_path / "net.onnx")
    assert report.verified and [each["name"] for each in report.inputs] == ["x", "noise"]
    assert any(note.startswith("the input noise") and distribution in note for note in report.notes)
    assert traced.example is not None and traced.example.outputs is not None
    x, noise = traced.example.inputs
    in_tflite = noise.astype(np.int32) if noise.dtype == np.int64 else noise
    for made in (run_onnx(tmp_path / "net.onnx", [x, noise]), *run_tflite(traced, [[x, in_tflite]])):
        np.testing.assert_allclose(made[0], traced.example.outputs[0], rtol=1e-5, atol=1e-5)
    if compute is not None:
        expected = compute(torch.from_numpy(noise))
        np.testing.assert_allclose(traced.example.outputs[0], expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_noise_follows_open_sizes(tmp_path: Path, target: str) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn_like(x) + torch.rand(2 * x.shape[0] + 1, 1).sum()

    convert = getattr(tmconvert, f"to_{target}")
    options = {"noise": "input", "dynamic_shapes": {"x": {0: "b"}}}
    report = convert(model, tmp_path / f"net.{target}", example_inputs=(X,), **options)
    shapes = [(each["name"], each["shape"]) for each in report.inputs]
    assert shapes == [("x", ["b", 3]), ("noise_0", ["b", 3]), ("noise_1", ["2*b+1", 1])]
    assert report.verified


def test_without_the_option_both_ways_are_named(tmp_path: Path) -> None:
    with pytest.raises(TmconvertError, match=r"--noise input") as raised:
        tmconvert.to_onnx(torch.rand_like, tmp_path / "a.onnx", example_inputs=(X,))
    assert "--noise operator" in str(raised.value)
    report = tmconvert.to_onnx(torch.rand_like, tmp_path / "a.onnx", example_inputs=(X,), noise="operator")
    assert len(report.inputs) == 1
    with pytest.raises(TmconvertError, match=r"TM6002.*noise must be"):
        tmconvert.trace(torch.rand_like, X, noise="other")  # type: ignore[arg-type]


def _exported(model: Any, decompose: bool = False) -> Any:
    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return model(x)

    program = torch.export.export(Net(), (X,))
    return program.run_decompositions() if decompose else program


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # of torch, on what it copies
@pytest.mark.parametrize("decompose", [False, True])
@pytest.mark.parametrize(
    "name", ["rand", "normal", "uniform_", "bernoulli", "bernoulli_", "exponential_", "randint", "dropout"]
)
def test_programs_of_torch_export_take_noise(tmp_path: Path, name: str, decompose: bool) -> None:
    model, distribution, compute = DRAWS[name]
    torch.export.save(_exported(model, decompose), tmp_path / "net.pt2")
    for source in (_exported(model, decompose), tmp_path / "net.pt2"):
        report = tmconvert.to_onnx(source, tmp_path / "net.onnx", noise="input")
        assert report.verified and [each["name"] for each in report.inputs] == ["x", "noise"]
        assert any(note.startswith("the input noise") and distribution in note for note in report.notes)
    noise = torch.rand(report.inputs[1]["shape"], generator=torch.Generator().manual_seed(1))
    noise = (noise * 3 + 2).long() if name == "randint" else noise
    made = run_onnx(tmp_path / "net.onnx", [X.numpy(), noise.numpy()])
    assert compute is not None
    np.testing.assert_allclose(made[0], compute(noise).numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_scripts_are_refused_by_name(tmp_path: Path) -> None:
    script = torch.jit.trace(DRAWS["rand_like"][0], X, check_trace=False)
    with pytest.raises(TmconvertError, match="not to TorchScript: noise='operator'"):
        tmconvert.to_onnx(script, tmp_path / "a.onnx", example_inputs=(X,), noise="input")
    report = tmconvert.to_onnx(script, tmp_path / "a.onnx", example_inputs=(X,), noise="operator")
    assert len(report.inputs) == 1
    with pytest.raises(TmconvertError, match="noise='input' applies to models that are traced"):
        tmconvert.to_onnx(tmp_path / "a.onnx", tmp_path / "b.onnx", noise="input")
    assert tmconvert.to_onnx(tmp_path / "a.onnx", tmp_path / "b.onnx", noise="operator").verified


def test_noise_and_state_together() -> None:
    class Walk(torch.nn.Module):
        position: Any = torch.zeros(2, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.position = self.position + x * torch.rand_like(x)
            return self.position

    traced = tmconvert.trace(Walk(), X, noise="input", state=["position"])
    made = traced(X.numpy(), np.full((2, 3), 0.5, np.float32), np.ones((2, 3), np.float32))
    np.testing.assert_allclose(made["position_next"], X.numpy() * 0.5 + 1, rtol=1e-6)
