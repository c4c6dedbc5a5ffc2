"""Quantized models in integers: int8 throughout, and within one step of what MegEngine computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tmconvert
from benchmarks import quantized_corpus
from tests.models import corpus, integers
from tmconvert.errors import UnsupportedError
from tmconvert.formats.tflite.metadata import tflite_layouts
from tmconvert.targets.tflite.verify.observed import in_steps

litert = pytest.importorskip("ai_edge_litert.interpreter")
MODELS = integers.models()
# Parts of these are float in the source: a model that is quantized in part, an input without a stub, modules
# of the user's own.
IN_FLOAT = {
    "qat_partial_float": {"CONV_2D", "QUANTIZE", "DEQUANTIZE", "MEAN", "FULLY_CONNECTED", "SOFTMAX"},
    "qat_small_minmax_nostub": {"PAD", "CONV_2D", "QUANTIZE"},
}
TABLE = (Path(__file__).parents[2] / "docs/quantized-models.md").read_text()


def test_the_models_are_there() -> None:
    assert len(MODELS) == 19


@pytest.mark.parametrize("name", MODELS)
def test_tflite_is_what_megengine_computes(name: str, tmp_path: Path) -> None:
    report, (path,) = corpus.converted(name, "tflite", tmp_path, quantized=True)
    assert report.verified
    found = integers.census(path)
    assert set(found.in_float) == IN_FLOAT.get(name, set())
    assert found.weights == ({"int8", "float32"} if name in IN_FLOAT else {"int8"})
    distance = integers.tflite_distance(path, *corpus.golden(name))
    assert distance.is_near or (name in quantized_corpus.EXPLAINED and distance.most <= 2.001)
    # kernels round in ways of their own, see docs/quantized-models.md
    assert integers.tflite_distance(path, *corpus.golden(name), integers.OWN_KERNELS).most <= 2.001
    assert f"\n| {name} | " in TABLE


@pytest.mark.parametrize("name", MODELS)
def test_onnx_is_what_megengine_computes(name: str, tmp_path: Path) -> None:
    report, (path,) = corpus.converted(name, "onnx", tmp_path, quantized=True)
    assert report.verified
    assert integers.onnx_distance(path, *corpus.golden(name)).is_near
    kernels = integers.onnx_kernels(path, tmp_path)
    # four bits stay in Clip; what is float in the source is so in the file
    if name not in IN_FLOAT and name != "qat_small_lowbit":
        assert "Conv" not in kernels
        assert kernels["QLinearConv"] or name == "qat_deconv_linear_bn"


@pytest.mark.parametrize("name", [path.stem for path in sorted(quantized_corpus.MADE.glob("*.tm"))])
def test_small_models(name: str, tmp_path: Path) -> None:
    path = quantized_corpus.MADE / f"{name}.tm"
    row = quantized_corpus.measured(name, path, tmp_path)
    assert row.is_near or name in quantized_corpus.EXPLAINED
    assert not row.in_float
    assert f"\n| {name} | " in TABLE
    assert tmconvert.to_tflite(path, tmp_path / "m.tflite", quantized=True, allow_float=True).verified
    assert tmconvert.to_onnx(path, tmp_path / "m.onnx", quantized=True).verified


def test_what_has_no_integer_kernel_is_named(tmp_path: Path) -> None:
    path, options = quantized_corpus.MADE / "qat_angles.tm", {"quantized": True, "activations": "int16"}
    with pytest.raises(UnsupportedError) as caught:
        tmconvert.to_tflite(path, tmp_path / "m.tflite", **options)
    text = str(caught.value)
    assert text.startswith("error[TM2003]: TFLite has no kernel for ATAN2 in int16\n")
    assert f"--> {path}:%" in text and "= aten::atan2(%over_out, %under_out)" in text
    assert "help: --allow-float keeps it in float, between DEQUANTIZE and QUANTIZE" in text
    assert "; --activations int8 has more kernels" in text
    assert not list(tmp_path.iterdir())
    report = tmconvert.to_tflite(path, tmp_path / "m.tflite", allow_float=True, **options)
    assert report.verified and any("without a kernel for int16" in note for note in report.notes)


def edges(path: Path) -> list[str]:
    runner = litert.Interpreter(str(path)).get_signature_runner()
    details = [*runner.get_input_details().values(), *runner.get_output_details().values()]
    return [np.dtype(each["dtype"]).name for each in details]


@pytest.mark.parametrize("io_type", ["int8", "uint8", "float32"])
@pytest.mark.parametrize("name", ["qat_small_ema", "qat_small_asym_quint8", "quantized_concat"])
def test_types_of_inputs_and_outputs(name: str, io_type: str, tmp_path: Path) -> None:
    _, (path,) = corpus.converted(name, "tflite", tmp_path, quantized=True, io_type=io_type, verify=False)
    assert set(edges(path)) == {io_type}
    inputs, expected = corpus.golden(name)
    if io_type != "float32":
        assert integers.tflite_distance(path, inputs, expected).most <= 1.001
        return
    found = corpus.run("tflite", [path], name)
    _, (whole,) = corpus.converted(name, "tflite", tmp_path, quantized=True, verify=False)
    runner = litert.Interpreter(str(whole)).get_signature_runner()
    for output, array, wanted in zip(runner.get_output_details().values(), found, expected, strict=True):
        assert np.max(np.abs(array - wanted)) <= 1.001 * output["quantization"][0]


@pytest.mark.parametrize(
    "name", ["qat_small_ema", "qat_resnet_ema", "qat_mobilenetv2_minmax", "quantized_small"]
)
def test_activations_of_sixteen_bits(name: str, tmp_path: Path) -> None:
    """These are finer than the source's, which rounds in each layer: that much lies between them."""
    report, (path,) = corpus.converted(name, "tflite", tmp_path, quantized=True, activations="int16")
    assert report.verified and set(edges(path)) == {"int16"}
    found = integers.census(path)
    assert not found.in_float and found.weights == {"int8"}
    inputs, expected = corpus.golden(name)
    runner = litert.Interpreter(str(path)).get_signature_runner()
    layouts = tflite_layouts(path)
    assert layouts is not None and layouts[0] == [True]
    ((key, described),) = runner.get_input_details().items()
    (made,) = runner(**{key: in_steps(inputs[0].transpose(0, 2, 3, 1), described)}).values()
    scale = next(iter(runner.get_output_details().values()))["quantization"][0]
    assert np.max(np.abs(made * scale - expected[0])) <= 0.1 * np.max(np.abs(expected[0]))
