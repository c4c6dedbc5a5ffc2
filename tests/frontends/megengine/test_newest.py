"""What MegEngine has since 1.13.1, against NumPy and torch's definitions: 1.13.0, our truth, has it not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontends.megengine.adapter_samples import Call, call, numbers
from tests.frontends.megengine.test_adapter_samples import as_graph, eagerly
from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.vocabulary import VOCABULARY
from tmconvert.ir import TracedModule

IMAGE = numbers(2, 3, 4, 2)
ROWS, OTHER = numbers(4, 3), numbers(4, 3, seed=5)
SOLID = numbers(3, 4, 5)
SPARSE = np.array([[0, 2, 0], [1, 0, -3]], np.float32)
F, M = "megengine.functional.", "megengine.module.vision."


def module(name: str, **attributes: Any) -> TracedModule:
    made = TracedModule("m", M + name, vocabulary=VOCABULARY)
    made.attributes = attributes
    return made


TURNED = np.rot90(IMAGE, -1, (1, 2))
CASES: list[tuple[str, Call, TracedModule | None, list[np.ndarray]]] = [
    (F + "vision.flip", call(IMAGE), None, [IMAGE[:, ::-1, ::-1]]),
    (F + "vision.flip", call(IMAGE, False), None, [IMAGE[:, :, ::-1]]),
    ("opdef.Flip", call(IMAGE, vertical=True, horizontal=False), None, [IMAGE[:, ::-1]]),
    (M + "Flip", call(IMAGE), module("Flip", vertical=False, horizontal=False), [IMAGE]),
    (F + "vision.rot90", call(IMAGE), None, [TURNED]),
    (F + "vision.rot90", call(IMAGE, clockwise=False), None, [np.rot90(IMAGE, 1, (1, 2))]),
    ("opdef.Rotate", call(IMAGE, clockwise=True), None, [TURNED]),
    (M + "Rot90", call(IMAGE), module("Rot90", clockwise=True), [TURNED]),
    (F + "vision.resize", call(IMAGE, (8, 1), imode="nearest"), None, [IMAGE.repeat(2, 2)[..., :1]]),
    (F + "vision.resize", call(IMAGE, (9, 9), max_size=4, imode="nearest"), None, [IMAGE.repeat(2, 3)]),
    (F + "vision.resize", call(IMAGE, (3, 8), "NHWC", "nearest"), None, [IMAGE.repeat(2, 2)]),
    (F + "vision.rotate", call(IMAGE[..., [0, 1, 0, 1]], 180.0), None, [IMAGE[:, :, ::-1, [1, 0, 1, 0]]]),
    (F + "vision.rotate", call(numbers(1, 1, 3, 3), 90.0), None, [np.rot90(numbers(1, 1, 3, 3), 1, (2, 3))]),
    (F + "math.cross", call(ROWS, OTHER), None, [np.cross(ROWS, OTHER)]),
    (
        F + "math.cross",
        call(ROWS.T, OTHER, 0, 1, 0),
        None,
        [np.cross(ROWS.T, OTHER, axisa=0, axisb=1, axisc=0)],
    ),
    (F + "math.cross", call(ROWS[0, :2], OTHER[0]), None, [np.cross([*ROWS[0, :2], 0], OTHER[0])]),
    ("opdef.Cross", call(ROWS, OTHER, axisa=-1, axisb=-1, axisc=-1), None, [np.cross(ROWS, OTHER)]),
    (F + "tensor.non_zero", call(SPARSE), None, [np.argwhere(SPARSE).astype(np.int32)]),
    (F + "tensor.non_zero", call(SPARSE, True), None, [part.astype(np.int32) for part in SPARSE.nonzero()]),
    ("opdef.NonZero", call(SPARSE > 0), None, [np.argwhere(SPARSE > 0).T.astype(np.int32)]),
    ("opdef.Where", call(SPARSE > 0, SPARSE, SPARSE * 2), None, [np.where(SPARSE > 0, SPARSE, SPARSE * 2)]),
    *(
        (
            F + "math.sort",
            call(SOLID, False, dim),
            None,
            [np.sort(SOLID, dim), np.argsort(SOLID, dim).astype(np.int32)],
        )
        for dim in (0, 1, -1)
    ),
    (F + "einsum.einsum", call("ij,kj->ik", ROWS, OTHER), None, [ROWS @ OTHER.T]),
    (F + "elemwise.erf", call(np.zeros(3, np.float32)), None, [np.zeros(3, np.float32)]),
]


@pytest.mark.parametrize("way", [eagerly, as_graph])
@pytest.mark.parametrize(("row", "each", "owner", "expected"), CASES, ids=[case[0] for case in CASES])
def test_newest(row: str, each: Call, owner: Any, expected: list[np.ndarray], way: Any) -> None:
    actual = way(row, each, owner)
    assert [(array.dtype, array.shape) for array in actual] == [
        (array.astype(array.dtype if array.dtype != np.float64 else np.float32).dtype, array.shape)
        for array in expected
    ]
    for ours, theirs in zip(actual, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_rotate_channels_last_is_refused() -> None:
    with pytest.raises(Refusal, match="in format 'NHWC' with mode 'area'"):
        eagerly(F + "vision.rotate", call(IMAGE, 3.0, "NHWC", "area"))
