"""Modules of the page: of files that name them, and of files that do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import nn

import tmconvert
from tests.viewer.models import HOSTILE, chain
from tmconvert.frontends.shared.view_graph import ViewGraph, ViewNode, ViewTensor
from tmconvert.viewer.document import document
from tmconvert.viewer.inferred_modules import infer_modules
from tmconvert.viewer.modules import Module, module_tree
from tmconvert.viewer.page import json_text, page
from tmconvert.viewer.repeated_blocks import find_repeats
from tmconvert.viewer.written_file import written_graph


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.relu = nn.ReLU()

    def forward(self, x: Any) -> Any:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.conv2(y) + x)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.layer1 = nn.Sequential(Block(4), Block(4))
        self.layer2 = nn.Sequential(Block(4), Block(4))
        self.fc = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        return self.fc(self.layer2(self.layer1(self.stem(x))).mean((2, 3)))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a residual network as ONNX and as TFLite."""
    made = tmp_path_factory.mktemp("modules")
    model = tmconvert.trace(Net().eval(), torch.ones(1, 3, 8, 8))
    tmconvert.to_tflite(model, made / "n.tflite", verify=False)
    tmconvert.to_onnx(model, made / "n.onnx", verify=False)
    return made


def inferred(path: Path) -> ViewGraph:
    graph = written_graph(path)
    infer_modules(graph)
    return graph


def flat(names: dict[str, tuple[str, ...]]) -> ViewGraph:
    """A chain of operators by the names of their results, each with the parameters of these names."""
    graph = ViewGraph("g", "k")
    last = graph.add_tensor(ViewTensor("x"))
    graph.inputs = [last]
    for name, parameters in names.items():
        inputs = [last, *(graph.add_tensor(ViewTensor(each)) for each in parameters)]
        last = graph.add_tensor(ViewTensor(name))
        graph.add_node(ViewNode(name, "OP", (), inputs, [last]))
    infer_modules(graph)
    return graph


def paths(graph: ViewGraph) -> list[str]:
    return [".".join(node.module) for node in graph.nodes]


def boxes(module: Module) -> Iterator[str]:
    return (each.name for each in module.walk() if each.name)


def test_a_flat_file_has_the_modules_of_its_parameters(files: Path) -> None:
    graph = inferred(files / "n.tflite")
    found = {(node.name, node.module) for node in graph.nodes if node.type == "CONV_2D"}
    assert ("layer1.0.conv1", ("layer1", "0", "conv1")) in found
    assert ("layer2.1.conv2", ("layer2", "1", "conv2")) in found
    adds = [".".join(node.module) for node in graph.nodes if node.type == "ADD"]
    assert adds == ["layer1.0", "layer1.1", "layer2.0", "layer2.1"]
    assert list(boxes(module_tree(graph))) == ["layer1", "0", "1", "layer2", "0", "1"]


@pytest.mark.parametrize("name", ["n.onnx", "n.tflite"])
def test_a_box_is_a_module_and_never_a_tensor(name: str, files: Path) -> None:
    modules = {path for path, _ in Net().named_modules()}
    graph = inferred(files / name)
    assert {path for path in paths(graph) if path} <= modules
    tensors = {tensor.name for tensor in graph.tensors}
    assert not {part for node in graph.nodes for part in node.module} & tensors


def test_a_module_that_is_called_twice_is_no_box(files: Path) -> None:
    graph = inferred(files / "n.onnx")
    assert sum(node.module == ("layer1", "0", "relu") for node in graph.nodes) == 2
    assert list(boxes(module_tree(graph))) == ["layer1", "0", "1", "layer2", "0", "1"]


def test_names_of_pytorch_do_not_repeat_containers(tmp_path: Path) -> None:
    names = ["/features/features.0/features.0.0/Conv", "/features/features.0/features.0.1/Relu", "Conv_3"]
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[1] x) => (float[1] c)'
        "{ a = Relu(x) b = Relu(a) c = Relu(b) }")  # fmt: skip
    for node, name in zip(model.graph.node, names, strict=True):
        node.name = name
    onnx.save(model, tmp_path / "m.onnx")
    graph = written_graph(tmp_path / "m.onnx")
    assert paths(graph) == ["features.0.0", "features.0.1", ""]
    # the file stores no types of results
    assert [graph.tensors[index].type for node in graph.nodes for index in node.outputs] == ["f32[1]"] * 3


def test_names_that_begin_alike_are_modules() -> None:
    graph = flat(
        {
            "stem_out": (),
            "blocks_0_0_conv_dw_out": (),
            "blocks_0_0_relu_out": (),
            "blocks_0_1_conv_dw_out": (),
            "blocks_0_1_relu_out": (),
            "blocks_1_0_conv_out_1": (),
            "blocks_1_0_conv_out_2": (),
            "relu_out": (),
            "head_out": (),
            "relu_out_1": (),
        }
    )
    assert paths(graph)[:6] == ["", "blocks.0.0", "blocks.0.0", "blocks.0.1", "blocks.0.1", "blocks"]
    assert paths(graph)[7:] == ["", "", ""]


def test_names_lack_lists_of_modules() -> None:
    graph = flat(
        {
            "embed_out": ("embed.weight",),
            "0_norm_out": (),
            "0_linear_out": ("blocks.0.fc.weight_1",),
            "0_gelu_out": (),
            "1_linear_out": ("blocks.1.fc.weight",),
            "0_add_out": (),
            "0_linear_out_1": ("others.0.fc.weight",),
            "model_0_attn_add_out": (),
            "model_0_attn_out": ("model.layers.0.attn.q.weight",),
        }
    )
    assert paths(graph)[1:5] == ["blocks.0", "blocks.0.fc", "blocks.0", "blocks.1.fc"]
    assert paths(graph)[5:7] == ["others.0", "others.0.fc"]
    assert paths(graph)[7:] == ["model.layers.0.attn", "model.layers.0.attn.q"]
    assert graph.nodes[2].name == "blocks.0.fc"


def test_parameters_with_underscores_name_their_operators() -> None:
    graph = flat({"a_out": ("a_conv_weight_1_0231",), "b_first_out": ("b_first_conv_weight",), "b_out": ()})
    assert [node.name for node in graph.nodes] == ["a_conv", "b_first_conv", "b_out"]
    assert paths(graph) == ["", "b", "b"]


def test_constants_without_owners_name_no_module() -> None:
    graph = flat({"a": ("tfl.pseudo_const3",), "b": ("arith.constant", "onnx::Conv_3"), "c": ("7.1",)})
    assert [node.name for node in graph.nodes] == ["a", "b", "c"]
    assert paths(graph) == ["", "", ""]


def test_modules_of_a_report_come_before_names() -> None:
    graph = ViewGraph("g", "k")
    index = graph.add_tensor(ViewTensor("relu_out_1"))
    graph.add_node(ViewNode("relu_out_1", "ADD", (), [], [index]))
    infer_modules(graph, [{"layers": [{"name": "relu_out_1", "op": "relu", "module": "layer1.1"}]}])
    assert paths(graph) == ["layer1.1"]


def test_repeated_operators_are_blocks(tmp_path: Path) -> None:
    path = chain(tmp_path / "m.onnx", 164, has_modules=False)
    graph = inferred(path)
    *_, first, after = module_tree(graph).children[:21]
    blocks = [child for child in module_tree(graph).children if isinstance(child, Module)]
    assert [block.name for block in blocks] == [f"block {number}" for number in range(1, 21)]
    for block in blocks:  # which begin and end where the fewest tensors are alive
        types = [graph.nodes[each].type for each in block.children if isinstance(each, int)]
        assert (types[0], types[-1], len(types)) == ("MatMul", "Add", 8)
    assert isinstance(first, Module) and isinstance(after, int)
    many = module_tree(inferred(chain(path, 2000, has_modules=False)))
    assert next(boxes(many)) == "block 1 to 40"


def test_sections_of_nodes_hide_no_module() -> None:
    graph = ViewGraph("g", "k")
    for number in range(100):
        path = ("layers", str(number % 2)) if 40 <= number < 44 else ()
        graph.add_node(ViewNode(str(number), f"T{number}", path, [], []))
    names = [child.name for child in module_tree(graph).children if isinstance(child, Module)]
    assert names == ["nodes 1 to 40", "layers", "nodes 42 to 81", "nodes 82 to 97"]


def test_what_does_not_repeat_has_no_blocks() -> None:
    assert find_repeats(["a", "b", "c", "d"], [0] * 4) is None
    assert find_repeats(["a"] * 50, [0] * 50) is None


def test_hostile_names_of_modules_are_text() -> None:
    graph = flat({f"{HOSTILE}_{number}_out": (f"{HOSTILE}.{number}.weight",) for number in range(3)})
    text = page(document([graph]))
    assert graph.nodes[0].module == tuple(f"{HOSTILE}.0".replace("/", ".").split("."))
    assert HOSTILE not in text and json_text({"": HOSTILE})[5:-2] in text


def test_long_names_take_little_time() -> None:
    name = "_1" * 50_000
    graph = flat({f"{name}_a": (name.replace("_", ".a"),), f"{name}_b": (f"{name}_weight",), "c": ()})
    assert max(len(node.module) for node in graph.nodes) < 300
    module_tree(graph)
