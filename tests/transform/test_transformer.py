"""``tmconvert.Transformer``: models that are written by an interpreter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tests.cli.runner import model
from tmconvert.ir import TracedModule
from tmconvert.ir.tree import leaves

NAMES = ["resnet18", "op_multi_io", "op_nested_reuse", "qat_small_tqt", "shufflenet_v2", "op_s_elemwise"]


def example(name: str) -> list[np.ndarray]:
    with np.load(model(name).with_suffix(".npz")) as arrays:
        return [arrays[key] for key in sorted(arrays.files) if key.startswith("in")]


@pytest.mark.parametrize("name", NAMES)
def test_without_overrides_it_copies_the_model(name: str, tmp_path: Path) -> None:
    tm = tmconvert.load(model(name))
    made = tmconvert.Transformer(tm).transform()
    assert str(made.graph) == str(tm.graph)
    assert made.graph is not tm.graph and dict(made.modules()).keys() == dict(tm.modules()).keys()
    inputs = example(name)
    for one, other in zip(leaves(tm(*inputs)), leaves(made(*inputs)), strict=True):
        np.testing.assert_array_equal(one, other)
    made.save(tmp_path / "o.tm")
    assert str(tmconvert.load(tmp_path / "o.tm").graph) == str(tm.graph)


class Swap(tmconvert.Transformer):
    """Doubled sigmoids in place of ReLUs."""

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if not target.endswith(".relu"):
            return super().call_function(target, args, kwargs)
        half = super().call_function("megengine.functional.nn.sigmoid", args, kwargs)
        return self.call_method("__mul__", (half, 2.0), {})


@pytest.mark.slow
def test_calls_are_replaced_in_submodules_too(tmp_path: Path) -> None:
    tm = tmconvert.load(model("resnet18"))
    before = str(tm.graph)
    made = Swap(tm).transform()
    assert str(tm.graph) == before
    inner = str(made.get("layer1.0").graph)
    assert "nn.relu(" not in inner and inner.count("nn.sigmoid(") == 2
    for suffix, convert in (("onnx", tmconvert.to_onnx), ("tflite", tmconvert.to_tflite)):
        assert convert(made, tmp_path / f"o.{suffix}").verification is not None
    made.save(tmp_path / "o.tm")
    inputs = example("resnet18")
    np.testing.assert_allclose(tmconvert.load(tmp_path / "o.tm")(*inputs), made(*inputs), atol=1e-5)


def test_types_are_inferred_after_a_change() -> None:
    class Halved(tmconvert.Transformer):
        def placeholder(self, target: str, args: Any, kwargs: Any) -> Any:
            x = super().placeholder(target, args, kwargs)
            return self.call_method("__getitem__", (x, slice(0, 1)), {})

    tm = tmconvert.trace(lambda x: torch.relu(x).sum(1) * 2, torch.ones(2, 3))
    made = Halved(tm).transform()
    assert made.graph.outputs[0].shape == (1,)
    np.testing.assert_array_equal(made(np.ones((2, 3), np.float32)), [6])


def test_attributes_modules_and_outputs_are_overridable() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
            self.scale = torch.nn.Parameter(torch.tensor(3.0))
            self.other = torch.nn.Parameter(torch.tensor(5.0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.two(self.one(x)) * self.scale + self.other

    class Changed(tmconvert.Transformer):
        def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
            return super().get_attr("other" if target == "scale" else target, args, kwargs)

        def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
            return args[0] if target == "two" else super().call_module(target, args, kwargs)

        def output(self, target: str, args: Any, kwargs: Any) -> Any:
            return super().output(target, ((args[0], args[0]),), kwargs)

    net = Net()
    x = torch.rand(1, 2)
    made = Changed(tmconvert.trace(net, x)).transform()
    first, second = made(x.numpy())
    expected = net.one(x) * 5 + 5
    np.testing.assert_allclose(first, expected.detach().numpy(), rtol=1e-5)
    assert isinstance(made, TracedModule) and first is second


def test_an_overridden_model_is_compared_with_its_own_graph(tmp_path: Path) -> None:
    made = Swap(tmconvert.load(model("resnet18"))).transform()
    assert made.example is None or made.example.outputs is None
    assert tmconvert.to_onnx(made, tmp_path / "o.onnx").verification is not None


def test_operators_and_functions_of_torch_insert_calls(tmp_path: Path) -> None:
    class Swish(tmconvert.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target == "torch.relu":
                return args[0] * torch.sigmoid(args[0])
            return super().call_function(target, args, kwargs)

    tm = tmconvert.trace(lambda x: torch.relu(x + 1).sum(1), torch.ones(2, 3))
    made = Swish(tm).transform()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(made(x), ((x + 1) / (1 + np.exp(-x - 1))).sum(1), rtol=1e-5)
    assert tmconvert.to_onnx(made, tmp_path / "o.onnx").verification is not None


def test_ops_of_the_catalogue_go_into_a_model_of_megengine(tmp_path: Path) -> None:
    class Clamped(tmconvert.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            value = super().call_function(target, args, kwargs)
            return (
                self.call_function("aten::clamp", (value, 0.0, 6.0), {}) if target.endswith("relu") else value
            )

    made = Clamped(tmconvert.load(model("resnet18"))).transform()
    assert tmconvert.to_onnx(made, tmp_path / "o.onnx").verification is not None
