"""What is said of models that are named or given in another way than they are taken."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import tmconvert
from tests.cli.runner import run
from tmconvert.errors import LoadError, UsageError
from tmconvert.frontends.torch.archives import Kind, kind_of

NET = """
import torch

class Two(torch.nn.Module):
    def forward(self, a, b, scale: float = 1.0):
        return a + b * scale

def branch():
    return Two()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models_of_mine").mkdir()
    for file in ("net_of_mine.py", "models_of_mine/inner.py"):
        (tmp_path / file).write_text(NET)
    return tmp_path


def _help(error: LoadError | UsageError) -> str:
    return dict(error.notes)["help"]


@pytest.mark.parametrize("old", [False, True])
def test_a_pickled_module_is_no_checkpoint(old: bool, tmp_path: Path) -> None:
    def kind(value: object, protocol: int = 2) -> Kind | None:
        path = tmp_path / "file.pt"
        torch.save(value, path, _use_new_zipfile_serialization=not old, pickle_protocol=protocol)
        return kind_of(str(path), path.read_bytes()[:64])

    linear = torch.nn.Linear(2, 2)
    assert kind(linear) is Kind.MODULE
    if not old:
        assert kind(torch.nn.Sequential(linear), protocol=4) is Kind.MODULE
    for value in (linear.state_dict(), {"epoch": 3, "model": linear.state_dict()}, torch.ones(2), [1, 2]):
        assert kind(value) is Kind.CHECKPOINT


def test_a_pickled_module_is_read_by_a_factory(folder: Path) -> None:
    torch.save(torch.nn.Linear(2, 2), "whole.pt")
    with pytest.raises(LoadError, match="a whole module pickled") as error:
        tmconvert.load("whole.pt")
    assert error.value.code == "TM1024"
    assert "torch.load('whole.pt', weights_only=False)" in _help(error.value)


@pytest.mark.parametrize(
    ("name", "code", "wanted"),
    [
        ("net_of_mine.py:branch", "TM1022", "write net_of_mine:branch"),
        ("models_of_mine/inner.py:Two", "TM1022", "write models_of_mine.inner:Two"),
        (
            "./net_of_mine.py",
            "TM1002",
            "name a function or class that creates the module: net_of_mine:Two, net_of_mine:branch",
        ),
        (
            "net_of_mine",
            "TM1001",
            "name a function or class that creates the module: net_of_mine:Two, net_of_mine:branch",
        ),
        ("net_of_mine:brnch", "TM1022", "did you mean branch?"),
    ],
)
def test_spellings_of_a_factory(name: str, code: str, wanted: str, folder: Path) -> None:
    with pytest.raises(LoadError) as error:
        tmconvert.load(name, example_inputs=(torch.ones(2),))
    assert (error.value.code, _help(error.value)) == (code, wanted)


def test_missing_inputs_are_named(folder: Path) -> None:
    with pytest.raises(UsageError, match="missing a required argument: 'b'") as error:
        tmconvert.load("net_of_mine:branch", example_inputs=(torch.ones(2),))
    assert dict(error.value.notes)["it has"] == "forward(a, b, scale=1.0)"
    assert "--input 'b=float32[1,3]' (example_kwargs={'b': b})" in _help(error.value)
    with pytest.raises(UsageError, match="too many positional arguments"):
        tmconvert.load("net_of_mine:branch", example_inputs=(torch.ones(2),) * 4)
    with pytest.raises(UsageError, match="requires example inputs") as error:
        tmconvert.load("net_of_mine:branch")
    assert dict(error.value.notes)["it has"] == "forward(a, b, scale=1.0)"


def test_a_package_that_cannot_be_imported(folder: Path) -> None:
    (folder / "models_of_mine" / "__init__.py").write_text("import there_is_none\n")
    with pytest.raises(LoadError, match="No module named 'there_is_none'") as error:
        tmconvert.load("models_of_mine:make")
    assert str(error.value.source) == f"{folder / 'models_of_mine' / '__init__.py'}:1"


def test_the_users_line_that_calls_a_library(folder: Path) -> None:
    (folder / "reads_of_mine.py").write_text("import json\n\ndef make():\n    return json.loads('{')\n")
    with pytest.raises(LoadError) as error:
        tmconvert.load("reads_of_mine:make")
    assert str(error.value.source) == f"{folder / 'reads_of_mine.py'}:4"


def test_options_that_are_near() -> None:
    said = {
        "--opsett": "unknown option --opsett, did you mean --opset?",
        "--quiett": "unknown option --quiett, did you mean --quiet?",
        "--int8": "unknown option --int8: use --quantized (--calibration DATA for float models)",
    }
    for option, wanted in said.items():
        assert run("onnx", option).stderr.splitlines()[0] == f"error[TM6010]: {wanted}"
    assert "did you mean 'onnx'?" in run("ONNX", "m", "o").stderr
    first = run("check", "m").stderr.splitlines()[0]
    assert first == (
        "error[TM6010]: missing option '--target', or --profile. Choose from: onnx, tflite, caffe"
    )
