"""Files of TensorFlow's converter: loops over lists of tensors, recurrent layers, segments, boxes.

``tests/data/tensorflow`` has the files, and ``make.py`` that writes them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import tmconvert
from tests.frontends.tflite.models import (
    Call,
    Fixed,
    assert_same,
    floats,
    in_litert,
    ints,
    listed,
    number,
    saved,
)
from tmconvert.errors import LoadError, UnsupportedError, UsageError

pytest.importorskip("ai_edge_litert.interpreter")
FILES = sorted((Path(__file__).parents[2] / "data" / "tensorflow").glob("*.tflite"))
FILES = [path for path in FILES if path.stem != "signatures"]
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_converts(path: Path, target: str, tmp_path: Path) -> None:
    """A row is read and written at a counter, one tensor is two inputs of a loop, an index is an input."""
    assert getattr(tmconvert, f"to_{target}")(path, tmp_path / f"made.{target}").verified


def test_a_dynamic_range_file_says_how_far_its_kernels_are(tmp_path: Path) -> None:
    path = next(each for each in FILES if each.stem == "dynamic_range")
    notes = tmconvert.to_onnx(path, tmp_path / "made.onnx").notes
    assert any("computes in integers, is 4" in note and "dB from the float file" in note for note in notes)


SIGNATURES = Path(__file__).parents[2] / "data" / "tensorflow" / "signatures.tflite"


def test_a_file_with_several_signatures_needs_the_name_of_one(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match=r"2 signatures: decode, encode(.|\n)*--signature decode") as caught:
        tmconvert.to_onnx(SIGNATURES, tmp_path / "made.onnx")
    assert caught.value.code == "TM1042"
    with pytest.raises(UsageError, match=r"no signature 'x'(.|\n)*decode, encode"):
        tmconvert.load(SIGNATURES, signature="x")
    with pytest.raises(UsageError, match="applies to TFLite files"):
        tmconvert.load(FILES[0].parents[1] / "mobilenet_v1.tm", signature="x")


@pytest.mark.parametrize("name", ["encode", "decode"])
def test_a_signature_is_run_in_litert(name: str, tmp_path: Path) -> None:
    module = tmconvert.load(SIGNATURES, signature=name)
    given = {"encode": {"x": floats(1, 3)}, "decode": {"c": floats(1, 2)}}[name]
    from ai_edge_litert.interpreter import Interpreter

    expected = Interpreter(model_path=str(SIGNATURES)).get_signature_runner(name)(**given)
    found = tmconvert.run(module, given)
    assert list(found) == list(expected)
    for each in expected:
        np.testing.assert_allclose(found[each], expected[each], rtol=1e-6)
    for target in ("onnx", "tflite"):
        report = getattr(tmconvert, f"to_{target}")(SIGNATURES, tmp_path / f"made.{target}", signature=name)
        assert report.verified
    assert module.original.run(list(given.values())) is not None


def test_a_written_row_needs_no_data_dependent_size(tmp_path: Path) -> None:
    path = next(each for each in FILES if each.stem == "map_fn_i")
    tmconvert.to_onnx(path, tmp_path / "made.onnx")
    (loop,) = (node for node in onnx.load(tmp_path / "made.onnx").graph.node if node.op_type == "Loop")
    inner = [node.op_type for each in loop.attribute if each.name == "body" for node in each.g.node]
    assert "Where" in inner and "Slice" not in inner


SEGMENTS = Fixed(np.array([2, 0, -1, 2, 3], np.int32))
BOXES = np.array(
    [[0, 0, 1, 1], [1, 1.1, 0, 0.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]],
    np.float32,
)
SCORES = np.array([0.9, 0.75, 0.6, 0.95, 0.5, 0.3], np.float32)


def suppression(kind: str, most: int, overlap: float, threshold: float) -> Call:
    limits = [Fixed(np.float32(each)) for each in (overlap, threshold)]
    sigma = [Fixed(np.float32(0))] if kind.endswith("5") else []
    results = ("int32", "int32") if not sigma else ("int32", "float32", "int32")
    return Call(kind, [BOXES, SCORES, number(most), *limits, *sigma], {}, results)


CALLS = [
    *(
        Call(f"UNSORTED_SEGMENT_{kind}", [floats(5, 3), SEGMENTS, number(5)])
        for kind in ("SUM", "PROD", "MAX", "MIN")
    ),
    Call("UNSORTED_SEGMENT_SUM", [floats(2, 2, 3), Fixed(np.array([[0, 2], [2, -1]], np.int32)), number(3)]),
    Call("SEGMENT_SUM", [floats(5, 3), ints(0, 0, 1, 2, 2)]),
    Call(
        "BUCKETIZE", [np.array([-1, 0, 0.5, 1, 7], np.float32)], {"boundaries": [0.0, 1.0, 2.0]}, ("int32",)
    ),
    Call(
        "REVERSE_SEQUENCE",
        [floats(3, 5, 2), Fixed(np.array([2, 5, 1], np.int32))],
        {"seq_dim": 1, "batch_dim": 0},
    ),
    Call("MATRIX_DIAG", [floats(2, 3)]),
    Call("MATRIX_SET_DIAG", [floats(2, 3, 4), floats(2, 3)]),
    Call("MATRIX_SET_DIAG", [floats(4, 3), floats(3)]),
    Call(
        "CONV_3D_TRANSPOSE",
        [
            ints(1, 4, 6, 5, 2),
            Fixed(RNG.standard_normal((2, 3, 2, 2, 4)).astype(np.float32)),
            floats(1, 2, 3, 3, 4),
        ],
        {"padding": "SAME", "stride_d": 2, "stride_h": 2, "stride_w": 2},
    ),
    *(
        suppression(f"NON_MAX_SUPPRESSION_V{version}", most, overlap, threshold)
        for version in (4, 5)
        for most, overlap, threshold in ((3, 0.5, -1.0), (6, 0.5, 0.4), (2, 0.9, 0.0), (6, 0.81818181, 0.0))
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.type)
def test_an_operator_computes_what_litert_does(call: Call, tmp_path: Path) -> None:
    path = saved(call.graph(), tmp_path / "call.tflite")
    assert_same(listed(tmconvert.load(path)(*call.given)), in_litert(path, *call.given))
    for target in ("onnx", "tflite"):
        assert getattr(tmconvert, f"to_{target}")(path, tmp_path / f"made.{target}") is not None


def test_random_numbers_need_permission(tmp_path: Path) -> None:
    path = saved(Call("RANDOM_UNIFORM", [ints(2, 3)], shape=(2, 3)).graph(), tmp_path / "call.tflite")
    with pytest.raises(UnsupportedError, match=r"makes random numbers(.|\n)*--allow-random"):
        tmconvert.to_onnx(path, tmp_path / "made.onnx")
    notes = tmconvert.to_onnx(path, tmp_path / "made.onnx", allow_random=True).notes
    assert any("the distribution of" in note for note in notes)
