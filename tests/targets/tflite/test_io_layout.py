"""The memory order of single inputs and outputs of TFLite files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tmconvert.errors import UsageError

DATA = Path(__file__).parents[2] / "data"
torch = pytest.importorskip("torch")


class TwoImages(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, pair, factor):
        y = self.conv(pair["left"]) * factor
        return {"sum": y + pair["right"], "parts": [y, y.mean((2, 3))]}


@pytest.fixture(scope="module")
def traced():
    left, right = torch.randn(2, 3, 5, 7), torch.randn(2, 4, 5, 7)
    return tmconvert.trace(TwoImages().eval(), {"left": left, "right": right}, torch.rand(4, 1, 1))


def signature(path: Path) -> dict[str, dict[str, list[int]]]:
    from ai_edge_litert.interpreter import Interpreter

    runner = Interpreter(model_path=str(path)).get_signature_runner("serving_default")
    details = {"inputs": runner.get_input_details(), "outputs": runner.get_output_details()}
    return {
        side: {name: detail["shape"].tolist() for name, detail in each.items()}
        for side, each in details.items()
    }


SOURCE = {"pair_left": [2, 3, 5, 7], "pair_right": [2, 4, 5, 7], "sum": [2, 4, 5, 7], "parts_0": [2, 4, 5, 7]}
ORDERS = [
    (None, {*SOURCE}),
    ("source", set()),
    ({"pair_left": "source"}, {"pair_right", "sum", "parts_0"}),
    ({"*": "source", "pair_left": "nhwc", "parts_0": "nhwc"}, {"pair_left", "parts_0"}),
    ({"sum": "source", "pair_right": "source"}, {"pair_left", "parts_0"}),
]


@pytest.mark.parametrize(("io_layout", "nhwc"), ORDERS)
def test_each_has_the_order_asked_for(io_layout, nhwc: set[str], traced, tmp_path: Path) -> None:
    """With the source's names of nested inputs and outputs in the signature."""
    path = tmp_path / "o.tflite"
    assert tmconvert.to_tflite(traced, path, io_layout=io_layout).verified
    assert tmconvert.verify(traced, path).max_error < 1e-4
    found = signature(path)
    assert list(found["inputs"]) == ["factor", "pair_left", "pair_right"]
    assert set(found["outputs"]) == {"sum", "parts_0", "parts_1"}
    for name, shape in SOURCE.items():
        n, c, h, w = shape
        assert {**found["inputs"], **found["outputs"]}[name] == ([n, h, w, c] if name in nhwc else shape)


@pytest.mark.slow
def test_channels_last_without_spatial_ops(tmp_path: Path) -> None:
    traced = tmconvert.trace(lambda x: x.exp(), torch.randn(1, 2, 3, 4))
    path = tmp_path / "o.tflite"
    result = tmconvert.to_tflite(traced, path).outputs[0]["name"]
    assert signature(path)["inputs"] == {"x": [1, 2, 3, 4]}
    report = tmconvert.to_tflite(traced, path, io_layout={"x": "nhwc", result: "nhwc"})
    assert signature(path)["inputs"] == {"x": [1, 3, 4, 2]}
    assert (report.verified, report.operators) == (True, 1)


@pytest.mark.parametrize(
    ("io_layout", "message"),
    [
        ({"z": "source"}, "the model has no input or output 'z'"),
        ({"factor": "nhwc"}, "'factor' has no channel axis: layouts apply to tensors of rank 4"),
        ({"pair_left": "nchw"}, "io_layout of 'pair_left' is 'nchw'"),
    ],
)
def test_wrong_orders(io_layout, message: str, traced, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        tmconvert.to_tflite(traced, tmp_path / "o.tflite", io_layout=io_layout)


def test_the_command_line(tmp_path: Path) -> None:
    model, out = DATA / "op_s_conv_bn_relu.tm", tmp_path / "o.tflite"
    arguments = ("--io-layout", "source", "--io-layout", "x=nhwc")
    outcome = run("tflite", model, out, *arguments, "--json")
    assert outcome.status == 0, outcome.stderr
    assert outcome.json["inputs"][0]["shape"] == [1, 32, 32, 3]
    assert outcome.json["outputs"][0]["shape"] == [1, 8, 16, 16]
    assert run("tflite", model, out, "--io-layout", "x=nhwc", "--io-layout", "x=source").status == 2
    assert np.all(np.isfinite(outcome.json["max_error"]))
