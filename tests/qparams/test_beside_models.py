"""Files of parameters beside a model: its names, and every tensor that the source quantizes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.models import corpus
from tmconvert.conversion.io_overrides import NO_OVERRIDES, bind_model
from tmconvert.ir import QParams, TensorNode
from tmconvert.ir.fake_quant import fake_quantize
from tmconvert.qparams.file import read_parameters
from tmconvert.qparams.records import ACTIVATION, BIAS, WEIGHT, Record
from tmconvert.symbolics.registry import catalogue
from tmconvert.targets.written_model import written_model

MODELS = sorted(
    path.stem
    for path in corpus.DATA.glob("*.tm")
    if path.stem.startswith(("qat_", "quantized_")) or path.stem.endswith("_qat")
)
TARGETS = ["onnx", "tflite", "caffe"]


def with_parameters(name: str, target: str, folder: Path, **options: Any) -> tuple[list[Path], list[Record]]:
    """The written files, and what the file beside them says."""
    path = folder / "q.json"
    report, paths = corpus.converted(name, target, folder, qparams=path, **options)
    assert report.verified
    assert any(str(path) in note for note in report.notes)
    return paths, read_parameters(path)[0]


def source_grids(name: str) -> list[QParams]:
    """What the source itself says, of each tensor that it quantizes."""
    opened = bind_model(tmconvert.load(corpus.model(name)), NO_OVERRIDES, catalogue())
    graph = opened.normalized(catalogue()).graph
    nodes = [*graph.inputs, *(node for expr in graph for node in expr.outputs)]
    grids = [node.qparams for node in nodes if isinstance(node, TensorNode) and node.uses]
    return [grid for grid in grids if grid is not None and not grid.inferred]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_names_are_those_of_the_model_and_nothing_is_left_out(name: str, target: str, tmp_path: Path) -> None:
    paths, records = with_parameters(name, target, tmp_path)
    written = written_model(paths[0])
    assert {record.name for record in records} <= set(written.tensors)
    for record in records:
        assert (record.name in written.constants) == (record.role in (WEIGHT, BIAS)), record.name
    said = {(record.scales, record.zero_points, record.quant_min, record.quant_max) for record in records}
    for grid in source_grids(name):
        assert (grid.scale, grid.zero_point, grid.quant_min, grid.quant_max) in said
    if not name.endswith("partial_float"):
        assert set(written.inputs) <= {record.name for record in records} or name.endswith("nostub")


@pytest.mark.parametrize("target", TARGETS)
def test_a_bias_has_the_scale_of_input_times_weight(target: str, tmp_path: Path) -> None:
    _, records = with_parameters("qat_small_ema", target, tmp_path)
    scales = {(record.role, np.float32(record.scales[0])) for record in records}
    for record in records:
        if record.role == BIAS:
            products = {
                np.float32(x * w)
                for kind, x in scales
                for role, w in scales
                if (kind, role) == (ACTIVATION, WEIGHT)
            }
            assert record.scales[0] in products and record.zero_points == (0,)


# ---- weights on their grids


@pytest.mark.parametrize("target", TARGETS)
def test_weights_rounded_to_their_grids(target: str, tmp_path: Path) -> None:
    name = "qat_small_ema"
    paths, records = with_parameters(name, target, tmp_path, fake_quant_weights=True)
    assert {record.role for record in records} == {ACTIVATION}
    if target != "onnx":
        return
    import onnx
    from onnx import numpy_helper

    plain = corpus.converted(name, target, tmp_path / "..", qparams=tmp_path / "all.json")[1]
    grids = {record.name: record for record in read_parameters(tmp_path / "all.json")[0]}
    before, after = (
        {each.name: numpy_helper.to_array(each) for each in onnx.load(files[0]).graph.initializer}
        for files in (plain, paths)
    )
    assert before.keys() == after.keys()
    for key, array in before.items():
        grid = grids.get(key)
        expected = array
        if grid is not None:
            qparams = QParams(grid.dtype, grid.scales, grid.zero_points, grid.quant_min, grid.quant_max)
            expected = fake_quantize(array, qparams)
        np.testing.assert_array_equal(after[key], expected)


def test_rounded_weights_without_a_file(tmp_path: Path) -> None:
    report = tmconvert.to_onnx(corpus.model("qat_small_ema"), tmp_path / "m.onnx", fake_quant_weights=True)
    assert report.verified and [path.name for path in tmp_path.iterdir()] == ["m.onnx"]


# ---- mgeconvert's own files

SAMPLES = corpus.DATA / "quant_params"
CARRIED = "a float tensor: the grid of an earlier one was carried on through functions that compute"
PLAIN = "MegEngine adds the plain bias: what the layer takes is unsigned, unknown, or comes out of a function"
VIEW = "no tensor of our file, which has the view of it in the operator before or behind"
OPTION = "by mgeconvert's options for inputs: the model itself does not quantize it"
FIXED = "TFLite's fixed scale of a sigmoid took the place of the trained one, whatever the target"
MISSING = "the source quantizes it, and it is missing there"
RANGE = "the range of int8 for a tensor of int4"
OURS = "a step of ours, on the grid of its operand"
BEHIND = {"fc_bias": PLAIN}
UNSIGNED = dict.fromkeys(["c1_bias", "c2_bias", "c3_bias", "c4_bias", "fc_bias"], PLAIN)
NO_STUB = {"c1_bias": PLAIN, "fc_bias": PLAIN, "x": OPTION}
FOUR_BITS = dict.fromkeys(["c1_out_conv_out", "c3_out_conv_out", "far_out_add_out"], RANGE)
STEPS = dict.fromkeys(["p_out_pooling", "p_out_slice", "p_out_slice_1", "p_out_slice_3"], OURS)
# Every difference from mgeconvert's file for the same model, and why. Beside them the last digits of each
# scale of a bias differ: there it is a product in double precision, in MegEngine one in float32.
EXPLAINED: dict[str, dict[str, str]] = {
    "qat_concat_elemwise.caffe": {"sg_out": FIXED},
    "qat_concat_elemwise.tflite": {"sg_out": FIXED, "cat_out": MISSING},
    "qat_mobilenetv2_minmax.tflite": {**BEHIND, "dequant_out": CARRIED},
    "qat_partial_float.tflite": {
        "c_out": MISSING,
        **dict.fromkeys(["dequant_out", "fc_out", "mean_out", "softmax_out"], CARRIED),
    },
    "qat_resnet_ema.caffe": {**BEHIND, **STEPS, "l__0_cbr_bias": PLAIN, "l__0_ds_out": VIEW},
    "qat_resnet_ema.tflite": {**BEHIND, "l__0_cbr_bias": PLAIN},
    "qat_small_asym_quint8.caffe": UNSIGNED,
    "qat_small_asym_quint8.tflite": UNSIGNED,
    "qat_small_lowbit.caffe": {**BEHIND, **FOUR_BITS},
    "qat_small_minmax_nostub.caffe": NO_STUB,
    "qat_small_minmax_nostub.tflite": {**NO_STUB, "x_pad_out": OPTION},
    "qat_user_module.tflite": {
        "c1_out": "in front of a ReLU that both files have in the convolution; here it is c1_relu_out",
        "c1_relu_out": "its name is c1_out there",
        "l_bias": PLAIN,
        "mean_out": CARRIED,
    },
}
EXPLAINED |= {
    f"{name}.{target}": reasons
    for target, reasons in (("caffe", BEHIND), ("tflite", BEHIND))
    for name in (
        "qat_small_ema",
        "qat_small_tqt",
        *(f"v1_{each}_qat" for each in ("6_0", "7_0", "9_1", "12_4")),
    )
}
EXPLAINED["qat_small_lowbit.tflite"] = BEHIND


def ours_by_their_names(name: str, target: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Our entries, under mgeconvert's names for parameters and for what its own steps add."""
    paths, records = with_parameters(name, target, folder)
    entries = json.loads((folder / "q.json").read_text())
    layers = written_model(paths[0]).layers
    padded = {layer.outputs[0]: layer.inputs[0] for layer in layers if layer.type == "PAD"}
    (folder / "onnx").mkdir()
    _, named = with_parameters(name, "onnx", folder / "onnx")
    parameters = iter([record for record in named if record.role != ACTIVATION])
    found = {}
    for record in records:
        if record.role != ACTIVATION:
            key = re.sub(r"\.(?=\d)", "__", next(parameters).name).replace(".", "_")
        elif record.name in padded:
            key = f"{padded[record.name]}_pad_out"
        elif record.name.endswith(("_conv2d", "_add")):
            key = f"{record.name.removesuffix('2d')}_out"
        else:
            key = record.name.removesuffix("_nhwc")  # rows of another order of elements
        found[key] = entries[record.name]
    return found


@pytest.mark.parametrize("sample", sorted(path.stem for path in SAMPLES.glob("*.json")))
def test_beside_the_file_of_mgeconvert(sample: str, tmp_path: Path) -> None:
    name, target = sample.split(".")
    theirs = json.loads((SAMPLES / f"{sample}.json").read_text())
    for entry in theirs.values():
        if entry["dtype"] == "int32":
            entry["scale"] = float(np.float32(entry["scale"]))
    ours = ours_by_their_names(name, target, tmp_path)
    different = {key for key in theirs.keys() | ours.keys() if theirs.get(key) != ours.get(key)}
    assert different == set(EXPLAINED.get(sample, {}))
