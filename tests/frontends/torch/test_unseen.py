"""Tensors that a module computes where no mode of torch sees it: they are no constants."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

import tmconvert
from tmconvert.errors import UnsupportedError

Function = Callable[[torch.Tensor], torch.Tensor]
OFFSET = torch.arange(4.0)
POOL = ThreadPoolExecutor(1)


class Wrapped(torch.Tensor):
    """A subclass without a method of its own."""


def in_a_thread(x: torch.Tensor) -> torch.Tensor:
    results: list[torch.Tensor] = []
    thread = threading.Thread(target=lambda: results.append(x * 2))
    thread.start()
    thread.join()
    return x + results[0]


UNSEEN: dict[str, Function] = {
    "thread": in_a_thread,
    "pool": lambda x: x + POOL.submit(lambda: x * 3).result(),
    "subclass": lambda x: x.as_subclass(Wrapped) * 2,
}


@pytest.mark.parametrize("name", UNSEEN)
def test_a_tensor_of_the_inputs_that_tracing_does_not_see_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="where tracing cannot follow") as caught:
        tmconvert.to_onnx(UNSEEN[name], tmp_path / "m.onnx", example_inputs=(torch.randn(3, 4),))
    assert caught.value.code == "TM2011"
    assert caught.value.source is not None and "test_unseen.py" in str(caught.value.source)


class Written(torch.nn.Module):
    """Another thread writes to a tensor that the module holds."""

    def __init__(self, holder: str) -> None:
        super().__init__()
        self.holder = holder
        kept = torch.zeros(3, 4)
        self.by_name = {"kept": kept}
        if holder == "buffer":
            self.register_buffer("kept", kept)
        else:
            self.kept = kept

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        kept = self.by_name["kept"] if self.holder == "dict" else self.kept
        POOL.submit(lambda: kept.copy_(x * 2)).result()
        return x + kept


@pytest.mark.parametrize("holder", ["attribute", "buffer", "dict"])
def test_a_tensor_that_another_thread_writes_is_an_error(holder: str) -> None:
    with pytest.raises(UnsupportedError, match="where tracing cannot follow") as caught:
        tmconvert.trace(Written(holder).eval(), torch.randn(3, 4))
    assert caught.value.source is not None and "test_unseen.py" in str(caught.value.source)


def test_constants_from_elsewhere_stay_constants(tmp_path: Path) -> None:
    offsets = [torch.ones(4), POOL.submit(lambda: torch.arange(4.0)).result()]

    def function(x: torch.Tensor) -> torch.Tensor:
        made = POOL.submit(lambda: torch.arange(4.0) * 2).result()  # the same in each run
        return x * OFFSET + sum(offsets) + made + torch.linspace(0, 1, 4)

    x = torch.randn(3, 4)
    tmconvert.to_onnx(function, tmp_path / "m.onnx", example_inputs=(x,))
    (made,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": (x + 1).numpy()})
    np.testing.assert_allclose(made, function(x + 1).numpy(), atol=1e-5)


class Energy(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.requires_grad_()
        return torch.autograd.grad((x**3).sum(), x)[0]


class Backward(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor | None:
        self.layer(x.requires_grad_()).tanh().sum().backward()
        return x.grad


@pytest.mark.parametrize("kind", [Energy, Backward])
def test_gradients_need_no_enable_grad(kind: type[torch.nn.Module], tmp_path: Path) -> None:
    """As where PyTorch calls a module: gradients are enabled unless somebody disables them."""
    module, x = kind(), torch.randn(3, 4)
    tmconvert.to_onnx(module, tmp_path / "m.onnx", example_inputs=(x,))
    (made,) = onnxruntime.InferenceSession(tmp_path / "m.onnx").run(None, {"x": (x * 2).numpy()})
    np.testing.assert_allclose(made, module(x * 2).numpy(), atol=1e-5)


def test_an_example_without_elements_and_a_returned_array(tmp_path: Path) -> None:
    report = tmconvert.to_onnx(lambda x: x * 2, tmp_path / "m.onnx", example_inputs=(torch.zeros(0, 4),))
    assert report.outputs[0]["shape"] == [0, 4]
    with pytest.raises(UnsupportedError, match="returns no tensor"):
        tmconvert.to_onnx(lambda x: np.ones(3), tmp_path / "m.onnx", example_inputs=(torch.zeros(2),))


class Cached(torch.nn.Module):
    """Holds a tensor in a container, as a cache that an earlier call has filled."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = {"offsets": [torch.ones(4)]}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.kept["offsets"][0]


PARTS: dict[str, Callable[[], torch.nn.Module]] = {
    "linear": lambda: torch.nn.Linear(4, 4),
    "scripted": lambda: torch.jit.script(torch.nn.BatchNorm1d(4)),
    "cached": Cached,
}


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", PARTS)
def test_tensors_that_a_module_holds_take_no_run_on_other_data(name: str) -> None:
    runs = []

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = PARTS[name]()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            runs.append(1)
            return self.part(x)

    tmconvert.trace(Model().eval(), torch.randn(3, 4))
    assert len(runs) == 2  # by itself, and traced
