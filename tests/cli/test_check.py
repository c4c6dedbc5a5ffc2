"""``tmconvert check``."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import onnx
import pytest
import torch

import tmconvert
from tests.cli.runner import DATA, run
from tmconvert import api
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import DEFAULT_OPSET

SAMPLES = Path(__file__).parents[2] / "samples"


@pytest.fixture(autouse=True)
def _in_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA)


@pytest.mark.parametrize("target", ["onnx", "tflite", "caffe"])
def test_nothing_stands_in_the_way(target: str) -> None:
    outcome = run("check", "op_s_conv_bn_relu.tm", "--target", target)
    assert (outcome.status, outcome.stdout, outcome.stderr) == (0, "ok: every op can be converted\n", "")


def test_one_op_of_the_users() -> None:
    outcome = run("check", "custom_user_function.tm", "--target", "onnx", "--opset", "13")
    assert (outcome.status, outcome.stderr) == (1, "")
    assert outcome.stdout == (
        "1 op in 1 call cannot be converted to ONNX opset 13\n"
        "\n"
        "userlib_layers.my_act  (1 call)\n"
        "  reason: userlib_layers.my_act is not supported\n"
        "  in:     the top module\n"
        "  first:  custom_user_function.tm:%5, in UF\n"
        "  help:   it is your own code: trace through it, or register a conversion with register_symbolic\n"
    )


def test_all_ops_at_once() -> None:
    groups = api.check("op_trig_compare.tm", "caffe", "ascend")
    assert len(groups) >= 2
    outcome = run("check", "op_trig_compare.tm", "--target", "caffe", "--dialect", "ascend")
    assert (outcome.status, outcome.stderr) == (1, "")
    assert outcome.stdout.startswith(f"{len(groups)} ops in {sum(group.calls for group in groups)} calls ")
    for group in groups:
        calls = "1 call" if group.calls == 1 else f"{group.calls} calls"
        assert f"\n{group.op}  ({calls})\n  reason: {group.reason}\n" in outcome.stdout
        assert ", ".join(scope or "the top module" for scope in group.scopes) in outcome.stdout
        assert f"\n  help:   {group.help}" in outcome.stdout or not group.help


def test_json() -> None:
    groups = api.check("op_trig_compare.tm", "caffe", "ascend")
    outcome = run("check", "op_trig_compare.tm", "--target", "caffe", "--dialect", "ascend", "--json")
    assert outcome.status == 1
    assert outcome.json == {
        "model": "op_trig_compare.tm",
        "target": "caffe",
        "version": "ascend",
        "ok": False,
        "unsupported": [group.to_json() for group in groups],
        "sufficient_opset": None,
        "missing_kernels": [],
        "violations": [],
    }
    fine = run("check", "op_s_conv_bn_relu.tm", "--target", "onnx", "--opset", "11", "--json")
    assert fine.status == 0
    assert fine.json == {
        "model": "op_s_conv_bn_relu.tm",
        "target": "onnx",
        "version": 11,
        "ok": True,
        "unsupported": [],
        "sufficient_opset": None,
        "missing_kernels": [],
        "violations": [],
    }


@pytest.fixture
def late_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    """ReLU begins at opset 9, and convolution at 12."""
    replace_since(monkeypatch, ("aten::relu", 9), ("aten::conv2d", 12))


def replace_since(monkeypatch: pytest.MonkeyPatch, *starts: tuple[str, int]) -> None:
    """Without a decomposition, which an earlier opset could express."""
    table = dict(catalogue())
    for name, since in starts:
        op = table[name]
        symbolics = {**op.symbolics, "onnx": {since: op.lookup("onnx", since)}}
        table[name] = dataclasses.replace(op, symbolics=symbolics, decomposition=None)
    for module in ("api_convert", "api_inspect", "conversion.checks"):
        monkeypatch.setattr(f"tmconvert.{module}.catalogue", lambda: table)


def test_the_opset_that_is_enough(late_ops: None) -> None:
    outcome = run("check", "op_s_conv_bn_relu.tm", "--target", "onnx", "--opset", "8")
    assert outcome.status == 1
    assert "\n  help:   use --opset 9 or later\n" in outcome.stdout
    assert outcome.stdout.endswith("\n\nopset 12 and later can express all of them\n")
    document = run("check", "op_s_conv_bn_relu.tm", "--target", "onnx", "--opset", "11", "--json").json
    assert document["sufficient_opset"] == 12
    assert [group["op"] for group in document["unsupported"]] == ["aten::conv2d"]


def test_a_conversion_names_the_opset_that_is_enough(late_ops: None, tmp_path: Path) -> None:
    outcome = run("onnx", "op_s_conv_bn_relu.tm", tmp_path / "out.onnx", "--opset", "8")
    assert outcome.status == 1
    assert "= help: opset 12 and later can express all of them: use --opset 12\n" in outcome.stderr
    outcome = run("onnx", "op_s_conv_bn_relu.tm", tmp_path / "out.onnx", "--opset", "9")
    assert "= help: opset 12 and later can express it: use --opset 12\n" in outcome.stderr


@pytest.fixture
def later_ops(monkeypatch: pytest.MonkeyPatch) -> None:
    """ReLU begins at opset 19, and convolution at 21."""
    replace_since(monkeypatch, ("aten::relu", 19), ("aten::conv2d", 21))


def test_auto_takes_the_lowest_opset_that_is_enough(later_ops: None, tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    outcome = run("onnx", "op_s_conv_bn_relu.tm", path, "--opset", "auto")
    assert outcome.status == 0
    assert onnx.load(path).opset_import[0].version == 21
    assert "ONNX opset 21" in outcome.stdout
    checked = run("check", "op_s_conv_bn_relu.tm", "--target", "onnx", "--opset", "auto", "--json").json
    assert checked["ok"] and checked["version"] == 21


def test_auto_is_the_default_opset_where_that_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    assert run("onnx", "op_s_conv_bn_relu.tm", path, "--opset", "auto").status == 0
    assert onnx.load(path).opset_import[0].version == DEFAULT_OPSET


def test_auto_says_what_no_opset_has(tmp_path: Path) -> None:
    outcome = run("onnx", "custom_user_function.tm", tmp_path / "out.onnx", "--opset", "auto")
    assert outcome.status == 1
    assert "error[TM2003]" in outcome.stderr


@pytest.mark.parametrize(("activations", "opset"), [("uint8", 17), ("uint16", 21)])
def test_auto_has_the_types_of_the_activations(activations: str, opset: int, tmp_path: Path) -> None:
    path = tmp_path / "out.onnx"
    tmconvert.to_onnx(
        SAMPLES / "digits_qat.tm", path, opset="auto", quantized=True, activations=activations, verify=False
    )
    assert onnx.load(path).opset_import[0].version == opset


def test_no_opset_is_enough() -> None:
    outcome = run("check", "custom_user_function.tm", "--target", "onnx", "--opset", "7", "--json")
    assert outcome.json["sufficient_opset"] is None


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["op_s_conv_bn_relu.tm"], "error[TM6010]: missing option '--target'"),
        (["op_s_conv_bn_relu.tm", "--target", "coreml"], "'coreml' is not one of 'onnx', 'tflite', 'caffe'"),
        (
            ["op_s_conv_bn_relu.tm", "--target", "onnx", "--opset", "99"],
            "error[TM6001]: opset 99 is not supp",
        ),
        (["op_s_conv_bn_relu.tm", "--target", "tflite", "--opset", "9"], "--opset applies to --target onnx"),
    ],
)
def test_wrong_usage(args: list[str], said: str) -> None:
    outcome = run("check", *args)
    assert (outcome.status, outcome.stdout) == (2, "")
    assert said in outcome.stderr


@pytest.mark.slow
def test_limits_of_a_caffe_dialect() -> None:
    outcome = run("check", "mobilenet_v2.tm", "--target", "caffe", "--dialect", "ascend")
    assert (outcome.status, outcome.stdout) == (0, "ok: every op can be converted\n")
    outcome = run("check", "vit_tiny.tm", "--target", "caffe", "--dialect", "nnie")
    assert outcome.status == 1
    assert outcome.stdout.splitlines()[2] == "nnie-batch"
    outcome = run("check", "vit_tiny.tm", "--target", "caffe", "--dialect", "bvlc", "--json")
    assert (outcome.status, outcome.json["version"], outcome.json["violations"]) == (0, "bvlc", [])


def test_a_dialect_of_another_target() -> None:
    outcome = run("check", "mobilenet_v2.tm", "--target", "onnx", "--dialect", "nnie")
    assert outcome.status == 2
    assert "--dialect applies to --target caffe, not onnx" in outcome.stderr


def test_kernels_that_onnx_runtime_lacks(tmp_path: Path) -> None:
    """They are no reason not to convert, and a reason not to run: it has no ELU in float64."""
    net = torch.nn.Sequential(torch.nn.ELU(), torch.nn.Sigmoid()).double()
    tmconvert.trace(net, torch.randn(1, 3, 8, 8).double()).save(tmp_path / "net.tm")
    outcome = run("check", tmp_path / "net.tm", "--target", "onnx")
    assert outcome.status == 0
    assert "note: ONNX Runtime has no kernel for Elu in float64" in " ".join(outcome.stdout.split())
    (line,) = run("check", tmp_path / "net.tm", "--target", "onnx", "--json").json["missing_kernels"]
    assert "1 node, first" in line
