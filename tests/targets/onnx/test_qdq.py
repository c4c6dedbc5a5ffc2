"""Pairs of sixteen bits and weights of four, from opset 21 on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import tmconvert
from benchmarks import quantized_corpus
from tests.models import corpus, integers
from tests.opsets import is_full_runtime
from tmconvert.errors import Refusal, UsageError, VerificationError
from tmconvert.ir.types import QParams
from tmconvert.targets.onnx.external_data import in_bytes
from tmconvert.targets.onnx.integer.types import activation_qparams, limits, stored_type

SAMPLES = Path(__file__).parents[3] / "samples"


def types(path: Path, ending: str = "_zero_point") -> Counter[str]:
    """The element types of the constants whose names end so."""
    name = onnx.TensorProto.DataType.Name
    tensors = onnx.load(path).graph.initializer
    return Counter(name(each.data_type) for each in tensors if each.name.endswith(ending))


def run(path: Path, inputs: list[np.ndarray]) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(path, integers._options())
    return session.run(None, dict(zip([each.name for each in session.get_inputs()], inputs, strict=True)))


def grid(dtype: str, low: int, high: int, zero: int = 0) -> QParams:
    return QParams(dtype, (0.5,), (zero,), low, high)


def ends(qparams: QParams) -> list[float]:
    zero, scale = qparams.zero_point[0], qparams.scale[0]
    return [(end - zero) * scale for end in (qparams.quant_min, qparams.quant_max)]


@pytest.mark.parametrize("asked", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize(
    "given", [grid("int8", -128, 127), grid("int8_narrow", -127, 127), grid("uint8", 0, 255, 30)]
)
def test_steps_of_eight_bits_are_steps_of_sixteen(given: QParams, asked: str) -> None:
    made = activation_qparams("x", given, asked, 21)
    assert made.dtype == asked
    parts = given.scale[0] / made.scale[0]
    assert parts == (256 if asked.endswith("16") else 1)
    (low, high), (first, last) = ends(given), ends(made)
    assert low == first and high <= last < high + given.scale[0]
    assert not made.problem((), "x") and limits(made) is None
    assert given.zero_point != (0,) or given.dtype[0] == "u" or asked[0] == "u" or made.zero_point == (0,)


def test_four_bits_of_a_wide_type_are_clipped() -> None:
    for asked in ("int8", "uint8", "int16", "uint16"):
        made = activation_qparams("x", grid("int4", -8, 7), asked, 21)
        clip = limits(made)
        assert clip is not None and clip[0] == -4 and 3.5 <= clip[1] < 4


@pytest.mark.parametrize("low, high", [(-32768, 32767), (-32767, 32767), (0, 65535), (0, 300)])
def test_what_has_sixteen_bits_keeps_them(low: int, high: int) -> None:
    given = grid("int16", low, high)
    for asked, wanted in (("uint8", "uint16"), ("int8", "int16"), ("int16", "int16")):
        made = activation_qparams("x", given, asked, 21)
        assert made.dtype == wanted and ends(made) == ends(given)
    with pytest.raises(
        Refusal, match="x needs 16-bit integers, which ONNX supports from opset 21 on"
    ) as raised:
        activation_qparams("x", given, "uint8", 20)
    assert raised.value.help == "use --opset 21 or later"


def test_what_no_type_holds() -> None:
    with pytest.raises(Refusal, match="no per-tensor 16-bit type can represent"):
        activation_qparams("x", grid("int32", -(2**20), 2**20), "uint8", 17)
    by_channel = QParams("int8", (1.0, 2.0), (0, 0), -128, 127, 0)
    with pytest.raises(Refusal, match="per-tensor"):
        activation_qparams("x", by_channel, "uint8", 21)


def test_the_narrowest_type_of_weights() -> None:
    assert stored_type(grid("int4", -8, 7), 21, is_weight=True) == "int4"
    assert stored_type(grid("int4", -7, 7), 21, is_weight=True) == "int4"
    assert stored_type(grid("uint4", 0, 15), 21, is_weight=True) == "uint4"
    assert stored_type(grid("int4", -8, 7), 20, is_weight=True) == "int8"
    assert stored_type(grid("int4", -8, 7), 21) == "int8"
    assert stored_type(grid("int8", -9, 7), 21, is_weight=True) == "int8"
    assert stored_type(grid("int16", -300, 7), 21, is_weight=True) == "int16"
    assert stored_type(grid("int16", -300, 7), 20, is_weight=True) is None


def test_two_of_four_bits_are_a_byte() -> None:
    import ml_dtypes

    for dtype, numbers in ((ml_dtypes.int4, [-8, 7, -1]), (ml_dtypes.uint4, [1, 15, 8, 0])):
        data = np.array(numbers).astype(dtype)
        tensor = onnx.TensorProto(dims=data.shape, data_type=22 if dtype is ml_dtypes.int4 else 21)
        tensor.raw_data = in_bytes(data).tobytes()
        assert len(tensor.raw_data) == 2
        assert onnx.numpy_helper.to_array(tensor).astype(int).tolist() == numbers


MODELS = ["qat_small_ema", "qat_small_asym_quint8", "qat_deconv", "qat_concat_elemwise"]


@pytest.mark.parametrize("activations", ["int16", "uint16"])
@pytest.mark.parametrize("name", MODELS)
def test_sixteen_bits_are_near_float(name: str, activations: str, tmp_path: Path) -> None:
    """Beside the model with rounded weights, which is what eight bits for them leave of the source."""
    report, (path,) = corpus.converted(
        name, "onnx", tmp_path, quantized=True, opset=21, activations=activations
    )
    path = path.rename(tmp_path / "whole.onnx")
    assert report.verified
    assert set(types(path)) - {"INT8", "INT32"} == {activations.upper()}
    _, (rounded,) = corpus.converted(name, "onnx", tmp_path, fake_quant_weights=True)
    inputs = [array * np.float32(0.3) for array in corpus.golden(name)[0]]  # nothing beyond the ranges
    for whole, real in zip(run(path, inputs), run(rounded, inputs), strict=True):
        assert np.max(np.abs(whole - real)) <= 2e-3 * np.max(np.abs(real))


BITS = quantized_corpus.MADE / "bits"
# the types of zero points, at opset 21 with activations of the sign that is the default
STORED = {
    "act_16": {"UINT16", "INT8", "INT32"},
    "act_u16": {"UINT16", "INT8", "INT32"},
    "weight_16": {"UINT16", "INT16", "INT32"},
    "weight_4": {"UINT8", "INT4", "INT32"},
    "weight_u4": {"UINT8", "UINT4"},
    "all_4": {"UINT8", "INT4", "INT32"},
    "weight_1": {"UINT8", "INT4", "INT32"},
}


@pytest.mark.parametrize("activations", [None, "int8", "int16"])
@pytest.mark.parametrize("name", STORED)
def test_models_of_other_bits(name: str, activations: str | None, tmp_path: Path) -> None:
    source, path = BITS / f"{name}.tm", tmp_path / "m.onnx"
    options = {"quantized": True, "activations": activations}
    verify = activations != "int8"  # see test_int8_that_onnxruntime_does_not_load
    assert bool(tmconvert.to_onnx(source, path, opset=21, verify=verify, **options).verified) == verify
    if activations is None:
        assert set(types(path)) == STORED[name]
    has_sixteen = "16" in "".join(STORED[name])
    if activations == "int16" and not has_sixteen:
        return  # finer than the source, which rounds to eight
    inputs, expected = quantized_corpus.arrays(BITS / f"{name}.tm")
    if verify:  # a step of four bits is a tie now and then
        assert integers.onnx_distance(path, inputs, expected).most <= (2.001 if name == "all_4" else 1.001)
    if not has_sixteen and activations is None:
        assert tmconvert.to_onnx(source, path, opset=13, **options).verified
        assert set(types(path)) <= {"UINT8", "INT8", "INT32"}
    elif has_sixteen:
        with pytest.raises(
            UsageError, match="needs 16-bit integers, which ONNX supports from opset 21 on"
        ) as raised:
            tmconvert.to_onnx(source, path, opset=20, **options)
        assert "help: use --opset 21 or later" in str(raised.value)


@pytest.mark.parametrize("name", STORED)
def test_the_same_in_tflite(name: str, tmp_path: Path) -> None:
    """16 bits of activations need not be asked for; those of weights are eight, which is told."""
    path = tmp_path / "m.tflite"
    report = tmconvert.to_tflite(BITS / f"{name}.tm", path, quantized=True)
    assert report.verified and f"operators in {'int16' if name in SIXTEEN else 'int8'}" in report.notes[0]
    derived = any("scales measured on the weights themselves" in note for note in report.notes)
    assert derived == (name in ("weight_16", "weight_u4"))
    if name not in ("weight_16", "act_u16"):  # in int16 there is no end below where the source has one
        assert integers.tflite_distance(path, *quantized_corpus.arrays(BITS / f"{name}.tm")).most <= 2.001


SIXTEEN = {"act_16", "act_u16", "weight_16"}


def test_weights_of_four_bits_beside_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tmconvert.targets.onnx.external_data.SMALL_CONSTANT", 16)
    paths = [tmp_path / "inside.onnx", tmp_path / "m.onnx"]
    for path, external in zip(paths, (False, True), strict=True):
        made = tmconvert.to_onnx(
            corpus.model("qat_small_lowbit"), path, quantized=True, opset=21, external_data=external
        )
        assert made.verified
    inputs, _ = corpus.golden("qat_small_lowbit")
    assert Path(f"{paths[1]}.data").exists()
    inside, beside = (run(path, inputs) for path in paths)
    assert all(np.array_equal(one, other) for one, other in zip(inside, beside, strict=True))
    assert types(paths[0], "weight_quantized")["INT4"] == 5


@pytest.mark.slow
@pytest.mark.parametrize("activations, wide", [(None, "UINT16"), ("int8", "INT16")])
@pytest.mark.parametrize("pattern", ["classifier", "stem*", "depthwise*"])
def test_some_layers_in_sixteen_bits(
    pattern: str, activations: str | None, wide: str, tmp_path: Path
) -> None:
    images = np.load(SAMPLES / "digits_test.npz")["images"][:8, None].astype(np.float32) / 16
    made = tmconvert.calibrate(SAMPLES / "digits.tm", {"x": images}, rules={pattern: "int16x8"})
    path = tmp_path / "m.onnx"
    assert tmconvert.to_onnx(made, path, quantized=True, opset=21, activations=activations).verified
    narrow = wide.replace("16", "8")
    # results are in 16 bits; all products are of operands in eight, beside which weights have their type
    assert set(types(path)) == {wide, narrow, "INT32"}
    with pytest.raises(UsageError, match="needs 16-bit integers, which ONNX supports from opset 21 on"):
        tmconvert.to_onnx(made, path, quantized=True)


@pytest.mark.skipif(not is_full_runtime(), reason="older releases load it")
def test_int8_that_onnxruntime_does_not_load(tmp_path: Path) -> None:
    """Its optimizer fails from opset 21 on, see HELPS in verification/runtime.py."""
    source = BITS / "all_4.tm"
    options = {"quantized": True, "activations": "int8"}
    assert tmconvert.to_onnx(source, tmp_path / "m.onnx", opset=20, **options).verified
    with pytest.raises(VerificationError, match="TM4002") as raised:
        tmconvert.to_onnx(source, tmp_path / "n.onnx", opset=21, **options)
    assert "use --activations uint8, or --opset 20" in str(raised.value)
    assert not (tmp_path / "n.onnx").exists()


def test_weights_in_integers_are_counted(tmp_path: Path) -> None:
    """ONNX has their scales in operators, not with the tensors."""
    model = SAMPLES / "digits_qat.tm"
    report = tmconvert.to_onnx(model, tmp_path / "m.onnx", quantized=True, verify=False)
    plain = tmconvert.to_onnx(model, tmp_path / "f.onnx", verify=False)
    assert report.parameters == plain.parameters > 30_000
