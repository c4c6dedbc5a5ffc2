"""``tmconvert.decompose`` and ``tmconvert.split_module``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tmconvert
from tests.cli.runner import model
from tmconvert.errors import UsageError
from tmconvert.ir import GetAttr, Node, TracedModule


def recorded() -> tuple[np.ndarray, np.ndarray]:
    with np.load(model("resnet18").with_suffix(".npz")) as arrays:
        return arrays["in0"], arrays["out0"]


def functions(tm: TracedModule) -> list[str]:
    assert tm.graph is not None
    return [getattr(expr, "function", "") for expr in tm.graph]


# ---- decompositions


def silu(g: Any, x: Any) -> Any:
    return g.call("aten::mul", x, g.call("aten::sigmoid", x))


def test_an_op_is_replaced_by_others(tmp_path: Path) -> None:
    tm = tmconvert.trace(lambda x: torch.nn.functional.silu(x + 1), torch.rand(2, 3))
    made = tmconvert.decompose(tm, {"aten::silu": silu})
    assert "aten::silu" not in functions(made) and "aten::sigmoid" in functions(made)
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_allclose(made(x), tm(x), rtol=1e-6)
    assert made.graph.outputs[0].name == tm.graph.outputs[0].name
    assert tmconvert.to_onnx(made, tmp_path / "o.onnx").verification is not None
    assert "aten::silu" in functions(tmconvert.normalize(tm))  # the source stays


def test_attributes_reach_the_function_by_name() -> None:
    tm = tmconvert.trace(lambda x: torch.nn.functional.leaky_relu(x, 0.25), torch.rand(3))

    def leaky_relu(g: Any, x: Any, negative_slope: float) -> Any:
        return g.call("aten::maximum", x, g.call("aten::mul", x, g.constant(np.float32(negative_slope))))

    made = tmconvert.decompose(tm, {"aten::leaky_relu": leaky_relu})
    np.testing.assert_allclose(made(np.array([-4, 0, 4], np.float32)), [-1, 0, 4])
    with pytest.raises(UsageError, match=r"TM6054.*does not take negative_slope, which is 0.25"):
        tmconvert.decompose(tm, {"aten::leaky_relu": lambda g, x: x})


@pytest.mark.parametrize(
    ("name", "function", "text"),
    [
        ("aten::rellu", silu, "TM6050.*did you mean 'aten::relu'"),
        ("aten::relu", lambda g, y: y, "TM6054.*has no argument 'y'"),
        ("aten::relu", lambda g, x: 1 / 0, "TM6052.*ZeroDivisionError"),
        ("aten::relu", lambda g, x: g.call("aten::sum", x, [0]), "TM6054.*gives f32"),
        ("aten::relu", lambda g, x: 3, "TM6054.*must return 1 values"),
        ("aten::relu", 3, "TM6052.*must be a function"),
    ],
)
def test_what_cannot_be_decomposed_is_named(name: str, function: Any, text: str) -> None:
    tm = tmconvert.trace(torch.relu, torch.rand(3))
    with pytest.raises(UsageError, match=text):
        tmconvert.decompose(tm, {name: function})


# ---- parts


def by_layer(node: Node) -> str:
    first = node.name.partition("_")[0]
    if first.startswith("layer"):
        return first
    return "tail" if "fc" in node.name or "avg" in node.name or "flatten" in node.name else "head"


@pytest.mark.slow
def test_a_model_in_parts_runs_saves_and_converts(tmp_path: Path) -> None:
    tm, (x, out) = tmconvert.load(model("resnet18")), recorded()
    made = tmconvert.split_module(tm, by_layer)
    names = [f"submod_{key}" for key in ("head", "layer1", "layer2", "layer3", "layer4", "tail")]
    assert list(made.children) == names
    assert [expr.name for expr in made.graph if isinstance(expr, GetAttr)] == names
    np.testing.assert_allclose(made(x), out, atol=1e-5)
    assert made.parameter_count() == tm.parameter_count()  # shared
    part = made.children["submod_layer1"]
    assert part.graph.inputs[1].name == "maxpool_out" and "layer2" not in part.children
    made.save(tmp_path / "o.tm")
    np.testing.assert_allclose(tmconvert.load(tmp_path / "o.tm")(x), out, atol=1e-5)
    for suffix, convert in (("onnx", tmconvert.to_onnx), ("tflite", tmconvert.to_tflite)):
        assert convert(tmp_path / "o.tm", tmp_path / f"o.{suffix}").verification is not None


def test_parts_with_several_results_and_inputs() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(3.0))
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
            a, b = x * self.scale, self.linear(y)
            return {"sum": a + b, "a": a, "weight": self.scale}

    x, y = torch.rand(2, 3), torch.rand(2, 3)
    tm = tmconvert.trace(Net(), x, y)
    made = tmconvert.split_module(tm, lambda node: int(node.name.startswith("add")))
    assert [len(part.graph.inputs) - 1 for part in made.children.values()] == [2, 2]
    before, after = tm(x.numpy(), y.numpy()), made(x.numpy(), y.numpy())
    assert list(after) == ["sum", "a", "weight"]
    for key in before:
        np.testing.assert_array_equal(before[key], after[key])


def test_parts_that_need_each_other_are_refused() -> None:
    tm = tmconvert.trace(lambda x: torch.relu(torch.sigmoid(torch.relu(x))), torch.rand(3))
    with pytest.raises(UsageError, match=r"TM6055.*submod_False, submod_True|TM6055.*submod_True"):
        tmconvert.split_module(tm, lambda node: node.name.startswith("sigmoid"))
    with pytest.raises(UsageError, match=r"TM6052.*ZeroDivisionError"):
        tmconvert.split_module(tm, lambda node: 1 / 0)
