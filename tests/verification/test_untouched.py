"""The reference is the source itself: a module runs before it is traced, a file in its own runtime."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from click.testing import CliRunner
from onnx import TensorProto, helper
from torch import nn

import tmconvert
from tmconvert.cli import main
from tmconvert.errors import VerificationError
from tmconvert.frontends.torch.tracing import module_run
from tmconvert.verification.reference import OWN_READING


class Calls(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def unlike_torch(recorder: Any) -> Any:
    """What a tracer might do wrong: a context in which sums are off by one."""
    before = torch.Tensor.sum
    torch.Tensor.sum = lambda self, *a, **k: before(self, *a, **k) + 1  # type: ignore[method-assign]
    from contextlib import contextmanager

    @contextmanager
    def context():
        try:
            yield
        finally:
            torch.Tensor.sum = before  # type: ignore[method-assign]

    return context()


def test_what_the_tracer_changes_is_no_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module_run, "WATCHES", (*module_run.WATCHES, unlike_torch))
    module, x = Calls(lambda x: x.sum(1) * 2), torch.randn(2, 3)
    with pytest.raises(VerificationError, match="TM4001"):
        tmconvert.to_onnx(module, tmp_path / "o.onnx", example_inputs=(x,))
    assert not (tmp_path / "o.onnx").exists()


def test_a_second_input_runs_in_pytorch():
    """A second input is run in PyTorch, too, so that what holds for the example alone is found."""

    class Own(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    x = torch.randn(2, 3)
    traced = tmconvert.trace(Calls(Own.apply), x)
    assert traced.original is not None
    other = -np.abs(x.numpy())
    np.testing.assert_array_equal(traced.original.run([other])[0], other * 2)


class Stateful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros(1))
        self.seen: list[int] = []
        self.hidden: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        self.weight.data *= 2
        self.seen.append(len(self.seen))
        self.hidden = x * self.count
        return self.hidden + self.weight


def test_the_state_of_a_module_and_random_numbers_are_restored():
    module, x = Stateful(), torch.randn(2, 3)
    before = x.clone()
    torch.manual_seed(3)
    random = torch.get_rng_state()
    traced = tmconvert.trace(module, x)
    assert torch.equal(torch.get_rng_state(), random)
    assert module.count.item() == 0 and module.seen == [] and module.hidden is None
    assert torch.equal(module.weight, torch.ones(3)) and torch.equal(x, before)
    np.testing.assert_array_equal(traced.example.outputs[0], (x + 2).numpy())


def test_a_module_that_was_trained_since_is_not_run(tmp_path: Path):
    module, x = nn.Linear(3, 2), torch.randn(4, 3)
    traced = tmconvert.trace(module, x)
    with torch.no_grad():
        module.weight.add_(1)
    assert traced.original is None or traced.original.run([x.numpy()]) is None


def test_a_pickled_model_has_its_graph_alone():
    traced = tmconvert.trace(Calls(lambda x: x + 1), torch.randn(2, 3))
    assert traced.original is not None
    again = pickle.loads(pickle.dumps(traced))
    assert again.original is None and again.example is not None


SHAPED: dict[str, Callable[..., Any]] = {
    "new of a shape": lambda x: x.new(x.shape).fill_(1.0).sum() + x,
    "new of a size": lambda x: x.new(x.size()).zero_() + x,
    "new of integers": lambda x: x.new(*x.shape).fill_(1.0).sum() + x,
    "new of a tuple": lambda x: x.new((1, 4, 3)).sum() + x,
    "new of a list": lambda x: x.new([1.5, 2.0, 3.0]) + x,
    "new of nothing": lambda x: x.new().sum() + x,
}


@pytest.mark.parametrize("sizes", [None, {"x": {1: "n"}}], ids=["static", "open"])
@pytest.mark.parametrize("name", SHAPED)
def test_the_old_way_to_create_tensors(name: str, sizes: Any, tmp_path: Path):
    function = SHAPED[name]

    class Module(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return function(x)

    report = tmconvert.to_onnx(
        Module(), tmp_path / "o.onnx", example_inputs=(torch.randn(1, 4, 3),), dynamic_shapes=sizes
    )
    assert report.verified and not any("specialized" in note for note in report.notes)


# ---- which reference was used


def relu(path: Path, ir_version: int) -> Path:
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", value[:1], value[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir_version)
    onnx.save(model, path)
    return path


def test_the_report_names_the_reference(tmp_path: Path):
    of_file = tmconvert.to_onnx(relu(tmp_path / "r.onnx", 8), tmp_path / "o.onnx")
    of_module = tmconvert.to_onnx(nn.ReLU(), tmp_path / "o.onnx", example_inputs=(torch.randn(2, 3),))
    assert of_file.verification.reference.startswith("ONNX Runtime ")
    assert of_module.verification.reference == f"PyTorch {torch.__version__}"
    assert f" against PyTorch {torch.__version__}: " in str(of_module)


def test_a_source_that_its_runtime_refuses_is_not_verified(tmp_path: Path):
    source, out = relu(tmp_path / "r.onnx", 99), tmp_path / "o.onnx"
    report = tmconvert.to_onnx(source, out)
    assert not report.verified and report.verification.reference == OWN_READING
    assert str(report).startswith("not verified: ONNX Runtime ")
    outcome = CliRunner().invoke(main, ["onnx", str(source), str(out), "--json"])
    assert outcome.exit_code == 0 and json.loads(outcome.stdout)["verified"] is False
    outcome = CliRunner().invoke(main, ["verify", str(source), str(out), "--require-verified"])
    assert outcome.exit_code == 1 and "TM4006" in outcome.stderr


def test_a_file_that_must_be_verified_is_not_written(tmp_path: Path):
    out = tmp_path / "o.onnx"
    with pytest.raises(VerificationError, match="TM4006"):
        tmconvert.to_onnx(relu(tmp_path / "r.onnx", 99), out, require_verified=True)
    assert not out.exists()
    assert tmconvert.to_onnx(relu(tmp_path / "r.onnx", 8), out, require_verified=True).verified


def test_an_edited_model_is_no_longer_what_it_was_traced_from(tmp_path: Path) -> None:
    torch.manual_seed(0)
    linear, sizes = torch.nn.Linear(4, 3), {"x": {0: "batch"}}
    model = tmconvert.trace(lambda x: torch.relu(linear(x)), torch.rand(2, 4), dynamic_shapes=sizes)
    ops = (lambda g, x: g.call("aten::relu", x), lambda g, x: g.call("aten::clamp", x, 0.0, 1.0))
    assert tmconvert.replace_pattern(model, *ops)  # which brings the model into ops, and keeps its example
    report = tmconvert.to_onnx(model, tmp_path / "o.onnx", dynamic_shapes=sizes)
    assert report.verified
