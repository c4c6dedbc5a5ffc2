"""Calls that have integer forms although what surrounds them is moved, summed or selected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tmconvert
from tmconvert.errors import UsageError

torch = pytest.importorskip("torch")
pytest.importorskip("ai_edge_litert")
nn = torch.nn
LEAST = 20.0  # decibels


class OfOneAxis(nn.Module):
    """A convolution of one axis, for a tensor with another one in front."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Conv1d(3, 5, 3)

    def forward(self, x: Any) -> Any:
        return self.layer(x.reshape(8, 3, 20)).reshape(2, 4, 5, 18)


class Selected(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: Any) -> Any:
        x = x * 1.5
        if self.kind == "twice":
            x[x < 0] = x[x < 0] * 0.1
        elif self.kind == "mask":
            mask = x > 0.3
            x[mask] = -x[mask]
        elif self.kind == "other":
            y = x * 2
            mask = y > 0.1
            x[mask] = y[mask]
        else:
            places = torch.nonzero(x[:, 0] > 0).squeeze(1)
            x[places, 1] = 0.5
        return x * 2


def converted(net: Any, shape: tuple[int, ...], path: Path, convert: Any) -> float:
    torch.manual_seed(0)
    samples = [torch.randn(shape) for _ in range(8)]
    report = convert(net.eval(), path, example_inputs=[samples[0]], quantized=True, calibration=samples)
    assert report.verified
    return float(report.verification.decibels)


@pytest.mark.parametrize(
    ("convert", "name"), [(tmconvert.to_onnx, "net.onnx"), (tmconvert.to_tflite, "net.tflite")]
)
def test_a_convolution_of_one_axis_of_four(convert: Any, name: str, tmp_path: Path) -> None:
    assert converted(OfOneAxis(), (2, 4, 3, 20), tmp_path / name, convert) > LEAST


@pytest.mark.parametrize("kind", ["twice", "mask", "other", "places"])
@pytest.mark.parametrize(
    ("convert", "name"), [(tmconvert.to_onnx, "net.onnx"), (tmconvert.to_tflite, "net.tflite")]
)
def test_elements_that_a_mask_selects(convert: Any, name: str, kind: str, tmp_path: Path) -> None:
    assert np.isfinite(converted(Selected(kind), (4, 6), tmp_path / name, convert))


@pytest.mark.parametrize("shape", [(2, 16), (2, 4, 16)])
def test_a_transposed_weight_after_dequantization(shape: tuple[int, ...], tmp_path: Path) -> None:
    """The product has no scale of its own, as in files of torch.fx."""
    random = np.random.default_rng(0)
    weight = np.clip(np.rint(random.standard_normal((8, 16)) * 30), -127, 127).astype(np.int8)
    arrays = {
        "w": weight,
        "ws": np.float32(0.01),
        "wz": np.int8(0),
        "xs": np.float32(3 / 127),
        "xz": np.int8(0),
        "ys": np.float32(12 / 127),
        "yz": np.int8(0),
        "b": random.standard_normal(8).astype(np.float32),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]),
        helper.make_node("Transpose", ["wd"], ["wt"], perm=[1, 0]),
        helper.make_node("MatMul", ["xd", "wt"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("QuantizeLinear", ["s", "ys", "yz"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "ys", "yz"], ["y"]),
    ]
    sides = (
        [helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("y", 1, (*shape[:-1], 8))],
    )
    stored = [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "net", *sides, stored)
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    report = tmconvert.to_tflite(path, tmp_path / "net.tflite", quantized=True)
    assert report.verified and report.verification.decibels > 30


def test_infinity_names_its_sample(tmp_path: Path) -> None:
    samples = [torch.ones(2, 4), torch.full((2, 4), 1000.0)]
    with pytest.raises(UsageError, match="on sample 2: NaN or infinity") as error:
        tmconvert.to_onnx(
            torch.exp, tmp_path / "net.onnx", example_inputs=[samples[0]], quantized=True, calibration=samples
        )
    assert "torch.clamp" in str(error.value)
