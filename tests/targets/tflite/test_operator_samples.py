"""TFLite operators that no op is lowered to, in LiteRT; and that each record is tried somewhere."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from tests.targets.tflite.integer_samples import SAMPLES as KERNEL_SAMPLES
from tests.targets.tflite.operator_samples import SAMPLES, OperatorSample
from tests.targets.tflite.test_integer_kernels import MODES, run
from tmconvert.targets.tflite.operators import SPECS

ROOT = Path(__file__).parents[3]
# Operators of the schema that nothing writes yet: their records say how a file has them, and nothing runs.
NOT_TRIED = {
    *("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM", "RNN", "SVDF"),
    *("UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN", "FAKE_QUANT"),
    *("CONV_3D", "CONV_3D_TRANSPOSE", "L2_POOL_2D", "MATRIX_DIAG", "MATRIX_SET_DIAG"),
    *("NON_MAX_SUPPRESSION_V5", "RFFT2D", "REAL", "IMAG", "COMPLEX_ABS", "SPARSE_TO_DENSE", "UNIQUE"),
    "UNSORTED_SEGMENT_SUM",
}


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.type)
def test_sample(sample: OperatorSample, mode: object, tmp_path: Path) -> None:
    graph = sample.graph()
    inputs = dict(zip(graph.input_names, sample.inputs, strict=True))
    found = run(graph, inputs, mode, tmp_path / "m.tflite")["y"]
    assert found.dtype == sample.result.dtype
    np.testing.assert_allclose(found, sample.result, rtol=1e-6, atol=1e-6)


def written() -> set[str]:
    """The names among the literals of symbolics and of what rewrites operators."""
    paths = [*(ROOT / "symbolics").rglob("*.py"), *(ROOT / "convert/targets/tflite").rglob("*.py")]
    paths = [path for path in paths if path.parent.name != "operators" and not path.match("onnx_*")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in paths]
    literals = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return {node.value for node in literals if isinstance(node.value, str)}


@pytest.mark.slow
def test_each_record_is_tried() -> None:
    """By the ops that are lowered to it, as an integer kernel, or by a sample of its own."""
    tried = written() | {sample.type for sample in (*KERNEL_SAMPLES, *SAMPLES)}
    builtin = {name for name, each in SPECS.items() if each.code is not None}
    assert builtin - tried == NOT_TRIED
