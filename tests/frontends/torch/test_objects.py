"""Tensors in objects: refused by the name of the class, or opened where the class is known."""

from __future__ import annotations

import functools
import types
import weakref
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils import _pytree

import tmconvert
from tmconvert.errors import UnsupportedError
from tmconvert.ir.tree import leaves


class State:
    def __init__(self, value: Any) -> None:
        self.value = value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


X = torch.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "made",
    [
        State,
        Slotted,
        lambda x: State({"a": [State(x)]}),
        lambda x: {x},
        lambda x: types.SimpleNamespace(value=x),
        lambda x: torch.distributions.Normal(x, 1.0, validate_args=False),
        lambda x: (each for each in [x]),
        lambda x: {"a": [State(x)]},
    ],
)
def test_an_object_with_tensors_is_refused_as_output(made: Any):
    with pytest.raises(UnsupportedError, match=r"returns .* of the class .*") as caught:
        tmconvert.trace(lambda x: (x + 1, made(x * 2)), X)
    assert caught.value.code == "TM2015"


@pytest.mark.parametrize("made", [State, Slotted, lambda x: [State((x,))]])
def test_an_object_with_tensors_is_refused_as_input(made: Any):
    with pytest.raises(UnsupportedError, match=r"takes tensors in an object of the class .*(State|Slotted)"):
        tmconvert.trace(lambda x, state: x + 1, X, made(X))


class Scaled:
    scale = X


class Inherits(Scaled):
    pass


def takes(x: torch.Tensor, scale: torch.Tensor = X) -> torch.Tensor:
    return x * scale


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda x: lambda: x, "<lambda>"),
        (lambda x: functools.partial(torch.add, x), "functools.partial of "),
        (lambda x: functools.partial(torch.add, other=[x]), "functools.partial of "),
        (lambda x: State(x).__init__, "State.__init__"),
        (lambda x: takes, "test_objects.takes"),
        (lambda x: x.add, "add"),
    ],
)
def test_a_function_with_tensors_is_refused_as_input(made: Any, name: str):
    with pytest.raises(UnsupportedError, match=r"the model takes a function that holds tensors") as caught:
        tmconvert.trace(lambda x, function: x + 1, X, made(X))
    assert caught.value.code == "TM2015"
    assert name in caught.value.message
    assert caught.value.notes == (("help", "pass the tensors as arguments of their own"),)


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (weakref.ref, "weakref.ReferenceType"),
        (lambda x: State(weakref.ref(x)), "test_objects.State"),
        (lambda x: State(lambda: x), "test_objects.State"),
        (lambda x: Scaled(), "test_objects.Scaled"),
        (lambda x: Inherits(), "test_objects.Inherits"),
        (lambda x: Scaled, "test_objects.Scaled"),
        (lambda x: {x: 1}, "builtins.dict"),
        (lambda x: State({x: 1}.keys()), "test_objects.State"),
        (lambda x: State(np.array([State(x), None], object)), "test_objects.State"),
    ],
)
@pytest.mark.parametrize("what", ["takes", "returns"])
def test_tensors_that_an_object_holds_otherwise_are_refused(made: Any, name: str, what: str):
    with pytest.raises(UnsupportedError, match=rf"{what} tensors in an object of .*{name}") as caught:
        if what == "takes":
            tmconvert.trace(lambda x, held: x + 1, X, made(X))
        else:
            tmconvert.trace(lambda x: (x, made(x)), X)
    assert caught.value.code == "TM2015"


def test_functions_and_classes_without_tensors_are_settings():
    layer = torch.nn.Linear(3, 3)
    for function in (
        torch.relu,
        functools.partial(torch.mul, other=2.0),
        lambda x: x + 1,
        layer,
        layer.forward,
    ):
        traced = tmconvert.trace(lambda x, function: function(x), X, function)
        with torch.no_grad():
            np.testing.assert_allclose(traced(X.numpy()), function(X), rtol=1e-6)
    tmconvert.trace(lambda x, cls: x + 1, X, State)


def test_objects_without_tensors_and_modules_are_settings():
    layer = torch.nn.Linear(3, 4)
    torch.nn.init.constant_(layer.weight, 0.5)  # so that no sum is near 0
    traced = tmconvert.trace(lambda x, state, layer: layer(x) * state.value, X, State(2.0), layer)
    np.testing.assert_allclose(traced(X.numpy()), layer(X).detach().numpy() * 2, rtol=1e-6)


def test_registered_classes_are_containers():
    class Registered(State):
        pass

    _pytree.register_pytree_node(
        Registered, lambda each: ([each.value], None), lambda values, _: Registered(*values)
    )
    try:
        traced = tmconvert.trace(lambda state: Registered(state.value * 2), Registered(X))
    finally:
        _pytree.SUPPORTED_NODES.pop(Registered)
    assert len(traced.example.inputs) == len(traced.example.outputs) == 1
    (made,) = leaves(traced(X.numpy() + 1))
    np.testing.assert_array_equal(made, (X.numpy() + 1) * 2)


# A stand-in for the classes of transformers: real ones were tried, too.
class Layer:
    def __init__(self) -> None:
        self.keys: Any = None
        self.is_initialized = False
        self._sliding_window_tensor = torch.tensor(4)

    def update(self, keys: torch.Tensor) -> torch.Tensor:
        self.keys = keys if self.keys is None else torch.cat([self.keys, keys], 1)
        self.is_initialized = True
        return self.keys


class TwoCache:
    def __init__(self) -> None:
        self.layers = [Layer(), Layer()]
        self.offloading = False


class PairCache:
    def __init__(self) -> None:
        self.self_attention_cache, self.cross_attention_cache = TwoCache(), TwoCache()
        self.is_updated = {0: False}


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (Layer, TwoCache, PairCache):
        monkeypatch.setattr(each, "__module__", "transformers.cache_utils")


class Decoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(2))

    def forward(self, x: torch.Tensor, past: Any = None) -> Any:
        past = TwoCache() if past is None else past
        for project, layer in zip(self.project, past.layers, strict=True):
            x = x + layer.update(project(x)).sum(1, keepdim=True)
        return x, past


@pytest.mark.usefixtures("transformers")
def test_caches_are_inputs_and_outputs(tmp_path):
    import onnxruntime

    model, x = Decoder().eval(), torch.randn(1, 2, 3)
    _, past = model(x)
    before = [layer.keys for layer in past.layers]
    path = tmp_path / "decoder.onnx"
    report = tmconvert.to_onnx(model, path, example_inputs=(x, past))
    assert all(layer.keys is keys for layer, keys in zip(past.layers, before, strict=True))
    assert [each["name"] for each in report.inputs] == ["x", "past_0_key", "past_1_key"]
    assert [each["shape"] for each in report.outputs] == [[1, 2, 3], [1, 4, 3], [1, 4, 3]]
    other = [torch.randn(1, 2, 3) for _ in range(3)]
    for layer, keys in zip(past.layers, other[1:], strict=True):
        layer.keys = keys
    y, present = model(other[0], past)
    expected = [y, *(layer.keys for layer in present.layers)]
    session = onnxruntime.InferenceSession(path)
    fed = {each.name: array.numpy() for each, array in zip(session.get_inputs(), other, strict=True)}
    for made, wanted in zip(session.run(None, fed), expected, strict=True):
        np.testing.assert_allclose(made, wanted.detach().numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("transformers")
def test_a_cache_that_the_model_makes_is_an_output():
    traced = tmconvert.trace(Decoder().eval(), torch.randn(1, 2, 3))
    assert len(traced.example.outputs) == 3


@pytest.mark.usefixtures("transformers")
def test_caches_in_caches_have_names_that_show_it():
    def function(past: Any) -> Any:
        past.cross_attention_cache.layers[0].keys = past.cross_attention_cache.layers[0].keys * 2
        return past

    past = PairCache()
    past.self_attention_cache.layers[1].keys = torch.ones(2)
    past.cross_attention_cache.layers[0].keys = torch.ones(3)
    traced = tmconvert.trace(function, past)
    inputs = [node.name for node in traced.graph.inputs[1:]]
    assert inputs == ["past_self_attention_cache_1_key", "past_cross_attention_cache_0_key"]
    assert [array.tolist() for array in traced.example.outputs] == [[1, 1], [2, 2, 2]]


def _keeping(tensor: torch.Tensor) -> Any:
    return lambda: tensor


class _Held:
    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def get(self) -> torch.Tensor:
        return self.tensor


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda x: (x + 1, _keeping(x * 2)), r"_keeping\.<locals>\.<lambda>"),
        (lambda x: (x + 1, [lambda y=x * 2: y]), "<lambda>"),
        (lambda x: (x + 1, functools.partial(torch.add, x * 2)), "functools.partial of .*add"),
        (lambda x: (x + 1, _Held(x * 2).get), r"_Held\.get"),
        (lambda x: (x + 1, (x * 2).numpy), "numpy"),
        (lambda x: (x + 1, [x * 2].pop), "pop"),
        (lambda x: {"y": x + 1, "z": _keeping([_keeping(x)])}, "_keeping"),
    ],
)
def test_a_returned_function_that_holds_tensors_is_refused(function: Any, named: str) -> None:
    with pytest.raises(UnsupportedError, match=f"returns a function that holds tensors, .*{named}") as caught:
        tmconvert.trace(function, torch.rand(3))
    assert caught.value.code == "TM2015"


@pytest.mark.parametrize("view", [dict.values, dict.items])
def test_a_returned_view_of_a_dict_with_tensors_is_refused(view: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"returns tensors .* class builtins\.dict_"):
        tmconvert.trace(lambda x: (x + 1, view({"y": x * 2})), torch.rand(3))


def test_a_returned_function_without_tensors_is_no_output() -> None:
    tmconvert.trace(lambda x: (x + 1, torch.relu, _keeping(3)), torch.rand(3))
