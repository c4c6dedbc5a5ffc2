"""Control characters in names of modules and files: neither a terminal nor a written file gets them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from torch import nn

import tmconvert
from tests.cli.runner import run
from tmconvert.errors import TmconvertError

EVIL = "a\x1b[31m\x00\nerror[TM9000]: forged\r\x9b2J\u202eb"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


class Unconvertible(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eig(x[0, 0])[0].real


def net(last: nn.Module) -> nn.Module:
    made = nn.Sequential()
    made.add_module(EVIL, nn.Sequential())
    made[0].add_module(EVIL, nn.Conv2d(1, 2, 3))
    made.add_module("last", last)
    return made.eval()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def saved() -> str:
    traced = tmconvert.trace(net(nn.ReLU()), torch.randn(1, 1, 8, 8))
    assert any(EVIL in path for path, _ in traced.modules())
    traced.notes.append(EVIL)
    traced.save("net.tm")
    np.savez("data.npz", input=np.random.default_rng(0).standard_normal((2, 1, 8, 8)).astype(np.float32))
    return "net.tm"


COMMANDS = (
    ("inspect", "net.tm"),
    ("inspect", "net.tm", "--graph"),
    ("inspect", "net.tm", "--tabular"),
    ("inspect", "net.tm", "--graph", "--json"),
    ("check", "net.tm"),
    ("check", "net.tm", "--target", "caffe", "--dialect", "nnie"),
    ("onnx", "net.tm", "o.onnx", "-vv", "--time-passes"),
    ("onnx", "net.tm", "o.onnx", "--json"),
    ("onnx", "net.tm", "o.onnx", "--outputs", EVIL),
    ("onnx", "net.tm", "o.onnx", "--rename", f"{EVIL}={EVIL}"),
    ("onnx", "net.tm", "o.onnx", "--input-shape", f"{EVIL}=1"),
    ("onnx", f"{EVIL.replace(chr(0), '')}.tm", "o.onnx"),
    ("onnx", "net.tm", f"no_folder/{EVIL.replace(chr(0), '')}.onnx"),
    ("tflite", "net.tm", "o.tflite", "-vv"),
    ("caffe", "net.tm", "o.prototxt", "-vv"),
    ("calibrate", "net.tm", "-d", "data.npz", "-o", "q.tm"),
    ("onnx", "net.tm", "o.onnx", "--quantized", "--calibration", "data.npz", "--report", "o.txt"),
    ("onnx", "net.tm", "o.onnx", "--quantized", "--calibration", "data.npz", "--rule", f"{EVIL}=int8"),
    ("explain", EVIL),
    ("ops", "--search", EVIL),
    (EVIL,),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=[" ".join(each).split("\x1b")[0] for each in COMMANDS])
def test_what_commands_print(arguments: tuple[str, ...], saved: str) -> None:
    outcome = run(*arguments)
    assert outcome.status in (0, 1, 2)
    for text in (outcome.stdout, outcome.stderr):
        assert not CONTROL.search(text)
        assert not any(line.startswith("error[TM9000]: forged") for line in text.splitlines())
    for path in Path().glob("*.txt"):
        assert not CONTROL.search(path.read_text())


@pytest.mark.slow
def test_what_python_shows(saved: str) -> None:
    traced = tmconvert.load(saved)
    report = tmconvert.to_onnx(traced, "o.onnx")
    for text in (str(traced.graph), str(traced.flatten().graph), repr(traced), str(report)):
        assert not CONTROL.search(text)
    with pytest.raises(TmconvertError) as caught:
        tmconvert.to_onnx(net(Unconvertible()), "o.onnx", example_inputs=torch.randn(1, 1, 8, 8))
    assert not CONTROL.search(str(caught.value))


def test_names_in_written_files(saved: str) -> None:
    tmconvert.to_onnx(saved, "o.onnx")
    graph = onnx.load("o.onnx").graph
    names = [name for node in graph.node for name in (node.name, *node.input, *node.output)]
    names += [each.name for each in (*graph.initializer, *graph.value_info, *graph.input, *graph.output)]
    assert names and not any(CONTROL.search(name) or "\n" in name for name in names)
    assert any("\\x1b[31m" in name for name in names)
    schema = pytest.importorskip("ai_edge_litert.schema_py_generated")
    for options in ({}, {"quantized": True, "calibration": "data.npz"}):
        tmconvert.to_tflite(saved, "o.tflite", **options)
        model = schema.ModelT.InitFromPackedBuf(Path("o.tflite").read_bytes(), 0)
        written = [each.name.decode() for subgraph in model.subgraphs for each in subgraph.tensors]
        assert written and not any(CONTROL.search(name) or "\n" in name for name in written)
    tmconvert.to_caffe(saved, "o.prototxt")
    assert not CONTROL.search(Path("o.prototxt").read_text())
