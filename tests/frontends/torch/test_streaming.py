"""State as inputs and outputs: runs that get the state of the run before equal calls in a row."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tests.frontends.torch.harness import run_onnx, run_tflite
from tmconvert.errors import TmconvertError

X = [torch.randn(2, 3, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]


class Keeps(torch.nn.Module):
    """Computes with what it keeps in ``h``, a buffer where that is a tensor."""

    def __init__(
        self, start: Any, compute: Callable[[Any, torch.Tensor], torch.Tensor], calls: int = 1
    ) -> None:
        super().__init__()
        self.calls, self.compute = calls, compute
        if isinstance(start, torch.Tensor):
            self.register_buffer("h", start)
        else:
            self.h = start

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.calls):
            x = self.compute(self, x)
        return x


class Outer(torch.nn.Module):
    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.encoder = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encoder(x) * 2


def assigned(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.h = torch.tanh(x + (0 if self.h is None else self.h))
    return self.h - x


def in_place(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.h.mul_(0.5)[0] += x[1]
    return self.h + x


def shifted(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.h.append(x)
    return self.h[0] * x


def pair(self: Any, x: torch.Tensor) -> torch.Tensor:
    h, c = self.h or (torch.zeros(2, 3), torch.zeros(2, 3))
    self.h = (x + c, h * 0.5)
    return self.h[0]


def in_dict(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.h["last"] = x + self.h.get("last", torch.zeros(2, 3))
    self.h["count"] += 1
    return self.h["last"] / self.h["count"]


def reset(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.h = [torch.zeros_like(x)]
    self.h[0] = self.h[0] + x
    return self.h[0]


STREAMS: dict[str, tuple[Any, Callable[[Any, torch.Tensor], torch.Tensor], int]] = {
    "buffer": (torch.zeros(2, 3), assigned, 1),
    "buffer in place, called twice": (torch.ones(2, 3), in_place, 2),
    "none": (None, assigned, 3),
    "deque": (deque([torch.zeros(2, 3), torch.ones(2, 3)], maxlen=2), shifted, 2),
    "pair": (None, pair, 1),
    "dict": ({"count": torch.zeros((), dtype=torch.int64)}, in_dict, 1),
    "reset inside": ([torch.zeros(2, 3)], reset, 1),
}


@pytest.mark.parametrize("name", STREAMS)
def test_runs_with_the_state_of_the_run_before_equal_calls_in_a_row(tmp_path: Path, name: str) -> None:
    module = Outer(Keeps(*STREAMS[name]))
    traced = tmconvert.trace(module, X[0], state=["all"])
    report = tmconvert.to_onnx(traced, tmp_path / "net.onnx")
    assert report.verified and traced.example is not None and not traced.notes
    module, states = (
        copy.deepcopy(module),
        {"onnx": traced.example.inputs[1:], "tflite": traced.example.inputs[1:]},
    )
    for x in X:
        with torch.no_grad():
            expected = module(x).numpy()
        for target, state in states.items():
            given = [x.numpy(), *state]
            made = (
                run_onnx(tmp_path / "net.onnx", given) if target == "onnx" else run_tflite(traced, [given])[0]
            )
            np.testing.assert_allclose(made[0], expected, rtol=1e-5, atol=1e-6, err_msg=target)
            states[target] = tuple(made[1:])


def test_names_lead_to_the_tensor(tmp_path: Path) -> None:
    module = Outer(Keeps([torch.zeros(2, 3), {"k": torch.ones(2, 3)}], lambda self, x: x + self.h[1]["k"]))
    report = tmconvert.to_onnx(module, tmp_path / "a.onnx", example_inputs=(X[0],), state=["encoder.h.1.k"])
    assert [each["name"] for each in report.inputs] == ["x", "encoder_h_1_k"]
    assert [each["name"] for each in report.outputs] == ["output", "encoder_h_1_k_next"]


def test_a_dict_of_outputs_keeps_its_names_and_an_argument_its_name(tmp_path: Path) -> None:
    class Net(torch.nn.Module):
        h: Any = torch.zeros(2, 3)

        def forward(self, h: torch.Tensor) -> dict[str, torch.Tensor]:
            self.h = self.h + h
            return {"sum": self.h}

    report = tmconvert.to_onnx(Net(), tmp_path / "a.onnx", example_inputs=(X[0],), state=["h"])
    assert [each["name"] for each in report.inputs] == ["h", "h_state"]
    assert [each["name"] for each in report.outputs] == ["sum", "h_state_next"]


def test_state_of_an_open_size_grows(tmp_path: Path) -> None:
    def grown(self: Any, x: torch.Tensor) -> torch.Tensor:
        self.h = torch.cat([self.h, x])
        return torch.softmax(x @ self.h.T, -1) @ self.h

    module = Keeps(torch.ones(1, 3), grown)
    path, sizes = tmp_path / "net.onnx", {"h": {0: "past"}}
    assert not tmconvert.trace(module, X[0], state=["h"], dynamic_shapes=sizes).notes
    tmconvert.to_onnx(module, path, example_inputs=(X[0],), state=["h"], dynamic_shapes=sizes)
    module, state = copy.deepcopy(module), np.ones((1, 3), np.float32)
    for x in X:
        made, state = run_onnx(path, [x.numpy(), state])
        np.testing.assert_allclose(made, module(x).numpy(), rtol=1e-5, atol=1e-6)
    (note,) = tmconvert.trace(Keeps(torch.ones(1, 3), grown), X[0], state=["h"]).notes
    assert note.startswith("warning: h is [1, 3] before a call and [3, 3] after it")


def test_a_first_call_without_a_tensor_that_differs_is_noted() -> None:
    module = Keeps(None, assigned)
    module.compute = lambda self, x: assigned(self, x if self.h is not None else x + 1)
    (note,) = tmconvert.trace(module, X[0], state=["h"]).notes
    assert "the first call, which finds nothing in h, computes something else" in note


def _counted(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.h += 1
    return x * self.h


REFUSED: dict[str, tuple[Any, Any, str, str, str]] = {
    "number": (0, _counted, "all", "TM6014", "the module has no state"),
    "named number": (0, _counted, "h", "TM2023", "holds no tensor after a call, but int"),
    "growing list": ([], lambda self, x: (self.h.append(x), x + len(self.h))[1], "h", "TM2023", "grows"),
    "unknown": (0, _counted, "g", "TM6014", "it writes to: h"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_tensor_is_refused(name: str) -> None:
    start, compute, state, code, text = REFUSED[name]
    with pytest.raises(TmconvertError, match=code) as raised:
        tmconvert.trace(Keeps(start, compute), X[0], state=[state])
    assert text in str(raised.value)


def test_a_counter_next_to_tensors_is_refused() -> None:
    def both(self: Any, x: torch.Tensor) -> torch.Tensor:
        self.calls_so_far = getattr(self, "calls_so_far", 0) + 1
        return assigned(self, x) * self.calls_so_far

    with pytest.raises(TmconvertError, match=r"TM2023.*calls_so_far.*is not a tensor"):
        tmconvert.trace(Keeps(torch.zeros(2, 3), both), X[0], state=["all"])
    (note,) = tmconvert.trace(Keeps(torch.zeros(2, 3), both), X[0], state=["h"]).notes
    assert note.startswith("warning: the module keeps state in calls_so_far")


def test_only_what_keeps_state_takes_the_option(tmp_path: Path) -> None:
    with pytest.raises(TmconvertError, match=r"TM6014.*this is a function"):
        tmconvert.trace(lambda x: x, X[0], state=["all"])
    with pytest.raises(TmconvertError, match=r"TM6014.*state must be a list"):
        tmconvert.trace(torch.nn.ReLU(), X[0], state="h")
    tmconvert.to_onnx(torch.nn.ReLU(), tmp_path / "a.onnx", example_inputs=(X[0],))
    with pytest.raises(TmconvertError, match=r"TM6016.*state applies to models that are traced"):
        tmconvert.to_onnx(tmp_path / "a.onnx", tmp_path / "b.onnx", state=["h"])


def test_a_submodule_whose_last_state_is_unused_is_called_twice(tmp_path: Path) -> None:
    def accumulated(self: Any, x: torch.Tensor) -> torch.Tensor:
        self.h = self.h + torch.softmax(x + self.h, -1)
        return self.h

    class Decoder(Outer):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.encoder.h = torch.zeros_like(x)
            return self.encoder(x) + self.encoder(x * 2)

    module = Decoder(Keeps(None, accumulated))
    tmconvert.to_onnx(module, tmp_path / "net.onnx", example_inputs=(X[0],))
    (made,) = run_onnx(tmp_path / "net.onnx", [X[1].numpy()])
    np.testing.assert_allclose(made, module(X[1]).numpy(), rtol=1e-5, atol=1e-6)
