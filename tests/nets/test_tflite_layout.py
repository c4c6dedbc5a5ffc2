"""A CNN keeps no transposes inside, and its inputs and outputs have the order asked for."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import tflite

from tests.nets import corpus

SPATIAL = {"CONV_2D", "DEPTHWISE_CONV_2D"}
NAMES = {code: name for name, code in vars(tflite.BuiltinOperator).items() if isinstance(code, int)}


def _operators(path: Path) -> list[str]:
    model = tflite.Model.GetRootAsModel(path.read_bytes(), 0)
    codes = [NAMES[model.OperatorCodes(i).BuiltinCode()] for i in range(model.OperatorCodesLength())]
    graph = model.Subgraphs(0)
    return [codes[graph.Operators(i).OpcodeIndex()] for i in range(graph.OperatorsLength())]


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v1", "mobilenet_v2", "shufflenet_v2"])
def test_no_transpose_in_a_cnn(name: str, tmp_path: Path) -> None:
    """Channel shuffle itself needs none: in NHWC the two halves are slices of the last axis."""
    _, (path,) = corpus.converted(name, "tflite", tmp_path)
    assert "TRANSPOSE" not in _operators(path)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_source_order_costs_one_transpose_at_the_input(name: str, tmp_path: Path) -> None:
    _, (path,) = corpus.converted(name, "tflite", tmp_path, io_layout="source")
    operators = _operators(path)
    assert operators[0] == "TRANSPOSE"
    assert Counter(operators)["TRANSPOSE"] == 1


def test_activations_are_fused(tmp_path: Path) -> None:
    _, (path,) = corpus.converted("mobilenet_v1", "tflite", tmp_path)
    operators = _operators(path)
    assert not {"RELU", "RELU6"} & set(operators)
    assert set(operators) <= SPATIAL | {"PAD", "MEAN", "RESHAPE", "FULLY_CONNECTED"}
