"""From a name, a file or an object to a traced module, on the command line and in Python."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch

import tmconvert
from tests.cli.runner import environment, run
from tests.frontends.torch.factories import nets
from tests.frontends.torch.harness import run_onnx
from tmconvert.conversion.example_text import parse_examples
from tmconvert.errors import TmconvertError
from tmconvert.ir.traced_module import Example

HERE = Path(__file__).parent
NETS = "tests.frontends.torch.factories.nets"
X = "float32[2,8]"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---- PACKAGE.MODULE:FACTORY


@pytest.mark.parametrize("factory", ["make", "Net", "net", "with_inputs", "with_keywords"])
def test_trace_and_convert(factory: str) -> None:
    given = [] if factory.startswith("with") else ["--input", X]
    traced = run("trace", f"{NETS}:{factory}", "-o", "net.tm", *given)
    assert traced.status == 0, traced.stderr
    assert traced.stdout.startswith("net.tm  (2 modules, 45 parameters, ")
    converted = run("onnx", "net.tm", "net.onnx")
    assert converted.stderr.startswith("verified in ONNX Runtime")
    at_once = run("onnx", f"{NETS}:{factory}", "once.onnx", *given)
    assert at_once.status == 0
    if factory != "net":  # which was made once, when the module was imported
        assert onnx.load("net.onnx").graph == onnx.load("once.onnx").graph


def test_what_the_user_prints_is_no_result() -> None:
    outcome = run("trace", f"{NETS}:make", "-o", "net.tm", "--input", X, "--json")
    assert outcome.json["modules"] == 2
    assert "this goes to stderr" in outcome.stderr


def test_random_weights_are_the_same_each_time_and_the_callers_generator_is_left_alone() -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one = tmconvert.load(f"{NETS}:Net", example_inputs=[np.zeros((2, 8), np.float32)])
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    two = tmconvert.load(f"{NETS}:Net", example_inputs=[torch.zeros(2, 8)])
    np.testing.assert_array_equal(one.get("fc.weight"), two.get("fc.weight"))


def test_every_command_takes_a_factory() -> None:
    name = f"{NETS}:with_inputs"
    assert run("save", name, "s.tm").status == 0
    assert run("check", name, "--target", "onnx").stdout == "ok: every op can be converted\n"
    assert "producer    PyTorch" in run("inspect", name).stdout
    assert run("onnx", name, "o.onnx").status == 0
    assert run("verify", name, "o.onnx").stdout.startswith("ok: o.onnx verified in ONNX Runtime")
    assert run("tflite", name, "o.tflite").status == 0
    assert run("caffe", name, "o.prototxt").status == 0


def test_inputs_of_all_kinds() -> None:
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    np.save("x.npy", x)
    np.savez("named.npz", x=x, scale=np.float32(2))
    np.savez("in_order.npz", x, np.float32(2))
    for given in (["x=x.npy", "scale=2.0"], ["x.npy"], ["named.npz"], ["in_order.npz"]):
        flags = [word for text in given for word in ("--input", text)]
        outcome = run("trace", f"{NETS}:make", "-o", "net.tm", *flags)
        assert outcome.status == 0, outcome.stderr
        example = tmconvert.load("net.tm").example
        assert example is not None
        np.testing.assert_array_equal(example.inputs[0], x)


def test_whole_numbers_below_a_limit() -> None:
    (ids, flags), named = parse_examples(["int64[4,100]<50", "bool[3]", "m=complex64[2]", "b=bfloat16[2,2]"])
    assert (ids.dtype, ids.min() >= 0, ids.max() < 50, len(np.unique(ids)) > 20) == (
        np.int64,
        True,
        True,
        True,
    )
    assert (flags.dtype, flags.shape) == (np.bool_, (3,))
    assert (named["m"].dtype, named["b"].dtype.name) == (np.complex64, "bfloat16")
    outcome = run(
        "onnx", f"{NETS}:Tokens", "t.onnx", "--input", "int64[1,16]<50", "--dynamic", "ids:1=length"
    )
    assert outcome.status == 0, outcome.stderr
    ids = np.arange(9).reshape(1, 9)
    expected = tmconvert.load(f"{NETS}:Tokens", example_inputs=[ids])(ids)
    np.testing.assert_allclose(run_onnx(Path("t.onnx"), [ids])[0], expected)


@pytest.mark.parametrize("text", ["1x3x224", "float33[1]", "float32[a]", "[1,2]", "x=", "__import__('os')"])
def test_inputs_that_mean_nothing(text: str) -> None:
    outcome = run("trace", f"{NETS}:make", "-o", "net.tm", "--input", text)
    assert outcome.status == 2
    assert outcome.stderr.startswith("error[TM6015]: ")


def test_files_of_inputs_that_are_none() -> None:
    np.save("object.npy", np.array([{}], dtype=object), allow_pickle=True)
    Path("text.npz").write_text("no")
    for name in ("object.npy", "text.npz", "missing.npz"):
        outcome = run("trace", f"{NETS}:make", "-o", "net.tm", "--input", name)
        assert outcome.stderr.startswith(f"error[TM6011]: cannot use the inputs in {name}: ")


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        (f"{NETS}:nothing", "TM1022", "has no nothing"),
        ("no_such_module:make", "TM1022", "the module no_such_module was not found"),
        (
            f"{NETS}:needs",
            "TM1022",
            "cannot be called without arguments: missing a required argument: 'width'",
        ),
        (f"{NETS}:weights", "TM1022", "which is not a torch.nn.Module"),
        (f"{NETS}:raises", "TM1023", "raises ValueError: my own fault\n  --> {nets}:"),
        (f"{NETS}:exits", "TM1023", "raises SystemExit: 2\n  --> {nets}:"),
        (
            "tests.frontends.torch.factories.broken:make",
            "TM1023",
            "No module named 'a_module_that_nobody_has'\n  --> ",
        ),
        (
            f"{NETS}:other_torchvision",
            "TM1023",
            "help: torchvision is another build than torch: install both",
        ),
        (f"{NETS}:Branches", "TM2011", "item() converts it to a number\n  --> {nets}:"),
    ],
)
def test_faults_of_the_user(name: str, code: str, said: str) -> None:
    outcome = run("trace", name, "-o", "net.tm", "--input", X)
    assert (outcome.status, outcome.stdout) == (1, "")
    assert f"error[{code}]: " in outcome.stderr
    assert said.format(nets=HERE / "factories/nets.py") in outcome.stderr
    assert not Path("net.tm").exists()


def test_a_forward_that_fails_is_the_users() -> None:
    outcome = run("trace", f"{NETS}:make", "-o", "net.tm", "--input", "float32[2,9]")
    assert outcome.status == 1
    assert (
        "error[TM2014]: the model fails with the example inputs: RuntimeError: mat1 and mat2"
        in outcome.stderr
    )
    assert "  --> " + str(HERE / "factories/nets.py") in outcome.stderr
    assert "   |  x = torch.relu(self.fc(x))\n" in outcome.stderr


def test_a_failure_of_the_tracer_is_no_fault_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("tmconvert.frontends.torch.tracing.sources.trace_module", fail)
    outcome = run("trace", f"{NETS}:make", "-o", "net.tm", "--input", X)
    assert outcome.status == 3
    assert "error[TM9000]: RuntimeError: a defect" in outcome.stderr


def test_frozen_decisions_are_said() -> None:
    outcome = run("trace", f"{NETS}:Branches", "-o", "n.tm", "--input", X, "--freeze-control-flow", "--json")
    assert outcome.status == 0
    assert any("decided by the example inputs: " in note for note in outcome.json["notes"])


def test_no_inputs() -> None:
    outcome = run("onnx", f"{NETS}:make", "o.onnx")
    assert (outcome.status, outcome.stderr[-400:].count("error[TM6008]")) == (2, 1)


def test_options_of_tracing_for_a_graph() -> None:
    run("trace", f"{NETS}:make", "-o", "net.tm", "--input", X)
    outcome = run("inspect", "net.tm", "--input", X)
    assert (outcome.status, outcome.stderr[:13]) == (2, "error[TM6016]")


def test_a_package_in_the_current_folder() -> None:
    Path("mine").mkdir()
    Path("mine/made.py").write_text("import torch\ndef make():\n    return torch.nn.ReLU(), torch.ones(2)\n")
    path = list(sys.path)
    assert run("trace", "mine.made:make", "-o", "net.tm").status == 0
    assert sys.path == path


# ---- what is loaded

LOADED = """
import json, sys
import torch, tmconvert
tmconvert.trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()), torch.ones(1, 2))
print(json.dumps([name for name in sys.modules if name.startswith("tmconvert.symbolics.ops.")]))
"""


@pytest.mark.slow
def test_a_trace_loads_no_ops_but_those_of_its_calls(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LOADED]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=100, check=True)
    loaded = {name.rpartition(".")[2] for name in json.loads(done.stdout)}
    assert len(loaded) < 10 and "airy" not in loaded


# ---- without torch


HIDDEN = """
import sys
sys.modules["torch"] = None
from tmconvert.cli import main
main()
"""


@pytest.mark.slow
def test_without_torch(tmp_path: Path) -> None:
    def hidden(*args: str) -> Any:
        command = [sys.executable, "-c", HIDDEN, *args]
        root = str(HERE.parents[2])
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment(PYTHONPATH=root),
            timeout=100,
            check=False,
        )

    assert run("trace", f"{NETS}:with_inputs", "-o", "net.tm").status == 0
    done = hidden("trace", f"{NETS}:make", "-o", "other.tm", "--input", X)
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[TM1021]: tracing a model requires PyTorch, which is not installed" in done.stderr
    assert "pip install torch" in done.stderr
    done = hidden("onnx", "net.tm", "net.onnx")
    assert (done.returncode, done.stderr.startswith("verified in ONNX Runtime")) == (0, True)
    assert hidden("inspect", "net.tm", "--graph").returncode == 0
    assert hidden("check", "net.tm", "--target", "caffe").returncode == 0
    assert hidden("verify", "net.tm", "net.onnx").stdout.startswith("ok: ")
    assert hidden("save", "net.tm", "again.tm").returncode == 0


def test_what_pytorch_computed_is_what_counts(tmp_path: Path) -> None:
    """A file is verified against the outputs that travel with the model, not only against our kernels."""
    traced = tmconvert.trace(nets.Net(), torch.randn(2, 8), dynamic_shapes={"x": {0: "batch"}})
    traced.notes.append("a note of the trace")
    traced.save(tmp_path / "net.tm")
    loaded = tmconvert.load(tmp_path / "net.tm")
    assert (loaded.dynamic_shapes, loaded.notes) == (traced.dynamic_shapes, traced.notes)
    assert traced.example is not None and loaded.example is not None
    np.testing.assert_array_equal(loaded.example.outputs[0], traced.example.outputs[0])
    report = tmconvert.to_onnx(loaded, tmp_path / "o.onnx")
    assert report.inputs[0]["shape"] == ["batch", 8]
    assert "a note of the trace" in report.notes
    traced.example = Example(traced.example.inputs, tuple(each + 1 for each in traced.example.outputs))
    traced.save(tmp_path / "wrong.tm")
    with pytest.raises(TmconvertError, match="TM4001"):
        tmconvert.to_onnx(tmp_path / "wrong.tm", tmp_path / "wrong.onnx")
    assert not (tmp_path / "wrong.onnx").exists()


# ---- Python


def test_to_onnx_of_a_module() -> None:
    net = nets.Net().eval()
    report = tmconvert.to_onnx(
        net, "o.onnx", example_inputs=[torch.randn(2, 8)], dynamic_shapes={"x": {0: "batch"}}
    )
    assert report.verified
    x = torch.randn(7, 8)
    np.testing.assert_allclose(run_onnx(Path("o.onnx"), [x.numpy()])[0], net(x).detach().numpy(), atol=1e-5)
    with pytest.raises(TmconvertError, match="TM6008"):
        tmconvert.to_onnx(net, "o.onnx")


def test_a_users_exception_reaches_the_user_as_it_is() -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        tmconvert.trace(nets.Net(), torch.randn(2, 9))


ODD = """
import os, sys, torch
class Quits(torch.nn.Module):
    def forward(self, x):
        sys.exit(0)
def quits():
    return Quits(), (torch.zeros(2),)
def three():
    return torch.nn.ReLU(), (torch.zeros(2),), 3
def moves():
    os.mkdir("sub")
    os.chdir("sub")
    return torch.nn.ReLU(), (torch.zeros(2),)
"""


def test_odd_factories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "odd_factories.py").write_text(ODD)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TmconvertError, match=r"TM2014.*SystemExit: 0"):
        tmconvert.to_onnx("odd_factories:quits", "a.onnx")
    with pytest.raises(TmconvertError, match=r"TM1022.*returns int as the third"):
        tmconvert.to_onnx("odd_factories:three", "a.onnx")
    tmconvert.to_onnx("odd_factories:moves", "a.onnx", verify=False)
    assert (tmp_path / "a.onnx").exists()


class Moves(torch.nn.Module):
    """A module that changes the current folder when it runs."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        os.chdir("..")
        return x + 1


def test_a_module_that_changes_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmconvert.to_onnx(Moves(), "a.onnx", example_inputs=(torch.zeros(2),))
    assert Path.cwd() == tmp_path and [path.name for path in tmp_path.iterdir()] == ["a.onnx"]
