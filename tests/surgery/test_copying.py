"""copy.deepcopy of models: independent, with the same results, sharing and example."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import tmconvert
from tests.ir.modules import Body, module
from tests.models import corpus
from tmconvert.ir import CallMethod, ModuleNode


@pytest.mark.parametrize("name", ["det_fpn_scale_stride", "op_nested_reuse", "qat_small_ema", "op_multi_io"])
def test_a_copy_computes_the_same_and_is_independent(name: str) -> None:
    tm = tmconvert.load(corpus.model(name))
    text = str(tm.graph)
    clone = copy.deepcopy(tm)
    inputs, _ = corpus.golden(name)
    for mine, theirs in zip(_leaves(clone(*inputs)), _leaves(tm(*inputs)), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert str(clone.graph) == text
    assert not clone.is_edited()
    assert {id(each) for _, each in clone.modules()}.isdisjoint(id(each) for _, each in tm.modules())
    assert clone.graph is not None
    owners = {node.owner for node in clone.graph.nodes() if isinstance(node, ModuleNode)}
    assert owners.isdisjoint({each for _, each in tm.modules()})
    last = next(expr for expr in reversed(list(clone.graph)) if isinstance(expr, CallMethod) or expr.outputs)
    clone.graph.rename(last.outputs[0], "renamed")
    assert str(tm.graph) == text
    assert not tm.is_edited()


def test_shared_modules_are_shared_in_the_copy() -> None:
    tm = tmconvert.load(corpus.model("op_nested_reuse"))
    clone = copy.deepcopy(tm)
    assert [path for path, _ in clone.modules()] == [path for path, _ in tm.modules()]


def test_long_graphs_do_not_exhaust_the_stack() -> None:
    top = module("")
    body = Body(top)
    value = body.inputs[0]
    for _ in range(5000):
        value = body.neg(value)
    body.graph.set_result(value)
    assert len(copy.deepcopy(top).graph or ()) == 5000


def _leaves(result: object) -> list[np.ndarray]:
    from tmconvert.ir.tree import leaves

    return [leaf for leaf in leaves(result) if isinstance(leaf, np.ndarray)]
