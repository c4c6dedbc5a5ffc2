"""Random functions of PyTorch: the numbers in files have PyTorch's distribution."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import tmconvert  # noqa: E402
from tests.frontends.torch.harness import run_onnx  # noqa: E402
from tmconvert.errors import UnsupportedError, UsageError, VerificationError  # noqa: E402
from tmconvert.symbolics.registry import catalogue  # noqa: E402

X = torch.linspace(-2, 2, 64 * 96).reshape(64, 96)
P = X.sigmoid()
FEW = torch.tensor([[0.1, 0.0, 0.6, 0.3]]).expand(512, 4).contiguous()

# sqrt(n m / (n + m)) times the distance of two distribution functions is above it once in 30 million times
KS_LIMIT = 3.0

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "rand": (lambda x: torch.rand(*x.shape), X),
    "rand size": (lambda x: torch.rand(size=(64, 96), device="cpu"), X),
    "rand float64": (lambda x: torch.rand(x.shape, dtype=torch.float64), X),
    "randn": (lambda x: x * 0 + torch.randn((64, 96)), X),
    "rand_like": (lambda x: torch.rand_like(x) * 2, X),
    "randn_like": (lambda x: torch.randn_like(input=x), X),
    "randn_like float16": (lambda x: torch.randn_like(x.half()).float(), X),
    "randint": (lambda x: torch.randint(-3, 8, (64, 96)), X),
    "randint high": (lambda x: torch.randint(5, size=(64, 96), dtype=torch.int32), X),
    "randint_like": (lambda x: torch.randint_like(x, 4, 9), X),
    "normal": (lambda x: torch.normal(x, 0.5), X),
    "normal std": (lambda x: torch.normal(2.0, x.abs()), X),
    "normal both": (lambda x: torch.normal(mean=x, std=x.abs()), X),
    "normal size": (lambda x: torch.normal(1.0, 2.0, size=(64, 96)), X),
    "bernoulli": (lambda x: torch.bernoulli(x) + x, P),
    "bernoulli p": (lambda x: torch.bernoulli(x, 0.3), P),
    "normal_": (lambda x: torch.empty_like(x).normal_(1, 3), X),
    "uniform_": (lambda x: x.clone().uniform_(-1, 4), X),
    "uniform_ words": (lambda x: x.clone().uniform_(to=3.0), X),
    "bernoulli_": (lambda x: torch.zeros(64, 96).bernoulli_(0.7), X),
    "bernoulli_ of tensor": (lambda x: x.clone().bernoulli_(x), P),
    "exponential_": (lambda x: torch.empty(64, 96).exponential_(2.0), X),
    "geometric_": (lambda x: torch.empty(64, 96).geometric_(0.3), X),
    "cauchy_": (lambda x: torch.empty(64, 96).cauchy_(1.0, 2.0), X),
    "log_normal_": (lambda x: torch.empty(64, 96).log_normal_(0.1, 0.5), X),
    "random_": (lambda x: torch.empty(64, 96).random_(2, 9), X),
    "multinomial": (lambda x: torch.multinomial(x, 2), FEW),
    "multinomial replacement": (lambda x: torch.multinomial(x, 9, replacement=True), FEW),
    "dropout": (lambda x: F.dropout(x, 0.3), X),
    "dropout all": (lambda x: F.dropout(x, 1.0) + x, X),
    "nn.Dropout": (nn.Dropout(0.4), X),
    "alpha_dropout": (lambda x: F.alpha_dropout(x, 0.3, training=True), X),
    "feature_alpha_dropout": (lambda x: F.feature_alpha_dropout(x[..., None], 0.3, training=True), X),
    "dropout1d": (lambda x: F.dropout1d(x.reshape(1024, 3, 2), 0.3), X),
    "dropout2d": (lambda x: F.dropout2d(x.reshape(512, 3, 2, 2), 0.3), X),
    "dropout3d": (lambda x: F.dropout3d(x.reshape(512, 3, 1, 2, 2), 0.3), X),
    "native_dropout": (lambda x: torch.native_dropout(x, 0.3, True)[0], X),
    "rrelu": (lambda x: F.rrelu(x, 0.1, 0.9, training=True), X),
    "gumbel_softmax": (lambda x: F.gumbel_softmax(x.reshape(-1, 3) * 0.1, tau=2.0), X),
    "gumbel_softmax hard": (lambda x: F.gumbel_softmax(x.reshape(-1, 3), hard=True)[:, 0], X),
}


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    """sqrt(n m / (n + m)) times the Kolmogorov-Smirnov distance of two samples."""
    a, b = (np.sort(each.astype(np.float64).reshape(-1)).round(5) for each in (first, second))
    steps = np.concatenate([a, b])
    apart = np.abs(np.searchsorted(a, steps, "right") / a.size - np.searchsorted(b, steps, "right") / b.size)
    return float(apart.max() * np.sqrt(a.size * b.size / (a.size + b.size)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers_have_the_distribution_of_pytorch(name: str, tmp_path: Path) -> None:
    function, x = FUNCTIONS[name]
    torch.manual_seed(5)
    expected = function(x).detach().numpy()
    traced = tmconvert.trace(function, x, training=True)
    report = tmconvert.to_onnx(traced, tmp_path / "model.onnx", allow_random=True, seed=1)
    assert report.verification is not None
    assert any(note.startswith("random numbers: ") for note in report.notes) or "all" in name
    (made,) = run_onnx(tmp_path / "model.onnx", [x.numpy()][: len(report.inputs)])
    assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
    assert _distance(made, expected) < KS_LIMIT
    if "dropout" in name and "all" not in name:
        assert np.mean(made == 0) == pytest.approx(np.mean(expected == 0), abs=0.03)
    interpreted = np.asarray(traced(x.numpy()))
    assert _distance(interpreted, expected) < KS_LIMIT
    if x is FEW and "replacement" not in name:  # each row has different indices, none of weight 0
        assert (made[:, 0] != made[:, 1]).all() and not (made == 1).any()


@pytest.mark.parametrize(
    "name", ["randn", "randint", "exponential_", "multinomial", "dropout", "normal both"]
)
def test_litert_draws_numbers_of_the_distribution_of_pytorch(name: str, tmp_path: Path) -> None:
    from ai_edge_litert.interpreter import Interpreter

    function, x = FUNCTIONS[name]
    torch.manual_seed(5)
    expected = function(x).detach().numpy()
    path = tmp_path / "model.tflite"
    report = tmconvert.to_tflite(function, path, example_inputs=(x,), allow_random=True, seed=3)
    assert report.verification is not None
    runner = Interpreter(model_path=str(path)).get_signature_runner()
    (made,) = runner(**{each["name"]: x.numpy() for each in report.inputs}).values()
    assert made.shape == expected.shape
    assert _distance(made, expected) < KS_LIMIT


def test_randperm_is_a_permutation(tmp_path: Path) -> None:
    tmconvert.to_onnx(
        lambda x: (torch.randperm(1000), x), tmp_path / "m.onnx", example_inputs=(X[0],), allow_random=True
    )
    made, _ = run_onnx(tmp_path / "m.onnx", [X[0].numpy()])
    assert made.dtype == np.int64
    assert sorted(made) == list(range(1000)) and (made != np.arange(1000)).any()


def _convert(path: Path, function: Any = lambda x: x + torch.randn_like(x), **options: Any) -> Any:
    return tmconvert.to_onnx(function, path, example_inputs=(X,), allow_random=True, **options)


def _sessions(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two runs of one session, and one of another."""
    first, second = (onnxruntime.InferenceSession(str(path)) for _ in range(2))
    fed = {"x": X.numpy()}
    return first.run(None, fed)[0], first.run(None, fed)[0], second.run(None, fed)[0]


def test_a_seed_repeats_the_numbers_of_a_session(tmp_path: Path) -> None:
    _convert(tmp_path / "seeded.onnx", seed=7)
    first, again, other = _sessions(tmp_path / "seeded.onnx")
    assert np.array_equal(first, other) and not np.array_equal(first, again)
    _convert(tmp_path / "eighth.onnx", seed=8)
    assert not np.array_equal(first, _sessions(tmp_path / "eighth.onnx")[0])


def test_each_call_draws_numbers_of_its_own(tmp_path: Path) -> None:
    drop = nn.Dropout(0.5)
    _convert(
        tmp_path / "m.onnx",
        lambda x: (drop(x), drop(x), torch.rand(8), torch.rand(8)),
        seed=0,
        training=True,
    )
    a, b, c, d = run_onnx(tmp_path / "m.onnx", [X.numpy()])
    assert not np.array_equal(a, b) and not np.array_equal(c, d)


def test_sizes_stay_open(tmp_path: Path) -> None:
    def noisy(x: torch.Tensor) -> torch.Tensor:
        return x + torch.randn_like(x) * 0.1 + torch.rand(x.shape[0], 1)

    report = _convert(tmp_path / "m.onnx", noisy, dynamic_shapes={"x": {0: "batch"}})
    assert report.inputs[0]["shape"] == ["batch", 96]
    (made,) = run_onnx(tmp_path / "m.onnx", [X[:5].numpy()])
    assert made.shape == (5, 96)


def test_numbers_that_reach_no_output_need_no_option(tmp_path: Path) -> None:
    def unused(x: torch.Tensor) -> torch.Tensor:
        torch.randn(3)
        return x * 2

    tmconvert.to_onnx(unused, tmp_path / "m.onnx", example_inputs=(X,))


def test_without_the_option_the_call_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="randn_like makes random numbers") as caught:
        tmconvert.to_onnx(lambda x: x + torch.randn_like(x), tmp_path / "m.onnx", example_inputs=(X,))
    text = str(caught.value)
    assert "test_random_numbers.py" in text and "--allow-random" in text and "noise" in text
    assert not (tmp_path / "m.onnx").exists()


def test_caffe_refuses_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="random"):
        tmconvert.to_caffe(lambda x: x + torch.randn_like(x), tmp_path / "m.prototxt", example_inputs=(X,))


def test_options_that_exclude_it_and_wrong_seeds(tmp_path: Path) -> None:
    for options in ({"quantized": True}, {"seed": -1}, {"seed": 1 << 31}, {"seed": True}):
        with pytest.raises(UsageError):
            _convert(tmp_path / "m.onnx", **options)
    with pytest.raises(UsageError, match="allow_random"):
        tmconvert.to_onnx(lambda x: x, tmp_path / "m.onnx", example_inputs=(X,), seed=1)


def test_a_wrong_distribution_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ops = catalogue()
    uniform = ops["tm::random_uniform"].symbolics["onnx"]
    monkeypatch.setitem(ops["tm::random_normal"].symbolics, "onnx", uniform)
    with pytest.raises(VerificationError, match="distribution"):
        _convert(tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_equal_numbers_of_two_operators_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tmconvert.symbolics.ops.sampling import random_numbers

    monkeypatch.setattr(random_numbers, "_SEEDS", 1)
    with pytest.raises(VerificationError, match="equal numbers"):
        _convert(tmp_path / "m.onnx", lambda x: (x + torch.randn_like(x), torch.randn_like(x)), seed=1)


def test_what_is_computed_from_the_numbers_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sine = catalogue()["aten::sin"].symbolics["onnx"]
    monkeypatch.setitem(sine, min(sine), lambda g, x: g.op("Tanh", x))
    with pytest.raises(VerificationError, match="differ"):
        _convert(tmp_path / "m.onnx", lambda x: x + torch.randn_like(x).sin())


def test_the_reference_repeats_its_numbers() -> None:
    traced = tmconvert.trace(lambda x: x + torch.randn_like(x), X)
    assert np.array_equal(traced(X.numpy()), traced(X.numpy()))
