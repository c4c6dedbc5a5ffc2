"""The quantization parameters that nodes of MegEngine models show, and setting them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import tmconvert
from tests.models.corpus import DATA, model
from tmconvert.errors import UsageError
from tmconvert.ir import QParams, TensorNode

QAT = sorted(
    path.stem for path in DATA.glob("*.tm") if "qat" in path.stem or path.stem.startswith("quantized")
)


def shown(graph: object) -> dict[str, QParams]:
    nodes = (node for node in graph.nodes() if isinstance(node, TensorNode))  # type: ignore[attr-defined]
    return {node.name: node.qparams for node in nodes if node.qparams is not None}


@pytest.mark.parametrize("name", QAT)
def test_tensors_show_what_normalization_finds(name: str) -> None:
    tm = tmconvert.load(model(name))
    recorded = shown(tm.graph)
    found = shown(tmconvert.normalize(tm).graph)
    assert recorded
    assert tm.graph is not None
    common = [key for key in recorded if key in found and tm.graph.node_called(key) is not None]
    assert common or name == "qat_user_module"
    for key in common:
        mine, theirs = recorded[key], found[key]
        assert (mine.scale, mine.zero_point) == (theirs.scale, theirs.zero_point)
        assert (mine.quant_min, mine.quant_max) == (theirs.quant_min, theirs.quant_max)


def test_an_input_without_a_stub_is_not_quantized() -> None:
    tm = tmconvert.load(model("qat_small_minmax_nostub"))
    assert tm.graph is not None
    assert [getattr(node, "qparams", None) for node in tm.graph.inputs] == [None, None]


def test_parameters_that_would_not_be_used_are_refused() -> None:
    tm = tmconvert.load(model("qat_small_ema"))
    assert tm.graph is not None
    node = tm.graph.get_node_by_name("c1_out").as_unique()
    assert isinstance(node, TensorNode)
    before = node.qparams
    with pytest.raises(UsageError, match="the quantization of c1_out") as error:
        node.qparams = QParams("int8", (0.5,), (0,), -128, 127, None, True)
    assert error.value.code == "TM6065"
    assert node.qparams is before
    node.qparams = before


def test_parameters_of_normalized_models_are_used(tmp_path: Path) -> None:
    tm = tmconvert.normalize(tmconvert.load(model("qat_small_ema")))
    assert tm.graph is not None
    node = tm.graph.get_node_by_name("c1_out").as_unique()
    assert isinstance(node, TensorNode)
    assert node.qparams is not None
    scale = 2 * node.qparams.scale[0]
    node.qparams = QParams("int8", (scale,), (0,), -128, 127, None, True)
    tmconvert.to_onnx(tm, tmp_path / "q.onnx", quantized=True)
    constants = onnx.load(tmp_path / "q.onnx").graph.initializer
    assert any(np.isclose(onnx.numpy_helper.to_array(each), scale).any() for each in constants)
