"""``tmconvert.Interpreter`` under torch.fx's names: hooks, values, submodules; and ``Expr.interpret``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.ir.modules import chain
from tmconvert.errors import GraphError, UsageError
from tmconvert.ir import CallFunction, Node, TensorNode, TracedModule

DATA = Path(__file__).parent.parent / "data"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def resnet() -> tuple[TracedModule, np.ndarray, np.ndarray]:
    with np.load(DATA / "resnet18.npz") as arrays:
        return tmconvert.load(DATA / "resnet18.tm"), arrays["in0"], arrays["out0"]


class Recorder(tmconvert.Interpreter):
    """Notes the calls of each hook."""

    def __init__(self, tm: TracedModule) -> None:
        super().__init__(tm)
        self.seen: list[tuple[str, str]] = []

    def placeholder(self, target: str, args: Any, kwargs: Any) -> Any:
        self.seen.append(("placeholder", target))
        return super().placeholder(target, args, kwargs)

    def get_attr(self, target: str, args: Any, kwargs: Any) -> Any:
        self.seen.append(("get_attr", target))
        return super().get_attr(target, args, kwargs)

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        self.seen.append(("call_function", target))
        return super().call_function(target, args, kwargs)

    def call_method(self, target: str, args: Any, kwargs: Any) -> Any:
        self.seen.append(("call_method", target))
        return super().call_method(target, args, kwargs)

    def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
        self.seen.append(("call_module", target))
        return super().call_module(target, args, kwargs)

    def output(self, target: str, args: Any, kwargs: Any) -> Any:
        self.seen.append(("output", target))
        return super().output(target, args, kwargs)


def test_hooks_see_submodules_by_their_paths() -> None:
    tm, x, out = resnet()
    run = Recorder(tm)
    np.testing.assert_allclose(run.run(x), out, atol=1e-5)
    assert run.seen[0] == ("placeholder", "x") and run.seen[-1] == ("output", "output")
    assert ("call_module", "layer1.0.conv1") in run.seen
    assert ("get_attr", "layer1.0.conv1") in run.seen
    assert ("call_function", "megengine.functional.nn.relu") in run.seen
    assert ("call_method", "__iadd__") in run.seen or ("call_method", "__add__") in run.seen
    assert run.seen.count(("placeholder", "x")) == 1  # not of the graphs of submodules


def test_a_subclass_with_arguments_of_its_own_runs_submodules() -> None:
    class Scaled(tmconvert.Interpreter):
        def __init__(self, tm: TracedModule, factor: float) -> None:
            super().__init__(tm)
            self.factor = factor

        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return self.factor * super().call_function(target, args, kwargs)

    np.testing.assert_array_equal(Scaled(chain(3), 2).run(X), -2 * X)


def test_overriding_call_module_stops_there() -> None:
    class Closed(Recorder):
        def call_module(self, target: str, args: Any, kwargs: Any) -> Any:
            return args[0] + 1

    run = Closed(chain(3))
    np.testing.assert_array_equal(run.run(X), X + 1)
    assert [kind for kind, _ in run.seen] == ["placeholder", "get_attr", "output"]


def test_another_function_takes_the_place_of_a_call() -> None:
    class Swap(tmconvert.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target.endswith("relu"):
                return super().call_function("megengine.functional.nn.sigmoid", args, kwargs)
            return super().call_function(target, args, kwargs)

    tm, x, _ = resnet()
    values: dict[str, np.ndarray] = {}

    class Seen(Swap):
        def run_node(self, node: Node) -> Any:
            value = values[node.name] = super().run_node(node)
            return value

    Seen(tm).run(x)
    np.testing.assert_allclose(values["relu_out"], 1 / (1 + np.exp(-values["bn1_out"])), atol=1e-6)


def test_any_callable_is_a_function() -> None:
    class Absolute(tmconvert.Interpreter):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            return super().call_function(np.abs, args, kwargs)

    np.testing.assert_array_equal(Absolute(chain(2)).run(-X), X)


def test_values_are_kept_on_request_and_may_be_given() -> None:
    tm = chain(1)
    (call,) = tm.graph
    run = tmconvert.Interpreter(tm, garbage_collect_values=False)
    run.run(X)
    assert set(run.env) == {*tm.graph.inputs, call.output}
    args, kwargs = run.fetch_args_kwargs_from_env(call.output)
    assert args[0] is X and kwargs == {}
    given = np.ones((2, 3), np.float32)
    assert tmconvert.Interpreter(tm).run(X, initial_env={call.output: given}) is given


def test_wrong_use_is_named() -> None:
    tm = chain(2)
    with pytest.raises(UsageError, match="takes 1 inputs, 2 were given"):
        tmconvert.Interpreter(tm).run(X, X)
    run = tmconvert.Interpreter(tm)
    with pytest.raises(UsageError, match=r"TM6050.*no attribute 'chidl'"):
        run.fetch_attr("chidl")
    assert run.fetch_attr("child") is tm.children["child"]
    with pytest.raises(GraphError, match=r"TM3011.*used before it is computed"):
        run.map_nodes_to_values(tm.graph.outputs)
    with pytest.raises(UsageError, match="TM6004"):
        tmconvert.Interpreter(TracedModule("m"))


def test_tensors_and_lists_are_taken_as_arrays() -> None:
    torch = pytest.importorskip("torch")
    np.testing.assert_array_equal(
        tmconvert.Interpreter(chain(1)).run(torch.ones(2, requires_grad=True)), [-1, -1]
    )
    np.testing.assert_array_equal(tmconvert.Interpreter(chain(1)).run([1.0]), [-1])


def test_expressions_are_interpreted_one_by_one() -> None:
    """MegEngine's loop over the expressions, over calls of submodules too."""
    tm, x, out = resnet()
    values: dict[Node, Any] = dict(zip(tm.graph.inputs, [tm, x], strict=True))
    for expr in tm.graph:
        results = expr.interpret(*[values[node] for node in expr.inputs])
        values |= dict(zip(expr.outputs, results, strict=True))
    np.testing.assert_allclose(values[tm.graph.outputs[0]], out, atol=1e-5)


def test_an_expression_checks_its_inputs() -> None:
    tm = chain(1)
    (call,) = tm.graph
    with pytest.raises(UsageError, match=r"TM6003.*takes 1 inputs, 2 were given"):
        call.interpret(X, X)
    loose = CallFunction("neg", (TensorNode("x", (2, 3), X.dtype),), result=TensorNode("y"))
    with pytest.raises(UsageError, match="TM6004"):
        loose.interpret(X)
