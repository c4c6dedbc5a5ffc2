"""What ``docs/container.md`` says is enough to read a container."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.container.independent_reader import Container
from tmconvert.ir import TracedModule
from tmconvert.ir.expr import CallFunction, CallMethod

DATA = Path(__file__).parents[1] / "data"
NAMES = [
    *("resnet18", "op_multi_io", "op_subtensor", "op_setitem_shift", "op_shape", "op_nested_reuse"),
    *("custom_user_function", "qat_small_asym_quint8", "v1_6_0_ops", "vit_tiny", "unet"),
]


@pytest.mark.parametrize("name", NAMES)
def test_reads_what_we_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "saved.tm"
    tmconvert.load(DATA / f"{name}.tm").save(path)
    model, other = tmconvert.load(path), Container(path)
    assert other.printed(other.modules[-1]) == str(model.graph)
    for _, module in model.modules():
        (twin,) = [each for each in other.modules if each["name"] == module.name and _fits(each, module)][:1]
        assert list(twin["children"]) == list(module.children)
        assert [other.modules[place]["class"] for place in twin["children"].values()] == [
            child.class_name for child in module.children.values()
        ]
        for key, tensor in module.tensors.items():
            found = other.tensors[twin["tensors"][key]]
            assert found.dtype == tensor.dtype
            np.testing.assert_array_equal(found, tensor)
        for key, value in module.attributes.items():
            if isinstance(value, (bool, int, float, str, tuple, type(None))):
                found = other.value(twin["attributes"][key])
                assert (type(found), found) == (type(value), value)


def _fits(described: dict[str, object], module: TracedModule) -> bool:
    return described["class"] == module.class_name


def test_reads_the_arguments_of_calls(tmp_path: Path) -> None:
    path = tmp_path / "saved.tm"
    tmconvert.load(DATA / "op_subtensor.tm").save(path)
    graph, other = tmconvert.load(path).graph, Container(path)
    assert graph is not None
    calls = [expr for expr in graph if isinstance(expr, (CallFunction, CallMethod))]
    described = [expr for expr in other.modules[-1]["graphs"][0]["exprs"] if "args" in expr]
    for call, twin in zip(calls, described, strict=True):
        for mine, theirs in zip(call.args, twin["args"], strict=True):
            if isinstance(mine, (slice, int, float, type(Ellipsis), type(None))):
                assert repr(other.value(theirs)) == repr(mine)
