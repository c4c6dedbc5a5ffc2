"""torch.cond, torch.while_loop, and autograd.Functions that say themselves in ONNX."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch._higher_order_ops import associative_scan, scan, while_loop
from torch._higher_order_ops import map as map_slices

import tmconvert
from tests.custom_ops import run
from tmconvert.conversion.lowering import lowered
from tmconvert.errors import UnsupportedError
from tmconvert.ir.parser import parse_graph
from tmconvert.ir.text import graph_constants
from tmconvert.passes.normalize import normalize
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.options import TargetOptions

from .harness import arrays, check, run_onnx

X = torch.linspace(-2, 3, 6).reshape(2, 3)


class Gate(torch.nn.Module):
    """Branches that take modules, a parameter and a tensor from around them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(3, 3)
        self.second = torch.nn.Linear(3, 3)
        self.scale = torch.nn.Parameter(torch.tensor(1.5))

    def forward(self, x: torch.Tensor) -> Any:
        double = x * 2
        return torch.cond(
            x.sum() > 0,
            lambda x: (self.first(x) + double, x.sum()),
            lambda x: (self.second(x) * self.scale, double.mean()),
            (x,),
        )


def inner(x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.max() > 5, lambda x: x - 5, lambda x: x + 5, (x,))


BRANCHES = {
    "plain": lambda x: torch.cond(x.sum() > 0, torch.relu, lambda x: x * 2, (x,)),
    "predicate with an axis": lambda x: torch.cond(
        (x[:1, :1] > 0).reshape(1), lambda: x + 1, lambda: x - 1, ()
    ),
    "an operand returned": lambda x: torch.cond(x.sum() > 0, lambda x, y: y, lambda x, y: x, (x, x.exp())),
    "nested": lambda x: torch.cond(x.sum() > 0, inner, lambda x: x * 2, (x,)),
    "two of one kind": lambda x: inner(inner(x)),
    "integers": lambda x: torch.cond(
        x.sum() > 0, lambda x: (x > 0, x.long()), lambda x: (x < 0, x.long() + 1), (x,)
    ),
    "a structure": lambda x: torch.cond(
        x.sum() > 0, lambda x: {"a": x, "b": [x + 1]}, lambda x: {"a": x * 2, "b": [x]}, (x,)
    ),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches(name: str) -> None:
    check(BRANCHES[name], X, second=[-X], opsets=(9, 17), tflite=True)
    check(BRANCHES[name], -X, second=[X * 4])


def test_branches_of_modules(tmp_path: Path) -> None:
    gate = Gate()
    model = check(gate, X, second=[-X], opsets=(11, 20))
    model.save(tmp_path / "gate.tm")
    loaded = tmconvert.load(tmp_path / "gate.tm")
    with torch.no_grad():
        for x in (X, -X):
            for mine, own in zip(loaded(x.numpy()), gate(x), strict=True):
                np.testing.assert_allclose(mine, own, rtol=1e-5)
    assert tmconvert.to_onnx(loaded, tmp_path / "gate.onnx").verified
    operators = [node.op_type for node in onnx.load(tmp_path / "gate.onnx").graph.node]
    assert operators.count("If") == 1 and "Gemm" not in operators  # only the branch that is taken is computed
    assert tmconvert.to_tflite(loaded, tmp_path / "gate.tflite").verified


class Branching(torch.nn.Module):
    """Convolutions around branches with convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = (torch.nn.Conv2d(3, 3, 3, padding=1) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x).relu()
        x = torch.cond(
            x.mean() > 0.2, lambda x: self.second(x).relu(), lambda x: x.mean((2, 3), True) - x, (x,)
        )
        return self.last(x)


@pytest.mark.slow
def test_images_in_branches(tmp_path: Path) -> None:
    """Around the branches images are stored channels-last in TFLite; not within."""
    x = torch.randn(1, 3, 5, 7)
    model = check(Branching(), x * 9, second=[x * 0], tflite=True)
    assert tmconvert.to_tflite(model, tmp_path / "model.tflite", io_layout="nhwc").verified


def test_the_typed_text_of_branches_reads_back() -> None:
    model = tmconvert.trace(Gate(), X)
    graph = normalize(model.flatten(), catalogue()).graph
    text = graph.to_text()
    assert "then=graph cond_true" in text
    assert parse_graph(text, graph_constants(graph)).to_text() == text
    assert graph.copy().to_text() == text
    lowered(model, TargetOptions("onnx", 17), catalogue())


@pytest.mark.slow
def test_branches_at_other_sizes(tmp_path: Path) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        rows = x.shape[0]
        return torch.cond(x.sum() > 0, lambda x: x.reshape(-1).reshape(rows, 3) + 1, lambda x: x * rows, (x,))

    model = tmconvert.trace(function, X, dynamic_shapes={"x": {0: "batch"}})
    report = tmconvert.to_onnx(model, tmp_path / "model.onnx")
    assert report.outputs[0]["shape"] == ["batch", 3]
    for x in (X.repeat(2, 1), -X[:1]):
        (mine,) = run_onnx(tmp_path / "model.onnx", [x.numpy()])
        np.testing.assert_allclose(mine, function(x), rtol=1e-6)


LOOPS = {
    "a count": lambda x: while_loop(
        lambda i, x: i < 5, lambda i, x: (i + 1, x * 1.5 + i), (torch.tensor(0), x)
    ),
    "the data": lambda x: while_loop(lambda x: x.abs().sum() < 100, lambda x: (x * 2,), (x,)),
    "from around": lambda x: while_loop(
        lambda y: y.sum() < x.sum() + 20, lambda y: (y + x.exp(),), (torch.zeros(2, 3),)
    ),
    "what it begins with from around": lambda x: while_loop(
        lambda i, y: i < 3, lambda i, y: (i + 1, y + x), (torch.tensor(0), x)
    ),
    "swapped": lambda x: while_loop(
        lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b.clone(), a.clone()), (torch.tensor(0), x, x * 2)
    ),
    "the same twice": lambda x: while_loop(
        lambda i, a, b: i < 3, lambda i, a, b: (i + 1, a + 1, a * b), (torch.tensor(0), x, x)
    ),
    "a branch within": lambda x: while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, inner(x)), (torch.tensor(0), x)
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    check(LOOPS[name], X, second=[X.flip(0) * 3], opsets=(9, 17), tflite=True)


def running(carry: torch.Tensor, row: torch.Tensor) -> Any:
    after = carry * 0.5 + row
    return after, (after * 2).clone()


SCANS = {
    "one": lambda x: scan(running, torch.zeros(3), x),
    "another axis": lambda x: scan(running, torch.ones(2), x, dim=1),
    "reversed": lambda x: scan(running, torch.ones(3), x, reverse=True),
    "trees": lambda x: scan(
        lambda carry, rows: (
            {"sum": carry["sum"] + rows[0] * rows[1] + x[1]},
            [rows[0] + 1, carry["sum"].clone()],
        ),
        {"sum": torch.zeros(3)},
        [x, x.exp()],
    ),
}


@pytest.mark.parametrize("name", SCANS)
def test_scans(name: str) -> None:
    check(SCANS[name], X, second=[X.flip(1) * 3], opsets=(8, 9, 17), tflite=True)


def test_a_map_over_the_first_axis() -> None:
    weight = torch.arange(3.0)
    check(lambda x: map_slices(lambda row: row.softmax(0) + weight, x), X, opsets=(8, 17), tflite=True)
    check(lambda x: map_slices(lambda rows, y: (rows[0] * y, rows[1] + 1), [x, x * 2], x.sum(0)), X)


class Twice(torch.nn.Module):
    """A module with branches that is called twice, once as another."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.steps = torch.nn.ModuleList([Gate(), self.gate])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step in [self.gate, *self.steps]:
            x = step(x)[0]
        return x


@pytest.mark.slow
def test_a_module_with_branches_may_be_called_again(tmp_path: Path) -> None:
    module = Twice()
    model = check(module, X, second=[-X])
    assert sorted(model.children["gate"].children) == ["cond_false@1", "cond_true@0", "first", "second"]
    for name in ("one.tm", "two.tm"):
        tmconvert.trace(module, X).save(tmp_path / name)
    assert (tmp_path / "one.tm").read_bytes() == (tmp_path / "two.tm").read_bytes()


def test_a_generic_associative_scan_is_written_out() -> None:
    check(lambda x: associative_scan(torch.mul, x, dim=1, combine_mode="generic"), X)


REFUSED = {
    "return different types": lambda x: torch.cond(x.sum() > 0, lambda x: x[:1], lambda x: x, (x,)),
    "writes in place to one of its arguments": lambda x: torch.cond(
        x.sum() > 0, lambda x: x.add_(1), lambda x: x.clone(), (x,)
    ),
    "returns other types than those of its initial values": lambda x: while_loop(
        lambda x: x.sum() < 10, lambda x: (torch.cat([x, x]),), (x,)
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_has_no_meaning_is_refused(reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        tmconvert.trace(REFUSED[reason], X)


def test_what_a_branch_calls_is_refused_with_its_line(tmp_path: Path) -> None:
    model = tmconvert.trace(
        lambda x: torch.cond(
            x.sum() > 0,
            lambda x: torch.linalg.eigvals(x @ x.T).real,
            lambda x: x[:, 0].clone(),
            (x,),
        ),
        X,
    )
    with pytest.raises(UnsupportedError, match=r"test_control_flow\.py:\d+.*eig.* is not supported"):
        tmconvert.to_onnx(model, tmp_path / "model.onnx")


def test_sizes_that_only_the_data_tells_do_not_leave_a_branch(tmp_path: Path) -> None:
    model = tmconvert.trace(
        lambda x: torch.cond(x.sum() > 0, lambda x: x[x > 0], lambda x: x[x > 0] * 2, (x,)), X
    )
    with pytest.raises(UnsupportedError, match="a branch returns a tensor whose size depends on the data"):
        tmconvert.to_onnx(model, tmp_path / "model.onnx")


@pytest.mark.slow
def test_sizes_that_the_data_tells_within_and_around() -> None:
    def function(x: torch.Tensor) -> Any:
        few, many = x[x > 0], x[x > -1]
        within = torch.cond(
            few.sum() > 2, lambda few: (few[few > 1].reshape(-1, 1) * 2).sum(), lambda few: few.mean(), (few,)
        )
        return within, torch.cond(many.sum() > 2, lambda y: y * 2, lambda y: y + 1, (many,))

    check(function, X, second=[X + 1], opsets=(13, 17))
    check(function, X + 1, second=[X * 4])


@pytest.mark.parametrize("function", [LOOPS["the data"], SCANS["one"], BRANCHES["nested"]])
def test_functions_inside_with_open_sizes(function: Any, tmp_path: Path) -> None:
    wide = X.repeat(2, 1)
    model = tmconvert.trace(function, wide, dynamic_shapes={"x": {0: "rows"}})
    assert tmconvert.to_onnx(model, tmp_path / "model.onnx").verified
    expected = function(X[:1])
    given = run_onnx(tmp_path / "model.onnx", [X[:1].numpy()])
    for mine, own in zip(given, arrays(expected), strict=True):
        np.testing.assert_allclose(mine, own, rtol=1e-5)


# ---- autograd.Function


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, weight: Any, factor: float) -> Any:
        return x * weight * factor, x.sum()

    @staticmethod
    def symbolic(g: Any, x: Any, weight: Any, factor: float) -> Any:
        assert x.type().sizes() == [2, 3]
        product = g.op("Mul", g.op("Mul", x, weight), g.op("Constant", value_t=torch.tensor(factor)))
        return product.setType(x.type()), g.op("ReduceSum", x, keepdims_i=0)


APPLY = Scaled.apply


def test_a_symbolic_in_operators_of_onnx(tmp_path: Path) -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    model = check(lambda x: APPLY(x, weight, 0.5), X)
    tmconvert.to_onnx(model, tmp_path / "model.onnx")
    operators = [node.op_type for node in onnx.load(tmp_path / "model.onnx").graph.node]
    assert operators == ["Mul", "Mul", "ReduceSum"]
    assert tmconvert.to_tflite(model, tmp_path / "model.tflite").verified


def test_an_operator_of_another_domain(tmp_path: Path) -> None:
    net = run("An autograd.Function with a symbolic")["Net"]()
    model = check(net, X, opsets=())
    model.save(tmp_path / "model.tm")
    loaded = tmconvert.load(tmp_path / "model.tm")
    report = tmconvert.to_onnx(loaded, tmp_path / "model.onnx")
    assert report.notes[-1] == "not verified: ONNX Runtime has no operator com.example::Swish"
    (node,) = onnx.load(tmp_path / "model.onnx").graph.node
    assert (node.domain, node.op_type, node.attribute[0].name) == ("com.example", "Swish", "beta")
    assert tmconvert.to_tflite(loaded, tmp_path / "model.tflite").verified  # as forward computes it
    assert tmconvert.to_caffe(loaded, tmp_path / "model.prototxt").verified


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x + 1

    symbolic = staticmethod(lambda g, x: g.op("Mul", x, x, wrong=1))


class TooMany(Broken):
    symbolic = staticmethod(lambda g, x: (x, g.op("Split", x, outputs=2)[0]))


def test_a_symbolic_that_fails_names_its_line() -> None:
    with pytest.raises(
        UnsupportedError, match="attribute wrong of Mul does not end in _i, _f, _s or _t"
    ) as error:
        tmconvert.trace(Broken.apply, X)
    assert error.value.source is not None and error.value.source.file == __file__
    with pytest.raises(UnsupportedError, match="returns 2 results, its forward 1"):
        tmconvert.trace(TooMany.apply, X)


class OfTorchScript(torch.autograd.Function):
    """DeBERTa's way: its symbolic calls functions of ``torch.onnx``."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return torch.cumsum(x, 0)

    @staticmethod
    def symbolic(g: Any, x: Any) -> Any:
        return importlib.import_module("torch.onnx.symbolic_opset11").cumsum(g, x, 0)


class OfTypes(Broken):
    """It asks for the type of a value."""

    symbolic = staticmethod(lambda g, x: g.op("Add", x, torch.ones((), dtype=x.type().dtype())))


@pytest.mark.parametrize("function", [OfTorchScript, OfTypes])
def test_forward_is_recorded_if_a_symbolic_needs_torch_script(function: Any) -> None:
    check(function.apply, X)


def test_nothing_of_torch_stays_changed() -> None:
    tmconvert.trace(lambda x: Scaled.apply(x, x, 2.0), X)
    assert "apply" not in vars(torch.autograd.function._SingleLevelFunction)
    assert torch._higher_order_ops.utils._hop_compile_and_call.__module__ == "torch._higher_order_ops.utils"
