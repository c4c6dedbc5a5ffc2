"""Scripted, compiled and symbolically traced modules, as models and as parts of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tests.cli.runner import run
from tests.frontends.torch.factories.nets import Net
from tests.frontends.torch.harness import check, run_onnx
from tmconvert.errors import TmconvertError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch.jit


class Holder(torch.nn.Module):
    def __init__(self, part: Any) -> None:
        super().__init__()
        self.part = part
        self.last = torch.nn.Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.part(x * 2)) + 1


class Shapes(torch.nn.Module):
    """What a script does in place, by sizes and with constants."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x).view(x.size(0) * 5)
        y[1:3] = 0.5
        for i in range(2):
            y = y * (i + 1)
        return y.relu_().view(-1, 5)

    @torch.jit.export
    def half(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x) / 2


def looks(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() > 0):
        return x
    return -x


def chooses_text(x: torch.Tensor) -> torch.Tensor:
    text = "b" if bool(x.sum() > 0) else "a"
    return x if text == "a" else -x


@pytest.fixture(scope="module")
def script() -> Any:
    with pytest.MonkeyPatch.context():
        return torch.jit.script(Shapes().eval())


def test_scripts_as_models_and_parts(script: Any) -> None:
    x = torch.randn(2, 8)
    check(script, x)
    traced = check(Holder(script), x)
    graph = traced.flatten().graph
    assert graph is not None and any("addmm" in str(expr) for expr in graph)
    check(torch.jit.trace(Net().eval(), x), x)
    check(lambda x: script.half(x) + 1, x)
    function = torch.jit.script(lambda_like)
    check(lambda x: function(x, 3) - 1, x)


def lambda_like(x: torch.Tensor, n: int) -> torch.Tensor:
    return torch.cat([x, x * n], dim=1)


@pytest.mark.parametrize("function", [looks, lambda x: x if torch.equal(x, x * 1) else -x])
def test_a_script_that_looks_into_its_input(function: Any) -> None:
    check(function, torch.ones(3), second=[-torch.ones(3)])
    candidates = [function] if function is not looks else [function, torch.jit.script(looks)]
    for each in candidates:
        frozen = tmconvert.trace(each, torch.ones(3), freeze_control_flow=True)
        assert any("decided by the example inputs" in note for note in frozen.notes)


def test_calls_of_scripts_are_as_before(script: Any) -> None:
    kinds = (torch._C.ScriptMethod, torch._C.ScriptFunction)
    before = [vars(kind)["__call__"] for kind in kinds]
    with pytest.raises(TmconvertError, match="TM2011"):
        tmconvert.trace(torch.jit.script(chooses_text), torch.ones(3))
    assert [vars(kind)["__call__"] for kind in kinds] == before


def test_graph_modules() -> None:
    module = torch.fx.symbolic_trace(Holder(Net().eval()))
    x = torch.randn(2, 8)
    traced = check(module, x)
    assert traced.get("part.fc.weight").shape == (5, 8)


def test_compiled_modules_run_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("it was compiled")

    x = torch.randn(2, 8)
    whole = torch.compile(Net().eval(), backend=never)
    part = Holder(torch.compile(Net().eval(), backend=never)).eval()
    own = Net().eval()
    own.compile(backend=never)
    function = torch.compile(lambda x: torch.relu(x) * 2, backend=never)
    plain = Holder(Net().eval())
    for module in (whole, part, own, Holder(own), function):
        traced = tmconvert.trace(module, x)
        assert traced.graph is not None
        result = traced(x.numpy())
        uncompiled = getattr(module, "_orig_mod", module)
        with torch.no_grad(), torch.compiler.set_stance("force_eager"):
            np.testing.assert_allclose(result, uncompiled(x).numpy(), atol=1e-5)
    assert tmconvert.trace(plain, x).class_name.endswith("Holder")
    assert tmconvert.trace(whole, x).class_name.endswith("Net")
    assert tmconvert.trace(whole, x).get("fc.weight").shape == (5, 8)


# ---- files


def test_a_script_in_a_file(script: Any, tmp_path: Path) -> None:
    path = tmp_path / "script.bin"
    script.save(str(path))
    outcome = run("onnx", path, tmp_path / "o.onnx", "--input", "float32[2,8]")
    assert outcome.status == 1
    assert outcome.stderr.startswith(
        "error[TM1025]: this is a TorchScript file: a program, parts of which run"
    )
    assert "--allow-code" in outcome.stderr
    outcome = run("onnx", path, tmp_path / "o.onnx", "--input", "float32[2,8]", "--allow-code")
    assert outcome.status == 0, outcome.stderr
    x = torch.randn(2, 8)
    expected = script(x).detach().numpy()
    np.testing.assert_allclose(run_onnx(tmp_path / "o.onnx", [x.numpy()])[0], expected, atol=1e-5)
    with pytest.raises(TmconvertError, match="TM6008"):
        tmconvert.load(path, allow_code=True)
    loaded = tmconvert.load(path, allow_code=True, example_inputs=[x])
    np.testing.assert_allclose(loaded(x.numpy()), expected, atol=1e-5)


@pytest.mark.parametrize("new", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_checkpoints(new: bool, whole: bool, tmp_path: Path) -> None:
    path, net = tmp_path / "weights.tm", Net()
    torch.save(net if whole else net.state_dict(), path, _use_new_zipfile_serialization=new)
    outcome = run("inspect", path)
    assert outcome.status == 1
    said = "whole module pickled by torch.save" if whole else "checkpoint of torch.save: it has weights"
    assert outcome.stderr.startswith(f"error[TM1024]: this is a {said}")
    assert "PACKAGE.MODULE:FUNCTION" in outcome.stderr


def test_a_damaged_script(script: Any, tmp_path: Path) -> None:
    path = tmp_path / "script.pt"
    script.save(str(path))
    data = bytearray(path.read_bytes())
    middle = data.index(b"constants.pkl") + 120
    data[middle : middle + 60] = bytes(60)
    path.write_bytes(data)
    with pytest.raises(TmconvertError, match="TM1026"):
        tmconvert.load(path, allow_code=True, example_inputs=[torch.ones(2, 8)])
