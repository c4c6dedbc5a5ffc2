"""``tmconvert inspect``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import tmconvert
from tests.cli.runner import DATA, run

MODELS = sorted(path.stem for path in DATA.glob("*.tm") if not path.stem.startswith("hostile_"))


@pytest.fixture(autouse=True)
def _in_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA)


def test_the_data_is_there() -> None:
    assert len(MODELS) == 73


@pytest.mark.parametrize("name", MODELS)
def test_graph_is_what_megengine_prints(name: str) -> None:
    outcome = run("inspect", f"{name}.tm", "--graph")
    expected = json.loads((DATA / f"{name}.json").read_text())["graph"]
    assert (outcome.status, outcome.stdout, outcome.stderr) == (0, expected + "\n", "")


@pytest.mark.parametrize("name", MODELS)
def test_summary_of_every_model(name: str) -> None:
    described = json.loads((DATA / f"{name}.json").read_text())
    outcome = run("inspect", f"{name}.tm", "--json", "--tabular")
    assert (outcome.status, outcome.stderr) == (0, "")
    document = outcome.json
    assert [(each["name"], each["shape"]) for each in document["inputs"]] == [
        (each["node"], each["shape"]) for each in described["inputs"]
    ]
    assert len(document["outputs"]) == len(described["outputs"])
    assert document["modules"][0]["path"] == ""
    assert all(row["id"].startswith("%") and row["kind"] for row in document["exprs"])


def test_summary() -> None:
    outcome = run("inspect", "op_s_conv_bn_relu.tm")
    assert outcome.status == 0
    assert outcome.stdout == (
        "model       op_s_conv_bn_relu.tm\n"
        "name        CBR\n"
        "producer    MegEngine 1.13.0\n"
        "parameters  232 and 16 in buffers (992 bytes)\n"
        "MACs        55.3 k\n"
        "activations 36.9 kB, at most 20.5 kB at once\n"
        "\n"
        "inputs\n"
        "  x  float32[1,3,32,32]  NCHW\n"
        "\n"
        "outputs\n"
        "  r_out  float32[1,8,16,16]  NCHW\n"
        "\n"
        "modules\n"
        "  1  megengine.module.activation.ReLU\n"
        "  1  megengine.module.batchnorm.BatchNorm2d\n"
        "  1  megengine.module.conv.Conv2d\n"
        "\n"
        "module tree\n"
        "  CBR\n"
        "    r: ReLU\n"
        "    b: BatchNorm2d  (16 parameters)\n"
        "    c: Conv2d  (216 parameters)\n"
    )


@pytest.mark.parametrize(
    ("model", "line", "kind", "tensors"),
    [
        (
            "qat_small_ema",
            "quantized   quantization-aware: 10 int8, 5 int8_narrow, 4 int32 tensors\n",
            "quantization-aware",
            {"int8": 10, "int8_narrow": 5, "int32": 4},
        ),
        (
            "quantized_small",
            "quantized   fixed-point: 15 int8, 5 int32 tensors\n",
            "fixed-point",
            {"int8": 15, "int32": 5},
        ),
    ],
)
def test_quantized_models_say_so(model: str, line: str, kind: str, tensors: dict[str, int]) -> None:
    assert line in run("inspect", f"{model}.tm").stdout
    document = run("inspect", f"{model}.tm", "--json").json
    assert document["quantization"] == {"kind": kind, "tensors": tensors}


def test_float_models_say_nothing_of_it() -> None:
    assert run("inspect", "resnet18.tm", "--json").json["quantization"] is None


def test_table() -> None:
    outcome = run("inspect", "op_s_conv_bn_relu.tm", "--tabular")
    assert outcome.status == 0
    assert [line.split() for line in outcome.stdout.splitlines()] == [
        ["id", "kind", "target", "inputs", "output", "shape"],
        ["%0", "Input", "self", "self", "Module"],
        ["%1", "Input", "x", "x", "f32[1,3,32,32]"],
        ["%2", "GetAttr", "r", "self", "r", "ReLU"],
        ["%3", "GetAttr", "b", "self", "b", "BatchNorm2d"],
        ["%4", "GetAttr", "c", "self", "c", "Conv2d"],
        ["%5", "CallMethod", "megengine.module.conv.Conv2d", "c,", "x", "c_out", "f32[1,8,16,16]"],
        [
            "%6",
            "CallMethod",
            "megengine.module.batchnorm.BatchNorm2d",
            "b,",
            "c_out",
            "b_out",
            "f32[1,8,16,16]",
        ],
        ["%7", "CallMethod", "megengine.module.activation.ReLU", "r,", "b_out", "r_out", "f32[1,8,16,16]"],
    ]
    starts = {line.index(" f32[") for line in outcome.stdout.splitlines() if " f32[" in line}
    assert len(starts) == 1


def test_json_has_the_graph_on_request() -> None:
    plain = run("inspect", "vit_tiny.tm", "--json").json
    assert "graph" not in plain
    assert "exprs" not in plain
    assert plain["ops"]["functions"]["megengine.functional.math.matmul"] == 4
    assert plain["producer"] == "MegEngine 1.13.0"
    both = run("inspect", "vit_tiny.tm", "--json", "--graph", "--tabular").json
    assert both["graph"] == json.loads((DATA / "vit_tiny.json").read_text())["graph"]


def test_models_that_cannot_be_converted() -> None:
    outcome = run("inspect", "custom_user_function.tm")
    assert outcome.status == 0
    assert "\nfunctions\n  1  userlib_layers.my_act\n" in outcome.stdout


def test_graph_and_table_are_two_things() -> None:
    outcome = run("inspect", "vit_tiny.tm", "--graph", "--tabular")
    assert (outcome.status, outcome.stdout) == (2, "")
    assert outcome.stderr.startswith("error[TM6010]: --graph and --tabular go together with --json only\n")


def test_axes_that_a_trace_left_open(tmp_path: Path) -> None:
    open_axes = {"input": {0: "batch", 2: "seq"}}
    traced = tmconvert.trace(torch.nn.ReLU(), torch.ones(2, 3, 5), dynamic_shapes=open_axes)
    traced.save(tmp_path / "net.tm")
    outcome = run("inspect", tmp_path / "net.tm")
    assert "  input  float32[2,3,5]  (dynamic: axis 0 is batch, axis 2 is seq)\n" in outcome.stdout
    document = run("inspect", tmp_path / "net.tm", "--json").json
    assert document["dynamic_shapes"] == {"input": {"0": "batch", "2": "seq"}}
    assert document["inputs"][0]["shape"] == [2, 3, 5]
    tmconvert.trace(torch.nn.ReLU(), torch.ones(2)).save(tmp_path / "fixed.tm")
    assert run("inspect", tmp_path / "fixed.tm", "--json").json["dynamic_shapes"] == {}
    assert "(open" not in run("inspect", tmp_path / "fixed.tm").stdout
    assert run("inspect", "op_pooling.tm", "--json").json["dynamic_shapes"] is None  # all follow the graph
