"""Windows, padding and slices of axes of open sizes, which are right at all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser

import tmconvert
from tmconvert.errors import UnsupportedError

runtime = pytest.importorskip("onnxruntime")
SIZES = [(1, 5, 7), (2, 8, 8), (3, 13, 6), (1, 130, 4)]
IMAGE = "float[n, 2, h, w] x"


def compared(folder: Path, inputs: str, nodes: str, target: str, atol: float = 1e-5) -> None:
    """Converts a graph of opset 17, and compares it with ONNX Runtime on the source at several sizes."""
    source, made = folder / "net.onnx", folder / f"out.{target}"
    head = '<ir_version: 8, opset_import: ["" : 17]>\n'
    onnx.save(parser.parse_model(f"{head} net ({inputs}) => (float[a, b, c, d] y) {nodes}"), source)
    if target == "onnx":
        tmconvert.to_onnx(source, made)
    else:
        tmconvert.to_tflite(source, made, io_layout="source")
    session = runtime.InferenceSession(source, providers=["CPUExecutionProvider"])
    for n, h, w in SIZES:
        feeds = {"x": np.random.default_rng(0).standard_normal((n, 2, h, w)).astype(np.float32)}
        (found,) = tmconvert.run(made, feeds).values()
        np.testing.assert_allclose(
            found, session.run(None, feeds)[0], rtol=1e-4, atol=atol, err_msg=f"{h, w}"
        )


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize(
    "nodes",
    [
        """<int64[1] b = {2}, int64[1] e = {3}, int64[1] o = {0}, int64[1] f = {4}, int64[2] z = {0, 0},
        int64[1] i = {1}> { s = Shape (x)  h = Slice (s, b, e, o)  r = Mod (h, f)  m = Sub (f, r)
        p = Mod (m, f)  q = Concat <axis = 0> (z, o, i, z, p, o)  y = Pad (x, q) }""",
        '{ y = MaxPool <kernel_shape = [3, 3], strides = [2, 2], auto_pad = "SAME_LOWER"> (x) }',
        '{ y = AveragePool <kernel_shape = [2, 2], strides = [2, 2], auto_pad = "SAME_UPPER"> (x) }',
        """{ y = AveragePool <kernel_shape = [3, 2], strides = [2, 2], pads = [0, 1, 1, 0], ceil_mode = 1>
        (x) }""",
        """<int64[1] b = {-1}, int64[1] e = {-99}, int64[1] a = {2}, int64[1] s = {-1}>
        { y = Slice (x, b, e, a, s) }""",
        """<int64[1] b = {-2}, int64[1] e = {0}, int64[1] a = {2}, int64[1] s = {-2}>
        { y = Slice (x, b, e, a, s) }""",
        """<int64[1] b = {-3}, int64[1] e = {99}, int64[1] a = {3}, int64[1] o = {0}, int64[1] m = {-1},
        int64[3] f = {0, 0, -1}> { c = Slice (x, b, e, a)  d = Slice (c, o, m, a)  s = Shape (d)
        r = Reshape (d, f)  t = Softmax <axis = 2> (r)  y = Reshape (t, s) }""",
    ],
    ids=["multiple", "lower", "upper", "ceil", "reversed", "backwards", "softmax of a slice"],
)
def test_all_sizes_are_right(tmp_path: Path, nodes: str, target: str) -> None:
    compared(tmp_path, IMAGE, nodes, target)


@pytest.mark.parametrize(
    ("operator", "what"),
    [
        ("Squeeze", "the axes of Squeeze are"),
        ("Unsqueeze", "the axes of Unsqueeze are"),
        ("ReduceSum", "the axes of a reduction are"),
        ("Pad", "the sizes of Pad are"),
        ("CumSum", "the axis of a cumulative operator is"),
    ],
)
def test_what_an_input_cannot_decide_is_refused_by_name(tmp_path: Path, operator: str, what: str) -> None:
    count = 8 if operator == "Pad" else 1
    source = tmp_path / "net.onnx"
    text = f"net ({IMAGE}, int64[{count}] k) => (float[a, b, c, d] y) {{ y = {operator} (x, k) }}"
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}'), source)
    with pytest.raises(UnsupportedError, match=f"{what} computed from the data") as caught:
        tmconvert.to_tflite(source, tmp_path / "out.tflite")
    assert caught.value.code != "TM2031"
    assert tmconvert.to_onnx(source, tmp_path / "out.onnx").operators == 1  # where it stays as it is


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_fourier_transforms_of_an_open_axis_and_back(tmp_path: Path, target: str) -> None:
    nodes = """<int64[1] a = {4}, float[2] m = {1, 0.5}>
        { u = Unsqueeze (x, a)  t = DFT <axis = 2> (u)  s = Mul (t, m)
          r = DFT <axis = 2, inverse = 1> (s)  y = ReduceSum <keepdims = 0> (r, a) }"""
    compared(tmp_path, IMAGE, nodes, target, 1e-3)  # to which the DFT of ONNX Runtime is exact


@pytest.mark.parametrize("centre", [0, 1])
def test_boxes_of_an_open_batch_are_suppressed_by_one_operator(tmp_path: Path, centre: int) -> None:
    source, made = tmp_path / "net.onnx", tmp_path / "out.onnx"
    text = f"""net (float[n, k, 4] b, float[n, 80, k] s) => (int64[m, 3] y)
        <int64 t = {{3}}, float o = {{0.3}}, float q = {{0.2}}>
        {{ y = NonMaxSuppression <center_point_box = {centre}> (b, s, t, o, q) }}"""
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}'), source)
    tmconvert.to_onnx(source, made)
    assert [node.op_type for node in onnx.load(made).graph.node] == ["NonMaxSuppression"]
    rng = np.random.default_rng(0)
    for n, k in ((1, 4), (3, 20)):
        feeds = {"b": rng.random((n, k, 4), np.float32), "s": rng.random((n, 80, k), np.float32)}
        (found,) = tmconvert.run(made, feeds).values()
        session = runtime.InferenceSession(source, providers=["CPUExecutionProvider"])
        np.testing.assert_array_equal(found, session.run(None, feeds)[0])


@pytest.mark.parametrize(("size", "note"), [(2, "h >= 2"), (3, "h >= 3")])
def test_a_window_that_is_larger_than_the_image_is_out_of_range(tmp_path: Path, size: int, note: str) -> None:
    source = tmp_path / "net.onnx"  # of which ONNX Runtime makes a row, and LiteRT none
    nodes = f"{{ y = MaxPool <kernel_shape = [{size}, 1], strides = [2, 1]> (x) }}"
    text = f"net ({IMAGE}) => (float[a, b, c, d] y) {nodes}"
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}'), source)
    report = tmconvert.to_tflite(source, tmp_path / "out.tflite")
    assert report.notes == [f"the file is valid for these sizes: {note}"]


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize(("start", "step"), [(-2, 1), (1, 2), (-1, -1), (-3, -2)], ids=str)
def test_bounds_from_the_data_beyond_an_axis(tmp_path: Path, start: int, step: int, target: str) -> None:
    source, made = tmp_path / "net.onnx", tmp_path / f"out.{target}"
    bounds = f"<int64[1] b = {{{start}}}, int64[1] a = {{0}}, int64[1] k = {{{step}}}>"
    text = f"net (float[s, 2] x, int64[1] e) => (float[a, 2] y) {bounds} {{ y = Slice (x, b, e, a, k) }}"
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}'), source)
    getattr(tmconvert, f"to_{target}")(source, made)
    session = runtime.InferenceSession(source, providers=["CPUExecutionProvider"])
    for size in (1, 2, 7):
        for end in (-9, -2, 0, 1, 99):
            feeds = {"x": np.arange(2.0 * size, dtype=np.float32).reshape(size, 2), "e": np.array([end])}
            (found,) = tmconvert.run(made, feeds).values()
            np.testing.assert_array_equal(found, session.run(None, feeds)[0], f"{size, end}")


# the quotient of the sizes %s and those of %s, by which the image %s is resized to u
QUOTIENT = """<int64[1] b = {2}, int64[1] e = {4}, int64[1] o = {0}, float[2] one = {1, 1}, float[0] r = {},
    float[2] fixed = {14, 14}>
    { d = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (x)  f = Shape (x)
      g = Slice (f, b, e, o)  whole = Cast <to = 1> (g)  i = Shape (d)  j = Slice (i, b, e, o)
      half = Cast <to = 1> (j)  m = ReduceMax <keepdims = 0> (x)  v = Max (m, fixed)  q = Div (%s, %s)
      k = Concat <axis = 0> (one, q)  u = Resize <mode = "linear"> (%s, r, k)  y = %s }"""


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_scales_that_are_quotients_of_sizes_stay_open(tmp_path: Path, target: str) -> None:
    compared(tmp_path, IMAGE, QUOTIENT % ("whole", "half", "d", "Add (u, x)"), target)


@pytest.mark.parametrize(
    ("sizes", "code", "reason"),
    [
        (
            ("fixed", "whole", "x"),
            "TM2030",
            r"valid for floor\(float32\(float32\(14 / h\) \* h\)\) == 14",
        ),
        (("whole", "half", "x"), "TM2031", "the quotient h / .* not of the size h of its axis"),
        (("v", "half", "d"), "TM2003", "a scale of Resize is computed from the data"),
    ],
    ids=["rounded", "another axis", "data"],
)
def test_scales_that_make_other_sizes_are_refused(
    tmp_path: Path, sizes: tuple[str, ...], code: str, reason: str
) -> None:
    with pytest.raises(UnsupportedError, match=reason) as caught:
        compared(tmp_path, IMAGE, QUOTIENT % (*sizes, "Relu (u)"), "tflite" if code == "TM2003" else "onnx")
    assert caught.value.code == code


@pytest.mark.parametrize("ratio", [0, 2])
def test_boxes_of_an_open_image_in_tflite(tmp_path: Path, ratio: int) -> None:
    source, made = tmp_path / "net.onnx", tmp_path / "out.tflite"
    text = f"""net (float[n, 2, h, w] x, float[k, 4] r, int64[k] i) => (float[a, b, c, d] y)
        {{ y = RoiAlign <output_height = 3, output_width = 2, sampling_ratio = {ratio}> (x, r, i) }}"""
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 16]>\n{text}'), source)
    tmconvert.to_tflite(source, made, io_layout="source")
    session = runtime.InferenceSession(source, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    for n, h, w, k in ((1, 5, 7, 1), (2, 20, 3, 5)):
        boxes = np.sort(rng.random((k, 2, 2)) * [w, h], axis=1).reshape(k, 4).astype(np.float32)
        x = rng.standard_normal((n, 2, h, w)).astype(np.float32)
        feeds = {"x": x, "r": boxes, "i": rng.integers(0, n, k)}
        (found,) = tmconvert.run(made, feeds).values()
        np.testing.assert_allclose(found, session.run(None, feeds)[0], rtol=1e-4, atol=1e-5)
