"""The catalogue is complete, and each of its symbolics runs at every version it is valid for."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import re
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.opsets import skip_for_old_runtime
from tests.symbolics.ops.harness import (
    NEWEST_OPSET,
    assert_decomposition_matches,
    assert_target_matches,
    assert_types_match,
    op_graph,
    prepared,
    reference,
    refusal,
    versions_of,
)
from tests.symbolics.ops.samples import SAMPLES
from tests.symbolics.ops.trivial import accepted, tolerance_of
from tmconvert.conversion.support import op_support
from tmconvert.errors import InternalError
from tmconvert.ir import CallFunction
from tmconvert.ir.emitter import SIZES
from tmconvert.passes.decompose import Decompose, Undecomposed
from tmconvert.symbolics.op import Op, Tensor
from tmconvert.symbolics.registry import Catalogue, catalogue
from tmconvert.symbolics.results import same_as
from tmconvert.symbolics.target_names import TARGETS, words_of
from tmconvert.targets.onnx.writer import check_onnx, newest_opset, write_onnx
from tmconvert.targets.options import OLDEST_OPSET
from tmconvert.targets.registry import lower

OPS = list(catalogue())

# (op, target) of everything that the table of ops promises
RULES = [
    (name, target)
    for name in OPS
    for target in TARGETS
    if op_support(catalogue()[name], target, NEWEST_OPSET).versions
]

# what all results of an op equal, by intent
TRIVIAL = {
    "tm::relayout": ["x"],  # in another layout
    "tm::requantize": ["x"],  # with other quantization parameters
    "tm::in_steps": ["whole", "steps"],  # which are equal, and a target chooses
    "tm::random_uniform": ["zeros", "ones"],  # the reference has only the shape
    "tm::random_normal": ["zeros", "ones"],
}
NAME = re.compile(rf"^\w+?_(?P<target>{'|'.join(TARGETS)})\d*$")


def an_op(name: str = "aten::twice") -> Op:
    return Op(name, args=[Tensor("x")], result=same_as("x"))


def test_every_op_has_samples() -> None:
    assert sorted(set(OPS) - set(SAMPLES)) == [], "add them to tests/symbolics/ops/samples/"
    assert sorted(set(SAMPLES) - set(OPS)) == []


def test_every_op_has_a_rule_or_a_reason_for_every_target() -> None:
    assert catalogue().incomplete() == []


def test_incomplete_names_what_is_missing() -> None:
    op = an_op()
    op.onnx(since=7)(lambda g, x: x)
    op.unsupported("caffe", "it has no such layer")
    assert Catalogue([op]).incomplete() == [("aten::twice", "tflite")]


def test_every_target_has_a_rule_or_a_reason_and_not_both() -> None:
    both = [
        (op.name, target)
        for op in catalogue().values()
        for target in TARGETS
        if op.symbolics.get(target) and target in op.reasons
    ]
    assert both == []
    assert [op.name for op in catalogue().values() if not {*op.symbolics, *op.reasons} <= {*TARGETS}] == []


def test_symbolics_take_the_arguments_of_the_signature_by_name() -> None:
    wrong = []
    for name, op in catalogue().items():
        names = [argument.name for argument in op.args]
        assert op.kernel is not None and list(inspect.signature(op.kernel).parameters) == names, name
        functions = [function for known in op.symbolics.values() for function in known.values()]
        for function in [*functions, *filter(None, [op.decomposition])]:
            parameters = inspect.signature(function).parameters.values()
            if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
                continue  # shared by ops of one table
            required = [each.name for each in parameters if each.default is inspect.Parameter.empty]
            if required != ["g", *names]:
                wrong.append(f"{name}: {function.__name__} takes {required}")
    assert wrong == []


def test_names_of_symbolics_contain_the_target() -> None:
    wrong = []
    for name, op in catalogue().items():
        for target, known in op.symbolics.items():
            for function in (each.__name__ for each in known.values()):
                parts = NAME.match(function)
                if function != "<lambda>" and not (parts and parts["target"] == target):
                    wrong.append(f"{name}: {function} for {target}")
    assert wrong == []


@pytest.mark.one_in(1)
@pytest.mark.parametrize(("name", "target"), RULES, ids=str)
def test_rule(name: str, target: str, is_default: bool) -> None:
    """Each form of the op computes the right result at every version where its rules change.

    Where the standard changed one of its operators and no rule, one form is enough. The default of the suite
    runs one form at the newest version.
    """
    if target == "onnx":
        skip_for_old_runtime(name)
    rules, standard = versions_of(target, name), []
    if is_default:
        rules, standard = [], [0 if target == "caffe" else rules[-1]]
    elif target == "onnx":
        rules, standard = boundary_opsets(name)
    for version in [*rules, *standard]:
        samples = [sample for sample in SAMPLES[name] if sample.suits(target, version)]
        for sample in samples if version in rules else samples[:1]:
            expected = reference(name, sample.args, sample.attributes)
            assert_target_matches(
                target, version, name, sample.args, sample.attributes, expected, tolerance_of(name)
            )


def boundary_opsets(name: str) -> tuple[list[int], list[int]]:
    """The opsets where rules of the op, or of what it decomposes to, change, and where operators do."""
    rules = set(versions_of("onnx", name))
    first, standard = min(rules), set()
    for version in sorted(rules):
        for sample in SAMPLES[name]:
            if not sample.suits("onnx", version):
                continue
            graph = prepared("onnx", version, name, sample.args, sample.attributes)
            for call in graph:
                if isinstance(call, CallFunction):
                    rules |= set(catalogue()[call.function].symbolics.get("onnx", {}))
            for operator in lower(graph, catalogue(), "onnx", version).graph.operators:
                standard |= schema_versions()[operator.type]
    within = range(first, NEWEST_OPSET + 1)
    return sorted(rules & {*within}), sorted((standard - rules) & {*within})


@pytest.mark.parametrize("name", [name for name, target in RULES if target == "onnx"])
def test_the_newest_opset_is_written(name: str, tmp_path: Path) -> None:
    """Of the installed onnx, whose checker judges it: the runtime may be older."""
    for i, sample in enumerate(SAMPLES[name]):
        if sample.suits("onnx", newest_opset()):
            graph = prepared("onnx", newest_opset(), name, sample.args, sample.attributes)
            lowering = lower(graph, catalogue(), "onnx", newest_opset())
            assert not lowering.unsupported
            path = tmp_path / f"{i}.onnx"
            with path.open("wb") as file:
                write_onnx(lowering.graph, file)
            check_onnx(path)


@functools.cache
def schema_versions() -> dict[str, set[int]]:
    """The opsets in which the standard changed each operator."""
    versions: dict[str, set[int]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            versions.setdefault(schema.name, set()).add(schema.since_version)
    return versions


LATE = [
    (name, first)
    for name in OPS
    if (first := op_support(catalogue()[name], "onnx", NEWEST_OPSET).since or 0) > OLDEST_OPSET
]


@pytest.mark.parametrize(("name", "first"), LATE)
def test_older_opsets_are_refused_with_the_first_that_has_the_op(name: str, first: int) -> None:
    op = catalogue()[name]
    for version in {OLDEST_OPSET, first - 1}:
        if op.decomposition is not None and "onnx" not in op.reasons:
            assert_decomposition_needs(first, name, version)
        for sample in SAMPLES[name]:
            graph = prepared("onnx", version, name, sample.args, sample.attributes)
            (refused,) = lower(graph, catalogue(), "onnx", version).unsupported
            assert refused.reason == f"no ONNX symbolic for {name} at opset {version}"
            assert refused.help == f"use --opset {first} or later"


def assert_decomposition_needs(first: int, name: str, version: int) -> None:
    """Fails if the decomposition would do at ``version``, though the op says that it does not."""
    sample = next(sample for sample in SAMPLES[name] if sample.suits("onnx", first))
    op = catalogue()[name]
    freed = dataclasses.replace(op, decomposed_from={})
    table = {**catalogue(), name: freed}
    graph = op_graph(name, sample.args, sample.attributes)
    Decompose(table, "onnx", version).run(graph)
    assert lower(graph, table, "onnx", version).unsupported, (
        f"{name} decomposes at opset {version}: lower the number in @decompose(onnx=...), or leave it out"
    )


@pytest.mark.parametrize("name", OPS)
def test_types_and_decomposition(name: str) -> None:
    trivial = {each for each, is_equal in accepted(name, SAMPLES[name]).items() if is_equal}
    assert trivial == {*TRIVIAL.get(name, ())}, f"add a sample whose result is not {' or '.join(trivial)}"
    for sample in SAMPLES[name]:
        expected = reference(name, sample.args, sample.attributes)
        assert_types_match(name, sample.args, sample.attributes, expected)
        assert_decomposition_matches(name, sample.args, sample.attributes, expected, tolerance_of(name))


@pytest.mark.parametrize(
    ("name", "target"),
    # without symbolic shapes, which ONNX alone has, sizes fold to constants
    [(name, target) for name in OPS if name != SIZES for target in catalogue()[name].reasons],
    ids=lambda value: value,
)
def test_reasons_are_reported(name: str, target: str) -> None:
    sample = SAMPLES[name][0]
    reason = catalogue()[name].reasons[target]
    refused = refusal(target, name, sample.args, sample.attributes)
    assert refused == f"{words_of(target).title} cannot express {name}: {reason}"


# Caffe takes some forms of the samples for other targets: its rules are in tests/targets/caffe.
@pytest.mark.parametrize(("name", "target"), [rule for rule in RULES if rule[1] != "caffe"], ids=str)
def test_every_version_runs_a_sample(name: str, target: str) -> None:
    """What the table of ops says of a version is said of at least one form of the op."""
    for version in versions_of(target, name):
        assert any(sample.suits(target, version) for sample in SAMPLES[name]), (
            f"no sample of {name} suits {target} {version}: add one, or say @decompose({target}=...) "
            "or since=... for the first version that has the op"
        )


def test_lookup_takes_the_largest_since_not_above_the_version() -> None:
    op = an_op()

    def twice_onnx7(g: Any, x: Any) -> Any: ...
    def twice_onnx11(g: Any, x: Any) -> Any: ...

    op.onnx(since=7)(twice_onnx7)
    op.onnx(since=11)(twice_onnx11)
    found = {version: op.lookup("onnx", version) for version in (6, 7, 10, 11, 26)}
    assert found == {6: None, 7: twice_onnx7, 10: twice_onnx7, 11: twice_onnx11, 26: twice_onnx11}
    assert op.lookup("caffe", 0) is None
    assert op.lowest_version("onnx") == 7


def test_a_second_symbolic_of_one_version_names_both() -> None:
    op = an_op()

    def twice_onnx7(g: Any, x: Any) -> Any: ...
    def also_onnx7(g: Any, x: Any) -> Any: ...

    op.onnx(since=7)(twice_onnx7)
    with pytest.raises(InternalError) as caught:
        op.onnx(since=7)(also_onnx7)
    assert str(caught.value) == (
        "error[TM3005]: aten::twice has two symbolics for onnx 7: twice_onnx7 and also_onnx7"
    )


def test_a_second_op_of_one_name_is_refused() -> None:
    with pytest.raises(InternalError) as caught:
        Catalogue([an_op(), an_op()])
    assert str(caught.value) == "error[TM3005]: aten::twice is registered twice"


def test_the_catalogue_is_frozen() -> None:
    with pytest.raises(TypeError):
        catalogue()["aten::twice"] = an_op()  # type: ignore[index]


def test_decompositions_end_where_a_target_has_no_symbolic() -> None:
    """A decomposition into the same calls of the same op would be decomposed for ever."""
    for name, op in catalogue().items():
        if not op.is_decomposed("none", 1) or name not in SAMPLES:
            continue
        graph = op_graph(name, SAMPLES[name][0].args, SAMPLES[name][0].attributes)
        for _ in range(4):
            calls = [call for call in graph if isinstance(call, CallFunction) and call.function == name]
            with contextlib.suppress(Undecomposed):
                for call in calls:
                    Decompose(catalogue(), "none", 1)._replace(graph, call)
                continue
            break
        else:
            assert not calls, f"declare needs_itself: {name}"
