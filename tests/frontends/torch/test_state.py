"""Tracing changes nothing: not the module, not torch, not the generators; also where forward fails."""

from __future__ import annotations

import copy
import functools
import gc
import random
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tmconvert
from tests.cli.runner import environment
from tests.frontends.torch.harness import check, run_onnx
from tmconvert.errors import TmconvertError


class Busy(torch.nn.Module):
    """Changes all it can while it runs."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.fails = fails
        self.conv = torch.nn.Conv2d(2, 4, 3)
        self.bn = torch.nn.BatchNorm2d(4)
        self.register_buffer("cache", torch.zeros(4, 4))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.plain = torch.ones(3)  # a tensor that is no buffer
        self.seen: list[Any] = ["before"]
        self.nested: dict[str, Any] = {"list": [1, 2], "tensor": torch.zeros(2)}
        self.last: Any = None
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn(self.conv(x))
        self.cache[1:3, ::2] = y.mean()
        self.cache.t()[0].add_(2)
        self.count += 1
        self.plain.mul_(3)
        self.conv.weight.data.mul_(1.5)
        self.seen.append(y)
        self.seen[0] = "after"
        self.nested["list"].append(3)
        self.nested["tensor"].add_(1)
        self.nested["new"] = y
        self.last = y
        self.calls += 1
        self.added = y
        torch.rand(3), random.random(), np.random.rand()
        if self.fails:
            torch.set_grad_enabled(True)
            raise ValueError("in the middle")
        return y.sum((2, 3)) + self.cache.sum() + self.count


def snapshot(module: torch.nn.Module) -> Any:
    """All that a module holds, by value."""
    state = {}
    for path, each in module.named_modules():
        own = {name: value for name, value in each.__dict__.items() if name != "_modules"}
        state[path] = (each.training, copy.deepcopy(own), sorted(own))
    return state


def identities(module: torch.nn.Module) -> Any:
    return {
        (path, name): id(value)
        for path, each in module.named_modules()
        for name, value in each.__dict__.items()
    }


def surroundings() -> dict[str, Any]:
    """The state of torch and of the generators, in a form that compares."""
    numpy_state: Any = np.random.get_state()
    return {
        "torch": torch.get_rng_state().numpy().tobytes(),
        "random": random.getstate(),
        "numpy": (numpy_state[0], numpy_state[1].tobytes(), *numpy_state[2:]),
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "dtype": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "call": torch.nn.Module.__call__,
        "scripts": [vars(kind)["__call__"] for kind in (torch._C.ScriptMethod, torch._C.ScriptFunction)],
        "collector": (gc.isenabled(), gc.get_threshold()),
        "function modes": torch._C._len_torch_function_stack(),
        "dispatch modes": torch._C._len_torch_dispatch_stack(),
        "compiling": (torch.compiler.is_compiling(), torch.compiler.is_exporting()),
        "path": list(sys.path),
    }


def assert_equal(one: Any, two: Any) -> None:
    if isinstance(one, torch.Tensor):
        assert torch.equal(one, two) and one.dtype == two.dtype and one.requires_grad == two.requires_grad
    elif isinstance(one, dict):
        assert list(one) == list(two)
        for key in one:
            assert_equal(one[key], two[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two)
        for left, right in zip(one, two, strict=True):
            assert_equal(left, right)
    elif type(one).__eq__ is not object.__eq__:
        assert one == two


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_nothing_is_changed(training: bool, grad: bool, fails: bool) -> None:
    module, x = Busy(fails).train(training), torch.randn(3, 2, 6, 6)
    module.bn.eval()  # modes may differ
    given = x.clone()
    before, ids = snapshot(module), identities(module)
    with torch.set_grad_enabled(grad):
        around = surroundings()
        if fails:
            with pytest.raises(ValueError, match="in the middle"):
                tmconvert.trace(module, x)
        else:
            traced = tmconvert.trace(module, x, dynamic_shapes={"x": {0: "batch"}})
            assert any("writes to" in note and "cache" in note and "count" in note for note in traced.notes)
        assert surroundings() == around
    assert_equal(snapshot(module), before)
    assert identities(module) == ids
    assert torch.equal(x, given)


def test_hooks_run_and_stay() -> None:
    module, calls = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU()), []
    module[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    module[0].register_forward_hook(lambda m, args, out: out + 1)
    module[1].register_forward_hook(lambda m, args, out: calls.append(1))
    module[0].weight.register_hook(lambda grad: grad)
    hooks = [dict(each._forward_hooks) | dict(each._forward_pre_hooks) for each in module]
    check(module, torch.randn(2, 3))
    assert calls
    assert [dict(each._forward_hooks) | dict(each._forward_pre_hooks) for each in module] == hooks


def test_gradients_stay() -> None:
    module = torch.nn.Linear(3, 1)
    module(torch.ones(1, 3)).sum().backward()
    gradient = module.weight.grad
    x = torch.ones(2, 3, requires_grad=True)
    tmconvert.trace(module, x)
    assert module.weight.grad is gradient and module.weight.requires_grad and x.grad is None
    module(x).sum().backward()  # the module still learns
    with torch.inference_mode():
        tmconvert.trace(module, torch.ones(2, 3))
        assert torch.is_inference_mode_enabled()


def test_state_after_an_unsupported_call() -> None:
    class Looks(Busy):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = super().forward(x)
            return y + round(y.sum().item())

    module, x = Looks(), torch.randn(3, 2, 6, 6)
    before, around = snapshot(module), surroundings()
    with pytest.raises(TmconvertError, match="TM2011"):
        tmconvert.trace(module, x)
    assert surroundings() == around
    assert_equal(snapshot(module), before)


def test_the_settings_of_the_user_are_kept() -> None:
    class Settings(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.ones(2)

    torch.set_default_dtype(torch.float64)
    threads = torch.get_num_threads()
    try:
        traced = tmconvert.trace(Settings(), torch.zeros(2))
        assert torch.get_default_dtype() == torch.float64
        assert torch.get_num_threads() == threads
        assert traced(np.zeros(2))[()].dtype == np.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.slow
def test_other_threads_are_not_recorded() -> None:
    """They call modules of the same classes, the traced one too, while it is traced."""
    other, stop, faults = torch.nn.Linear(4, 4), threading.Event(), []

    class Slow(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.parts = torch.nn.ModuleList(torch.nn.Linear(4, 4) for _ in range(40))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for part in self.parts:
                x = torch.relu(part(x))
            return x

    module, x = Slow(), torch.randn(2, 4)

    def work() -> None:
        try:
            while not stop.is_set():
                y = other(torch.ones(1, 4)) + module.parts[3](torch.ones(1, 4))
                y.sum().backward()
        except Exception as error:
            faults.append(error)

    alone = str(tmconvert.trace(module, x).graph)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        together = [str(tmconvert.trace(module, x).graph) for _ in range(5)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not faults
    assert together == [alone] * 5


def test_two_threads_trace_at_once() -> None:
    results: dict[int, Any] = {}

    def work(width: int) -> None:
        module = torch.nn.Sequential(*[torch.nn.Linear(width, width) for _ in range(width)])
        results[width] = tmconvert.trace(module, torch.randn(2, width))

    call = torch.nn.Module.__call__
    threads = [threading.Thread(target=work, args=(width,)) for width in (3, 5, 8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.nn.Module.__call__ is call
    for width, traced in results.items():
        assert len([expr for expr in traced.flatten().graph if "linear" in str(expr)]) == width


# ---- modes


class Modes(torch.nn.Module):
    """What differs by mode: batch norms, dropout of modules and functions, layers that are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = torch.nn.Conv2d(2, 3, 1), torch.nn.BatchNorm2d(3)
        self.drop, self.rnn = torch.nn.Dropout2d(0.5), torch.nn.LSTM(3, 3, 2, dropout=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.dropout(self.drop(self.norm(self.conv(x))), 0.4, self.training)
        if self.training and torch.rand(()) < 2:
            return x.flatten(2).permute(2, 0, 1)
        return self.rnn(x.flatten(2).permute(2, 0, 1))[0]


class Merging(torch.nn.Linear):
    """Its weight becomes another one in evaluation mode, as those of merged adapters do."""

    def train(self, mode: bool = True) -> Any:
        if self.training and not mode:
            self.weight.data += 1.0
        return super().train(mode)


def _trained() -> Modes:
    torch.manual_seed(0)
    module = Modes()
    for _ in range(3):
        module(torch.randn(4, 2, 3, 3) * 3 + 1)
    return module


def _partly_training() -> Modes:
    module = _trained().eval()
    module.drop.train()
    return module


def _called(module: torch.nn.Module) -> Any:
    return lambda x: module(x)


NAMED = _trained()
MODELS: dict[str, Callable[[torch.nn.Module], Any]] = {
    "module": lambda module: module,
    "in a module": torch.nn.Sequential,
    "function": _called,
    "method": lambda module: module.forward,
    "partial": lambda module: functools.partial(module),
    "named in a file": lambda module: lambda x: NAMED(x),
}


@pytest.mark.parametrize("make", [_trained, _partly_training])
@pytest.mark.parametrize("name", MODELS)
def test_modules_are_traced_as_after_eval(name: str, make: Callable[[], Modes], tmp_path: Path) -> None:
    module = NAMED if name == "named in a file" else make()
    modes = [each.training for each in module.modules()]
    before = copy.deepcopy(module.state_dict())
    x = torch.randn(4, 2, 3, 3)
    with torch.no_grad():
        expected = copy.deepcopy(module).eval()(x).numpy()
    report = tmconvert.to_onnx(MODELS[name](module), tmp_path / "m.onnx", example_inputs=[x])
    (made,) = run_onnx(tmp_path / "m.onnx", [x.numpy()])
    np.testing.assert_allclose(made, expected, atol=1e-5)
    assert [each.training for each in module.modules()] == modes
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())
    (note,) = (note for note in report.notes if "--training" in note)
    assert "Dropout" in note and len(note) < 160


def test_references_at_other_sizes_are_of_evaluation_mode(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 1), torch.nn.BatchNorm2d(3)).train()
    sizes = {"input": {0: "batch"}}
    x = torch.randn(4, 2, 3, 3)
    assert tmconvert.to_onnx(module, tmp_path / "m.onnx", example_inputs=[x], dynamic_shapes=sizes).verified
    assert module.training and module[1].num_batches_tracked == 0


def test_what_eval_changes_is_restored() -> None:
    module = Merging(3, 3)
    weight = module.weight.detach().clone()
    x = torch.randn(2, 3)
    expected = F.linear(x, weight + 1.0, module.bias).detach().numpy()
    np.testing.assert_allclose(tmconvert.trace(module, x)(x.numpy()), expected, atol=1e-5)
    assert module.training and torch.equal(module.weight, weight)


def test_modules_without_modes_have_no_note() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
    assert not tmconvert.trace(module, torch.randn(2, 3)).notes


def test_training_keeps_the_mode() -> None:
    """Batch norm takes the statistics of the batch; the running ones are not written."""
    module = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 1), torch.nn.BatchNorm2d(3)).train()
    x = torch.randn(4, 2, 3, 3)
    before = module[1].running_mean.clone()
    with torch.no_grad():
        expected = copy.deepcopy(module)(x).numpy()
    traced = tmconvert.trace(module, x, training=True)
    np.testing.assert_allclose(traced(x.numpy()), expected, atol=1e-5)
    assert module.training and torch.equal(module[1].running_mean, before)
    assert any("1.running_mean" in note for note in traced.notes)


@pytest.mark.parametrize(
    "module",
    [
        torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.1)),
        torch.nn.Sequential(torch.nn.Dropout1d(0.5)),
        torch.nn.AlphaDropout(),
    ],
)
def test_dropout_refuses(module: torch.nn.Module, tmp_path: Path) -> None:
    module.train()
    x = [torch.randn(2, 3)]
    with pytest.raises(TmconvertError, match="--training"):
        tmconvert.to_onnx(module, tmp_path / "o.onnx", example_inputs=x, training=True)
    assert tmconvert.to_onnx(module, tmp_path / "o.onnx", example_inputs=x).verified
    with pytest.raises(TmconvertError, match=r"self\.training"):
        tmconvert.to_onnx(lambda x: F.dropout(x, 0.5), tmp_path / "o.onnx", example_inputs=x)


# ---- state that a file does not keep


class Holder:
    h: Any


class Step(torch.nn.Module):
    def __init__(self, start: Any, compute: Callable[[Any, torch.Tensor], Any]) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 3)
        self.compute = compute
        self.holder = Holder()
        self.holder.h = torch.zeros(2, 3)
        self.register_buffer("buffer", torch.zeros(2, 3))
        self.h = start

    def forward(self, x: torch.Tensor) -> Any:
        return self.compute(self, self.linear(x))


def _assigns(name: str, value: Callable[[Any, torch.Tensor], Any]) -> Callable[[Any, torch.Tensor], Any]:
    def compute(self: Any, x: torch.Tensor) -> Any:
        setattr(self, name, value(self, x))
        return getattr(self, name)

    return compute


def _appended(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.h.append(x)
    return sum(self.h) + 0 * x


def _in_dict(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.h["last"] = self.h.get("last", 0) + x
    return self.h["last"] * 1


def _counted(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.h += 1
    return x * self.h


def _alternating(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.h = not self.h
    return x.relu() if self.h else x.sin()


def _written_in_a_list(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.h[0].add_(x)
    return self.h[0] * 1


def _of_object(self: Any, x: torch.Tensor) -> torch.Tensor:
    self.holder.h = self.holder.h + x
    return self.holder.h


def _once(self: Any, x: torch.Tensor) -> torch.Tensor:
    assert self.h is None
    self.h = x
    return x * 2


STATEFUL: dict[str, tuple[str, Any, Callable[[Any, torch.Tensor], Any]]] = {
    "tensor": ("h", torch.zeros(2, 3), _assigns("h", lambda self, x: torch.tanh(x + self.h))),
    "none at first": ("h", None, _assigns("h", lambda self, x: x if self.h is None else x + self.h)),
    "list": ("h", [], _appended),
    "deque": ("h", deque(maxlen=2), _appended),
    "dict": ("h", {}, _in_dict),
    "counter": ("h", 0, _counted),
    "switch": ("h", False, _alternating),
    "tensor in a list": ("h", [torch.zeros(2, 3)], _written_in_a_list),
    "object": ("holder", None, _of_object),
    "buffer": ("buffer", None, _assigns("buffer", lambda self, x: x + self.buffer)),
    "fails": ("h", None, _once),
}
SETTLED: dict[str, tuple[Any, Callable[[Any, torch.Tensor], Any]]] = {
    "cache": (None, lambda self, x: x + (setattr(self, "h", torch.arange(3.0)), self.h)[1]),
    "last result": (None, _assigns("h", lambda self, x: x * 2)),
    "within a call": (
        None,
        lambda self, x: (setattr(self, "h", x), setattr(self, "h", self.h + x), self.h)[2],
    ),
    "random": (None, lambda self, x: (torch.rand(3), setattr(self, "h", x), x * 2)[2]),
}


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", STATEFUL)
def test_state_in_attributes_is_noted(name: str, wrapped: bool) -> None:
    attribute, start, compute = STATEFUL[name]
    module = Step(start, compute)
    before = snapshot(module)
    model = torch.nn.Sequential(module) if wrapped else module
    (note,) = tmconvert.trace(model, torch.randn(2, 3)).notes
    assert note.startswith("warning: the module keeps state in ")
    assert note.split(" in ")[1].split(",")[0] == ("0." if wrapped else "") + attribute
    assert_equal(before, snapshot(module))


@pytest.mark.parametrize("name", SETTLED)
def test_attributes_that_change_no_later_call_are_not_noted(name: str) -> None:
    assert not tmconvert.trace(Step(*SETTLED[name]), torch.randn(2, 3)).notes


def test_a_counter_that_changes_nothing_yet_is_noted() -> None:
    step = Step(0, lambda self, x: (setattr(self, "h", self.h + 1), x if self.h < 5 else -x)[1])
    (note,) = tmconvert.trace(step, torch.randn(2, 3)).notes
    assert note.startswith("the module keeps state in h; each run of the file starts from the initial values")


def test_state_of_captured_modules_is_noted_and_restored() -> None:
    step = Step(0, _counted)
    (note,) = tmconvert.trace(lambda x: step(x), torch.randn(2, 3)).notes
    assert "state in Step.h" in note and step.h == 0


# ---- the same bytes


MAKE = """
import sys, torch, tmconvert
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleDict({name: torch.nn.Linear(4, 4) for name in ("b", "a", "c")})
        self.register_buffer("scale", torch.full((4,), 2.0))
        self.names = {"x", "y", "z"}
    def forward(self, x, extra):
        kept = {name: layer(x) for name, layer in self.layers.items()}
        kept["sum"] = sum(kept.values()) * self.scale + extra["bias"]
        x = x.clone()
        x[:, 1] = 3
        return {"x": x, **kept}
torch.manual_seed(0)
net, x, extra = Net(), torch.randn(2, 4), {"bias": torch.randn(4)}
for path in sys.argv[1:]:
    tmconvert.trace(net, x, extra, dynamic_shapes={"x": {0: "batch"}}).save(path)
"""


@pytest.mark.slow
def test_the_same_trace_gives_the_same_bytes(tmp_path: Path) -> None:
    script = tmp_path / "make.py"
    script.write_text(MAKE)
    root = str(Path(__file__).parents[3])
    written = []
    for seed in ("0", "1"):
        paths = [tmp_path / f"{seed}{number}.tm" for number in range(2)]
        subprocess.run(
            [sys.executable, script, *paths],
            check=True,
            env=environment(PYTHONHASHSEED=seed, PYTHONPATH=root),
            timeout=120,
        )
        written += [path.read_bytes() for path in paths]
    assert len(written) == 4 and len(set(written)) == 1


class _Attention(torch.nn.Module):
    """A module whose part returns a pair with None in it."""

    def __init__(self) -> None:
        super().__init__()
        self.part = torch.nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.part(x, x, x, need_weights=False)[0]


def test_a_part_that_returns_none_among_others_is_saved(tmp_path: Path) -> None:
    x = torch.randn(1, 3, 4)
    traced = tmconvert.trace(_Attention().eval(), x)
    traced.save(tmp_path / "attention.tm")
    again = tmconvert.load(tmp_path / "attention.tm")
    np.testing.assert_array_equal(again(x.numpy()), traced(x.numpy()))
