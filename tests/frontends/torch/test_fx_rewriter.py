"""What PyTorch's tests of its subgraph rewriter and of dead code do, done to a traced graph.

``fx_suite.py`` has the test of PyTorch for each of these.
"""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tmconvert  # noqa: E402
from tests.frontends.torch.fx_cases import X, check, traced  # noqa: E402

Y = X.flip(1) + 0.5


def replaced(function: Any, pattern: Any, replacement: Any, expected: Any, count: int, *inputs: Any) -> None:
    """Replaces ``pattern`` in the traced ``function``, and compares with ``expected`` in PyTorch."""
    inputs = inputs or (X,)
    tm, _ = traced(function, *inputs)
    assert len(tmconvert.replace_pattern(tm, pattern, replacement)) == count
    check(tm, expected(*inputs), *inputs, rtol=1e-5)


def test_one_call() -> None:
    def used_twice(x: torch.Tensor) -> torch.Tensor:
        value = torch.neg(x)
        return torch.add(value, value)

    replaced(used_twice, lambda x: torch.neg(x), lambda x: torch.relu(x), lambda x: 2 * torch.relu(x), 1)


def test_several_calls_from_one_value() -> None:
    def pattern(x: torch.Tensor) -> torch.Tensor:
        return torch.neg(x) + torch.relu(x)

    replaced(
        lambda x: torch.add(torch.neg(x) + torch.relu(x), 1),
        pattern,
        lambda x: torch.sigmoid(x),
        lambda x: torch.sigmoid(x) + 1,
        1,
    )


def test_several_matches() -> None:
    def function(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
        m1 = torch.cat([w1, w2]).sum()
        m2 = torch.cat([w1, w2]).sum()
        return x + torch.max(m1) + torch.max(m2)

    def expected(x: torch.Tensor, w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
        return x + 2 * torch.max(torch.stack([w1, w2]))

    def pattern(w1: torch.Tensor, w2: torch.Tensor) -> torch.Tensor:
        return torch.cat([w1, w2]).sum()

    replaced(function, pattern, lambda w1, w2: torch.stack([w1, w2]), expected, 2, *(X, Y, X))


def test_the_order_of_arguments() -> None:
    replaced(
        lambda x, y: torch.mm(x, y),
        lambda x, y: torch.mm(x, y),
        lambda x, y: torch.mm(x, y),
        lambda x, y: torch.mm(x, y),
        1,
        *(X, Y.T),
    )


def test_only_the_matched_use_is_replaced() -> None:
    replaced(
        lambda x, y: (torch.neg(y) + torch.relu(x)) * 2,
        lambda x: torch.relu(x),
        lambda x: torch.neg(x),
        lambda x, y: -2 * (x + y),
        1,
        *(X, Y),
    )


def test_traced_models_are_patterns() -> None:
    pattern, _ = traced(lambda x: torch.neg(x) + torch.relu(x))
    replacement, _ = traced(lambda x: torch.sigmoid(x))
    replaced(
        lambda x: (torch.neg(x) + torch.relu(x)) * 2,
        pattern,
        replacement,
        lambda x: 2 * torch.sigmoid(x),
        1,
    )


def test_the_pattern_is_the_whole_graph() -> None:
    def pattern(x: torch.Tensor) -> torch.Tensor:
        a = torch.neg(x)
        return torch.add(a, a)

    def replacement(x: torch.Tensor) -> torch.Tensor:
        a = torch.sigmoid(x)
        return torch.mul(a, a)

    replaced(pattern, pattern, replacement, replacement, 1)


def test_the_pattern_is_the_whole_graph_and_its_result_has_another_shape() -> None:
    def pattern(x: torch.Tensor) -> torch.Tensor:
        a = torch.neg(x)
        return torch.add(a, a)

    def replacement(x: torch.Tensor) -> torch.Tensor:
        a = torch.sigmoid(x)
        return torch.cat([a, a])

    replaced(pattern, pattern, replacement, replacement, 1)


def test_the_result_has_other_users() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x)
        return torch.neg(y) - y

    replaced(
        function,
        lambda x: torch.relu(x),
        lambda x: torch.sigmoid(x),
        lambda x: -2 * torch.sigmoid(x),
        1,
    )


def test_inner_values_with_other_users_do_not_match() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        m1 = torch.cat([x, y])
        return torch.relu(m1.sum(1)), m1

    replaced(
        function,
        lambda x, y: torch.relu(torch.cat([x, y]).sum(1)),
        lambda x, y: torch.cat([x, y]).amax(1),
        function,
        0,
        *(X, Y),
    )


def test_an_input_of_the_pattern_matches_any_value() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid((x + 3).abs()).to(torch.float64)

    replaced(
        function,
        lambda x: torch.sigmoid(x.abs()).to(torch.float64),
        lambda x: x.to(torch.float64),
        lambda x: (x + 3).to(torch.float64),
        1,
    )


def test_a_pattern_gives_way_to_its_input() -> None:
    replaced(
        lambda x: torch.neg(torch.sigmoid(x + 3).abs()),
        lambda x: torch.sigmoid(x).abs(),
        lambda x: x,
        lambda x: -(x + 3),
        1,
    )


def test_methods_are_matched() -> None:
    replaced(
        lambda x: x.abs().sigmoid().square() * 2,
        lambda x: x.abs().sigmoid().square(),
        lambda x: x,
        lambda x: 2 * x,
        1,
    )


class Activated(torch.nn.Module):
    """Two modules in a row."""

    def __init__(self, first: torch.nn.Module, adds: float = 0) -> None:
        super().__init__()
        self.first = first
        self.submod = torch.nn.ReLU()
        self.adds = adds

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.submod(self.first(x + self.adds if self.adds else x))


def test_calls_of_modules_are_matched() -> None:
    tm = tmconvert.trace(Activated(torch.nn.Sigmoid(), 1), X).flatten()
    pattern = tmconvert.trace(Activated(torch.nn.Sigmoid()), X).flatten()
    replacement = tmconvert.trace(Activated(torch.nn.Tanh()), X).flatten()
    assert len(tmconvert.replace_pattern(tm, pattern, replacement)) == 1
    check(tm, torch.relu(torch.tanh(X + 1)))


def test_modules_of_a_replacement_are_added() -> None:
    torch.manual_seed(0)
    net = Activated(torch.nn.Sigmoid(), 1)
    tm = tmconvert.trace(net, X)
    own = tm.get_submodule("submod")
    pattern = tmconvert.trace(Activated(torch.nn.Sigmoid()), X)
    layer = torch.nn.Linear(4, 4)
    replacement = tmconvert.trace(Activated(layer), X)
    assert len(tmconvert.replace_pattern(tm, pattern, replacement)) == 1
    check(tm, torch.relu(layer(X + 1)), rtol=1e-5)
    assert tm.get_submodule("submod") is own
    classes = {module.class_name.rpartition(".")[2] for _, module in tm.named_modules()}
    assert "Linear" in classes and "Sigmoid" not in classes


def test_matches_in_a_row() -> None:
    replaced(
        lambda x: torch.sigmoid(torch.sigmoid(torch.sigmoid(x))),
        lambda x: torch.sigmoid(x),
        lambda x: torch.exp(x),
        lambda x: torch.exp(torch.exp(torch.exp(x))),
        3,
    )


def test_overlapping_matches() -> None:
    def four(x: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            x = torch.sigmoid(x)
        return x

    replaced(
        four,
        lambda x: torch.sigmoid(torch.sigmoid(x)),
        lambda x: torch.neg(x),
        lambda x: torch.neg(torch.neg(x)),
        2,
    )


def test_several_results() -> None:
    replaced(
        lambda x: torch.sigmoid(x) + torch.relu(x),
        lambda a: (torch.sigmoid(a), torch.relu(a)),
        lambda x: (torch.exp(x), torch.abs(x)),
        lambda x: torch.exp(x) + torch.abs(x),
        1,
    )


def test_one_value_for_several_results() -> None:
    def function(x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        x = x1 - x2
        return torch.sigmoid(x) + torch.relu(x)

    def pattern(a1: torch.Tensor, a2: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = a1 - a2
        return torch.sigmoid(a), torch.relu(a), a

    def replacement(x1: torch.Tensor, x2: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y1, y2 = torch.exp(x1), torch.abs(x2)
        return y2, y2, y1

    replaced(function, pattern, replacement, lambda x1, x2: 2 * torch.abs(x2), 1, *(X, Y))


def test_unused_inputs_stay() -> None:
    tm, graph = traced(lambda x, y, z: x + y, X, Y, X)
    tmconvert.replace_pattern(tm, lambda x, y: x + y, lambda x, y: x - y)
    assert len(graph.find_nodes(op="placeholder")) == 3
    check(tm, X - Y, X, Y, X)


@tmconvert.wrap
def gemm_bias_mul(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, c: torch.Tensor) -> Any:
    linear = torch.nn.functional.linear(a, b, bias=bias)
    return linear, c * linear


class Linears(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.full((4, 4), 0.1 * i) for i in range(1, 6)])
        self.bias = torch.nn.Parameter(torch.ones(4))

    def linear(self, x: torch.Tensor, number: int) -> torch.Tensor:
        return torch.nn.functional.linear(x, self.weights[number], bias=self.bias)

    def forward(self, in0: torch.Tensor, in1: torch.Tensor) -> torch.Tensor:
        second = self.linear(self.linear(in1, 0), 1)
        total = in1 * second + in1
        third = self.linear(total, 2)
        kept = third * torch.sigmoid(third)
        last = self.linear(self.linear(in0, 3), 4)
        return torch.cat([kept, in0 * last + in0], dim=1)


def test_keyword_arguments_are_matched() -> None:
    def pattern(a: Any, b: Any, bias: Any) -> Any:
        linear = torch.nn.functional.linear(a, b, bias=bias)
        return linear, a * linear

    def replacement(a: Any, b: Any, bias: Any) -> Any:
        linear = torch.addmm(bias, a, b.t())
        return linear, linear * a

    class Net(Linears):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.linear(x, 1) + x

    net = Net()
    tm, graph = traced(net)
    assert len(tmconvert.replace_pattern(tm, pattern, replacement)) == 1
    assert len(graph.find_nodes(op="call_function", target=torch.addmm)) == 1
    check(tm, net(X), rtol=1e-5)


def test_anchors_that_do_not_match_are_left() -> None:
    def pattern(a: Any, b: Any, bias: Any, c: Any) -> Any:
        linear = torch.nn.functional.linear(a, b, bias=bias)
        return linear, c * linear

    def replacement(a: Any, b: Any, bias: Any, c: Any) -> Any:
        linear = torch.addmm(bias, a, b.t())
        return linear, linear * c

    net = Linears()
    tm, graph = traced(net, X, Y)
    assert len(tmconvert.replace_pattern(tm, pattern, replacement)) == 2
    assert len(graph.find_nodes(op="call_function", target=torch.addmm)) == 2
    check(tm, net(X, Y), X, Y, rtol=1e-5)


def test_filters_choose_matches() -> None:
    tm, _ = traced(lambda x: torch.clamp(x + 1, -0.5, 0.5) + torch.clamp(x * 2, -0.5, 0.5))
    matches = tmconvert.replace_pattern(
        tm,
        lambda x: torch.clamp(x, -0.5, 0.5),
        lambda x: torch.neg(x),
        match_filters=[
            lambda match, graph, pattern: match["x"].op == "call_method" and match["x"].target == "mul"
        ],
    )
    assert len(matches) == 1
    assert [node.name for node in matches[0].replacements]
    check(tm, torch.clamp(X + 1, -0.5, 0.5) - X * 2)


def test_the_replacement_depends_on_the_match() -> None:
    tm, _ = traced(lambda x: torch.relu(torch.neg(x)) + torch.relu(torch.neg(x * 2)))

    def replacement(x: Any, match: Any) -> Any:
        return torch.sigmoid(x) if match["x"].op == "placeholder" else torch.tanh(x)

    tmconvert.replace_pattern(tm, lambda x: torch.relu(torch.neg(x)), replacement)
    check(tm, torch.sigmoid(X) + torch.tanh(X * 2))


def test_the_matched_nodes_are_known() -> None:
    tm, graph = traced(lambda x: torch.relu(torch.neg(x)))
    relu = list(graph.nodes)[2]
    (match,) = tmconvert.replace_pattern(tm, lambda x: torch.relu(torch.neg(x)), lambda x: torch.sigmoid(x))
    assert match.placeholder_nodes == [next(iter(graph.nodes))]
    assert match.returning_nodes == [relu] and match.anchor is relu
    assert match.replacements == [list(graph.nodes)[1]]
    assert len(match.nodes_map) == 3


def test_an_input_of_the_pattern_matches_a_list() -> None:
    tm, _ = traced(lambda x: torch.flip(x, [0, 1]).permute([1, 0]))
    matches = tmconvert.replace_pattern(
        tm, lambda x, dims, order: torch.flip(x, dims).permute(order), lambda x, dims, order: x.permute(order)
    )
    assert len(matches) == 1
    check(tm, X.T)


class Sum(torch.nn.Module):
    """A sum with an attribute."""

    def __init__(self, name: str, sign: int) -> None:
        super().__init__()
        self.name, self.sign = name, sign
        self.register_buffer(name, torch.tensor([3.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + getattr(self, self.name) if self.sign > 0 else x - getattr(self, self.name)


class Both(Sum):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * 2


def test_patterns_and_replacements_have_attributes() -> None:
    tm, _ = traced(Both("a", 1))
    pattern, _ = traced(Sum("a", 1))
    replacement, _ = traced(Sum("c", -1))
    assert len(tmconvert.replace_pattern(tm, pattern, replacement)) == 1
    check(tm, (X - 3) * 2)


# ---- dead code


class Dead(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.attr_1 = torch.nn.Parameter(torch.tensor([-0.9]))
        self.function = function

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.function(self, x, y)
        return result


def a_call(self: Any, x: Any, y: Any) -> Any:
    x + 1
    return x + self.attr_1


def a_chain(self: Any, x: Any, y: Any) -> Any:
    (x + 1) * 7
    return x + self.attr_1


def a_parameter(self: Any, x: Any, y: Any) -> Any:
    (x + 1) * self.attr_1
    return x + 11


def an_input_with_users(self: Any, x: Any, y: Any) -> Any:
    y + 2
    return x + 7


def nothing(self: Any, x: Any, y: Any) -> Any:
    return x + 7


@pytest.mark.parametrize("function", [a_call, a_chain, a_parameter, an_input_with_users, nothing])
def test_dead_code(function: Any) -> None:
    net = Dead(function)
    tm, graph = traced(net, X, Y)
    unused = [node for node in graph.nodes if not node.is_impure() and not node.users and node.op != "output"]
    assert graph.eliminate_dead_code() is (function is not nothing)
    left = [node for node in graph.nodes if node.op not in ("placeholder", "output")]
    returned = graph.output_node().all_input_nodes
    assert all(node.users or node in returned for node in left)
    assert (len(unused) > len(returned)) is (function is not nothing)
    assert len(graph.find_nodes(op="placeholder")) == 2
    check(tm, net(X, Y), X, Y)


def test_calls_with_effects_are_kept() -> None:
    tm, graph = traced(lambda x: (torch.relu(x), x * 2)[1])
    assert not graph.eliminate_dead_code(is_impure_node=lambda expr: expr.target == torch.relu)
    assert len(graph.find_nodes(op="call_function", target=torch.relu)) == 1
    assert graph.eliminate_dead_code()
    check(tm, X * 2)
