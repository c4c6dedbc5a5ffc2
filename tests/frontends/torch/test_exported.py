"""Programs of ``torch.export``: files, which are data and nothing that runs, and objects."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tests.cli.runner import run
from tests.frontends.torch.harness import arrays, run_onnx
from tmconvert.errors import TmconvertError

# of torch.export itself
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)

CANARY = Path("/tmp/PWNED_PT2")


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 3)
        self.tied = torch.nn.Linear(4, 3)
        self.tied.weight = self.fc.weight
        self.bn = torch.nn.BatchNorm1d(3)
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("scale", torch.full((3,), 2.0), persistent=False)
        self.steps = torch.arange(3.0)

    def forward(self, x: torch.Tensor, k: int, parts: Any = None, *, y: Any = None) -> Any:
        a, b = torch.split(x, 2, 1)
        top, place = torch.max(x, 1)
        self.count.add_(1)
        z = self.bn(self.fc(torch.cat([b, a], 1).to(torch.float64).float()) + self.tied(x))
        z = z * self.scale * k + self.steps + self.count
        z = z.clone()
        z[:, 1] = 0.5
        z = z + parts["more"][0] + y
        return {"z": z, "rest": [top, (place, None)], "range": torch.arange(x.shape[0] // 2)}


def exported(**dynamic: Any) -> torch.export.ExportedProgram:
    torch.manual_seed(0)
    inputs = (torch.randn(4, 4), 3, {"more": [torch.randn(3)]})
    shapes = {
        "x": {0: torch.export.Dim("batch", min=4, max=64)},
        "k": None,
        "parts": {"more": [None]},
        "y": None,
    }
    return torch.export.export(
        Net().eval(),
        inputs,
        {"y": torch.randn(3)},
        dynamic_shapes=shapes if dynamic.get("dynamic", True) else None,
    )


@pytest.fixture(scope="module")
def program() -> torch.export.ExportedProgram:
    return exported()


@pytest.fixture
def file(program: torch.export.ExportedProgram, tmp_path: Path) -> Path:
    torch.export.save(program, tmp_path / "net.pt2")
    return (tmp_path / "net.pt2").rename(tmp_path / "no_matter_what.bin")


def test_a_file(program: torch.export.ExportedProgram, file: Path, tmp_path: Path) -> None:
    traced = tmconvert.load(file)
    assert traced.class_name.endswith("test_exported.Net")
    assert traced.get("fc.weight").shape == (3, 4)
    graph = traced.graph
    assert graph is not None
    assert [str(node) for node in graph.inputs[1:]] == ["x", "parts_more_0", "y"]
    places = {expr.source.file for expr in graph if expr.source is not None and expr.source.file}
    assert places == {__file__}
    assert any("count" in note for note in traced.notes)
    outcome = run("onnx", file, tmp_path / "o.onnx")
    assert outcome.status == 0, outcome.stderr
    assert outcome.stderr.startswith("verified in ONNX Runtime")
    others = (torch.randn(7, 4), 3, {"more": [torch.randn(3)]}, torch.randn(3))
    with torch.no_grad():
        expected = arrays(exported().module()(*others[:3], y=others[3]))
    given = [others[0].numpy(), others[2]["more"][0].numpy(), others[3].numpy()]  # type: ignore[index]
    for result, wanted in zip(run_onnx(tmp_path / "o.onnx", given), expected, strict=True):
        np.testing.assert_allclose(result, wanted, atol=1e-5)


def test_an_object(program: torch.export.ExportedProgram, file: Path, tmp_path: Path) -> None:
    report = tmconvert.to_onnx(program, tmp_path / "o.onnx")
    assert report.verified
    assert report.inputs[0]["shape"][1] == 4 and isinstance(report.inputs[0]["shape"][0], str)
    traced = tmconvert.trace(program)
    assert traced.class_name.endswith("test_exported.Net")
    assert traced.dynamic_shapes == tmconvert.load(file).dynamic_shapes
    named = tmconvert.load(file, dynamic_shapes={"x": {0: "batch"}})
    assert named.dynamic_shapes == {"x": {0: "batch"}}
    assert tmconvert.trace(exported(dynamic=False)).dynamic_shapes == {}


def test_other_inputs_than_those_of_the_file(file: Path) -> None:
    more = {"more": [torch.zeros(3)]}
    traced = tmconvert.load(
        file,
        example_inputs=[np.ones((6, 4), np.float32), 3, more],
        example_kwargs={"y": np.zeros(3, np.float32)},
    )
    assert traced.graph is not None and traced.graph.inputs[1].shape == (6, 4)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_decomposed_program(tmp_path: Path) -> None:
    torch.export.save(exported().run_decompositions(), tmp_path / "d.pt2")
    assert tmconvert.to_onnx(tmp_path / "d.pt2", tmp_path / "o.onnx").verified


def test_weights_as_views_and_other_types(tmp_path: Path) -> None:
    class Weights(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            whole = torch.randn(6, 8)
            self.part = torch.nn.Parameter(whole[1:4, ::2], requires_grad=False)
            self.turned = torch.nn.Parameter(whole.t(), requires_grad=False)
            self.narrow = torch.nn.Parameter(torch.randn(4).half(), requires_grad=False)
            self.register_buffer("flags", torch.tensor([True, False, True, True]))
            self.register_buffer("none", torch.zeros(0, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.where(self.flags, x @ self.part.t() @ self.part, self.narrow.float())
            return torch.cat([y, self.none], 0) @ self.turned[:4]

    module, x = Weights().eval(), torch.randn(2, 4)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "w.pt2")
    np.testing.assert_allclose(tmconvert.load(tmp_path / "w.pt2")(x.numpy()), module(x).numpy(), atol=1e-4)


class Either(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * 2, (x,))


def test_branches(tmp_path: Path) -> None:
    program = torch.export.export(Either(), (torch.ones(2, 3),))
    torch.export.save(program, tmp_path / "e.pt2")
    x = -torch.ones(2, 3)
    for source in (program, tmp_path / "e.pt2"):
        assert tmconvert.to_onnx(source, tmp_path / "o.onnx").verified
        np.testing.assert_array_equal(run_onnx(tmp_path / "o.onnx", [x.numpy()])[0], (x * 2).numpy())


# ---- files that are not what they should be


def changed(source: Path, target: Path, change: Callable[[str, bytes], bytes]) -> Path:
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return target


class Evil:
    def __reduce__(self) -> Any:
        return os.system, (f"touch {CANARY}",)


def replaced(old: str, new: str) -> Callable[[str, bytes], bytes]:
    def change(name: str, data: bytes) -> bytes:
        return data.replace(old.encode(), new.encode()) if name.endswith(".json") else data

    return change


def pickled_inputs(name: str, data: bytes) -> bytes:
    return pickle.dumps(Evil()) if "sample_inputs" in name else data


def pickled_weights(name: str, data: bytes) -> bytes:
    if name.endswith("weights_config.json"):
        return data.replace(b'"use_pickle": false', b'"use_pickle": true')
    return pickle.dumps(Evil()) if "weights/weight_" in name else data


def evaluated(name: str, data: bytes) -> bytes:
    if not name.endswith("model.json"):
        return data
    document = json.loads(data)
    text = f"__import__('os').system('touch {CANARY}')"
    for value in document["graph_module"]["graph"]["sym_int_values"].values():
        value["as_expr"]["expr_str"] = text
    document["guards_code"] = [text]
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    "change",
    [
        pickled_weights,
        replaced("torch.ops.aten.max.dim", "torch.hub.load"),
        replaced("torch.ops.aten.max.dim", "torch.ops.load_library"),
        replaced("torch.ops.aten.max.dim", "torch.ops.aten.from_file.default"),
        replaced("torch.ops.aten.max.dim", "os.system"),
        replaced("torch.ops.aten.max.dim", "_operator.methodcaller"),
        replaced('"schema_version": {"major": 8', '"schema_version": {"major": 9'),
        replaced('"nodes"', '"knots"'),
        replaced('"dtype": 7', '"dtype": 77'),
        lambda name, data: data[:-3] if "weight_0" in name else data,
        lambda name, data: b"{" if name.endswith("model.json") else data,
    ],
)
def test_refused(file: Path, tmp_path: Path, change: Callable[[str, bytes], bytes]) -> None:
    bad = changed(file, tmp_path / "bad.pt2", change)
    outcome = run("inspect", bad)
    assert (outcome.status, outcome.stdout) == (1, "")
    assert outcome.stderr.startswith("error[TM1026]: the file cannot be used: ")
    assert not CANARY.exists()


def test_nothing_of_a_file_runs(file: Path, tmp_path: Path) -> None:
    """Texts are not evaluated, and inputs that are other objects count as none."""
    assert run("inspect", changed(file, tmp_path / "e.pt2", evaluated)).status == 0
    outcome = run("inspect", changed(file, tmp_path / "i.pt2", pickled_inputs))
    assert outcome.stderr.startswith("error[TM6008]")
    assert not CANARY.exists()


def test_an_old_format(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "old.pt2", "w") as archive:
        archive.writestr("serialized_exported_program.json", "{}")
        archive.writestr("version", "7.0")
    with pytest.raises(TmconvertError, match="TM1026"):
        tmconvert.load(tmp_path / "old.pt2")
