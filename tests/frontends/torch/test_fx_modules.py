"""What PyTorch's tests of torch.fx do to the modules of a captured model, done to a traced one.

``fx_suite.py`` has the test of PyTorch for each of these.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tmconvert  # noqa: E402
from tests.frontends.torch.fx_cases import X, check, traced  # noqa: E402
from tmconvert.errors import TmconvertError, UsageError  # noqa: E402
from tmconvert.ir import TracedModule  # noqa: E402


class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Linear(4, 6)
        self.param = torch.nn.Parameter(torch.ones(2, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(torch.cat([self.param, x]))


class Middle(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 4)
        self.buf: torch.Tensor
        self.register_buffer("buf", torch.ones(2, 6))
        self.net_c = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(torch.cat([self.buf, self.net_c(x)]))


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net_b = Middle()
        self.param = torch.nn.Parameter(torch.full((7, 4), 2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net_b(x) + self.param


@pytest.fixture
def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return Outer().eval()


def paths(tm: TracedModule) -> set[str]:
    return {path for path, _ in tm.named_modules()}


def test_submodules_are_added_and_deleted(model: torch.nn.Module) -> None:
    tm = tmconvert.trace(model, X).flatten()
    graph = tm.graph
    assert graph is not None
    scale = torch.nn.Sequential(torch.nn.Linear(4, 6, bias=False)).eval()
    path = "net_b.net_c.other"
    (old,) = graph.find_nodes(op="call_module", target="net_b.net_c.conv") or [None]
    assert tm.add_submodule(path, tmconvert.trace(scale, torch.zeros(5, 4)))
    assert not tm.add_submodule("nowhere.other", tmconvert.trace(scale, torch.zeros(5, 4)))
    old = old or graph.find_nodes(op="call_function", target=torch.nn.functional.linear)[0]
    with graph.inserting_before(old):
        new = graph.call_module(module_name=path, args=old.args[:1])
    old.replace_all_uses_with(new)
    graph.erase_node(old)
    graph.eliminate_dead_code()
    assert {path, "net_b.net_c.conv"} <= paths(tm)
    assert tm.get_submodule(path) and tm.get_submodule("") is tm
    assert tm.delete_submodule("net_b.net_c.conv")
    assert "net_b.net_c.conv" not in paths(tm)
    with pytest.raises(UsageError):
        tm.get_submodule("net_b.net_c.conv")
    model.net_b.net_c.conv = scale  # type: ignore[union-attr, assignment]
    check(tm, model(X), rtol=1e-5)


def test_reads_of_parameters_are_inserted(model: torch.nn.Module) -> None:
    tm = tmconvert.trace(model, X).flatten()
    graph = tm.graph
    assert graph is not None
    last = graph.output_node().args[0]
    with graph.inserting_after(last):
        weight = graph.get_attr(qualified_name="net_b.linear.bias")
        graph.output(graph.call_function(torch.add, (last, weight)))
    before = str(graph)
    with pytest.raises(TmconvertError):
        graph.get_attr(qualified_name="net_b.missing")
    assert str(graph) == before
    check(tm, model(X) + model.net_b.linear.bias, rtol=1e-5)  # type: ignore[union-attr, operator]


def test_parameters_and_buffers_by_path(model: torch.nn.Module) -> None:
    tm, _ = traced(model)
    np.testing.assert_array_equal(tm.get_parameter("net_b.net_c.param"), np.ones((2, 4)))
    np.testing.assert_array_equal(tm.get_buffer("net_b.buf"), np.ones((2, 6)))
    assert tm.get_parameter("param").shape == (7, 4)
    for get, path in (
        (tm.get_parameter, "net_b.buf"),
        (tm.get_parameter, "net_b.param"),
        (tm.get_buffer, "net_b.net_c.param"),
        (tm.get_buffer, "net_b.net_c.buf"),
    ):
        with pytest.raises(UsageError) as error:
            get(path)
        assert error.value.code == "TM6050"


def test_unused_submodules_are_deleted(model: torch.nn.Module) -> None:
    tm, graph = traced(model)
    extra = tmconvert.trace(torch.nn.Linear(4, 4), X)
    added = ["net_b.embedding", "net_b.net_c.rnn", "batch_norm"]
    assert all(tm.add_submodule(path, extra) for path in added)
    tm.delete_all_unused_submodules()
    assert not paths(tm) & set(added)
    assert "net_b.net_c.param" in dict(tm.named_parameters())
    assert "net_b.buf" in dict(tm.named_buffers())
    graph.lint()
    check(tm, model(X), rtol=1e-5)


def test_parts_of_leaf_modules_are_used() -> None:
    part = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    tm = tmconvert.trace(torch.nn.Sequential(part).eval(), X, leaf_modules=[torch.nn.Sequential])
    before = paths(tm)
    assert "0.0" in before
    tm.delete_all_unused_submodules()
    assert paths(tm) == before
    np.testing.assert_array_equal(tm.get_parameter("0.0.weight"), part[0].weight.detach().numpy())


def test_other_parameters_in_a_call(model: torch.nn.Module) -> None:
    twin = traced(model)[0].to_torch()
    weight = torch.zeros(4, 6, requires_grad=True)
    result = torch.func.functional_call(twin, {"net_b.linear.weight": weight}, (X,))
    result.sum().backward()
    assert weight.grad is not None
    assert dict(twin.named_parameters())["net_b.linear.weight"].grad is None
    np.testing.assert_allclose(
        result.detach().numpy(),
        torch.func.functional_call(model, {"net_b.linear.weight": weight}, (X,)).detach().numpy(),
        rtol=1e-5,
    )


def test_traced_models_are_parts_of_models(model: torch.nn.Module) -> None:
    inner, graph = traced(lambda x: torch.relu(x))
    graph.output(graph.call_function(torch.neg, graph.output_node().args))
    tm, outer = traced(lambda x: x * 2)
    assert tm.add_submodule("inner", inner)
    (old,) = outer.output_node().args
    outer.output(outer.call_module("inner", (old,)))
    check(tm, -torch.relu(X * 2))
    assert tm.get_submodule("inner") is inner


def test_unused_parts_are_saved(model: torch.nn.Module, tmp_path: Path) -> None:
    tm, _ = traced(model)
    tm.add_submodule("foo", tmconvert.trace(torch.nn.Linear(4, 4), X))
    tm.add_tensor("dummy", np.zeros(1, np.float32), buffer=True)
    tm.add_tensor("dummy_parameter", np.zeros(1, np.float32))
    tm.save(tmp_path / "m.tm")
    loaded = tmconvert.load(tmp_path / "m.tm")
    assert "foo" in paths(loaded)
    assert "dummy" in dict(loaded.named_buffers())
    assert "dummy_parameter" in dict(loaded.named_parameters())
    check(loaded, model(X), rtol=1e-5)


def test_errors_name_the_place_of_a_call() -> None:
    class Dot(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.dot(self.weight, x)

    tm, graph = traced(Dot(), torch.ones(5))
    output = graph.output_node()
    with graph.inserting_before(output):
        relu = graph.call_method(method_name="relu", args=(output.args[0],))
    output.args = (relu,)
    tm.recompile()
    check(tm, torch.tensor(5.0), torch.ones(5))
    with pytest.raises(TmconvertError):
        tm(np.ones(4, np.float32))


def test_texts_of_nodes_and_models(model: torch.nn.Module, capsys: pytest.CaptureFixture[str]) -> None:
    tm, graph = traced(model)
    text = "\n".join(node.format_node() for node in graph.nodes if node.op != "output")
    assert all(str(node) in text for node in graph.nodes if node.op != "output")
    graph.print_tabular()
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("placeholder", "call_module", "get_attr", "net_b"))
    tm.print_readable()
    assert "torch.cat" in capsys.readouterr().out
    assert "torch.cat" in tm.code


def test_a_folder_computes_the_same(model: torch.nn.Module, tmp_path: Path) -> None:
    import importlib.util
    import sys

    tm, _ = traced(model)
    tm.to_folder(tmp_path / "net", "Net")
    spec = importlib.util.spec_from_file_location("net_of_fx", tmp_path / "net" / "__init__.py")
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules["net_of_fx"] = module
    try:
        spec.loader.exec_module(module)
        found = module.Net()(X)
    finally:
        del sys.modules["net_of_fx"]
    np.testing.assert_allclose(found.detach().numpy(), model(X).detach().numpy(), rtol=1e-5, atol=1e-6)
