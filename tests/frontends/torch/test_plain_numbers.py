"""The reason why a size cannot stay open names the number that differs, and the code that made it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

import tmconvert
from tmconvert.errors import UnsupportedError

TABLE = np.random.default_rng(0).random((64, 4), np.float32)
WEIGHTS = [float(number) for number in range(64)]

CASES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]] = {
    "function": (
        lambda x: x * int(math.log(x.shape[0])),
        "takes the plain number 1 here, and 2 there, in `lambda x: x * int(math.log(x.shape[0])),`: "
        "int() or math.log() may have made it of the size",
    ),
    "product": (
        lambda x: x * int(0.29 * x.shape[0]),
        "Python multiplies a float by a size, which leaves no trace; write the size first",
    ),
    "list": (
        lambda x: x * WEIGHTS[x.shape[0]],
        "`: a loop, a list, a table or another line may have made it",
    ),
    "array": (
        lambda x: x + torch.from_numpy(TABLE[: x.shape[0]]),
        "takes an array that Python or NumPy made, of shape [4, 4] here, and [8, 4] there",
    ),
    "results": (
        lambda x: x.split(2)[0],
        "(split) computes something else at another size: it returns 2 tensors",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_reason_names_what_differs(case: str):
    function, said = CASES[case]
    with pytest.raises(UnsupportedError, match="TM2031") as caught:
        tmconvert.trace(function, torch.rand(4, 4), dynamic_shapes={"x": {0: "n"}})
    assert said in str(caught.value)
    assert "--fix n=4" in str(caught.value)


def test_what_can_stay_open_is_no_reason():
    """``h`` is followed through ``int`` in a second trace, and the scale, which is 1/4, through a tensor."""

    def padded(x: torch.Tensor) -> torch.Tensor:
        height = int(math.ceil(float(x.shape[0]) / 32) * 32)
        scale = 2 ** float(torch.tensor(float(x.shape[0]) / float(4 * x.shape[0])).log2().round())
        return x.new_full([height, 4], scale) * len(str(x.shape[1]))

    with pytest.raises(UnsupportedError) as caught:
        tmconvert.trace(padded, torch.rand(40, 4), dynamic_shapes={"x": {0: "h", 1: "w"}})
    assert "the size w cannot" in str(caught.value) and "size h" not in str(caught.value)
    assert "len() or str()" in str(caught.value) and "--fix w=4" in str(caught.value)
