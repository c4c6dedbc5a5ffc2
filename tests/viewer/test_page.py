"""The page of ``tmconvert view``: its content for every kind of model, and what it must not contain."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tests.cli.runner import run
from tests.viewer.models import HOSTILE, chain
from tmconvert.errors import UsageError
from tmconvert.frontends.shared.view_graph import ViewGraph, ViewNode
from tmconvert.viewer.modules import MOST_CHILDREN, module_tree
from tmconvert.viewer.statistics import BLOCK, channels_of, statistics_of
from tmconvert.viewer.written_file import written_graph

SAMPLES = Path(__file__).parents[2] / "samples"
MODEL = SAMPLES / "digits.tm"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample in every format, in float and in integers."""
    made = tmp_path_factory.mktemp("view")
    model = tmconvert.load(MODEL)
    tmconvert.to_onnx(model, made / "d.onnx", verify=False)
    tmconvert.to_tflite(model, made / "d.tflite", verify=False)
    tmconvert.to_caffe(model, made / "d.prototxt", verify=False)
    quantized = {"quantized": True, "verify": False}
    tmconvert.to_tflite(SAMPLES / "digits_qat.tm", made / "q.tflite", **quantized)
    tmconvert.to_onnx(SAMPLES / "digits_qat.tm", made / "q.onnx", **quantized)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 24, 3, padding=1), torch.nn.ReLU())
    torch.export.save(torch.export.export(net, (torch.ones(1, 1, 8, 8),)), made / "e.pt2")
    return made


def document(text: str) -> dict[str, Any]:
    (found,) = re.findall(r'<script type="application/json" id="document">(.*?)</script>', text, re.DOTALL)
    return dict(json.loads(found))


@pytest.mark.parametrize(
    ("name", "operators", "type_"),
    [
        ("digits.tm", {"Conv2d", "BatchNorm2d", "relu", "Linear"}, "f32[1,24,8,8]"),
        ("e.pt2", {"conv2d", "relu"}, "f32[1,24,8,8]"),
        ("d.onnx", {"Conv", "Relu", "Gemm"}, "f32[1,24,8,8]"),
        ("d.tflite", {"CONV_2D", "FULLY_CONNECTED"}, "f32[1,8,8,24]"),
        ("d.prototxt", {"Convolution", "ReLU", "InnerProduct"}, "f32[1,24,8,8]"),
        ("q.tflite", {"CONV_2D", "FULLY_CONNECTED"}, "i8[1,8,8,24]"),
        ("q.onnx", {"Conv", "QuantizeLinear", "DequantizeLinear"}, "u8[1,24,8,8]"),
    ],
)
def test_every_kind_is_drawn(name: str, operators: set[str], type_: str, folder: Path) -> None:
    path = folder / name if (folder / name).exists() else SAMPLES / name
    page = tmconvert.view(path)
    (graph,) = document(page.text)["graphs"]
    assert operators <= {node["t"] for node in graph["nodes"]}
    assert type_ in {type_ for _, type_ in graph["tensors"]}
    assert [graph["tensors"][index][0] for index in graph["inputs"]]
    assert len(graph["outputs"]) == 1
    constants = graph["constants"].values()
    assert any(each.get("histogram") and each["min"] < each["max"] for each in constants)
    if name.startswith("q."):
        assert any(each["scale"] for each in graph["qparams"].values())
        assert any(each.get("channels") for each in constants)


def test_the_same_model_gives_the_same_bytes(folder: Path) -> None:
    texts = [tmconvert.view(folder / "d.tflite", source=MODEL).text for _ in range(2)]
    assert texts[0] == texts[1]


def test_a_file_next_to_its_source(folder: Path) -> None:
    source, written = document(tmconvert.view(folder / "d.tflite", source=MODEL).text)["graphs"]
    first = written["nodes"][0]
    assert first["t"] == "CONV_2D"
    assert [source["nodes"][number]["t"] for number in first["f"]] == ["Conv2d", "BatchNorm2d", "relu"]
    assert first["p"] == "stem"
    assert "digits.tm" in first["s"]
    reached = {number for node in written["nodes"] for number in node["f"]}
    assert reached == set(range(len(source["nodes"])))


def test_quantized_forms_belong_to_their_tensor(folder: Path) -> None:
    _, written = document(tmconvert.view(folder / "q.onnx", source=SAMPLES / "digits_qat.tm").text)["graphs"]
    assert all(node["f"] for node in written["nodes"])


def test_names_in_a_model_are_text(tmp_path: Path) -> None:
    text = tmconvert.view(chain(tmp_path / "m.onnx", 16)).text
    assert HOSTILE not in text
    assert HOSTILE in json.dumps(document(text), ensure_ascii=False)
    assert "<!--\nThe layout library" in text and text.count("<!--") == 1


def test_the_page_loads_nothing(folder: Path) -> None:
    text = tmconvert.view(folder / "d.onnx").text
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    for script in (*scripts, *re.findall(r"<style>(.*?)</style>", text, re.DOTALL)):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert len(scripts) == text.count("<script>")
    assert not re.search(
        r"(src|href)\s*=\s*[\"'](?!data:)|@import|url\((?!#)|\bfetch\(|XMLHttpRequest|WebSocket", text
    )
    assert set(re.findall(r"https?://[\w./]+", text)) <= {"http://www.w3.org/2000/svg"}


@pytest.mark.slow
@pytest.mark.parametrize("has_modules", [True, False])
def test_no_level_has_many_children(has_modules: bool, tmp_path: Path) -> None:
    graph = written_graph(chain(tmp_path / "m.onnx", 5000, has_modules=has_modules))
    root = module_tree(graph)
    sizes = [len(module.children) for module in root.walk()]
    assert max(sizes) <= MOST_CHILDREN
    nodes = [child for module in root.walk() for child in module.children if isinstance(child, int)]
    assert sorted(nodes) == list(range(5000))
    assert len(tmconvert.view(tmp_path / "m.onnx").text) < 2_000_000


def test_a_module_around_one_node_is_left_out() -> None:
    graph = ViewGraph("g", "k")
    for path in (("a", "b"), ("c", "d", "e"), ("c", "d", "f"), ("c", "d", "f")):
        graph.add_node(ViewNode(".".join(path), "Relu", path, [], []))
    root = module_tree(graph)
    assert root.children[0] == 0
    (_, module) = root.children
    assert not isinstance(module, int)
    assert module.name == "c.d"
    assert module.children[0] == 1


def marks(graph: ViewGraph) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for node in graph.nodes:
        found.setdefault(node.mark, []).append(node.type)
    return found


def test_what_stands_out_is_marked(folder: Path, tmp_path: Path) -> None:
    assert set(marks(written_graph(folder / "q.onnx"))["quantize"]) == {"QuantizeLinear", "DequantizeLinear"}
    assert set(marks(written_graph(chain(tmp_path / "m.onnx", 8)))["transpose"]) == {"Transpose"}
    assert "float" not in marks(written_graph(folder / "q.tflite"))


def test_an_operator_in_float_is_marked(tmp_path: Path) -> None:
    class Net(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.erf(torch.relu(x) + x)

    model = tmconvert.trace(Net(), torch.ones(1, 4))
    data = [np.linspace(-1, 1, 4, dtype=np.float32)[None]]
    made = tmconvert.calibrate(model, data, rules={"erf*": "float"})
    tmconvert.to_tflite(made, tmp_path / "m.tflite", quantized=True, allow_float=True, verify=False)
    found = marks(written_graph(tmp_path / "m.tflite"))
    assert found["float"]
    assert "ADD" in found[""]


def test_statistics_of_a_constant() -> None:
    found = statistics_of(np.array([[-1.0, 0.0, 1.0, np.inf]], np.float32))
    assert (found["min"], found["max"], found["mean"], found["not_finite"]) == (-1, 1, 0, 1)
    assert found["values"] == [-1.0, 0.0, 1.0, "inf"]
    ramp = statistics_of(np.arange(BLOCK + 5, dtype=np.int32))
    assert (ramp["max"], sum(ramp["histogram"])) == (BLOCK + 4, BLOCK + 5)
    assert statistics_of(np.zeros(0, np.float32)) == {"count": 0, "bytes": 0}
    channels = channels_of(np.array([[-128, 127], [0, 0]], np.int8), 0)
    assert channels is not None
    counts = np.array(channels["counts"])
    assert (counts[0, 0], counts[0, -1], counts[1, 16]) == (1, 1, 2)


def test_the_command(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    outcome = run("view", folder / "d.onnx", "--source", MODEL, "-o", page, "--json")
    assert outcome.status == 0, outcome.stderr
    assert outcome.json == {"model": str(folder / "d.onnx"), "path": str(page), "bytes": page.stat().st_size}
    assert page.read_text("utf-8") == tmconvert.view(folder / "d.onnx", source=MODEL).text


def test_reports_are_checked(tmp_path: Path) -> None:
    wrong = tmp_path / "r.json"
    wrong.write_text('{"layers": [3]}')
    with pytest.raises(UsageError, match="not a report"):
        tmconvert.view(MODEL, reports=[wrong])
    with pytest.raises(UsageError, match="compares 2 reports"):
        tmconvert.view(MODEL, reports=[wrong] * 3)
    with pytest.raises(UsageError, match="cannot read the report"):
        tmconvert.view(MODEL, reports=[tmp_path / "none.json"])


def test_a_comparison_is_a_report(folder: Path, tmp_path: Path) -> None:
    outcome = run("compare", MODEL, folder / "d.onnx", "--json")
    (tmp_path / "c.json").write_text(outcome.stdout)
    text = tmconvert.view(folder / "d.onnx", source=MODEL, reports=[tmp_path / "c.json"]).text
    (report,) = document(text)["reports"]
    assert report["levels"] == [120, 90, 60, 30] and report["model"].endswith("d.onnx")
    layers = {layer["name"]: layer for layer in report["layers"]}
    compared = {layer["name"]: layer for layer in outcome.json["layers"]}
    assert layers.keys() == compared.keys() and layers["stem_out"]["op"] == "aten::relu"
    for name, layer in compared.items():
        ratio = layer["accumulated"]["decibels"]
        assert layers[name]["accumulated_db"] == (999 if ratio is None else ratio)
    (tmp_path / "c.json").write_text('{"kind": "float32", "layers": [{"name": "a", "function": "f"}]}')
    with pytest.raises(UsageError, match="not a report"):
        tmconvert.view(MODEL, reports=[tmp_path / "c.json"])


def test_notebooks_show_models_graphs_and_reports(tmp_path: Path) -> None:
    model = tmconvert.load(MODEL)
    report = tmconvert.to_onnx(model, tmp_path / "m.onnx", verify=False)
    assert model.graph is not None
    for shown in (model, model.graph, report, tmconvert.view(model)):
        text = shown._repr_html_()
        assert text is not None
        assert text.startswith("<iframe srcdoc=")
        assert 'sandbox="allow-scripts allow-downloads"' in text
    (tmp_path / "m.onnx").unlink()
    assert report._repr_html_() is None
