"""What the data says the number of: places, classes, runs, elements in bins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from .harness import check

M = torch.tensor([[0.0, 2, -1, 0], [3, 0, 0, 4], [0, 0, 0.5, 0]])
HALF = torch.tensor([[1.0, 0, 0, 0], [0, 0, 0, 0], [2, 2, 2, 2]])


@pytest.mark.parametrize("number", [torch.tensor(2.0), torch.tensor(0), torch.tensor(True)])
def test_places_in_a_tensor_without_axes(number: torch.Tensor) -> None:
    def places(x: torch.Tensor) -> Any:
        more = torch.nonzero_static(x, size=2), torch.nonzero(x, as_tuple=True)
        return x.nonzero(), torch.argwhere(x), *more

    for given in (number, torch.zeros_like(number)):
        check(places, given, opsets=(17,), second=(number,))


STATIC: dict[str, Callable[[torch.Tensor], Any]] = {
    "fewer": lambda x: torch.nonzero_static(x, size=2),
    "more": lambda x: torch.nonzero_static(x, size=9),
    "filled": lambda x: x.nonzero_static(size=6, fill_value=7),
    "none": lambda x: torch.nonzero_static(x, size=0),
    "a row": lambda x: torch.nonzero_static(x.flatten() > 0, size=5, fill_value=-3),
    "a cube": lambda x: torch.nonzero_static(x.reshape(2, 3, 2), size=4),
    "of no elements": lambda x: torch.nonzero_static(x[:0], size=2),
    "integers": lambda x: torch.nonzero_static(x.long(), size=3),
}


@pytest.mark.parametrize("form", STATIC)
def test_so_many_places(form: str) -> None:
    check(STATIC[form], M, opsets=(9, 13, 20), second=(HALF,))
