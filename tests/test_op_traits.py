"""What is known of an op stands in its file, as traits: no other file has a list of names of ops."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.passes.graphs import Net, apply
from tests.source_tree import FILES, ROOT, parsed
from tests.symbolics.ops.harness import reference
from tests.symbolics.ops.samples import SAMPLES
from tmconvert.ir import CallFunction
from tmconvert.passes.fold_scale_bias import FoldScaleBias
from tmconvert.symbolics import registry, traits
from tmconvert.symbolics.layouts import ANY
from tmconvert.symbolics.op import FLOATS, Op, Tensor
from tmconvert.symbolics.registry import catalogue, has_trait, temporary_symbolics, trait_of
from tmconvert.symbolics.results import same_as

NAME = re.compile(r"(aten|tm|torchvision|quantized)::\w+$")
BEGINNING = re.compile(r"(aten|tm|torchvision|quantized)::\w*$")
LITERAL = re.compile(r"[\"'](aten|tm|torchvision|quantized)::")
KINDS = [kind for kind in traits.Trait.__subclasses__() if kind.__module__ == traits.__name__]
# The names that a file looks for, each because it rewrites the attributes of that one op, or by its meaning.
# What a file emits, by ``g.call`` or ``CallFunction``, does not count.
# The conditions of deferred passes: the ops of their patterns, told without importing the pass.
# tests/passes/test_deferred_pass.py compares them with what the passes change.
DEFERRED = {
    "convert/passes/common_pipeline.py": [
        *(f"aten::{name}" for name in ("batch_norm", "erf", "hardsigmoid", "matmul", "mean", "slice")),
        *(f"aten::{name}" for name in ("softmax", "split_with_sizes", "sqrt", "tanh")),
        *("tm::in_steps", "tm::requantize"),
    ],
    "convert/targets/onnx/target.py": ["aten::mean", "aten::reciprocal", "aten::slice"],
    "convert/targets/tflite/target.py": [  # with an operator that a profile may lack
        *(f"aten::{name}" for name in ("gelu", "atan", "atan2", "log_softmax", "elu", "hardswish")),
        *(f"aten::{name}" for name in ("sin", "cos", "round", "cumsum")),
    ],
}
NAMED = {
    "convert/calibration/open_sizes.py": {"aten::reshape": "puts -1 into the attribute shape"},
    "convert/conversion/preprocessed_model.py": {
        f"aten::{name}": "a step that the preprocessing inserts" for name in ("add", "mul")
    },
    "convert/conversion/scaled_images.py": {"aten::conv2d": "the pattern that the images are folded into"},
    "convert/errors/suggestions.py": {"aten::": "users leave this space of names out"},
    "convert/ir/emitter.py": {
        "aten::nonzero": "the search whose count of elements is a size",
        "tm::sizes": "the op that the emitter itself makes of symbolic sizes",
        "aten::reshape": "the intermediate representation does not import the ops",
        "aten::to": "the intermediate representation does not import the ops",
    },
    "convert/ir/symbolic/data_dependent.py": {"aten::slice": "its bounds are clamped to a size known by now"},
    "convert/calibration/int16_tensors.py": {"aten::sqrt": "squares under it need fine integers"},
    "convert/inspection/detect.py": {"torchvision::nms": "the suppression of boxes is that of the op"},
    "convert/ir/parser.py": {"aten::constant": "the notation of a constant, which is not an op"},
    "convert/passes/fold_scale_bias.py": {"aten::sqrt": "x / sqrt(y) becomes x * rsqrt(y)"},
    "convert/passes/image_edges.py": {"aten::permute": "its order of axes is read"},
    "convert/passes/keep_saturation.py": {
        "aten::add": "the range of a sum",
        "aten::upsample_bicubic2d": "whose results exceed the range of its operand",
        "tm::requantize": "whose QParams are the saturation",
    },
    "convert/passes/fuse_attention.py": {
        f"aten::{name}": "a step of the pattern that the pass fuses"
        for name in ("matmul", "where", "softmax", "isnan")
    },
    "convert/passes/fuse_conv_bn.py": {"aten::batch_norm": "the pattern that the pass folds"},
    "convert/passes/fuse_gelu.py": {
        f"aten::{name}": "a step of the pattern that the pass fuses" for name in ("erf", "tanh")
    },
    "convert/passes/fuse_hardswish.py": {"aten::hardsigmoid": "a step of the pattern that the pass fuses"},
    "convert/passes/patterns/normalizations.py": {
        f"aten::{name}": "a step of the pattern that passes fuse" for name in ("pow", "square")
    },
    "convert/passes/patterns/polynomials.py": {
        f"aten::{name}": "a step of the pattern that passes fuse" for name in ("pow", "square")
    },
    "convert/passes/fuse_layer_norm.py": {
        f"aten::{name}": "a step of the pattern that the pass fuses" for name in ("mean", "sqrt", "rsqrt")
    },
    "convert/passes/fuse_rsqrt.py": {
        f"aten::{name}": "a step of the pattern that the pass fuses" for name in ("sqrt", "reciprocal")
    },
    "convert/passes/fuse_select.py": {
        f"aten::{name}": "a step of the pattern that the pass fuses"
        for name in ("split_with_sizes", "slice", "reshape")
    },
    "convert/passes/patterns/matching.py": {"tm::view": "passes compose views by their attributes"},
    "convert/passes/propagate_qparams.py": {"tm::requantize": "the pattern that the pass folds"},
    "convert/passes/select_decomposition.py": {"tm::in_steps": "the pattern that the pass resolves"},
    "convert/targets/onnx/passes/combine_slices.py": {"aten::slice": "slices of an axis become one split"},
    "convert/targets/onnx/passes/divide_by_roots.py": {
        "aten::sqrt": "x * (1 / sqrt(y)) becomes x / sqrt(y)",
        "aten::reciprocal": "x * (1 / sqrt(y)) becomes x / sqrt(y)",
    },
    "convert/targets/onnx/passes/drop_index_wraps.py": {"tm::wrap_index": "the op that the pass removes"},
    "convert/targets/onnx/passes/fuse_rms_norm.py": {
        f"aten::{name}": "a step of the pattern that the pass fuses" for name in ("mean", "sqrt")
    },
    "convert/targets/tflite/passes/assign_layout.py": {"tm::relayout": "what the pass itself has inserted"},
    "convert/targets/tflite/passes/fold_transposes.py": {"aten::matmul": "becomes tm::matmul_nt"},
    "convert/targets/tflite/passes/group_statistics.py": {
        "aten::group_norm": "the pattern that the pass expands"
    },
    "convert/targets/tflite/passes/sink_reshapes.py": {"aten::mean": "what pooling of whole planes becomes"},
    "convert/verification/inputs.py": {"aten::eq": "indices that are compared with all their values"},
}
# the words of frameworks: of sources, and of PyTorch for ops that become its code; a table of rules by op
VOCABULARIES = {"frontends", "torch_code", "streaming"}
OUTSIDE = [
    path
    for path in FILES
    if path.relative_to(ROOT).parts[0] in ("convert", "cli") and not VOCABULARIES & {*path.parts}
]


def names(tree: ast.AST) -> Iterator[ast.Constant]:
    """Names of ops, and the beginnings of names that are made of parts, as ``f"aten::{name}"``."""
    beginnings = {id(node.values[0]) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        if (BEGINNING if id(node) in beginnings else NAME).match(node.value):
            yield node


def emitted(tree: ast.AST) -> set[int]:
    """Names in the first argument of ``g.call(...)`` and ``CallFunction(...)``."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    return {
        id(name)
        for call in calls
        if (isinstance(call.func, ast.Attribute) and call.func.attr == "call")
        or (isinstance(call.func, ast.Name) and call.func.id == "CallFunction")
        for name in names(call.args[0])
    }


def looked_for(tree: ast.AST) -> set[str]:
    own = emitted(tree)
    return {str(name.value) for name in names(tree) if id(name) not in own}


def collections(tree: ast.AST) -> list[str]:
    """Literal collections with names of two ops or more; a call's arguments are not one."""
    own = emitted(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            items: list[ast.expr] = [key for key in node.keys if key is not None]
        elif isinstance(node, (ast.List, ast.Set, ast.Tuple)):
            items = node.elts
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            found += [
                f"line {name.lineno}: {name.value}..." for name in names(node.elt) if id(name) not in own
            ]
            continue
        else:
            continue
        inner = {str(name.value) for item in items for name in names(item) if id(name) not in own}
        if len(inner) > 1:
            found.append(f"line {node.lineno}: {', '.join(sorted(inner))}")
    return found


@cache
def with_names() -> list[Path]:
    """Files with a literal that may be the name of an op; only these are walked."""
    return [path for path in OUTSIDE if LITERAL.search(path.read_text(encoding="utf-8"))]


def test_no_list_of_names_of_ops() -> None:
    found = {str(path.relative_to(ROOT)): collections(parsed(path)) for path in with_names()}
    assert {path for path, each in found.items() if each} == set(DEFERRED), (
        "ask for a trait of symbolics/traits.py"
    )


def test_names_of_ops_are_those_with_a_reason() -> None:
    found = {str(path.relative_to(ROOT)): looked_for(parsed(path)) for path in with_names()}
    assert {path: each for path, each in found.items() if each} == {
        path: set(reasons) for path, reasons in {**NAMED, **DEFERRED}.items()
    }


@pytest.mark.parametrize(
    "source",
    [
        'POOLS = ("aten::max_pool2d", "aten::avg_pool2d")',
        'AXES = {"aten::conv2d": 0, **dict.fromkeys(("aten::conv1d", "aten::linear"), 0)}',
        'is_pool = expr.function in {"aten::max_pool2d", "aten::avg_pool2d"}',
        'POOLS = frozenset(f"aten::{name}" for name in ("max_pool2d", "avg_pool2d"))',
    ],
)
def test_a_list_is_found(source: str) -> None:
    assert collections(ast.parse(source)) and looked_for(ast.parse(source))


def test_what_is_emitted_does_not_count() -> None:
    tree = ast.parse('g.call("aten::mul" if is_factor else "aten::add", x, g.call("aten::neg", y))')
    assert not looked_for(tree) and not collections(tree)


@pytest.mark.parametrize("kind", KINDS)
def test_a_trait_is_documented_declared_and_asked_for(kind: type[traits.Trait]) -> None:
    assert kind.__doc__ and kind.__doc__.partition("\n")[0].endswith(".")
    assert any(op.has(kind) for op in catalogue().values())
    users = [path for path in OUTSIDE if re.search(rf"\b{kind.__name__}\b", path.read_text(encoding="utf-8"))]
    assert users, "no file asks for it"


def test_an_op_has_one_trait_of_a_kind() -> None:
    for op in catalogue().values():
        assert len({type(trait) for trait in op.traits}) == len(op.traits), op.name
        assert {type(trait) for trait in op.traits} <= {*KINDS}, op.name


def test_a_call_has_the_traits_of_its_op() -> None:
    net = Net()
    x = net.input(1, 4, 6, 6)
    call = net("aten::conv2d", x, net.constant(2, 4, 1, 1)).expr
    weights = trait_of(call, traits.Weights)
    assert weights is not None and weights.spatial == 2 and weights.channel_axis(4) == 1
    assert has_trait(call, traits.Pool, traits.Weights) and not has_trait(call, traits.Pool)
    assert trait_of(x.expr, traits.Weights) is None and trait_of(None, traits.Weights) is None


def is_folded(*declared: traits.Trait) -> bool:
    """Whether a factor after a new op goes into the weights before it."""
    double = Op("test::double", args=[Tensor("x", FLOATS)], result=same_as("x"), layout=ANY, traits=declared)
    double.reference(lambda x: x * 2)
    with temporary_symbolics():
        registry._registry.set_registered({double.name: double})
        net = Net()
        y = net("test::double", net("aten::linear", net.input(2, 4), net.constant(3, 4)))
        graph = net.give(net("aten::mul", y, net.emitter.constant(np.full((1, 3), 5, np.float32))))
        apply(FoldScaleBias(catalogue()), graph)
        return [expr.function for expr in graph if isinstance(expr, CallFunction)][-1] == double.name


def test_a_new_op_takes_part_in_passes_by_its_traits() -> None:
    assert is_folded(traits.Homogeneous())
    assert not is_folded()


@pytest.mark.parametrize("name", [name for name, op in catalogue().items() if op.has(traits.Bounded)])
def test_bounds_are_those_of_the_reference(name: str) -> None:
    bounded, sample = catalogue()[name].trait(traits.Bounded), SAMPLES[name][0]
    assert bounded is not None
    x = np.linspace(-30, 30, 60001).reshape(1, -1)
    with np.errstate(all="ignore"):
        found = reference(name, [x], {**sample.attributes, **({"dim": 0} if "softmax" in name else {})})
    assert np.nanmin(found) >= bounded.low and np.nanmax(found) <= bounded.high
    if math.isfinite(bounded.low) and "softmax" not in name:
        assert np.nanmin(found) == pytest.approx(bounded.low, abs=0.2 if name.endswith("rsqrt") else 0.04)
