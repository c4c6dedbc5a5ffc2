"""Example inputs and open sizes that are learned from the calls of a module."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import tmconvert
from tmconvert.errors import UsageError


class Net(torch.nn.Module):
    def forward(self, x: Any, mask: Any = None, *, pair: Any, **more: Any) -> Any:
        found = x * 2 if mask is None else x * mask
        return found + pair[0] + pair[1] + more.get("bias", 0)


def call(net: Net, rows: int, columns: int, **more: Any) -> None:
    net(torch.randn(rows, columns), pair=[torch.randn(rows, columns), torch.randn(1)], **more)


def test_sizes_and_optional_inputs_are_learned() -> None:
    net = Net()
    with tmconvert.observe(net) as seen:
        for rows, columns in ((1, 4), (3, 7), (3, 5)):
            call(net, rows, columns, mask=torch.ones(rows, columns), bias=torch.ones(4)[:1])
        call(net, 9, 9)
    call(net, 2, 2)
    assert seen.count == 4
    sizes = seen.options["dynamic_shapes"]
    assert sizes == {each: {0: "x_0", 1: "x_1"} for each in ("x", "mask", "pair.0")}
    report = tmconvert.to_onnx(net, seen=seen)
    assert report.verified
    shapes = {each["name"]: each["shape"] for each in report.inputs}
    assert shapes == {each: [1] if each in ("pair_1", "bias") else ["x_0", "x_1"] for each in shapes}
    assert shapes.keys() == {"x", "mask", "pair_0", "pair_1", "bias"}
    assert len(tmconvert.trace(net, seen=seen).graph.inputs) == 6


def test_what_cannot_be_observed_is_an_error() -> None:
    net = Net()
    with tmconvert.observe(net) as seen:
        pass
    with pytest.raises(UsageError, match="no call of the module was observed"):
        tmconvert.to_onnx(net, seen=seen)
    with pytest.raises(UsageError, match="must be a PyTorch module"), tmconvert.observe(print):
        pass
