"""Tensors that are copied by ``copy`` and ``pickle``, or that take the storage of another, in ``forward``."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.errors import UnsupportedError

Function = Callable[[torch.Tensor], torch.Tensor]
WEIGHT = torch.arange(6.0).reshape(2, 3)
SAVED = io.BytesIO()
torch.save(WEIGHT, SAVED)
LAYER = torch.nn.Linear(3, 3).requires_grad_(False)


def deep_copied(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    one, two, last = copy.deepcopy([y, y, {"x": x}])
    one.add_(1)
    last["x"].mul_(3)
    return one + two - y * x + last["x"]  # type: ignore[no-any-return]


def with_a_layer(x: torch.Tensor) -> torch.Tensor:
    layer = copy.deepcopy(LAYER)
    layer.weight.mul_(2)
    return layer(x) + LAYER(x)  # type: ignore[no-any-return]


def given_storage(source: torch.Tensor) -> torch.Tensor:
    y = torch.zeros(3)
    y.set_(source)  # type: ignore[call-overload]
    return y


def swapped(x: torch.Tensor) -> torch.Tensor:
    y, z = x + 1, x * 2
    torch.utils.swap_tensors(y, z)
    return y - z


def loaded() -> torch.Tensor:
    SAVED.seek(0)
    return torch.load(SAVED)  # type: ignore[no-any-return]


RIGHT: dict[str, Function] = {
    "deepcopy": deep_copied,
    "deepcopy of a layer": with_a_layer,
    "set_ of a constant": lambda x: given_storage(WEIGHT) * x,
    "pickle of a constant": lambda x: pickle.loads(pickle.dumps(WEIGHT)) * x + loaded(),
}
REFUSED: dict[str, Function] = {
    "set_": lambda x: given_storage(x * 2) + 1,
    "set_ of a storage": lambda x: torch.zeros(0).set_((x * 2).untyped_storage(), 0, (2, 3), (3, 1)) + 1,
    "an element of the storage": lambda x: x + float((x * 2).storage()[0]),
    "swap_tensors": swapped,
    "copy": lambda x: copy.copy(x * 2) + 1,
    "pickle": lambda x: pickle.loads(pickle.dumps(x * 2)) + 1,
}


@pytest.mark.parametrize("name", RIGHT)
def test_copies_compute_the_same(name: str) -> None:
    traced = tmconvert.trace(RIGHT[name], torch.randn(2, 3))
    x = torch.randn(2, 3)
    np.testing.assert_allclose(traced(x.numpy()), RIGHT[name](x), atol=1e-5)


@pytest.mark.filterwarnings("ignore:TypedStorage")
@pytest.mark.parametrize("name", REFUSED)
def test_what_takes_the_storage_of_a_traced_tensor_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.to_onnx(REFUSED[name], tmp_path / "m.onnx", example_inputs=(torch.randn(2, 3),))
    assert caught.value.code == "TM2011"
    assert caught.value.source is not None and caught.value.source.file == __file__
