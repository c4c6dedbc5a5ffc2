"""Forms that exporters write: einsums with ellipses, padding of all types, squeezed sizes, random numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tmconvert
from tests.frontends.onnx.models import of_nodes, saved
from tests.frontends.onnx.one_node import check, floats, model_of
from tmconvert.errors import LoadError, UnsupportedError
from tmconvert.targets.registry import runtime_for

pytest.importorskip("onnxruntime")

EINSUMS = [
    ("...d,hd->...hd", (2, 3, 4), (5, 4)),
    ("...hd,hod->...ho", (2, 3, 4, 5), (4, 6, 5)),
    ("...id,...jd->...ij", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("...ii->...i", (2, 3, 3)),
    ("...ii", (2, 3, 3)),
    ("...", (2, 3)),
    ("i...->...i", (2, 3, 4)),
    ("b...a,b...c->b...", (2, 3, 4, 5), (2, 3, 4, 6)),
    ("...i , ... j -> ...ij", (2, 3), (2, 4)),
    ("...a,b->ab...", (2, 3), (4,)),
    ("ij...,jk...->ik...", (2, 3, 5), (3, 4, 5)),
    ("ba,cb", (2, 3), (4, 2)),
]
# ONNX Runtime takes ellipses of one rank only; the standard has NumPy's.
BROADCAST = [
    ("...id,...jd->...ij", (2, 3, 4, 5), (3, 6, 5)),
    ("...id,...jd", (2, 1, 4, 5), (3, 6, 5)),
    ("i...,j...", (4, 3), (5, 2, 3)),
    ("...,...->...", (2, 3), (3,)),
]


@pytest.mark.parametrize("case", EINSUMS, ids=str)
def test_einsum(case: Any, tmp_path: Path) -> None:
    equation, *shapes = case
    check(tmp_path, "Einsum", [floats(*shape) for shape in shapes], equation=equation)


@pytest.mark.parametrize("case", BROADCAST, ids=str)
def test_ellipses_of_einsum_broadcast(case: Any, tmp_path: Path) -> None:
    equation, *shapes = case
    arrays = [floats(*shape) for shape in shapes]
    onnx.save(model_of("Einsum", arrays, equation=equation), str(tmp_path / "one.onnx"))
    found = tmconvert.load(tmp_path / "one.onnx")(*arrays)
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "reason"), [("...i->i", "lacks the axes of the ellipsis"), ("aB", "write the result")]
)
def test_einsums_without_one_meaning_are_refused(equation: str, reason: str, tmp_path: Path) -> None:
    onnx.save(model_of("Einsum", [floats(2, 3)], equation=equation), str(tmp_path / "one.onnx"))
    with pytest.raises(UnsupportedError, match=reason):
        tmconvert.to_tflite(tmp_path / "one.onnx", tmp_path / "made.tflite")


TYPES = ["bool", "int8", "int32", "int64", "uint8", "uint32", "uint64", "float32", "float64"]


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
@pytest.mark.parametrize("dtype", TYPES)
def test_pad(dtype: str, mode: str, tmp_path: Path) -> None:
    x = (floats(3, 4) * 10).astype(dtype)
    if dtype.startswith("uint"):
        x[0, 0] = np.iinfo(dtype).max
    value = np.array(np.iinfo(dtype).max if dtype.startswith("uint") else 1, dtype)
    inputs = [x, np.array([1, -1, 0, 2]), *([value] if mode == "constant" else [])]
    check(tmp_path, "Pad", inputs, constant=(1, 2), opset=19, mode=mode)
    made = tmconvert.to_onnx(tmp_path / "one.onnx", tmp_path / "made.onnx")
    assert made.verified


def test_pad_of_strings_is_refused(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Pad", ["x", "pads"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.STRING, [2])],
        [helper.make_tensor_value_info("y", TensorProto.STRING, [3])],
        [numpy_helper.from_array(np.array([0, 1]), "pads")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), tmp_path / "s.onnx")
    with pytest.raises(LoadError, match="strings"):
        tmconvert.to_onnx(tmp_path / "s.onnx", tmp_path / "made.onnx")


def squeezed(tmp_path: Path, computed: str, shape: str) -> Path:
    """Writes what PyTorch exports for ``squeeze`` of an axis of unknown size."""
    text = f"""<ir_version: 8, opset_import: ["" : 16]> net (float{shape} x) => (float y) <
        int64 at = {{0}}, int64 one = {{1}}, float two = {{2}}> {{
        {computed}
        sizes = Shape(h)
        size = Gather<axis = 0>(sizes, at)
        is_one = Equal(size, one)
        s = If (is_one) <
            then_branch = a () => (float u) {{ u = Squeeze(h, at) }},
            else_branch = b () => (float v) {{ v = Identity(h) }}>
        y = Mul(s, two) }}"""
    return saved(tmp_path / "net.onnx", text)


@pytest.mark.parametrize("target", ["onnx", "tflite"])
def test_squeeze_of_an_open_size(target: str, tmp_path: Path) -> None:
    path = squeezed(tmp_path, "h = Relu(x)", "[n, 3]")
    convert = getattr(tmconvert, f"to_{target}")
    with pytest.raises(UnsupportedError, match="n >= 2 only") as caught:
        convert(path, tmp_path / "made")
    assert caught.value.code == "TM2030"
    assert convert(path, tmp_path / "made", accept_range=True).verified


def test_squeeze_of_a_data_dependent_size(tmp_path: Path) -> None:
    computed = "w = NonZero(x)\n p = Transpose(w)\n h = GatherND(x, p)"
    path = squeezed(tmp_path, computed, "[6]")
    report = tmconvert.to_onnx(path, tmp_path / "made.onnx")
    assert report.verified
    assert any("found_1 >= 2" in note for note in report.notes)


def test_a_reshape_states_a_data_dependent_size(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Equal", ["x", "most"], ["is_most"]),
        helper.make_node("NonZero", ["is_most"], ["rows"]),
        helper.make_node("Transpose", ["rows"], ["places"]),
        helper.make_node("Reshape", ["places", "one"], ["y"]),
    ]
    onnx.save(of_nodes(nodes, {"x": [7]}, ["y"], {"one": np.array([1])}), tmp_path / "net.onnx")
    for target in ("onnx", "tflite"):
        report = getattr(tmconvert, f"to_{target}")(tmp_path / "net.onnx", tmp_path / f"made.{target}")
        assert report.verified
        assert any("found_1 == 1" in note for note in report.notes)


@pytest.mark.parametrize("op", ["RandomNormalLike", "RandomUniformLike", "Bernoulli", "RandomNormal"])
def test_random_numbers_need_permission(op: str, tmp_path: Path) -> None:
    given, attributes = ([], {"shape": [2, 3]}) if op == "RandomNormal" else (["p"], {})
    nodes = [
        helper.make_node("Sigmoid", ["x"], ["p"]),
        helper.make_node(op, given, ["r"], **attributes),
        helper.make_node("Add", ["p", "r"], ["y"]),
    ]
    onnx.save(of_nodes(nodes, {"x": [2, 3]}, ["y"]), tmp_path / "net.onnx")
    with pytest.raises(UnsupportedError, match=r"makes random numbers(.|\n)*--allow-random"):
        tmconvert.to_onnx(tmp_path / "net.onnx", tmp_path / "made.onnx")
    assert tmconvert.to_onnx(tmp_path / "net.onnx", tmp_path / "made.onnx", allow_random=True).verified


@pytest.mark.parametrize("op", ["Div", "Mod"])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8"])
def test_divisors_of_integers_are_not_0_in_a_verification(op: str, dtype: str, tmp_path: Path) -> None:
    onnx.save(model_of(op, [np.ones((2, 3), dtype)] * 2), tmp_path / "net.onnx")
    for target in ("onnx", "tflite"):
        convert = getattr(tmconvert, f"to_{target}")
        assert convert(tmp_path / "net.onnx", tmp_path / f"made.{target}").verified


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((3,), (2, 3, 4))], ids=str)
def test_products_of_integer_vectors(shapes: Any, dtype: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    check(tmp_path, "MatMul", [rng.integers(0, 9, shape).astype(dtype) for shape in shapes])


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [2, 3])
def test_transposed_convolutions_of_the_same_size(
    size: int, stride: int, auto_pad: str, tmp_path: Path
) -> None:
    inputs = [floats(1, 2, 4, 5), floats(2, 3, size, size)]
    check(tmp_path, "ConvTranspose", inputs, auto_pad=auto_pad, strides=[stride] * 2)


@pytest.mark.parametrize("shape", [[11, 13], [11, 12], [9, 10]], ids=str)
@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_transposed_convolutions_to_a_shape(shape: list[int], auto_pad: str, tmp_path: Path) -> None:
    inputs = [floats(1, 2, 5, 6), floats(2, 3, 3, 3)]
    check(tmp_path, "ConvTranspose", inputs, auto_pad=auto_pad, strides=[2, 2], output_shape=shape)


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
def test_exclusive_sums_keep_open_sizes(op: str, reverse: int, tmp_path: Path) -> None:
    if op == "CumProd" and onnx.defs.onnx_opset_version() < 26:
        pytest.skip("this release of onnx has no CumProd")
    text = f"""<ir_version: 9, opset_import: ["" : {26 if op == "CumProd" else 17}]>
        agraph (float[b,4,t] x) => (float[b,4,t] y) {{
            a = Constant<value_int=2>()
            y = {op}<exclusive=1,reverse={reverse}>(x, a)
        }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    for target in ("onnx", "tflite"):
        path = tmp_path / f"o.{target}"
        options = {"opset": 17} if target == "onnx" else {"io_layout": "source"}
        report = getattr(tmconvert, f"to_{target}")(tmp_path / "m.onnx", path, **options)
        assert report.inputs[0]["shape"] == ["b", 4, "t"]
        x = np.random.default_rng(0).standard_normal((3, 4, 5)).astype(np.float32)
        turned = x[..., ::-1] if reverse else x
        function, neutral = (np.cumsum, 0.0) if op == "CumSum" else (np.cumprod, 1.0)
        moved = np.concatenate([np.full((3, 4, 1), neutral, np.float32), turned[..., :-1]], 2)
        wanted = function(moved, 2)
        runtime = runtime_for(target, path)
        assert runtime is not None
        (found,) = runtime.run([path], {"x": x}, ["y"])
        np.testing.assert_allclose(found, wanted[..., ::-1] if reverse else wanted, rtol=1e-5, atol=1e-5)
