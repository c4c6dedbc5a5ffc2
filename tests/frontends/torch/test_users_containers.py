"""Modules with containers and tensors that have methods of their own, or lack those of dense ones."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, MutableMapping
from typing import Any

import pytest
import torch
from torch import nn

import tmconvert
from tests.frontends.torch.harness import check
from tmconvert.errors import UnsupportedError


def _raise(*_: Any) -> Any:
    raise NotImplementedError


METHODS = ("__len__", "__bool__", "__iter__", "__eq__", "__contains__", "items", "values", "keys")
KINDS = [tuple, list, dict, OrderedDict, set, deque, object]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_methods_of_containers_that_raise_are_not_called(kind: type) -> None:
    """Representations of equivariant networks are tuples without a length, for one."""
    own = type("Own", (kind,), dict.fromkeys(METHODS, _raise) | {"__hash__": object.__hash__})

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.own, self.held, self.linear = own(), {"within": [own()]}, nn.Linear(3, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x) if len(x.shape) == 2 and self.own is not None else x

    check(Net().eval(), torch.randn(2, 3))
    tmconvert.trace(Net().eval(), torch.randn(2, 3), dynamic_shapes={"x": {0: "n"}})


def test_a_subclass_of_a_container_gets_back_what_it_held() -> None:
    class Own(OrderedDict[str, torch.Tensor]):
        __len__ = __bool__ = __iter__ = _raise

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cache = Own(a=torch.ones(2), b=torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.cache["a"] = x
            self.cache["c"] = x
            return x + self.cache["b"]

    net = Net()
    held = dict(OrderedDict.items(net.cache))
    tmconvert.trace(net, torch.randn(2))
    assert [*OrderedDict.keys(net.cache)] == ["a", "b"]
    assert all(value is held[name] for name, value in OrderedDict.items(net.cache))


class Tensors(MutableMapping[str, torch.Tensor]):
    """A mapping over whose keys ``keys`` goes, and ``iter`` over something else, such as a batch."""

    def __init__(self, **tensors: torch.Tensor) -> None:
        self.tensors = tensors

    def __getitem__(self, key: str) -> torch.Tensor:
        return self.tensors[key]

    def __setitem__(self, key: str, value: torch.Tensor) -> None:
        self.tensors[key] = value

    def __delitem__(self, key: str) -> None:
        del self.tensors[key]

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[str]:
        raise TypeError("iteration over a batch without an axis")

    def keys(self) -> Any:
        return self.tensors.keys()

    def items(self) -> Any:
        return self.tensors.items()


def test_mappings_between_modules() -> None:
    class Doubled(nn.Module):
        def forward(self, tensors: Tensors) -> Tensors:
            tensors["y"] = tensors["x"] * 2
            return tensors

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.doubled = Doubled()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.doubled(Tensors(x=x))["y"] + 1

    check(Net(), torch.randn(2, 3))


@pytest.mark.parametrize("kind", ["sparse", "sparse_csr", "sparse_csc"])
def test_writes_to_sparse_tensors_are_refused_by_a_code(kind: str) -> None:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            sparse = getattr(torch.eye(4), f"to_{kind}")()
            sparse.mul_(2.0)
            return sparse.to_dense() + x

    with pytest.raises(UnsupportedError) as caught:
        tmconvert.trace(Net(), torch.randn(4, 4))
    assert caught.value.code == "TM2013"


@pytest.mark.parametrize("is_submodule", [True, False])
def test_a_template_on_meta_is_called_with_other_tensors(is_submodule: bool) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            template = nn.Linear(3, 4, device="meta")
            self.template: Any = template if is_submodule else [template]
            self.weight, self.bias = nn.Parameter(torch.randn(5, 4, 3)), nn.Parameter(torch.randn(5, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            template = self.template if is_submodule else self.template[0]

            def one(weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
                return torch.func.functional_call(template, {"weight": weight, "bias": bias}, x)

            return torch.vmap(one)(self.weight, self.bias)

    check(Net(), torch.randn(2, 3))
