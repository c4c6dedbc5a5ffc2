"""A Slice of a Slice along another axis is one Slice, where slices alone use the latter."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import tmconvert
from tmconvert.lowering.target_graph import Operator, TargetGraph, Value
from tmconvert.targets.onnx.passes.merge_slices import merge_slices

FLOAT = np.dtype(np.float32)


def ints(name: str, number: int) -> Value:
    return Value(name, np.dtype(np.int64), (1,), np.array([number]))


def sliced(x: Value, name: str, axis: int) -> Operator:
    bounds = [ints(f"{name}_{role}", number) for role, number in zip("seax", (1, 4, axis, 2), strict=True)]
    shape = tuple(2 if place == axis else size for place, size in enumerate(x.shape))
    return Operator("Slice", [x, *bounds], [Value(name, FLOAT, shape)], {}, f"/{name}")


def graph(axis: int, *, shares: bool = False) -> TargetGraph:
    x = Value("x", FLOAT, (4, 4))
    rows = sliced(x, "rows", 0)
    both = sliced(rows.outputs[0], "both", axis)
    outputs = [both.outputs[0], rows.outputs[0]] if shares else both.outputs
    names = [value.name for value in outputs]
    return TargetGraph("onnx", 17, "net", [x], outputs, [rows, both], ["x"], names)


def test_slices_of_two_axes_are_one() -> None:
    made = graph(1)
    assert merge_slices(made)
    (operator,) = made.operators
    assert operator.inputs[0] is made.inputs[0]
    assert [value.data.tolist() for value in operator.inputs[1:]] == [[1, 1], [4, 4], [0, 1], [2, 2]]


def test_other_slices_stay() -> None:
    assert not merge_slices(graph(0))
    record = merge_slices(graph(1, shares=True))
    assert not record
    assert [event.text for event in record.refused] == [
        "stays: `rows` is needed by other operators than slices"
    ]


@pytest.mark.parametrize("axes", list(product(range(3), repeat=4)), ids=str)
def test_chains_of_slices_along_any_axes_stay_right(axes: tuple[int, ...], tmp_path: Path) -> None:
    """A merged slice has more axes than it had, which the next one may have, too."""

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            found = [x]
            for axis in axes:  # each has two users: the next one, and a slice that is an output
                found.append(found[-1].narrow(axis, 1, found[-1].shape[axis] - 2))
            return [*(each.narrow(0, 1, each.shape[0] - 1) for each in found[1:]), found[-1]]

    assert tmconvert.to_onnx(tmconvert.trace(Net(), torch.randn(9, 10, 11)), tmp_path / "net.onnx").verified


def test_interleaved_pixels_need_four_slices(tmp_path: Path) -> None:
    """Rows are sliced once for two halves each, which ONNX Runtime reads from the whole instead."""

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows = x[..., ::2, :], x[..., 1::2, :]
            return torch.cat([part for each in rows for part in (each[..., ::2], each[..., 1::2])], 1)

    x = torch.randn(1, 2, 6, 6)
    tmconvert.to_onnx(Net(), tmp_path / "net.onnx", example_inputs=[x])
    types = [node.op_type for node in onnx.load(tmp_path / "net.onnx").graph.node]
    assert types == ["Slice"] * 4 + ["Concat"]
    session = onnxruntime.InferenceSession(tmp_path / "net.onnx")
    name = session.get_inputs()[0].name
    np.testing.assert_array_equal(session.run(None, {name: x.numpy()})[0], Net()(x).numpy())
