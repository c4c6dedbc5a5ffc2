"""The hierarchy of what is traced: modules, their parameters, and values that cross their edges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import tmconvert
from tmconvert.frontends.torch.tracing.recording.recorder import Recorder
from tmconvert.ir import CallMethod, GetAttr, ModuleNode

from .harness import check


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.conv(x))) + x


class Twice(nn.Module):
    """Calls one module twice, and counts on what another left behind."""

    def __init__(self) -> None:
        super().__init__()
        self.block = Block()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.layers[1].weight = self.layers[0].weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.block(self.block(x))
        for layer in self.layers:
            x = layer(x)
        return x


IMAGE = torch.randn(1, 3, 4, 4)


def test_builtin_modules_stay_visible() -> None:
    traced = check(Twice().eval(), IMAGE)
    classes = {path: module.class_name for path, module in traced.modules()}
    assert classes["block.conv"] == "torch.nn.modules.conv.Conv2d"
    assert classes["layers.1"] == "torch.nn.modules.linear.Linear"
    calls = [expr.args[0].name for expr in traced.graph if isinstance(expr, CallMethod)]
    assert calls.count("block") + calls.count("block_1") == 2


def test_a_module_called_twice_in_the_same_way_has_one_graph() -> None:
    traced = tmconvert.trace(Twice().eval(), IMAGE)
    assert len(traced.children["block"].graphs) == 1
    assert "block@1" not in traced.children


def test_tied_parameters_are_one_array_and_shared_with_the_module() -> None:
    module = Twice().eval()
    traced = tmconvert.trace(module, IMAGE)
    first, second = (traced.get(f"layers.{i}.weight") for i in range(2))
    assert first is second
    assert np.shares_memory(first, module.layers[0].weight.detach().numpy())


def test_sources_are_the_users_lines() -> None:
    traced = tmconvert.trace(Twice().eval(), IMAGE)
    (relu,) = [expr for expr in traced.get("block").graph if getattr(expr, "function", "") == "torch.relu"]
    line = Block.forward.__code__.co_firstlineno + 1
    assert (relu.source.file, relu.source.line) == (__file__, line)


class OtherWay(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor, negate: bool = False) -> torch.Tensor:
        return -x * self.scale if negate else x * self.scale


def test_a_module_called_in_another_way_has_a_graph_for_each() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = OtherWay()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x) + self.inner(x, negate=True) * self.inner(x + 1)

    traced = check(Net(), torch.randn(3))
    assert traced.children["inner@1"].tensors["scale"] is traced.children["inner"].tensors["scale"]
    assert "inner@2" not in traced.children


def test_values_cross_the_edges_of_modules_unmentioned() -> None:
    class Reader(nn.Module):
        holder: dict[str, torch.Tensor]

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.holder["left"] = x * 3
            return x + self.holder["given"]

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.reader = Reader()
            self.wrapped = nn.Sequential(self.reader)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.reader.holder = {"given": x.exp()}
            y = self.wrapped(x)
            return y * self.reader.holder["left"]

    traced = check(Outer(), torch.randn(2, 3))
    assert [node.expr.name for node in traced.get("reader").graph.inputs] == ["self", "x", "captured_0"]


def test_a_parameter_of_another_module(tmp_path: Path) -> None:
    class Head(nn.Module):
        def __init__(self, embedding: nn.Embedding) -> None:
            super().__init__()
            self.embedding = [embedding]  # not a child

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.embedding[0].weight.T

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(7, 4)
            self.head = Head(self.embedding)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.head(self.embedding(tokens))

    traced = check(Net(), torch.tensor([[1, 2, 6]]))
    report = tmconvert.to_onnx(traced, tmp_path / "m.onnx")
    assert traced.parameter_count() == 28
    assert report.parameters == 56  # the file has it transposed, too


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


@dataclass
class Batch:
    tokens: torch.Tensor
    mask: torch.Tensor | None = None


class Structured(nn.Module):
    def forward(self, pair: Pair, batch: Batch, *more: torch.Tensor, scale: float = 1.0, **named: Any) -> Any:
        total = pair.left + pair.right * batch.tokens * scale + more[0]
        return {"total": total, "parts": [named["bias"], (total * 2, None, 3)]}


def test_structures_are_flattened_with_names_that_show_the_nesting() -> None:
    x = torch.arange(3.0)
    traced = tmconvert.trace(Structured(), Pair(x, x + 1), Batch(x + 2), x + 3, scale=2.0, bias=x + 4)
    names = [node.expr.name for node in traced.graph.inputs[1:]]
    assert names == ["pair.0", "pair.1", "batch.tokens", "more", "bias"]
    total = x + (x + 1) * (x + 2) * 2 + x + 3
    result = traced(*traced.example.inputs)
    assert np.array_equal(result["total"], total.numpy())
    assert np.array_equal(result["parts"][1][0], 2 * total.numpy())
    assert result["parts"][1][1:] == (None, 3)


def test_an_input_given_twice_is_two_inputs() -> None:
    x = torch.randn(3)
    traced = tmconvert.trace(lambda a, b: a - 2 * b, x, x)
    result = traced(np.ones(3, np.float32), np.full(3, 2, np.float32))
    assert np.array_equal(result, np.full(3, -3, np.float32))


def test_a_module_node_knows_its_module_everywhere() -> None:
    traced = tmconvert.trace(Twice().eval(), IMAGE)
    for _, module in traced.modules():
        for graph in module.graphs.values():
            for expr in graph:
                assert all(node.owner is not None for node in expr.outputs if isinstance(node, ModuleNode))
                assert not isinstance(expr, GetAttr) or expr.name


def test_the_printed_graph() -> None:
    traced = tmconvert.trace(Block().eval(), IMAGE)
    text = str(traced.graph)
    assert text.startswith("Block.Graph (self, x) {")
    assert "relu_out = torch.relu(" in text and ".add(x, )" in text


def test_the_tracer_itself_calls_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    original = Recorder.called

    def called(recorder: Recorder, function: Any, args: Any, kwargs: Any) -> Any:
        seen.append(recorder._name(function).text)
        return original(recorder, function, args, kwargs)

    monkeypatch.setattr(Recorder, "called", called)
    net = nn.Sequential(nn.Sequential(nn.Linear(3, 4), nn.ReLU()), nn.Sequential(nn.Linear(4, 2))).eval()
    tmconvert.trace(net, torch.zeros(1, 3))
    linear = "torch.nn.functional.linear"
    assert seen == [linear, "torch.nn.functional.relu", linear]


def test_a_dot_in_the_name_of_a_parameter(tmp_path: Path) -> None:
    class Held(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weight = self._parameters["0.weight"]
            assert weight is not None
            return x @ weight

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.held = Held()
            self.held._parameters["0.weight"] = nn.Parameter(torch.randn(3, 2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.held(x) + 1

    traced = tmconvert.trace(Outer().eval(), torch.randn(2, 3))
    assert tmconvert.to_onnx(traced, tmp_path / "model.onnx").verified
