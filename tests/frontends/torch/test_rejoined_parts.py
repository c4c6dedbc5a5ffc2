"""Parts of tensors that are joined again, jagged tensors, and what is refused of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import tmconvert
from tmconvert.errors import UnsupportedError

from .harness import assert_close, check, run_onnx


def rejoined(x: torch.Tensor) -> Any:
    whole = torch.cat(list(x * 2), dim=0)
    images = torch.cat(torch.split(x.flatten(0, 1), [4] * x.shape[0])) + 1
    columns = torch.cat([*x.sin().unbind(0)], dim=-1)
    chunks = torch.cat((x + 1).chunk(x.shape[0], 0))
    return whole, images, columns, chunks, torch.stack(tuple((x - 1).unbind()), 2)


def test_the_number_of_parts_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    sizes = {"x": {0: "batch"}}
    report = tmconvert.to_onnx(rejoined, path, example_inputs=[torch.randn(3, 4, 5)], dynamic_shapes=sizes)
    assert not report.notes
    for count in (1, 2, 7):
        x = torch.randn(count, 4, 5)
        expected = [each.numpy() for each in rejoined(x)]
        assert_close("ONNX Runtime", run_onnx(path, [x.numpy()]), expected, [], None)


def test_a_module_may_return_the_parts_too(tmp_path: Path) -> None:
    class Vision(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return {"parts": list(x.cos()), "sum": x.sum()}

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vision = Vision()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen = self.vision(x)
            return torch.cat(seen["parts"]) + seen["sum"]

    traced = tmconvert.trace(Net(), torch.randn(3, 4), dynamic_shapes={"x": {0: "batch"}})
    assert not traced.notes
    x = torch.randn(5, 4)
    assert_close("interpreter", [traced(x.numpy())], [Net()(x).numpy()], [], None)


def test_other_joins_of_parts_are_joins() -> None:
    def model(x: torch.Tensor) -> Any:
        parts = list((x * 1).unbind(0))
        swapped = torch.cat([parts[1], parts[0], parts[2]])
        some = torch.stack(parts[:2])
        parts[1].mul_(3)
        return swapped, some, torch.cat(parts), torch.cat(x.split(2, 1), 0), torch.cat([x, *x.split(1)])

    check(model, torch.randn(3, 4, 2))


def test_jagged_tensors_are_padded() -> None:
    def model(x: torch.Tensor) -> Any:
        nested = torch.nested.nested_tensor([x[0, :2], x[1, :3]], layout=torch.jagged)
        padded = (nested.sin() @ x[0, :, :3]).to_padded_tensor(-1.0)
        return padded, torch.nn.functional.softmax(nested, 1).to_padded_tensor(0.0), nested.sum(1)

    check(model, torch.randn(2, 4, 4))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested")
def test_nested_tensors_without_sizes_are_refused() -> None:
    model = lambda x: torch.nested.nested_tensor([x[0], x[1, :2]]).to_padded_tensor(0.0)  # noqa: E731
    with pytest.raises(UnsupportedError, match=r"strided layout") as caught:
        tmconvert.trace(model, torch.randn(2, 4, 4))
    assert caught.value.code == "TM2013"
    assert caught.value.source is not None and caught.value.source.file == __file__
