"""Each op of the catalogue, as an expression of PyTorch, computes what its reference kernel does."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from tests.symbolics.ops.harness import normal, op_graph, reference
from tests.symbolics.ops.samples import SAMPLES, Sample
from tmconvert.errors import Refusal
from tmconvert.ir import CallFunction, Constant, InternalGraph
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.symbolics.registry import catalogue, has_trait
from tmconvert.symbolics.traits import DrawsRandom
from tmconvert.torch_code.call_expressions import Call, Scope, expression
from tmconvert.torch_code.runtime_functions import HELPERS, helpers_in

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch's, of functions in beta

WITHOUT = {
    "tm::view": "passes for a target make it",
    "tm::relayout": "passes for a target make it",
    "tm::function": "passes for a target make it",
    "tm::cond": "statements: see test_control_flow.py",
    "tm::loop": "statements",
    "tm::scan": "statements",
    "tm::resize": "ONNX's operator: PyTorch has none with its kinds of coordinates and rounding",
    "tm::nms_of_classes": "ONNX's operator: torchvision's takes one image and one class",
    "tm::geqp3": "PyTorch has no factorization with pivots",
}
# of these some samples have negative indices, mixed ranks or packed sequences, which PyTorch refuses
PARTLY = {
    *(f"aten::{name}" for name in ("pad", "index_select", "index_copy", "gather", "scatter", "scatter_add")),
    *(f"aten::{name}" for name in ("scatter_reduce", "index_add", "linalg_cross", "lstm", "gru", "rnn_tanh")),
    *(f"tm::scatter_{kind}" for kind in ("amax", "amin", "prod")),
    "aten::rnn_relu",
}
POSITIVE = ["aten::gather", "aten::scatter", "aten::scatter_add", "aten::scatter_reduce"]
# indices of equal elements, what a flag leaves out, and an order in which PyTorch is infinite
VALUES_ONLY = {"aten::kthvalue", "aten::nanmedian", "aten::_unique2", "aten::unique_consecutive"}
TOLERANCE = {"float16": 2e-3, "float32": 1e-4}


def torchvision() -> Any:
    """The package, where it is installed for this PyTorch, with its own operators."""
    try:
        found = importlib.import_module("torchvision")
    except (ImportError, RuntimeError):  # its operators are of another build
        pytest.skip("torchvision does not load")
    if not torch._C._dispatch_has_kernel_for_dispatch_key("torchvision::roi_pool", "CPU"):
        pytest.skip("only declarations of torchvision's operators are there")
    return found


def flat(args: Any) -> list[Any]:
    return [leaf for item in args for leaf in (item if isinstance(item, list) else [item])]


def written(graph: InternalGraph, sample: Sample) -> tuple[str, dict[str, Any]]:
    """The expression of a graph of one call, and the values of its names."""
    from torch import Tensor
    from torch.nn import functional

    space: dict[str, Any] = {"torch": torch, "F": functional, "Tensor": Tensor}
    scope, text = Scope(), ""
    arrays = iter([leaf for leaf in flat(sample.args) if isinstance(leaf, np.ndarray)])
    values = {node: next(arrays) for node in graph.inputs}
    for expr in graph:
        if isinstance(expr, Constant):
            values[expr.output] = expr.value
        else:
            assert isinstance(expr, CallFunction)
            for node in values:
                scope.define(node, node.name)
            text = expression(Call(expr, catalogue()[expr.function], scope))
    if "torchvision." in text:
        space["torchvision"] = torchvision()
    space.update({node.name: torch.from_numpy(np.array(value)) for node, value in values.items()})
    for helper in helpers_in(text):
        exec(HELPERS[helper], space)
    return text, space


def differs(name: str, sample: Sample, text: str, space: dict[str, Any]) -> str:
    """How the expression's results differ from the kernel's; empty where they do not."""
    results = eval(text, space)
    results = list(results) if isinstance(results, (tuple, list)) else [results]
    expected = reference(name, sample.args, sample.attributes)
    if name in VALUES_ONLY:
        results, expected = results[:1], expected[:1]
    if len(results) != len(expected):
        return f"{len(results)} results, not {len(expected)}"
    for result, right in zip(results, expected, strict=True):
        ours = result.numpy()
        is_wide = (ours.dtype, right.dtype) == (np.int64, np.int32)
        if (ours.dtype != right.dtype and not is_wide) or ours.shape != right.shape:
            return f"{ours.dtype}{ours.shape}, not {right.dtype}{right.shape}"
        if has_trait(name, DrawsRandom):  # other numbers of the same distribution
            continue
        tolerance = TOLERANCE.get(str(right.dtype), 1e-6)
        if not np.allclose(ours, right, rtol=tolerance, atol=1e-5, equal_nan=True):
            return f"another result of {text}"
    return ""


@pytest.mark.parametrize("name", list(catalogue()))
def test_expression(name: str) -> None:
    if name.startswith("torchvision::"):
        torchvision()
    found, reasons = [], []
    for sample in SAMPLES[name]:
        graph = op_graph(name, sample.args, sample.attributes)
        if not any(isinstance(expr, CallFunction) for expr in graph):
            continue  # folded: sizes
        try:
            text, space = written(graph, sample)
            found.append(differs(name, sample, text, space))
        except Refusal as refusal:
            reasons.append(refusal.reason)
        except (RuntimeError, IndexError) as error:
            assert name in PARTLY, f"{text}: {error}"
    if name in WITHOUT:
        assert not found and f"{name} cannot be written as PyTorch code" in reasons
        return
    assert not reasons or name in PARTLY
    if name == "aten::polygamma":  # PyTorch's is infinite at negative integers, where ours is nan
        return
    assert not any(found), found
    assert found or name == "tm::sizes" or name in POSITIVE


@pytest.mark.parametrize("name", POSITIVE)
def test_expression_with_indices_from_the_front(name: str) -> None:
    x, source = normal(0, 3, 4), normal(1, 2, 4)
    index = np.array([[0, 2, 1, 1], [2, 0, 0, 1]])
    required = {"reduce": "mean"} if name == "aten::scatter_reduce" else {}
    args = [x, index] if name == "aten::gather" else [x, index, source]
    sample = Sample(args, {"dim": 0, **required})
    assert differs(name, sample, *written(op_graph(name, sample.args, sample.attributes), sample)) == ""


def test_constants_are_numbers() -> None:
    """A constant without axes is a number where PyTorch takes one, in its shortest form."""
    graph = op_graph("aten::mul", [normal(0, 2, 3), normal(1, 2, 3)], {})
    (call,) = [expr for expr in graph if isinstance(expr, CallFunction)]
    g = GraphEmitter(graph, catalogue(), before=call)
    tenth = g.constant(np.float32(0.1))
    scope = Scope({graph.inputs[0]: "x", graph.inputs[1]: "y"})
    for args, text in (((graph.inputs[0], tenth), "x * 0.1"), ((tenth, graph.inputs[0]), "0.1 * x")):
        graph.set_arguments(call, args, {})
        assert expression(Call(call, catalogue()["aten::mul"], scope)) == text
