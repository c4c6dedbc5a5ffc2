"""What PyTorch's tests of torch.fx do by Interpreter and Transformer, done to a traced model.

``fx_suite.py`` has the test of PyTorch for each of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tmconvert  # noqa: E402
from tests.frontends.torch.fx_cases import X, check, flat, traced  # noqa: E402
from tmconvert.errors import UsageError  # noqa: E402
from tmconvert.ir import Node  # noqa: E402


class Clamped(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.param = torch.nn.Parameter(torch.linspace(-1, 2, 12).reshape(3, 4))
        self.linear = torch.nn.Linear(4, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x + self.param).clamp(min=0.0, max=1.0)


@pytest.fixture
def net() -> torch.nn.Module:
    torch.manual_seed(0)
    return Clamped().eval()


def equal(mine: Any, theirs: torch.Tensor) -> None:
    np.testing.assert_allclose(mine, theirs.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_run_computes_what_the_module_computes(net: torch.nn.Module) -> None:
    tm, graph = traced(net)
    for interpreter in (tmconvert.Interpreter(tm), tmconvert.Interpreter(tm, graph=graph)):
        equal(interpreter.run(X.numpy()), net(X))
        equal(interpreter.run(X.numpy() * 2), net(X * 2))


def test_a_run_can_take_its_inputs_from_a_list(net: torch.nn.Module) -> None:
    tm, _ = traced(lambda x, y: x + y, X, X)
    interpreter = tmconvert.Interpreter(tm)
    given = [X.numpy(), X.numpy()]
    equal(interpreter.boxed_run(given), X + X)
    assert given == []
    for wrong in ([X.numpy()] * 3, [X.numpy()]):
        kept = list(wrong)
        with pytest.raises(UsageError):
            interpreter.boxed_run(wrong)
        assert len(wrong) == len(kept)


def test_nodes_get_notes_in_a_run(net: torch.nn.Module) -> None:
    class Recording(tmconvert.Interpreter):
        def run_node(self, node: Any) -> Any:
            node.meta["value"] = super().run_node(node)
            return node.meta["value"]

    tm, graph = traced(net)
    Recording(tm).run(X.numpy())
    assert all("value" in node.meta for node in graph.nodes if node.op != "output")


def test_functions_and_methods_are_swapped_in_a_run() -> None:
    class Swap(tmconvert.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target == torch.sigmoid:
                return super().call_function("torch.neg", args, kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target == "neg":
                return super().call_method("sigmoid", args, kwargs)
            return super().call_method(target, args, kwargs)

    tm, _ = traced(lambda x: torch.sigmoid(x).neg())
    equal(Swap(tm).run(X.numpy()), torch.neg(X).sigmoid())


def test_a_run_starts_in_the_middle(net: torch.nn.Module) -> None:
    tm, graph = traced(net)
    known = torch.arange(15.0).reshape(3, 5) / 10 - 0.5
    (linear,) = graph.find_nodes(op="call_module", target="linear")
    result = tmconvert.Interpreter(tm).run(X.numpy(), initial_env={linear: known.numpy()})
    equal(result, known.clamp(0.0, 1.0))


def test_a_run_takes_all_positional_inputs() -> None:
    tm, _ = traced(lambda x, *args: x + args[0], X, X * 2, X * 3)
    equal(tmconvert.Interpreter(tm).run(X.numpy(), 2 * X.numpy(), 3 * X.numpy()), X * 3)


def test_values_are_dropped_after_their_last_use() -> None:
    class Counting(tmconvert.Interpreter):
        most = 0

        def run_node(self, node: Node) -> Any:
            self.most = max(self.most, len(self.env))
            return super().run_node(node)

    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(20):
            x = torch.relu(x) + 1
        return x

    tm, _ = traced(chain)
    interpreter = Counting(tm)
    interpreter.run(X.numpy())
    assert interpreter.most < 5
    kept = Counting(tm, garbage_collect_values=False)
    kept.run(X.numpy())
    assert kept.most > 30


def test_defaults_are_constants_of_the_trace() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: float = 3.14159) -> torch.Tensor:
            return x + y

    tm, _ = traced(Model())
    equal(tmconvert.Interpreter(tm).run(X.numpy()), X + 3.14159)


def test_missing_inputs_are_an_error() -> None:
    tm, _ = traced(lambda x, y: x + y, X, X)
    with pytest.raises(UsageError) as error:
        tmconvert.Interpreter(tm).run(X.numpy())
    assert error.value.code == "TM6003"


# ---- transformers


def test_a_transformer_that_changes_nothing(net: torch.nn.Module) -> None:
    tm, _ = traced(net)
    check(tmconvert.Transformer(tm).transform(), net(X), rtol=1e-5)


def test_a_large_model_is_transformed() -> None:
    torch.manual_seed(0)
    layers: list[torch.nn.Module] = []
    for _ in range(8):
        layers += [torch.nn.Conv2d(4, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers).eval()
    x = torch.rand(1, 4, 8, 8)
    tm, _ = traced(model, x)
    check(tmconvert.Transformer(tm).transform(), model(x), x, rtol=1e-4)


def test_functions_and_methods_are_swapped() -> None:
    class Swap(tmconvert.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target == torch.sigmoid:
                return torch.neg(*args, **kwargs)
            return super().call_function(target, args, kwargs)

        def call_method(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target == "neg":
                value, *rest = args
                return value.sigmoid(*rest, **kwargs)
            return super().call_method(target, args, kwargs)

    tm, _ = traced(lambda x: torch.sigmoid(x).neg())
    check(Swap(tm).transform(), torch.neg(X).sigmoid())


def test_several_results_are_kept(net: torch.nn.Module) -> None:
    class Two(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            x = x + 1
            return x, self.net(x)

    tm, _ = traced(Two())
    check(tmconvert.Transformer(tm).transform(), (X + 1, net(X + 1)), rtol=1e-5)


def test_places_and_notes_are_kept(net: torch.nn.Module) -> None:
    tm, graph = traced(net)
    for node in graph.nodes:
        node.meta["note"] = node.op
    new = tmconvert.Transformer(tm).transform().graph
    assert new is not None
    for node in new.nodes:
        if node.op != "output":
            assert node.meta["note"] == node.op
        if node.op not in ("placeholder", "get_attr", "output"):
            assert "test_fx_runs.py" in str(node.stack_trace)


@tmconvert.wrap
def plus_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def test_wrapped_functions_are_kept() -> None:
    tm, _ = traced(lambda x: plus_one(x) * 2)
    made = tmconvert.Transformer(tm).transform().graph
    assert made is not None
    (call,) = made.find_nodes(op="call_function", target=plus_one)
    assert call.target == f"{__name__}.plus_one"


def test_results_of_submodules_are_known() -> None:
    class Two(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return x.sum(), x + 1

    tm, graph = traced(torch.nn.Sequential(Two()))
    results = graph.find_nodes(op="call_module", target="0")
    assert [node.shape for node in results] == [(), (3, 4)]
    assert [array.shape for array in flat(tm(X.numpy()))] == [(), (3, 4)]


def test_shapes_are_known(net: torch.nn.Module) -> None:
    _, graph = traced(net)
    assert {node.op for node in graph.nodes} == {
        *["placeholder", "get_attr", "call_method", "call_module", "output"]
    }
    (result,) = graph.output_node().all_input_nodes
    assert (result.shape, result.dtype) == ((3, 5), np.float32)
