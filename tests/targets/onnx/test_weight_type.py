"""int8, uint8 and seven bits for the weights of ONNX files: what kernels without VNNI sum exactly."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.numpy_helper import to_array

import tmconvert
from benchmarks import quantized_corpus
from tests.models import corpus
from tmconvert.errors import UsageError
from tmconvert.errors.explanations import EXPLANATIONS
from tmconvert.ir.types import QParams
from tmconvert.targets.onnx.integer.types import saturates, unsigned_qparams
from tmconvert.targets.onnx.verify import qdq as verify_qdq

SAMPLES = Path(__file__).parents[3] / "samples"
MODELS = {
    "QAT of MegEngine": SAMPLES / "digits_qat.tm",
    "QAT of PyTorch": SAMPLES / "digits_qat_torch.tm",
    "linear": corpus.model("quantized_small"),
    "per channel": corpus.model("qat_perchannel_weight"),
    "transposed": corpus.model("qat_deconv"),
}
WARNING = "may saturate in integer kernels of x86 processors without VNNI"


def weights(path: Path) -> dict[str, np.ndarray]:
    """The integers of constants that are multiplied, by name; uint8 ones less 128."""
    graph = onnx.load(path).graph
    arrays = {tensor.name: to_array(tensor) for tensor in graph.initializer}
    found = {
        node.output[0]: arrays[node.input[0]]
        for node in graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] in arrays
    }
    products = (node for node in graph.node if node.op_type in ("Conv", "ConvTranspose", "Gemm", "MatMul"))
    names = (name for node in products for name in node.input[:2] if name in found)
    return {name: found[name] for name in names}


def outputs(path: Path, *, fuses: bool) -> list[np.ndarray]:
    options = onnxruntime.SessionOptions()
    if not fuses:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(path, options)
    random = np.random.default_rng(0)
    fed = {each.name: random.uniform(-1, 1, each.shape).astype(np.float32) for each in session.get_inputs()}
    return session.run(None, fed)


@pytest.mark.parametrize("name", MODELS)
def test_the_default_is_exact_in_fused_kernels(name: str, tmp_path: Path) -> None:
    """Within a step where an average, or a sum of a product, rounds a tie to the other side."""
    path = tmp_path / "m.onnx"
    report = tmconvert.to_onnx(MODELS[name], path, quantized=True)
    assert report.verified and not any(WARNING in note for note in report.notes)
    assert any(array.dtype == np.uint8 for array in weights(path).values())
    for fused, meant in zip(outputs(path, fuses=True), outputs(path, fuses=False), strict=True):
        assert np.max(np.abs(fused - meant)) <= 1.001 * np.max(np.abs(meant)) / 127


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_uint8_weights_are_the_numbers_of_int8(name: str, tmp_path: Path) -> None:
    paths = {kind: tmp_path / f"{kind}.onnx" for kind in ("uint8", "int8")}
    notes = {}
    for kind, path in paths.items():
        notes[kind] = tmconvert.to_onnx(MODELS[name], path, quantized=True, weight_type=kind).notes
    shifted, plain = weights(paths["uint8"]), weights(paths["int8"])
    assert list(shifted) == list(plain)
    for one, other in zip(shifted.values(), plain.values(), strict=True):
        assert other.dtype == np.int8
        assert np.array_equal(one.astype(int) - (128 if one.dtype == np.uint8 else 0), other)
    (warning,) = (note for note in notes["int8"] if WARNING in note)
    assert "--weight-type uint8 is exact on every processor" in warning and "--reduce-range" in warning
    exact = [outputs(path, fuses=False) for path in paths.values()]
    assert all(np.array_equal(one, other) for one, other in zip(*exact, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("activations", ["uint8", "int8"])
def test_seven_bits_are_int8_and_exact(activations: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    report = tmconvert.to_onnx(
        MODELS["QAT of PyTorch"], path, quantized=True, activations=activations, reduce_range=True
    )
    assert report.verified and not any(WARNING in note for note in report.notes)
    found = weights(path).values()
    assert {array.dtype.name for array in found} == {"int8"}
    assert max(np.max(np.abs(array.astype(int))) for array in found) == 64
    fused, meant = (outputs(path, fuses=fuses)[0] for fuses in (True, False))
    assert np.max(np.abs(fused - meant)) <= 1.001 * np.max(np.abs(meant)) / 127
    assert tmconvert.verify(MODELS["QAT of PyTorch"], path).max_error < 0.01


@pytest.mark.slow
def test_weights_beside_signed_activations_are_int8_unless_asked(tmp_path: Path) -> None:
    kinds = {}
    for asked in (None, "uint8"):
        path = tmp_path / f"{asked}.onnx"
        options = {"activations": "int8", "weight_type": asked}
        report = tmconvert.to_onnx(MODELS["linear"], path, quantized=True, **options)
        kinds[asked] = {array.dtype.name for array in weights(path).values()}
        assert any(WARNING in note for note in report.notes) == (asked is None)
        tmconvert.verify(MODELS["linear"], path)
    assert kinds[None] == {"int8"} and "uint8" in kinds["uint8"]


def test_four_bits_stay_signed(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    tmconvert.to_onnx(corpus.model("qat_small_lowbit"), path, quantized=True)
    assert {array.dtype.name for array in weights(path).values()} == {"int8"}


def test_weights_that_the_source_leaves_in_float_stay_so(tmp_path: Path) -> None:
    """Between pairs ONNX Runtime makes int8 of them, on a scale of its own."""
    path = tmp_path / "m.onnx"
    tmconvert.to_onnx(quantized_corpus.models()["qat_by_channel"], path, quantized=True)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(path, options)
    made = [each.name for each in onnx.load(options.optimized_model_filepath).graph.initializer]
    assert "wide.weight" in "".join(made) and not any(name.endswith("_weight_q") for name in made)


def test_sums_of_sixteen_bits() -> None:
    byte = QParams("uint8", (0.5,), (3,), 0, 255)
    seven = QParams("uint8", (0.5,), (0,), 0, 127)
    signed = QParams("int8", (0.5,), (0,), -128, 127)
    assert not saturates(np.array([64, -64], np.int8), byte)
    assert saturates(np.array([65], np.int8), byte) and saturates(np.array([-65], np.int8), byte)
    assert saturates(np.array([65], np.int8)) and saturates(np.array([65], np.int8), signed)
    assert not saturates(np.array([127, -128], np.int8), seven)
    assert not saturates(np.array([127], np.int8), QParams("uint16", (0.5,), (0,), 0, 65535))
    assert not saturates(np.zeros(0, np.int8), byte)
    moved = unsigned_qparams(QParams("int8", (0.5, 2.0), (0, 3), -127, 127, 0))
    assert (moved.dtype, moved.zero_point, moved.quant_min, moved.quant_max) == ("uint8", (128, 131), 1, 255)


def test_files_of_releases_with_int8_weights_are_verified_as_such(tmp_path: Path) -> None:
    source, path = MODELS["linear"], tmp_path / "m.onnx"
    tmconvert.to_onnx(source, path, quantized=True, weight_type="int8")
    model = onnx.load(path)
    (entry,) = (each for each in model.metadata_props if each.key == "tmconvert.options")
    for word in (', "weight_type": "int8"', ', "reduce_range": false', '"weight_type": "int8", '):
        entry.value = entry.value.replace(word, "").replace('"reduce_range": false, ', "")
    assert "weight_type" not in entry.value and "reduce_range" not in entry.value
    onnx.save(model, path)
    tmconvert.verify(source, path)


@pytest.mark.parametrize("option", [{"weight_type": "uint8"}, {"reduce_range": True}])
def test_options_go_with_quantized(option: dict, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(option))} is .* but applies only with quantized"):
        tmconvert.to_onnx(MODELS["linear"], tmp_path / "m.onnx", **option)
    with pytest.raises(UsageError, match="weight_type is 'int4'"):
        tmconvert.to_onnx(MODELS["linear"], tmp_path / "m.onnx", quantized=True, weight_type="int4")


@pytest.mark.slow
def test_all_recorded_models_are_exact_here(tmp_path: Path) -> None:
    """The widest sweep: each recorded model, in the session that users run, on whatever processor this is."""
    for name, source in quantized_corpus.models().items():
        report = tmconvert.to_onnx(source, tmp_path / f"{name}.onnx", quantized=True)
        assert report.verification is not None
        assert max(report.verification.fused_steps.values(), default=0) <= 1.001, name


# ---- what is reported of fused kernels


def saturating(monkeypatch: pytest.MonkeyPatch, steps: float) -> None:
    """The session of users is ``steps`` quantization steps off, as on a processor without VNNI."""
    fused = verify_qdq._FUSED

    class Off:
        forget = staticmethod(fused.forget)

        @staticmethod
        def run(paths: Any, inputs: Any, outputs: Any) -> list[np.ndarray]:
            arrays = fused.run(paths, inputs, outputs)
            if paths[0].name == "all_outputs.onnx":  # not the file of users
                return arrays
            return [array + np.float32(steps * np.max(np.abs(array)) / 255) for array in arrays]

    monkeypatch.setattr(verify_qdq, "_FUSED", Off)
    monkeypatch.setattr(verify_qdq, "saturates_here", lambda: True)


def test_a_saturating_session_is_reported_with_its_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saturating(monkeypatch, 7.0)
    path = tmp_path / "m.onnx"
    report = tmconvert.to_onnx(MODELS["linear"], path, quantized=True, weight_type="int8")
    assert report.verified
    (note,) = (each for each in report.notes if "fused kernels" in each)
    assert re.fullmatch(
        r"ONNX Runtime's fused kernels saturate on this processor, which has no VNNI: \w+ is up to "
        r"\d+\.\d steps from the exact sums: --weight-type uint8 is exact on every processor, --reduce-range "
        r"quantizes weights to 7 bits",
        note,
    )
    assert note in str(report)
    document = report.to_json()["verification"]
    assert isinstance(document, dict)
    assert list(document["fused_steps"]) == [each["name"] for each in report.outputs]
    assert all(steps > 1 for steps in document["fused_steps"].values())
    assert json.loads(json.dumps(document)) == document


def test_no_saturation_is_reported_of_files_without_int8_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saturating(monkeypatch, 0.0)
    report = tmconvert.to_onnx(MODELS["linear"], tmp_path / "m.onnx", quantized=True)
    assert not any("saturate" in note for note in report.notes)
    document = report.to_json()["verification"]
    assert isinstance(document, dict) and set(document["fused_steps"].values()) == {0.0}


def test_a_float_file_has_no_fused_steps(tmp_path: Path) -> None:
    document = tmconvert.to_onnx(MODELS["linear"], tmp_path / "m.onnx").to_json()["verification"]
    assert isinstance(document, dict) and "fused_steps" not in document


def test_the_explanation_of_other_outputs_names_saturation() -> None:
    explained = EXPLANATIONS["TM4001"].remedy
    for words in ("saturate", "VNNI", "--weight-type uint8", "--reduce-range"):
        assert words in explained
