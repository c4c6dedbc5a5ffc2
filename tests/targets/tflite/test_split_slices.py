"""Parts of matrices are SPLITs, and biases are shared by no two operators; what comes out runs in LiteRT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tmconvert.targets.tflite.operators import spec

torch = pytest.importorskip("torch")
tflite = pytest.importorskip("tflite")
NAMES = {value: name for name, value in vars(tflite.BuiltinOperator).items() if name.isupper()}


def written(module: Any, x: Any, path: Path, **options: Any) -> Any:
    assert tmconvert.to_tflite(module, path, example_inputs=(x,), **options).verified
    return tflite.Model.GetRootAs(path.read_bytes(), 0)


def operators(model: Any) -> list[tuple[str, Any]]:
    codes = [NAMES[model.OperatorCodes(i).BuiltinCode()] for i in range(model.OperatorCodesLength())]
    graphs = (model.Subgraphs(i) for i in range(model.SubgraphsLength()))
    return [
        (codes[graph.Operators(i).OpcodeIndex()], graph.Operators(i))
        for graph in graphs
        for i in range(graph.OperatorsLength())
    ]


class Parts(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        y = torch.tanh(x)
        first, second, last = y[:, :3], y[:, 3:6], y[:, 9:]
        return first * second + last, y[:2], y[1:3], y[:, 2:7]


def test_equal_parts_of_a_matrix_are_one_split(tmp_path: Path) -> None:
    model = written(Parts(), torch.randn(4, 12), tmp_path / "m.tflite")
    types = [type for type, _ in operators(model)]
    assert types.count("SPLIT") == 2  # of columns, and of rows
    assert types.count("SLICE") == 2  # in the middle, and of five columns


def test_parts_in_integers(tmp_path: Path) -> None:
    data = [(np.random.default_rng(i).standard_normal((4, 12)).astype(np.float32),) for i in range(3)]
    options = {"quantized": True, "calibration": data}
    model = written(Parts(), torch.from_numpy(data[0][0]), tmp_path / "m.tflite", **options)
    assert "SPLIT" in [type for type, _ in operators(model)]


class Shared(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = torch.nn.Linear(12, 5), torch.nn.Linear(12, 5)
        self.other.bias = self.one.bias

    def forward(self, x: Any) -> Any:
        return self.one(x) * self.other(x) + self.one(torch.tanh(x))


def test_biases_are_their_operators_own(tmp_path: Path) -> None:
    model = written(Shared(), torch.randn(4, 12), tmp_path / "m.tflite")
    layers = [(op, spec(type).weights) for type, op in operators(model)]
    places = [op.Inputs(weights.bias) for op, weights in layers if weights is not None]
    buffers = [model.Subgraphs(0).Tensors(place).Buffer() for place in places]
    assert len(places) == 3
    assert len(set(places)) == len(set(buffers)) == 3


class Halves(torch.nn.Module):  # type: ignore[misc, name-defined]
    def forward(self, x: Any) -> Any:
        y = torch.flip(x, [0])
        return y[:, :3], y[:, 3:]


@pytest.mark.parametrize(
    ("dtype", "is_split"),
    [
        *[(name, True) for name in ("float32", "int8", "uint8", "int16", "int32", "int64")],
        ("bool", False),  # LiteRT has no such kernel
    ],
)
def test_a_type_without_kernel_of_split_stays_sliced(tmp_path: Path, dtype: str, is_split: bool) -> None:
    x = torch.randint(0, 2, (4, 6)).to(getattr(torch, dtype))
    names = [name for name, _ in operators(written(Halves(), x, tmp_path / "halves.tflite"))]
    assert names == ["REVERSE_V2", *(["SPLIT"] if is_split else ["SLICE", "SLICE"])]


def test_lengths_of_an_lstm_in_a_loop_run_in_litert(tmp_path: Path) -> None:
    """The loop takes several steps at once, whose masks of padding are parts of a matrix of bool."""

    class Padded(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(3, 4, bidirectional=True, batch_first=True)

        def forward(self, x: Any, lengths: Any) -> Any:
            packed = torch.nn.utils.rnn.pack_padded_sequence(
                x, lengths, batch_first=True, enforce_sorted=False
            )
            return torch.nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]

    inputs = (torch.randn(2, 40, 3), torch.tensor([40, 25]))
    assert tmconvert.to_tflite(Padded(), tmp_path / "padded.tflite", example_inputs=inputs).verified
