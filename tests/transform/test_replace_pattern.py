"""Patterns and their replacements, in ATen-style ops and in the words of a source."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

import tmconvert
from tests.cli.runner import model
from tmconvert.errors import UsageError
from tmconvert.ir import CallFunction, InternalGraph, TensorNode, TracedModule
from tmconvert.symbolics.registry import catalogue
from tmconvert.transform.match import Match, find_matches
from tmconvert.transform.normal_form import normal_form
from tmconvert.transform.pattern import pattern_of

X = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)


def traced(function: Any, *inputs: torch.Tensor) -> TracedModule:
    return tmconvert.trace(function, *(inputs or [torch.from_numpy(X)]))


def calls(tm: TracedModule) -> list[str]:
    assert tm.graph is not None
    return [expr.function for expr in tm.graph if isinstance(expr, CallFunction)]


def relu(g: Any, x: Any) -> Any:
    return g.call("aten::relu", x)


def relu6(g: Any, x: Any) -> Any:
    return g.call("aten::clamp", x, 0.0, 6.0)


@pytest.mark.slow
def test_a_model_of_megengine_in_aten_ops(tmp_path: Path) -> None:
    tm = tmconvert.load(model("resnet18"))
    matches = tmconvert.replace_pattern(tm, relu, relu6)
    assert len(matches) == 17 and {match.exprs[0].function for match in matches} == {"aten::relu"}
    assert calls(tm).count("aten::clamp") == 17 and "aten::relu" not in calls(tm)
    tm.save(tmp_path / "o.tm")
    assert tmconvert.to_onnx(tmp_path / "o.tm", tmp_path / "o.onnx").verification is not None
    assert tmconvert.to_onnx(tm, tmp_path / "o.onnx").verification is not None
    assert tmconvert.replace_pattern(tm, relu, relu6) == []


def test_a_function_of_megengine_by_its_name() -> None:
    tm = tmconvert.load(model("resnet18"))
    matches = tmconvert.replace_pattern(
        tm,
        lambda g, x: g.call("megengine.functional.nn.relu", x),
        lambda g, x: g.call("megengine.functional.nn.relu6", x),
    )
    assert len(matches) == 17 and tm.vocabulary.identifier.startswith("megengine")  # those of submodules, too
    assert "nn.relu6" in str(tm.graph) and "nn.relu(" not in str(tm.get("layer1.0").graph)
    assert tm(np.ones((1, 3, 64, 64), np.float32)).shape == (1, 10)


def test_functions_of_torch_are_found_as_they_are_recorded(tmp_path: Path) -> None:
    tm = traced(lambda x: (torch.relu(x + 1) * 2, functional.relu(x).sum(1)))
    matches = tmconvert.replace_pattern(tm, lambda x: torch.relu(x + 1), lambda x: torch.sigmoid(x) * 2 - x)
    assert len(matches) == 1
    expected = (1 / (1 + np.exp(-X)) * 2 - X) * 2
    np.testing.assert_allclose(tm(X)[0], expected, rtol=1e-5)
    assert tmconvert.to_onnx(tm, tmp_path / "o.onnx").verification is not None


def test_constants_match_parameters_and_reach_the_replacement() -> None:
    tm = traced(lambda x: torch.relu(x * 3) + torch.relu(x * 5))
    matches = tmconvert.replace_pattern(
        tm, lambda x, k: torch.relu(x * k), lambda x, k: torch.relu(x) * (k + 1)
    )
    assert [match["k"] for match in matches] == [3, 5]
    np.testing.assert_allclose(tm(X), np.maximum(X, 0) * 10)


def test_attributes_are_defaults_wildcards_or_parameters() -> None:
    def pooled(x: torch.Tensor) -> torch.Tensor:
        return functional.max_pool2d(functional.max_pool2d(x, 2), 3, 1, 1)

    x = torch.rand(1, 1, 8, 8)

    def count(*attributes: Any) -> int:
        pattern = pattern_of(lambda g, x: g.call("aten::max_pool2d", x, *attributes), catalogue())
        return len(find_matches(normal_form(traced(pooled, x), catalogue()), pattern))

    assert count(...) == 2
    assert count([2, 2], ...) == 1
    tm = traced(pooled, x)
    (match,) = tmconvert.replace_pattern(
        tm,
        lambda g, x, kernel: g.call("aten::max_pool2d", x, kernel, [1, 1], ...),
        lambda g, x, kernel, match: g.call("aten::avg_pool2d", x, kernel, [1, 1], [1, 1]),
    )
    assert match["kernel"] == [3, 3] and "aten::avg_pool2d" in calls(tm)


def test_overlapping_matches_are_taken_from_the_first_on() -> None:
    tm = traced(lambda x: torch.relu(torch.relu(torch.relu(x))))
    (match,) = tmconvert.replace_pattern(tm, lambda x: torch.relu(torch.relu(x)), lambda x: torch.sigmoid(x))
    assert calls(tm) == ["torch.sigmoid", "torch.relu"]
    assert match.replacements[0].name == "relu_out_1"


def test_inner_values_with_other_users_are_left_alone() -> None:
    def shared(x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x)
        return torch.sigmoid(y) + y

    tm = traced(shared)
    assert tmconvert.replace_pattern(tm, lambda x: torch.sigmoid(torch.relu(x)), torch_tanh) == []
    tm = traced(lambda x: (torch.sigmoid(torch.relu(x)), torch.relu(x)))
    assert len(tmconvert.replace_pattern(tm, lambda x: torch.sigmoid(torch.relu(x)), torch_tanh)) == 1
    inner = traced(two_outputs)
    assert tmconvert.replace_pattern(inner, lambda x: torch.sigmoid(torch.relu(x)), torch_tanh) == []


def torch_tanh(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x)


def two_outputs(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = torch.relu(x)
    return y, torch.sigmoid(y)


def test_patterns_with_several_results() -> None:
    tm = traced(lambda x: two_outputs(x + 1))
    (match,) = tmconvert.replace_pattern(tm, two_outputs, lambda x: (torch.sigmoid(x), torch.relu(x)))
    assert [node.name for node in match.replacements] == ["relu_out", "sigmoid_out"]
    first, second = tm(X)
    np.testing.assert_allclose(first, 1 / (1 + np.exp(-X - 1)), rtol=1e-5)
    np.testing.assert_allclose(second, np.maximum(X + 1, 0))


def test_a_match_that_feeds_another() -> None:
    tm = traced(lambda x: torch.relu(torch.relu(x * 2) * 2))
    matches = tmconvert.replace_pattern(tm, lambda x: torch.relu(x * 2), lambda x: torch.relu(x) - 1)
    assert len(matches) == 2
    np.testing.assert_allclose(tm(X), np.maximum(np.maximum(X, 0) - 1, 0) - 1)


def test_filters_see_the_match() -> None:
    tm = traced(lambda x: torch.relu(x * 3) + torch.relu(x * 5))
    seen: list[Match] = []

    def only_five(match: Match, graph: InternalGraph, pattern: InternalGraph) -> bool:
        seen.append(match)
        assert graph is tm.graph and set(match.nodes_map) >= set(pattern.inputs)
        return bool(match["k"] == 5)

    found = tmconvert.replace_pattern(
        tm, lambda x, k: torch.relu(x * k), lambda x, k: torch.tanh(x), match_filters=[only_five]
    )
    assert len(seen) == 2 and len(found) == 1 and str(found[0].anchor) == "relu_out_1"


TEXT = "graph p(%x: ?) -> (%y) {\n  %y = aten::relu(%x) : ?\n}\n"


def test_texts_and_graphs_are_patterns() -> None:
    for pattern, replacement in ((TEXT, TEXT.replace("relu", "sigmoid")),):
        tm = traced(lambda x: torch.relu(x) * 2)
        assert len(tmconvert.replace_pattern(tm, pattern, replacement)) == 1
        np.testing.assert_allclose(tm(X), 2 / (1 + np.exp(-X)), rtol=1e-5)


@pytest.mark.parametrize(
    ("pattern", "replacement", "text"),
    [
        (lambda g, x: x, relu, "TM6054.*must compute each of its results"),
        (relu, lambda g, x: g.call("aten::sum", x, [0]), r"TM6054.*is f32\[4\], not f32\[2,4\]"),
        (relu, lambda g, x, y: x, "TM6054.*the pattern has 1 inputs, the replacement 2"),
        (relu, lambda g, x: (x, x), "TM6054.*the replacement has 2 results, the pattern 1"),
        (relu, lambda g, x: 1 / 0, "TM6052.*replacement failed: ZeroDivisionError"),
        (relu, lambda g, x: g.call("aten::rellu", x), "TM6052.*replacement failed"),
        (relu, lambda x: x, "TM6054.*must take g first"),
        (lambda g, x: 1 / 0, relu, "TM6052.*pattern failed: ZeroDivisionError"),
        (lambda g, *x: x, relu, "TM6054.*must name its parameters"),
        (lambda g, x, y: (relu(g, x), relu(g, y)), relu, "TM6054.*must have a call or an input in common"),
    ],
)
def test_what_cannot_be_is_named_and_nothing_changes(pattern: Any, replacement: Any, text: str) -> None:
    tm = traced(lambda x: torch.relu(torch.relu(x) + 1))
    before = str(tm.graph)
    with pytest.raises(UsageError, match=text):
        tmconvert.replace_pattern(tm, pattern, replacement)
    assert str(tm.graph) == before and tm.vocabulary.identifier == "torch"


def test_types_that_follow_from_a_replacement_are_inferred() -> None:
    tm = traced(lambda x: torch.relu(torch.relu(x) + 1))
    assert len(tmconvert.replace_pattern(tm, lambda x: torch.relu(x), lambda x: torch.relu(x).sum(0))) == 2
    tm.graph.lint()
    assert [node.shape for node in tm.graph.outputs] == [()]
    np.testing.assert_allclose(tm(X), np.maximum(np.maximum(X, 0).sum(0) + 1, 0).sum(0), rtol=1e-6)


def torch_relu(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x)


def functional_relu(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.relu(x, inplace=False)


@pytest.mark.parametrize(
    ("function", "pattern", "replacement"),
    [
        (lambda x: torch.relu(x).reshape(8), torch_relu, lambda x: torch.relu(x).sum(0)),
        (
            torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Flatten()),
            functional_relu,
            lambda x: torch.relu(x).sum(0),
        ),
    ],
    ids=["no call takes it", "a result of a submodule"],
)
def test_a_replacement_whose_type_does_not_fit_changes_nothing(
    function: Any, pattern: Any, replacement: Any
) -> None:
    tm = traced(function)
    before, expected = [str(each.graph) for _, each in tm.modules()], tm(X)
    with pytest.raises(UsageError, match="TM6054"):
        tmconvert.replace_pattern(tm, pattern, replacement)
    assert [str(each.graph) for _, each in tm.modules()] == before
    np.testing.assert_array_equal(tm(X), expected)


def test_a_failure_in_one_module_takes_back_what_was_done_in_others() -> None:
    class Shifted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shift = torch.nn.Parameter(torch.ones(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x) + self.shift

    tm = traced(torch.nn.Sequential(Shifted(), Shifted()))
    before = [(str(each.graph), sorted(each.tensors)) for _, each in tm.modules()]
    seen = []

    def scaled(x: Any) -> Any:
        seen.append(x)
        if len(seen) == 2:
            raise ValueError("not here")
        return x * torch.full((4,), 2.0)

    with pytest.raises(UsageError, match=r"TM6052.*not here"):
        tmconvert.replace_pattern(tm, torch_relu, scaled)
    assert [(str(each.graph), sorted(each.tensors)) for _, each in tm.modules()] == before
    tm.graph.lint()


@pytest.mark.slow
def test_the_time_is_linear() -> None:
    def seconds(count: int) -> float:
        graph = InternalGraph("line")
        node = graph.add_input(TensorNode("x", (2,), np.dtype(np.float32)))
        for number in range(count):
            result = TensorNode(f"n{number}", (2,), np.dtype(np.float32))
            node = graph.insert(
                CallFunction("aten::relu" if number % 2 else "aten::neg", (node,), result=result)
            ).output
        graph.set_result(node)
        pattern = pattern_of(lambda g, x: relu(g, g.call("aten::neg", x)), catalogue())
        started = time.perf_counter()
        assert len(find_matches(graph, pattern)) == count // 2
        return time.perf_counter() - started

    small = min(seconds(2000) for _ in range(3))
    assert min(seconds(16000) for _ in range(3)) < 30 * small


def test_what_a_replacement_inserts_is_matched_again() -> None:
    tm = traced(lambda x: torch.relu(x))
    assert len(tmconvert.replace_pattern(tm, lambda x: torch.relu(x), lambda x: torch.tanh(x * 2))) == 1
    assert len(tmconvert.replace_pattern(tm, lambda x, k: torch.tanh(x * k), lambda x, k: x - k)) == 1
    np.testing.assert_array_equal(tm(X), X - 2)


def test_a_replacement_may_mix_words() -> None:
    tm = tmconvert.load(model("resnet18"))
    matches = tmconvert.replace_pattern(
        tm, lambda g, x: g.call("megengine.functional.nn.relu", x), lambda g, x: g.call("aten::silu", x) * 2.0
    )
    assert len(matches) == 17
    assert len({expr.id for expr in tm.graph.exprs()}) == len(list(tm.graph.exprs()))
    assert tm(np.ones((1, 3, 64, 64), np.float32)).shape == (1, 10)


def test_dynamic_sizes_and_watch_points(tmp_path: Path) -> None:
    linear = torch.nn.Linear(4, 3)
    tm = tmconvert.trace(
        lambda x: torch.relu(linear(x)), torch.rand(2, 4), dynamic_shapes={"x": {0: "batch"}}
    )
    tm.set_watch_points(tm.graph.outputs[0])
    assert len(tmconvert.replace_pattern(tm, relu, relu6)) == 1
    assert tm.watch_points == []  # its node is no longer there
    assert tm(np.ones((5, 4), np.float32)).shape == (5, 3)
    report = tmconvert.to_onnx(tm, tmp_path / "o.onnx", dynamic_shapes={"x": {0: "batch"}})
    assert report.verification is not None and list(report.inputs[0]["shape"]) == ["batch", 4]


def test_a_filter_that_fails_is_named() -> None:
    tm = traced(lambda x: torch.relu(x))
    with pytest.raises(UsageError, match=r"TM6052.*match filter failed: ZeroDivisionError") as caught:
        tmconvert.replace_pattern(tm, relu, relu6, match_filters=[lambda *match: 1 / 0 > 0])
    assert caught.value.source is not None and caught.value.source.file == __file__


def test_traced_models_and_graphs_are_patterns_and_replacements() -> None:
    pattern = traced(lambda x: torch.relu(x) + 1)
    replacement = traced(lambda x: torch.sigmoid(x) * 2)
    for one, other in ((pattern, replacement), (pattern.graph, replacement.graph)):
        tm = traced(lambda x: (torch.relu(x * 2) + 1).sum(1))
        assert len(tmconvert.replace_pattern(tm, one, other)) == 1
        np.testing.assert_allclose(tm(X), (2 / (1 + np.exp(-2 * X))).sum(1), rtol=1e-5)
