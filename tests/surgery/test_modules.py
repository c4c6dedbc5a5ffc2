"""Modules as modules: attributes, state dicts, parts that are added, arguments as the source took them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

import tmconvert
from tests.surgery.models import Block, loaded, traced_block
from tmconvert.errors import UsageError
from tmconvert.frontends.torch import customization


def test_weights_are_read_and_scaled(tmp_path: Path) -> None:
    module, _, x = loaded("resnet18")
    before, stored = module(x), module.get("fc").tensors["weight"]
    module.fc.weight *= 2.0
    module.fc.bias = module.fc.bias * 2
    assert module.fc.weight.dtype == np.float32
    np.testing.assert_array_equal(module.get("fc.weight"), stored * 2)
    np.testing.assert_allclose(module(x), before * 2, rtol=1e-5)
    module.save(tmp_path / "m.tm")
    again = tmconvert.load(tmp_path / "m.tm")
    with pytest.raises(ValueError, match="read-only"):
        again.fc.weight[0] = 0  # mapped from the file
    again.fc.weight *= 0.5
    again.fc.bias *= 0.5
    np.testing.assert_allclose(again(x), before, rtol=1e-5)


@pytest.mark.parametrize("copied", [False, True])
def test_types_follow_from_weights_of_other_shapes(copied: bool) -> None:
    module = tmconvert.trace(torch.nn.Sequential(Block(3), torch.nn.ReLU()).eval(), torch.rand(1, 3, 5, 5))
    module = copy.deepcopy(module) if copied else module
    conv = module.get_submodule("0.conv")
    conv.weight = np.ones((7, 3, 3, 3), np.float32)
    conv.bias = np.ones(7, np.float32)
    assert module.graph is not None
    assert [node.shape for node in module.graph.outputs] == [(1, 7, 5, 5)]
    assert module.graph.get_node_by_name("weight").as_unique().shape == (7, 3, 3, 3)
    assert module(np.ones((1, 3, 5, 5), np.float32)).shape == (1, 7, 5, 5)


def test_an_assigned_array_is_copied() -> None:
    module, _, _ = loaded("resnet18")
    bias = np.zeros(10)
    module.fc.bias = bias
    bias[:] = 1
    assert module.fc.bias.dtype == np.float32 and not module.fc.bias.any()


def test_assignments_are_edits() -> None:
    module = traced_block(4, 8)
    assert module.example is not None and module.example.outputs is not None
    for change in ("weight", "attribute"):
        copied = copy.deepcopy(module)
        copied.example = module.example
        assert not copied.is_edited()
        if change == "weight":
            copied.conv.weight *= 2
        else:
            copied.scale_of_mine = 3
        assert copied.is_edited()


def test_own_names_come_first() -> None:
    module, _, _ = loaded("resnet18")
    child = traced_block(4, 8)
    module.add_module("graph", child)
    assert module.graph is not child and module.get("graph") is child
    with pytest.raises(AttributeError):
        _ = module.no_such_part
    copied = pickle.loads(pickle.dumps(module))
    assert copied.conv1.weight.shape == module.conv1.weight.shape


def test_values_of_other_kinds_are_refused() -> None:
    module, _, _ = loaded("resnet18")
    for name, value in (
        ("conv1", np.zeros(3)),
        ("layer1", "text"),
        ("head", torch.nn.ReLU()),
    ):
        with pytest.raises(UsageError) as caught:
            setattr(module, name, value)
        assert caught.value.code == "TM6061"
    for name in ("", "a b", "fc.weight"):
        with pytest.raises(UsageError) as caught:
            module.add_module(name, traced_block(4, 8))
        assert caught.value.code == "TM6061"
    with pytest.raises(UsageError) as caught:
        module.get("fc").bias = np.zeros(10, np.complex64)
    assert caught.value.code == "TM6061"
    with pytest.raises(UsageError) as caught:
        module.layer1.add_module("top", module)
    assert caught.value.code == "TM6061"


def test_state_dicts_go_to_torch_and_back() -> None:
    torch.manual_seed(3)
    source = torch.nn.Sequential(Block(4), torch.nn.BatchNorm2d(4)).eval()
    x = torch.rand(1, 4, 8, 8)
    module = tmconvert.trace(source, x)
    state = module.state_dict()
    assert {name for name, _ in module.named_parameters()} == {n for n, _ in source.named_parameters()}
    assert set(state) >= set(source.state_dict()) - {"1.num_batches_tracked"}
    other = torch.nn.Sequential(Block(4), torch.nn.BatchNorm2d(4)).eval()
    mismatch = module.load_state_dict(other.state_dict(), strict=False)
    assert mismatch.missing_keys == [name for name in state if name not in other.state_dict()]
    np.testing.assert_allclose(module(x), other(x).detach().numpy(), atol=1e-5)
    for wrong in ({}, {**state, "more": np.zeros(1)}, {**state, "0.conv.bias": np.zeros(3)}):
        with pytest.raises(UsageError) as caught:
            module.load_state_dict(wrong)
        assert caught.value.code == "TM6062"


def test_modules_are_named_as_in_torch() -> None:
    module = traced_block(4, 8)
    assert [path for path, _ in module.named_modules()] == ["", "conv"]
    assert [path for path, _ in module.named_children()] == ["conv"]
    assert module.get_submodule("conv") is module.conv
    assert not list(module.named_buffers())
    assert len(list(module.parameters())) == 2
    with pytest.raises(UsageError) as caught:
        module.get_submodule("pool")
    assert caught.value.code == "TM6050"


def test_arguments_as_the_source_took_them() -> None:
    def forward(
        x: torch.Tensor, parts: dict[str, list[torch.Tensor]], scale: float, *, y: torch.Tensor
    ) -> torch.Tensor:
        return (x - parts["b"][0] * 2 - parts["a"][0] * 3 - parts["a"][1] * 5) * scale + y * 7

    tensors = [torch.rand(2) for _ in range(5)]
    x, first, second, third, y = tensors
    parts = {"b": [first], "a": [second, third]}
    module = tmconvert.trace(forward, x, parts, 2.0, y=y)
    expected = forward(x, parts, 2.0, y=y).numpy()
    arrays = [tensor.numpy() for tensor in tensors]
    np.testing.assert_allclose(module(*arrays), expected, rtol=1e-6)
    nested = {"a": arrays[2:4], "b": [arrays[1]]}
    np.testing.assert_allclose(module(arrays[0], nested, 2.0, y=arrays[4]), expected, rtol=1e-6)
    np.testing.assert_allclose(module(arrays[0], y=arrays[4], parts=nested), expected, rtol=1e-6)
    for args, kwargs in (((arrays[0],), {"z": y}), ((arrays[0], nested), {}), (arrays, {"y": arrays[4]})):
        with pytest.raises(UsageError) as caught:
            module(*args, **kwargs)
        assert caught.value.code == "TM6003"


def test_keywords_of_a_model_of_megengine() -> None:
    module, graph, x = loaded("resnet18")
    np.testing.assert_array_equal(module(**{graph.inputs[1].name: x}), module(x))


@dataclasses.dataclass
class Pair:
    a: torch.Tensor
    b: torch.Tensor


class Own:
    def __init__(self, a: torch.Tensor, b: torch.Tensor) -> None:
        self.a, self.b = a, b


@pytest.mark.parametrize("kind", [Pair, Own])
def test_a_model_takes_the_objects_that_its_source_took(
    kind: type[Pair] | type[Own], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(
        customization.SUPPORTED_TYPES,
        Own,
        customization.SupportedType(lambda own: ([own.a, own.b], None), lambda parts, _: Own(*parts)),
    )
    a, b = torch.ones(2), torch.arange(2.0)

    def forward(pair: Pair | Own, k: torch.Tensor) -> torch.Tensor:
        return pair.a * 3 - pair.b + k

    tm = tmconvert.trace(forward, kind(a, b), b)
    for result in (tm(kind(a, b), b), tm(pair=kind(a, b), k=b), tm(a, b, b)):
        np.testing.assert_array_equal(result, [3, 3])


def test_a_model_is_always_in_evaluation_mode() -> None:
    tm = traced_block(2, 4)
    assert tm.eval() is tm and tm.train(False) is tm
    with pytest.raises(UsageError, match=r"(?s)TM6061.*to_torch"):
        tm.train()
