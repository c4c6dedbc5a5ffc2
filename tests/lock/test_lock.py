"""Locks: conversions that are recorded, made again, and verified without their source."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.cli.runner import model, run
from tmconvert import api
from tmconvert.errors import LoadError, UsageError, VerificationError
from tmconvert.symbolics import plugins

CONV = model("op_s_conv_bn_relu")
CASES = [
    ("onnx", "o.onnx", {}),
    ("onnx", "o.onnx", {"opset": 13, "external_data": True, "rename": {"x": "image"}}),
    ("tflite", "o.tflite", {"io_layout": "source"}),
    ("caffe", "o.prototxt", {}),
]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins, "_files", set())  # of other tests


@pytest.mark.parametrize(("target", "out", "options"), CASES)
def test_builds_the_same_bytes_and_verifies_alone(target: str, out: str, options: dict[str, object]) -> None:
    api.to_target(CONV, target, out, lock="o.lock", **options)
    rebuilt = api.rebuild("o.lock", folder="again")
    assert rebuilt.ok
    assert rebuilt.differences == ()
    assert Path("again", out).read_bytes() == Path(out).read_bytes()
    assert api.verify(out, lock="o.lock").max_error < 1e-4


@pytest.mark.parametrize("out", ["o.onnx", "o.tflite"])
def test_integers_with_calibration(out: str) -> None:
    x = np.random.default_rng(0).standard_normal((4, 3, 32, 32)).astype(np.float32)
    np.savez("data.npz", x=x)
    target = out[2:]
    outcome = run(target, CONV, out, "--quantized", "--calibration", "data.npz", "--lock", "o.lock")
    assert outcome.status == 0
    assert run("rebuild", "o.lock").stdout == f"{out}: the same bytes\n"
    assert run("verify", out, "--lock", "o.lock").status == 0
    np.savez("data.npz", x=2 * x)
    outcome = run("rebuild", "o.lock")
    assert outcome.status == 1
    assert "source data.npz differs: SHA-256" in outcome.stdout
    assert f"{out}: other bytes" in outcome.stdout


def test_a_changed_file_is_wrong() -> None:
    api.to_onnx(CONV, "o.onnx", lock="o.lock")
    changed = onnx.load("o.onnx")
    weight = max(changed.graph.initializer, key=lambda each: len(each.raw_data))
    weight.CopyFrom(numpy_helper.from_array(1.01 * numpy_helper.to_array(weight), weight.name))
    onnx.save(changed, "o.onnx")
    with pytest.raises(VerificationError, match="TM4001"):
        api.verify("o.onnx", lock="o.lock")


def test_other_versions_and_sources_are_listed() -> None:
    api.to_onnx(CONV, "o.onnx", lock="o.lock")
    document = json.loads(Path("o.lock").read_text(encoding="utf-8"))
    document["versions"]["numpy"] = "1.0"
    document["processor"] = ["avx2"]
    Path("o.lock").write_text(json.dumps(document), encoding="utf-8")
    outcome = run("rebuild", "o.lock", "--json")
    assert outcome.status == 0  # all bytes are the same
    differences = outcome.json["differences"]
    assert ("version", "numpy", "1.0") in {
        (each["kind"], each["name"], each["locked"]) for each in differences
    }


@pytest.mark.torch
def test_factories_run_on_request_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("locked_net.py").write_text(
        "import torch\ndef make():\n    torch.manual_seed(0)\n    return torch.nn.Linear(4, 2)\n",
        encoding="utf-8",
    )
    shapes = {"input": {0: "batch"}}
    options = {"example_inputs": [torch.ones(3, 4)], "dynamic_shapes": shapes}
    api.to_onnx("locked_net:make", "o.onnx", lock="o.lock", **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"TM6094.*factory locked_net:make"):
        api.rebuild("o.lock")
    rebuilt = api.rebuild("o.lock", allow_code=True)
    assert rebuilt.ok
    assert "locked_net.py" in json.loads(Path("o.lock").read_text(encoding="utf-8"))["sources"]

    net = torch.nn.Linear(4, 2)
    api.to_onnx(net, "n.onnx", lock="n.lock", **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"TM6095.*a Linear"):
        api.rebuild("n.lock")
    assert api.rebuild("n.lock", net).ok
    assert not api.rebuild("n.lock", torch.nn.Linear(4, 2)).ok


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"format": 2}, "format 1"),
        ({"sources": {"a": 3}}, "text"),
        ({"outputs": None}, "table"),
        ({"unknown": 1}, "unexpected keyword"),
        ({"arrays": "0" * 64}, "was changed"),
    ],
)
def test_damaged_locks(damage: dict[str, object], message: str) -> None:
    api.to_onnx(CONV, "o.onnx", lock="o.lock")
    document = json.loads(Path("o.lock").read_text(encoding="utf-8"))
    Path("o.lock").write_text(json.dumps({**document, **damage}), encoding="utf-8")
    with pytest.raises(LoadError, match=f"TM1029.*{message}"):
        api.rebuild("o.lock")
