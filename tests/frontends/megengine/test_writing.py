"""Models written for MegEngine: what our own reader makes of them, and which are refused."""

from __future__ import annotations

import pickletools
from pathlib import Path

import numpy as np
import pytest
import torch

import tmconvert
from tests.container.same import assert_same
from tests.container.test_round_trip import MODELS
from tmconvert.errors import UsageError, WriteError
from tmconvert.frontends.megengine.writing.call_structures import formal_arguments
from tmconvert.ir import CallFunction, InternalGraph, ModuleNode, TensorNode, TracedModule
from tmconvert.ir.call_structure import call_structure
from tmconvert.ir.tree import leaves

DATA = Path(__file__).parents[2] / "data"
OBJECTS = "user_objects"  # an argument is an object of the user's class: nothing but its name is known


WRITTEN = [path for path in MODELS if path.stem != OBJECTS]


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.stem)
def test_models_come_back_as_they_were(path: Path, tmp_path: Path) -> None:
    original = tmconvert.load(path)
    first, second, container = (tmp_path / f"{name}.tm" for name in ("first", "second", "container"))
    original.save(first, format="megengine")
    again = tmconvert.load(first)
    assert_same(original, again)
    again.save(second, format="megengine")
    assert first.read_bytes() == second.read_bytes()
    original.save(container)
    tmconvert.load(container).save(second, format="megengine")
    assert first.read_bytes() == second.read_bytes()


def test_parameters_stay_parameters(tmp_path: Path) -> None:
    original = tmconvert.load(DATA / "op_s_conv_bn_relu.tm")
    original.save(tmp_path / "saved.tm", format="megengine")
    again = tmconvert.load(tmp_path / "saved.tm")
    for (_, mine), (_, theirs) in zip(original.modules(), again.modules(), strict=True):
        assert mine.buffers == theirs.buffers


def test_edited_models_are_written(tmp_path: Path) -> None:
    model = tmconvert.load(DATA / "op_s_conv_bn_relu.tm")
    (convolution,) = (module for _, module in model.modules() if module.class_name.endswith("Conv2d"))
    convolution.tensors["weight"] = convolution.tensors["weight"] * np.float32(2)
    graph = model.graph
    assert graph is not None
    (result,) = graph.outputs
    assert isinstance(result, TensorNode)
    doubled = TensorNode("doubled", result.shape, result.dtype)
    function = "megengine.functional.elemwise.exp"
    graph.insert(CallFunction(function, (result,), label="elemwise.exp", result=doubled, id=8))
    graph.set_result({"b": doubled, "a": result})
    model.save(tmp_path / "saved.tm", format="megengine")
    again = tmconvert.load(tmp_path / "saved.tm")
    assert str(again.graph) == str(graph)
    x = np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)
    for ours, theirs in zip(leaves(model(x)), leaves(again(x)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_no_class_of_python_but_those_of_megengine_is_named(tmp_path: Path) -> None:
    tmconvert.load(DATA / "qat_user_module.tm").save(tmp_path / "saved.tm", format="megengine")
    steps = pickletools.genops((tmp_path / "saved.tm").read_bytes())
    texts = {argument for _, argument, _ in steps if isinstance(argument, str)}
    assert "megengine.traced_module.traced_module" in texts
    assert not any("tmconvert" in text or "stand_ins" in text for text in texts)


def test_what_is_not_of_megengine_is_refused(tmp_path: Path) -> None:
    traced = tmconvert.trace(torch.nn.ReLU(), torch.ones(2))
    assert refusal(traced, tmp_path) == "the model has no calls of MegEngine"
    optimized = tmconvert.optimize(tmconvert.load(DATA / "op_s_conv_bn_relu.tm"))
    with pytest.raises(WriteError, match="no function of MegEngine means aten::conv2d"):
        optimized.save(tmp_path / "saved.tm", format="megengine")
    objects = tmconvert.load(DATA / f"made/{OBJECTS}.tm")
    assert "Mode('scale')" in refusal(objects, tmp_path)
    model = tmconvert.load(DATA / "op_s_conv_bn_relu.tm")
    (convolution,) = (module for _, module in model.modules() if module.class_name.endswith("Conv2d"))
    convolution.tensors["weight"] = convolution.tensors["weight"].astype(np.float64)
    assert refusal(model, tmp_path) == "MegEngine has no tensors of float64, which c.weight is"
    assert not list(tmp_path.iterdir())


def test_calls_of_ours_are_refused_by_name(tmp_path: Path) -> None:
    model = tmconvert.load(DATA / "op_s_conv_bn_relu.tm")
    graph = model.graph
    assert graph is not None
    (result,) = graph.outputs
    assert isinstance(result, TensorNode)
    made = TensorNode("made", result.shape, result.dtype)
    graph.insert(CallFunction("aten::cummax", (result,), {"dim": 1}, result=made))
    graph.set_result(made)
    assert "aten::cummax" in refusal(model, tmp_path)


def refusal(model: TracedModule, folder: Path) -> str:
    with pytest.raises(WriteError) as caught:
        model.save(folder / "saved.tm", format="megengine")
    assert caught.value.code == "TM5005"
    return caught.value.message


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"format must be one of megengine, tm, got 'onnx'"):
        tmconvert.load(DATA / "op_s_elemwise.tm").save(tmp_path / "saved.tm", format="onnx")


ARGUMENTS = (
    ((1.5, -2, True, None, "a,)'\"", b"x"), {}),
    (([..., float("inf"), slice(None, 2, None)],), {"flag": False, "mode": {"b": (1,), "a": []}}),
)


@pytest.mark.parametrize(("args", "kwargs"), ARGUMENTS)
def test_constants_are_read_from_the_structure_of_a_call(args: tuple, kwargs: dict) -> None:
    graph = InternalGraph()
    module, first, second = ModuleNode("self"), TensorNode("first"), TensorNode("second")
    for node in (module, first, second):
        graph.add_input(node)
    args, kwargs = (module, [first], *args), {**kwargs, "last": second}
    assert formal_arguments(call_structure(args, kwargs), graph) == (args, kwargs)


def test_added_inputs_are_positional() -> None:
    graph = InternalGraph()
    nodes = [ModuleNode("self"), TensorNode("x"), TensorNode("y")]
    for node in nodes:
        graph.add_input(node)
    assert formal_arguments("((M,T,int 3,),{})", graph) == ((nodes[0], nodes[1], 3, nodes[2]), {})
    graph.remove_input(nodes[2])
    assert formal_arguments("((M,T,T,),{})", graph) == ((nodes[0], nodes[1]), {})


def test_calls_of_ours_become_functions_of_megengine(tmp_path: Path) -> None:
    model = tmconvert.load(DATA / "op_s_conv_bn_relu.tm")
    graph = model.graph
    assert graph is not None
    (result,) = graph.outputs
    assert isinstance(result, TensorNode)
    x = np.random.default_rng(0).standard_normal((1, 3, 32, 32)).astype(np.float32)
    expected = np.tanh(model(x)).mean((2, 3))
    calls = (
        ("aten::tanh", (), {}, result.shape),
        ("aten::permute", (), {"dims": [0, 2, 3, 1]}, (1, 16, 16, 8)),
        ("aten::mean", (), {"dim": [1, 2], "keepdim": False}, (1, 8)),
    )
    for number, (function, others, attributes, shape) in enumerate(calls, 8):
        made = TensorNode(f"made{number}", shape, result.dtype)
        graph.insert(CallFunction(function, (result, *others), attributes, result=made, id=number))
        result = made
    graph.set_result(result)
    model.save(tmp_path / "saved.tm", format="megengine")
    again = tmconvert.load(tmp_path / "saved.tm")
    assert "math.mean(made9, (1, 2), False, )" in str(again.graph)
    np.testing.assert_allclose(again(x), expected, rtol=1e-5)
