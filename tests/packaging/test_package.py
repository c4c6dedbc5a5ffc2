"""Packages: what a kind takes, the files, the check by a consumer, and what stays when it fails."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tmconvert
from tests.cli.runner import run
from tests.packaging.conftest import names_in
from tmconvert import api
from tmconvert.errors import LoadError, TmconvertError, UnsupportedError, UsageError, VerificationError
from tmconvert.frontends.torch.sentence_module import SentenceModule
from tmconvert.packaging import vectors
from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.continuations import Continuation, difference
from tmconvert.packaging.general_types import write_general_type
from tmconvert.packaging.kind import Converted, ModelFile, Parts
from tmconvert.packaging.package import refuse_unknown_states
from tmconvert.packaging.registry import kind_named
from tmconvert.packaging.sentence_transformers import counts_prompts, sentence_modules
from tmconvert.packaging.source import PackageSource
from tmconvert.packaging.tasks import DECODER, ENCODER_DECODER, ONCE, task_of
from tmconvert.packaging.trial import Wrong, answer_of

EXACT, ROUNDED = True, False
PROGRAMS = Path(tmconvert.__file__).with_name("packaging") / "programs"


def folder_of(path: Path, architecture: str, **entries: Any) -> Path:
    """A folder whose weights cannot be read."""
    path.mkdir()
    config = {"model_type": "llama", "architectures": [architecture], **entries}
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (path / "model.safetensors").write_bytes(b"")
    return path


@pytest.mark.parametrize(
    ("kind", "architecture", "entries", "reason"),
    [
        ("onnxruntime-genai", "BertModel", {}, r"takes decoders \(\.\.\.ForCausalLM\), .*; .* run once"),
        (
            "onnxruntime-genai",
            "T5ForConditionalGeneration",
            {"is_encoder_decoder": True},
            "one of the encoder-decoders that generate",
        ),
        (
            "transformers.js",
            "WhisperModel",
            {"is_encoder_decoder": True},
            "parts that this has are not known",
        ),
        ("transformers.js", "LlavaForConditionalGeneration", {}, "parts that this has are not known"),
        ("transformers.js", "SamModel", {"model_type": "sam"}, "into which this is not split"),
        ("sentence-transformers", "BartModel", {"is_encoder_decoder": True}, "takes encoders of text"),
        ("sentence-transformers", "LlamaForCausalLM", {}, "takes encoders of text"),
        ("sentence-transformers", "BertModel", {}, "has no tokenizer"),
    ],
)
def test_a_kind_states_why_it_does_not_take_a_model(
    kind: str, architecture: str, entries: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    source = folder_of(tmp_path / "net", architecture, **entries)
    with pytest.raises(UnsupportedError, match=reason) as caught:
        api.package(source, tmp_path / "out", kind=kind)
    assert caught.value.code == "TM2032" and names_in(tmp_path) == ["net"]


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        ({"kind": "gguf"}, "TM6002", "unknown kind of package"),
        ({"kind": "onnxruntime-genai", "dtypes": ["q4"]}, "TM6002", "use weights, not dtypes"),
        ({"kind": "onnxruntime-genai", "activations": "int8"}, "TM6002", "rounded with int4 weights"),
        ({"kind": "optimum", "activations": "int8", "weights": "int4"}, "TM6002", "for onnxruntime-genai"),
        ({"kind": "transformers.js", "weights": "int8"}, "TM6002", "use dtypes, not weights"),
        ({"kind": "transformers.js", "dtypes": ["int2"]}, "TM6002", r"unknown data types \['int2'\]"),
        ({"kind": "optimum", "output": "net"}, "TM5001", "exists already"),
        ({"kind": "optimum", "source": "org/name"}, "TM1001", "--download"),
        ({"kind": "optimum", "source": "org/name", "download": True}, "TM1021", "huggingface_hub"),
        ({"kind": "optimum", "source": "net/config.json"}, "TM1028", "not a folder of transformers"),
        ({"kind": "ultralytics", "source": "net.pt"}, "TM1001", "there is no file"),
        ({"kind": "ultralytics", "source": "net/config.json"}, "TM1028", "not a checkpoint"),
        ({"kind": "ultralytics", "source": "net/model.pt"}, "TM1025", "runs code when it is loaded"),
        ({"kind": "diffusers"}, "TM1028", "not a folder of diffusers"),
    ],
)
def test_arguments(
    options: dict[str, Any], code: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    folder_of(tmp_path / "net", "BertModel")
    (tmp_path / "net" / "model.pt").write_bytes(b"")
    with pytest.raises(TmconvertError, match=reason) as caught:
        api.package(**{"source": "net", "output": "out", **options})
    assert caught.value.code == code and names_in(tmp_path) == ["net"]


def folder_of_modules(path: Path, modules: Any) -> PackageSource:
    """A folder of sentence-transformers, whose modules are given with their settings."""
    listed = []
    for number, (kind, settings) in enumerate(modules):
        (path / str(number)).mkdir(parents=True)
        listed.append({"type": f"sentence_transformers.models.{kind}", "path": str(number)})
        (path / str(number) / "config.json").write_text(json.dumps(settings), encoding="utf-8")
        if "weights" in settings:
            (path / str(number) / "model.safetensors").write_bytes(b"")
    (path / "modules.json").write_text(json.dumps(listed), encoding="utf-8")
    return PackageSource(path, {}, {})


DENSE = {"in_features": 8, "out_features": 4, "weights": 1}
FIRST: tuple[str, dict[str, Any]] = ("Transformer", {})
OTHER = ("Pooling", {"pooling_mode": "mean"})


@pytest.mark.parametrize(
    ("modules", "modes", "kinds"),
    [
        (
            [("Pooling", {"pooling_mode_cls_token": True}), ("Normalize", {})],
            ["cls"],
            ["Pooling", "Normalize"],
        ),
        ([("Pooling", {"pooling_mode": ["max", "mean"]})], ["max", "mean"], ["Pooling"]),
        (
            [("Pooling", {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True})],
            ["max", "mean"],  # the order of the library, not that of the settings
            ["Pooling"],
        ),
        ([("Pooling", {"pooling_mode": "weightedmean"})], ["weightedmean"], ["Pooling"]),
        (
            [OTHER, ("Dense", DENSE), ("Dropout", {}), ("LayerNorm", {"dimension": 4, "weights": 1})],
            ["mean"],
            ["Pooling", "Dense", "LayerNorm"],
        ),
    ],
)
def test_the_modules_of_a_folder(modules: Any, modes: list[str], kinds: list[str], tmp_path: Path) -> None:
    found = sentence_modules(folder_of_modules(tmp_path, [FIRST, *modules]))
    assert [each.kind for each in found] == kinds and list(found[0].settings["modes"]) == modes
    assert counts_prompts(found)


@pytest.mark.parametrize(
    ("modules", "reason"),
    [
        ([FIRST, OTHER, ("LSTM", {})], "its modules are Transformer, Pooling, LSTM"),
        ([FIRST], "its modules are Transformer; known are"),
        ([FIRST, ("Pooling", {"pooling_mode": "attention"})], "its pooling is attention"),
        ([FIRST, OTHER, ("Dense", {"in_features": 8, "out_features": 4})], "no weights in safetensors"),
        ([FIRST, OTHER, ("Dense", {**DENSE, "activation_function": "net.Swish"})], "activation .* net.Swish"),
        ([FIRST, OTHER, ("Dense", {**DENSE, "module_input_name": "scores"})], "module_input_name .* scores"),
        ([FIRST, OTHER, ("LayerNorm", {"dimension": "8"})], "dimension of its LayerNorm is 8, not a size"),
    ],
)
def test_modules_that_are_refused(modules: Any, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=reason):
        sentence_modules(folder_of_modules(tmp_path, modules))


def test_a_folder_without_modules_has_the_mean(tmp_path: Path) -> None:
    (found,) = sentence_modules(PackageSource(tmp_path, {}, {}))
    assert found.settings["modes"] == ("mean",)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"module_output_name": "scores"}, "to return scores"),
        ({"transformer_task": "fill-mask"}, "of the task fill-mask"),
    ],
)
def test_encoders_that_return_no_vectors_of_tokens(
    settings: dict[str, str], reason: str, tmp_path: Path
) -> None:
    source = folder_of_modules(tmp_path, [FIRST, OTHER])
    (tmp_path / "sentence_roberta_config.json").write_text(json.dumps(settings), encoding="utf-8")
    with pytest.raises(ValueError, match=reason):
        sentence_modules(source)


@pytest.mark.parametrize(
    ("found", "margins", "is_exact", "wrong"),
    [
        ([7, 3, 9], [0.5, 0.5, 0.5], EXACT, "step 2: token 3, not 8"),
        ([7, 3, 9], [0.5, 1e-6, 0.5], EXACT, ""),  # rounding decides
        ([7, 3, 9], [0.5, 0.01, 0.5], ROUNDED, ""),
        ([7, 3, 9], [0.5, 0.01, 0.5], EXACT, "step 2"),
        ([7], [0.5, 0.5, 0.5], EXACT, "ends after 1 of 3"),
        ([7, 8], [0.5, 0.5, 0.5], EXACT, ""),  # consumers return the token of the end, or not
    ],
)
def test_tokens_that_differ(found: list[int], margins: list[float], is_exact: bool, wrong: str) -> None:
    text = difference([found], [Continuation([7, 8, 9], margins)], [9], is_exact=is_exact)
    assert re.search(wrong, text) if wrong else text == ""


@pytest.mark.parametrize(
    ("index", "code", "reason"),
    [
        ({"unet": ["code", "Net"]}, "TM1028", "unet would run code of"),
        ({"unet": ["diffusers", "UNet2DConditionModel"]}, "TM2032", "this has no text_encoder"),
        (
            {name: ["diffusers", "Net"] for name in ("text_encoder", "unet", "vae", "text_encoder_2")},
            "TM2032",
            "its text_encoder_2 is not known",
        ),
    ],
)
def test_the_index_of_a_pipeline(index: Any, code: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "model_index.json").write_text(json.dumps(index), encoding="utf-8")
    with pytest.raises(TmconvertError, match=reason) as caught:
        api.package(tmp_path / "net", tmp_path / "out", kind="diffusers")
    assert caught.value.code == code and names_in(tmp_path) == ["net"]


def test_tokenizers_of_newer_releases_open_in_older_ones(tmp_path: Path) -> None:
    text = '{"tokenizer_class": "TokenizersBackend"}'
    (tmp_path / "tokenizer_config.json").write_text(text, encoding="utf-8")
    ((_, content),) = PackageSource(tmp_path, {}, {}).copied_files()
    assert json.loads(content) == {"tokenizer_class": "PreTrainedTokenizerFast"}


def test_pooling_counts_the_tokens_of_the_mask() -> None:
    torch = pytest.importorskip("torch")
    from tmconvert.frontends.torch.tracing.programs.sentence_vectors import POOLING

    tokens = torch.tensor([[[9.0], [1.0], [3.0]], [[2.0], [4.0], [9.0]]])
    mask = torch.tensor([[[0.0], [1.0], [1.0]], [[1.0], [1.0], [0.0]]])
    found = {mode: pool(tokens, mask).flatten().tolist() for mode, pool in POOLING.items()}
    assert found["mean"] == [2, 3] and found["max"] == [3, 4]
    assert found["cls"] == [1, 2] and found["lasttoken"] == [3, 4]
    assert found["mean_sqrt_len_tokens"] == pytest.approx([4 / 2**0.5, 6 / 2**0.5])
    assert found["weightedmean"] == pytest.approx([(2 * 1 + 3 * 3) / 5, (2 + 2 * 4) / 3])


def test_modules_after_an_encoder(tmp_path: Path) -> None:
    """Tokens of a prompt do not count; Dense, LayerNorm and Normalize are those of PyTorch."""
    torch = pytest.importorskip("torch")
    save_file = pytest.importorskip("safetensors.torch").save_file

    from tmconvert.frontends.torch.entry import vectors_of_tokens

    dense, norm = torch.nn.Linear(2, 3, bias=False), torch.nn.LayerNorm(3)
    norm.weight.data.mul_(2)
    for name, each in (("dense", {"linear": dense}), ("norm", {"norm": norm})):
        state = torch.nn.ModuleDict(each).state_dict()
        save_file({key: value.half() for key, value in state.items()}, tmp_path / name)
    modules = [
        SentenceModule("Pooling", {"modes": ("mean", "max"), "include_prompt": False}),
        SentenceModule("Dense", {"in_features": 2, "out_features": 3, "bias": False, "activation": "Tanh"}),
        SentenceModule("LayerNorm", {"dimension": 3}),
        SentenceModule("Normalize", {}),
    ]
    weights = ["", str(tmp_path / "dense"), str(tmp_path / "norm"), ""]
    given = [each._replace(weights=path) for each, path in zip(modules, weights, strict=True)]
    tokens = torch.tensor([[[9.0], [9.0], [1.0], [3.0]], [[9.0], [5.0], [7.0], [9.0]]])
    mask = np.array([[0, 1, 1, 1], [1, 1, 1, 0]])
    found = vectors_of_tokens(given, tokens.numpy(), mask, 1)
    wanted = norm(torch.tanh(dense(torch.tensor([[2.0, 3.0], [6.0, 7.0]]))))
    np.testing.assert_allclose(found, torch.nn.functional.normalize(wanted).detach(), atol=2e-3)
    with pytest.raises(LoadError, match="norm of a module of sentence-transformers") as caught:
        vectors_of_tokens([given[2]._replace(settings={"dimension": 4})], tokens.numpy(), mask, 0)
    assert caught.value.code == "TM1028"


def test_a_u_net_with_other_inputs_is_refused(tmp_path: Path) -> None:
    parts = {name: ["diffusers", "Net"] for name in ("text_encoder", "unet", "vae")}
    (tmp_path / "net" / "unet").mkdir(parents=True)
    (tmp_path / "net" / "model_index.json").write_text(json.dumps(parts))
    (tmp_path / "net" / "unet" / "config.json").write_text(
        '{"class_embed_type": null, "num_class_embeds": 5}'
    )
    with pytest.raises(UnsupportedError, match=r"TM2032.*not known \(num_class_embeds\)") as error:
        api.package(tmp_path / "net", tmp_path / "out", kind="diffusers")
    assert "writes the file alone" not in str(error.value)  # as of a folder of transformers


@pytest.mark.parametrize("is_right", [False, True])
def test_outputs_whose_order_rounding_decides(
    is_right: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Equal scores have another order in PyTorch, which the comparison of the file itself accepted."""
    rows = {"y": np.array([[1.0, 2.0], [1.0, 3.0]], np.float32)}
    monkeypatch.setattr(vectors, "_in_onnx_runtime", lambda *_: rows)
    report: Any = SimpleNamespace(verified=is_right)
    parts = Parts("", {"": (ModelFile("model.onnx", {}), report)})
    made: Any = SimpleNamespace(folder=tmp_path)
    if is_right:
        assert vectors._compared(made, parts, "", rows, {}, {"y": rows["y"][::-1]}) > 0.1
        rows["y"] = rows["y"] + 1
        monkeypatch.setattr(vectors, "_in_onnx_runtime", lambda *_: {"y": rows["y"] - 1})
    with pytest.raises(Wrong, match="differs from"):
        vectors._compared(made, parts, "", rows, {}, {"y": rows["y"][::-1]})


@pytest.mark.parametrize(
    ("kind", "name"), [("transformers.js", "cache_0_recurrent_states_1"), ("optimum", "past_ssm.0")]
)
def test_states_without_names_are_refused(kind: str, name: str, tmp_path: Path) -> None:
    source = PackageSource(tmp_path, {"architectures": ["NetForCausalLM"]}, {})
    report: Any = SimpleNamespace(inputs=[{"name": "input_ids"}, {"name": name}])
    made = Converted(source, DECODER, {}, [(ModelFile("model.onnx", {}), report)], tmp_path)
    with pytest.raises(UnsupportedError, match=rf"no names for the states .*: {name}") as caught:
        refuse_unknown_states(kind_named(kind), made)
    assert caught.value.code == "TM2032"


CACHE = {f"past_key_values.0.{part}": ["batch_size", 2, "past", 8] for part in ("key", "value")}
STATES = {f"past_{state}.0": ["batch_size", 4, 8] for state in ("conv", "ssm")}


@pytest.mark.parametrize(
    ("caches", "wanted"),
    [
        (CACHE, {"model_type": "gemma", "num_key_value_heads": 2, "head_dim": 8, "eos_token_id": 5}),
        ({**CACHE, "past_key_values.0.value": ["batch_size", 2, "past", 6]}, {"model_type": "deepseek_v3"}),
        ({**CACHE, **STATES}, {"model_type": "falcon_h1", "num_hidden_layers": 1}),
        (
            {name.replace("0", "1"): shape for name, shape in CACHE.items()} | STATES,
            {"model_type": "nemotron_h", "layer_types": ["mamba", "attention"]},
        ),
        ({name.replace("0", "1"): shape for name, shape in CACHE.items()}, {"model_type": "net"}),
        ({**CACHE, "past_key_values.0.value": ["batch_size", 1, "past", 8]}, {"model_type": "net"}),
    ],
    ids=["one shape", "two sizes", "both", "in turn", "not all layers", "two counts of heads"],
)
def test_a_type_that_the_consumer_knows(
    caches: Any, wanted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it refuses that of the source; the error is that of the first attempt."""

    def ask(*_: Any) -> dict[str, Any]:
        raise VerificationError("TM4008", "it does not run: unknown type net")

    monkeypatch.setattr(Consumer, "ask", ask)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "net", "eos_token_id": 5}), "utf-8")
    report: Any = SimpleNamespace(inputs=[{"name": name, "shape": shape} for name, shape in caches.items()])
    source = PackageSource(tmp_path, {"architectures": ["NetForCausalLM"]}, {})
    made = Converted(source, DECODER, {}, [(ModelFile("model.onnx", {}), report)], tmp_path)
    with pytest.raises(VerificationError, match="unknown type net"):
        answer_of(kind_named("transformers.js"), made, {})
    found = json.loads((tmp_path / "config.json").read_text("utf-8"))
    assert wanted.items() <= found.items()


@pytest.mark.parametrize(
    ("part", "name", "document", "wanted"),
    [
        (
            "",
            "input_ids",
            {"architectures": ["T5EncoderModel"]},
            {"model_type": "bert", "id2label": {"0": "a"}},
        ),
        ("", "input_features", {"architectures": ["NetForCTC"]}, {"model_type": "wav2vec2"}),
        ("", "boxes", {"architectures": ["NetModel"]}, {"model_type": "net"}),
        ("encoder", "pixel_values", {"decoder": {"model_type": "gpt2", "vocab_size": 9}}, {"d_model": 16}),
        ("encoder", "input_values", {"decoder": {"model_type": "gpt2"}}, {"model_type": "gpt2"}),
    ],
)
def test_a_general_type_by_the_input(
    part: str, name: str, document: Any, wanted: Any, tmp_path: Path
) -> None:
    """Of models that are run once, and of decoders of what an encoder makes."""
    path, document = tmp_path / "config.json", {"model_type": "net", "id2label": {"0": "a"}, **document}
    path.write_text(json.dumps(document), "utf-8")
    cache = {
        f"past_key_values.0.{side}.{slot}": ["batch_size", 2, "past", 8]
        for side in ("decoder", "encoder")
        for slot in ("key", "value")
    }
    inputs = {part: [{"name": name, "shape": [2, 8]}]}
    if part:
        inputs["decoder"] = [{"name": key, "shape": shape} for key, shape in cache.items()]
    files: list[Any] = [
        (ModelFile(f"{each}.onnx", {}, each), SimpleNamespace(inputs=given)) for each, given in inputs.items()
    ]
    source = PackageSource(tmp_path, document, {})
    made = Converted(source, ENCODER_DECODER if part else ONCE, {}, files, tmp_path)
    write_general_type(made)
    found = json.loads(path.read_text("utf-8"))
    assert wanted.items() <= found.get("decoder", found).items()


@pytest.mark.parametrize(
    ("architecture", "wanted"),
    [
        ("DetrForObjectDetection", ONCE),
        ("BartForSequenceClassification", ONCE),
        ("BartForConditionalGeneration", ENCODER_DECODER),
        ("BartModel", ""),
    ],
)
def test_the_task_of_an_encoder_decoder(architecture: str, wanted: str, tmp_path: Path) -> None:
    configuration = {"is_encoder_decoder": True, "architectures": [architecture]}
    assert task_of(PackageSource(tmp_path, configuration, {})) == wanted


@pytest.mark.slow
def test_a_decoder_for_genai(decoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    out = run("package", decoder, "-o", tmp_path / "out", "--for", "onnxruntime-genai", "--json").json
    (check,) = out["checks"]
    assert "48 of 48 tokens are PyTorch's" in check["result"]
    assert not check["left_out"] or "pip install onnxruntime-genai" in check["left_out"]
    assert any(
        "no token that ends a text: onnxruntime-genai ends one at token 0" in each for each in out["notes"]
    )
    settings = json.loads((tmp_path / "out" / "genai_config.json").read_text("utf-8"))
    config = settings["model"]
    assert (config["context_length"], config["decoder"]["num_key_value_heads"]) == (64, 2)
    assert settings["search"]["past_present_share_buffer"]
    monkeypatch.setattr(Consumer, "ask", lambda *_: {"version": "1", "tokens": [[0] * 16] * 3})
    with pytest.raises(VerificationError, match="other tokens than PyTorch") as caught:
        api.package(decoder, tmp_path / "other", kind="onnxruntime-genai")
    assert caught.value.code == "TM4008" and names_in(tmp_path) == ["decoder", "out"]


@pytest.mark.slow
def test_files_for_transformers_js(decoder: Path, tmp_path: Path) -> None:
    for name in ("one", "other"):
        options: dict[str, Any] = {"dtypes": ["q4", "q4f16", "fp32"], "external_data": True}
        report = api.package(decoder, tmp_path / name, kind="transformers.js", **options)
    names = [name for name, _ in report.files if name.startswith("onnx/")]
    files = ("onnx/model.onnx", "onnx/model_q4.onnx", "onnx/model_q4f16.onnx")
    assert names == sorted([*files, *(f"{each}_data" for each in files)])
    config = json.loads((tmp_path / "one" / "config.json").read_text("utf-8"))
    external = {"model.onnx": True, "model_q4.onnx": True, "model_q4f16.onnx": True}
    assert config["transformers.js_config"] == {"use_external_data_format": external}
    for name, _ in report.files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


@pytest.fixture
def encoder_decoder(tmp_path: Path) -> Path:
    """An encoder-decoder of text with weights that are not small."""
    transformers = pytest.importorskip("transformers")
    import torch

    torch.manual_seed(0)
    sides = {f"{side}_{name}": 2 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    widths = {"d_model": 16, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "max_position_embeddings": 64}
    tokens = {"vocab_size": 61, "pad_token_id": 0, "eos_token_id": None, "decoder_start_token_id": 2}
    model = transformers.BartForConditionalGeneration(
        transformers.BartConfig(**sides, **widths, **tokens, forced_eos_token_id=None)
    )
    for each in model.parameters():
        each.data.mul_(8)
    model.eval().save_pretrained(tmp_path / "net")
    return tmp_path / "net"


@pytest.mark.slow
def test_one_decoder_file_serves_the_first_step_and_all_others(encoder_decoder: Path, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    report = api.package(encoder_decoder, tmp_path / "out", kind="optimum")
    (check,) = report.checks
    assert "48 of 48 tokens are PyTorch's" in check.result
    session = onnxruntime.InferenceSession(str(tmp_path / "out" / "decoder_model_merged.onnx"))
    inputs = {each.name: each.shape for each in session.get_inputs()}
    # optimum pairs them with its cache by their order: own keys and values of a layer, those of the encoder
    slots = [f"{side}.{name}" for side in ("decoder", "encoder") for name in ("key", "value")]
    assert [name for name in inputs if name.startswith("past")] == [
        f"past_key_values.{layer}.{slot}" for layer in range(2) for slot in slots
    ]
    random = np.random.default_rng(0)
    feeds = {
        "input_ids": np.array([[2, 5, 7]]),
        "encoder_hidden_states": random.standard_normal((1, 6, 16)).astype(np.float32),
        "encoder_attention_mask": np.array([[1, 1, 1, 1, 0, 0]]),
    }
    empty = {name: np.zeros((1, 2, 0, 8), np.float32) for name in inputs if name.startswith("past")}
    names = [each.name for each in session.get_outputs()]
    first = dict(zip(names, session.run(None, {**feeds, **empty}), strict=True))
    full = {name: first[name.replace("past_key_values", "present")] for name in empty}
    for known in (0, 2, 6):  # of the encoder's positions
        past = {
            name: array[:, :, :known] if "encoder" in name else array[:, :, :2]
            for name, array in full.items()
        }
        (logits, *_) = session.run(None, {**feeds, **past, "input_ids": np.array([[7]])})
        np.testing.assert_allclose(logits[:, -1], first["logits"][:, -1], atol=1e-4)


def test_code_of_the_folder_is_not_run(tmp_path: Path) -> None:
    code = {"auto_map": {"AutoModel": "code.Net"}, "trust_remote_code": True}
    with pytest.raises(LoadError, match="would run code") as caught:
        api.package(folder_of(tmp_path / "net", "Net", **code), tmp_path / "out", kind="optimum")
    assert caught.value.code == "TM1028"
    with pytest.raises(UsageError):
        api.package(tmp_path / "net", tmp_path / "out", kind="onnx")


@pytest.mark.parametrize(("ends", "wanted"), [(7, [7]), ([7, 151329], [7]), (151329, []), (None, [])])
def test_tokens_beyond_the_vocabulary_are_not_set(ends: Any, wanted: list[int], tmp_path: Path) -> None:
    """Configurations have ends of another vocabulary where only its size was changed."""
    source = PackageSource(tmp_path, {"vocab_size": 61, "eos_token_id": ends}, {})
    assert source.known_ends == wanted


def test_a_tokenizer_that_ends_the_program_leaves_the_answer(tmp_path: Path) -> None:
    script = tmp_path / "open_net.py"
    script.write_text(
        f"import os, sys\nsys.path.insert(0, {str(PROGRAMS)!r})\nfrom question import reply\n"
        "reply(lambda question: {'tokens': [1]}, lambda question: os._exit(11))\n",
        encoding="utf-8",
    )
    (tmp_path / "net").mkdir()
    answer = Consumer("net", str(script), "").ask({"text": "a"}, tmp_path / "net", tmp_path)
    assert answer == {"tokens": [1], "text_error": "the program ends"}
