"""Resize and Upsample."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest

import tmconvert
import tmconvert.errors
from tests.frontends.onnx.one_node import check, floats, model_of, value

SHAPE = (1, 2, 5, 6)
COORDINATES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]
SCALES = [[1, 1, 2, 2], [1, 1, 1.5, 0.6], [1, 1, 3, 0.5], [1, 1, 0.4, 2.3]]


def resized(tmp_path, *, scales=None, sizes=None, roi=None, shape=SHAPE, dtype=np.float32, **attributes):
    x = (10 * floats(*shape)).astype(dtype)
    inputs = [x, roi and value(roi), scales and value(scales), sizes and value(sizes, np.int64)]
    while inputs[-1] is None:
        inputs.pop()
    attributes.setdefault("opset", 19)
    check(tmp_path, "Resize", inputs, constant=(1, 2, 3), **attributes)


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize(
    ("mode", "rounding"), list(itertools.product([COORDINATES[0], *COORDINATES[2:]], ROUNDINGS))
)
def test_nearest(tmp_path, mode, rounding, scales):
    options = {"nearest_mode": rounding, "coordinate_transformation_mode": mode}
    if mode == "align_corners":
        resized(tmp_path, sizes=[1, 2, *(int(6 * scale) for scale in scales[2:])], **options)
    else:
        resized(tmp_path, scales=scales, **options)


def test_scales_of_which_onnx_and_onnx_runtime_make_different_things(tmp_path):
    with pytest.raises(tmconvert.errors.TmconvertError, match="align_corners"):
        resized(tmp_path, scales=SCALES[1], coordinate_transformation_mode="align_corners", mode="linear")


@pytest.mark.parametrize("antialias", [0, 1])
@pytest.mark.parametrize("exclude", [0, 1])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_mixing(tmp_path, coordinates, mode, exclude, antialias):
    options = {"coordinate_transformation_mode": coordinates, "mode": mode, "antialias": antialias}
    if mode == "cubic" or antialias:
        options |= {"exclude_outside": exclude}
    if mode == "cubic":
        options |= {"cubic_coeff_a": -0.5}
    for sizes in ([1, 2, 7, 3], [1, 2, 4, 12]):
        resized(tmp_path, sizes=sizes, **options)
    if coordinates != "align_corners":
        resized(tmp_path, scales=SCALES[1], **options)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_axes_policies_and_regions(tmp_path, mode):
    for policy in ("not_larger", "not_smaller"):
        resized(tmp_path, sizes=[9, 9], mode=mode, keep_aspect_ratio_policy=policy, axes=[2, 3])
    resized(tmp_path, sizes=[9, 4], mode=mode, axes=[3, 2])
    if mode != "cubic":  # which ONNX Runtime has for the last two axes of four
        resized(tmp_path, scales=[1, 2, 2, 1], shape=(1, 5, 6, 3), mode=mode)
        resized(tmp_path, scales=[1, 1, 2.5], shape=(1, 5, 6), mode=mode)
    region = [0, 0, 0.2, -0.1, 1, 1, 0.8, 1.2]
    options = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 3.0}
    resized(tmp_path, sizes=[1, 2, 4, 7], roi=region, mode=mode, **options)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_integers(tmp_path, dtype):
    resized(tmp_path, scales=[1, 1, 2, 1.5], dtype=dtype, mode="nearest")


@pytest.mark.parametrize(("op", "opset"), [("Resize", 10), ("Upsample", 9)])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_versions_before_11(tmp_path, op, opset, mode):
    for scales in ([1, 1, 2, 2], [1, 1, 1.5, 1.3], *([[1, 1, 0.6, 0.4]] if op == "Resize" else [])):
        check(tmp_path, op, [floats(*SHAPE), value(scales)], constant=(1,), opset=opset, mode=mode)


@pytest.mark.parametrize(
    ("attributes", "op"),
    [
        (
            {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
            "nearest2d",
        ),
        ({"mode": "linear"}, "bilinear2d"),
        ({"mode": "linear", "coordinate_transformation_mode": "align_corners"}, "bilinear2d"),
        ({"mode": "cubic"}, "bicubic2d"),
    ],
)
def test_coordinates_of_pytorch_are_its_ops(tmp_path, attributes, op):
    inputs = [floats(*SHAPE), None, value([1, 1, 2, 2])]
    onnx.save(model_of("Resize", inputs, constant=(2,), opset=19, **attributes), str(tmp_path / "one.onnx"))
    graph = tmconvert.normalize(tmconvert.load(tmp_path / "one.onnx")).graph
    assert graph.find_nodes(op="call_function", target=f"aten::upsample_{op}")


def test_channels_in_the_last_axis(tmp_path):
    inputs = [floats(1, 5, 6, 3), None, value([1, 2, 2, 1])]
    model = model_of("Resize", inputs, constant=(2,), opset=19, mode="linear")
    onnx.save(model, str(tmp_path / "one.onnx"))
    graph = tmconvert.normalize(tmconvert.load(tmp_path / "one.onnx")).graph
    assert graph.find_nodes(op="call_function", target="aten::upsample_bilinear2d")


def test_sizes_that_no_memory_holds(tmp_path):
    inputs = [floats(1, 1, 2, 2), None, None, value([1, 1, 1 << 40, 2], np.int64)]
    onnx.save(model_of("Resize", inputs, constant=(3,), opset=19, mode="linear"), str(tmp_path / "one.onnx"))
    with pytest.raises(tmconvert.errors.TmconvertError, match="too large"):
        tmconvert.normalize(tmconvert.load(tmp_path / "one.onnx"))


IMAGE = "float[n, 2, h, w] x"
SIZES = [(1, 5, 7), (3, 10, 9), (2, 64, 1)]


def resized_openly(folder, attributes, factors="1, 1, 1.7, 0.6", opset=18, target="onnx"):
    """Converts a Resize with open sizes, and compares it with the source at others."""
    text = f"""net ({IMAGE}) => (float[a, b, c, d] y) <float[4] s = {{{factors}}}>
        {{ y = Resize <{attributes}> (x, , s) }}"""
    return compared_openly(folder, text, opset, target)


def compared_openly(folder, text, opset=18, target="onnx", feeds=None):
    source, made = folder / "net.onnx", folder / f"out.{target}"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]>\n{text}'), source)
    to = tmconvert.to_onnx if target == "onnx" else tmconvert.to_tflite
    to(source, made, **({"opset": opset} if target == "onnx" else {"io_layout": "source"}))
    for sizes in SIZES:
        x = floats(sizes[0], 2, *sizes[1:])
        given = {"x": x, **(feeds or {})}
        session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
        (wanted,) = session.run(None, given)
        (found,) = tmconvert.run(made, given).values()
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4, err_msg=str(sizes))
    return [node.op_type for node in onnx.load(made).graph.node] if target == "onnx" else []


@pytest.mark.parametrize("target", ["onnx", "tflite"])
@pytest.mark.parametrize(
    "attributes",
    [
        'mode = "linear", coordinate_transformation_mode = "asymmetric"',
        'mode = "cubic", exclude_outside = 1, cubic_coeff_a = -0.5',
        'nearest_mode = "ceil"',
        'nearest_mode = "round_prefer_ceil", coordinate_transformation_mode = "pytorch_half_pixel"',
    ],
)
def test_open_sizes_in_any_coordinates(tmp_path, attributes, target):
    operators = resized_openly(tmp_path, attributes, target=target)
    assert target == "tflite" or operators.count("Resize") == 1


def test_antialiasing_of_open_sizes_is_the_operator_of_opset_18(tmp_path):
    assert "Resize" in resized_openly(tmp_path, 'mode = "linear", antialias = 1', "1, 1, 0.5, 0.6")
    with pytest.raises(tmconvert.errors.UnsupportedError, match="antialiasing of a dynamic axis: only ONNX"):
        resized_openly(tmp_path, 'mode = "linear", antialias = 1', "1, 1, 0.5, 0.6", target="tflite")


@pytest.mark.parametrize("factor", ["0.7", "0.1", "0.3333333"])
def test_open_sizes_times_a_factor_are_rounded_in_float32(tmp_path, factor):
    resized_openly(tmp_path, 'mode = "linear"', f"1, 1, {factor}, 1.1")


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_sizes_that_are_an_input(tmp_path, target):
    text = f"""net ({IMAGE}, int64[2] k) => (float[a, b, c, d] y) <int64[1] o = {{0}}, int64[1] t = {{2}}>
        {{ s = Shape (x)  l = Slice (s, o, t, o)  q = Concat <axis = 0> (l, k)
           y = Resize <mode = "linear"> (x, , , q) }}"""
    compared_openly(tmp_path, text, 13, target, {"k": np.array([7, 3])})


def test_a_size_next_to_an_equal_example_is_resized(tmp_path):
    text = f"""net ({IMAGE}) => (float[a, b, c, d] y)
        <int64[2] k = {{64, 64}}, int64[1] o = {{0}}, int64[1] t = {{2}}>
        {{ s = Shape (x)  l = Slice (s, o, t, o)  q = Concat <axis = 0> (l, k)
           y = Resize <mode = "linear", coordinate_transformation_mode = "asymmetric"> (x, , , q) }}"""
    compared_openly(tmp_path, text, 13)
