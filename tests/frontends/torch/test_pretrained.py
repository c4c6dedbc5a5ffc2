"""Folders of transformers: what is refused without the package, and what is traced with it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tmconvert
from tmconvert.errors import LoadError

from .harness import run_onnx

SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20}


def folder_with(path: Path, config: str, *files: str) -> Path:
    path.mkdir()
    (path / "config.json").write_text(config)
    for name in files:
        (path / name).write_bytes(b"")
    return path


@pytest.mark.parametrize(
    ("config", "files", "reason"),
    [
        ("{", (), "config.json cannot be read"),
        ("[" * 100_000, (), "config.json cannot be read"),
        ('{"layers": 3}', (), "it has no model_type"),
        ('{"model_type": ' + "1" * 5000 + "}", (), "config.json cannot be read"),
        ('{"model_type": "bert"}', ("pytorch_model.bin",), "it has no weights in safetensors"),
        ('{"model_type": "bert"}', ("model.safetensors", "adapter_config.json"), "it has an adapter"),
    ],
)
def test_folders_that_cannot_be_used(tmp_path: Path, config: str, files: Any, reason: str) -> None:
    with pytest.raises(LoadError, match=reason) as caught:
        tmconvert.load(folder_with(tmp_path / "net", config, *files))
    assert caught.value.code == "TM1028"


@pytest.mark.parametrize(
    ("index", "reason"),
    [
        ("[]", "has no weight_map"),
        ('{"weight_map": {"a": "../other.safetensors"}}', "names '../other.safetensors', which is not"),
        ('{"weight_map": {"a": "pytorch_model.bin"}}', "names 'pytorch_model.bin', which is not"),
        ('{"weight_map": {"a": ["b.safetensors"]}}', "which is not a safetensors file of the folder"),
        ('{"weight_map": {"a": "b.safetensors"}}', "b.safetensors is missing"),
    ],
)
def test_an_index_names_weights_of_the_folder(tmp_path: Path, index: str, reason: str) -> None:
    (tmp_path / "other.safetensors").write_bytes(b"")
    folder = folder_with(tmp_path / "net", '{"model_type": "bert"}', "pytorch_model.bin")
    (folder / "model.safetensors.index.json").write_text(index)
    with pytest.raises(LoadError, match=reason) as caught:
        tmconvert.load(folder)
    assert caught.value.code == "TM1028"


def test_transformers_is_named_where_it_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    folder = folder_with(tmp_path / "net", json.dumps({"model_type": "bert"}), "model.safetensors")
    with pytest.raises(LoadError, match="transformers is not installed") as caught:
        tmconvert.load(folder)
    assert "pip install transformers" in str(caught.value)


@pytest.mark.slow
def test_a_decoder_has_the_inputs_and_outputs_of_its_cache(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    import torch

    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SMALL, vocab_size=31, num_key_value_heads=1)
    model = transformers.LlamaForCausalLM(config).eval()
    model.save_pretrained(tmp_path / "net")
    report = tmconvert.to_onnx(tmp_path / "net", tmp_path / "net.onnx", names="optimum")
    shapes = {each["name"]: each["shape"] for each in report.inputs}
    assert shapes["attention_mask"] == ["batch", "past+sequence"]
    assert shapes["past_key_values.0.key"] == ["batch", 1, "past", 8]
    tokens, mask = np.array([[5, 6, 7]]), np.ones((1, 3), np.int64)
    cache = [np.zeros((1, 1, 0, 8), np.float32)] * 2
    by_name = {"input_ids": tokens, "attention_mask": mask, "position_ids": np.arange(3)[None]}
    given = [by_name.get(name, cache[0]) for name in shapes]
    wanted = model(torch.from_numpy(tokens)).logits.detach().numpy()
    np.testing.assert_allclose(run_onnx(tmp_path / "net.onnx", given)[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """The folder of a masked language model, whose decoder is tied to its embeddings."""
    transformers = pytest.importorskip("transformers")
    model = transformers.BertForMaskedLM(transformers.BertConfig(**SMALL, vocab_size=31))
    model.save_pretrained(tmp_path / "net")
    return tmp_path / "net"


def with_entries(folder: Path, **entries: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))
    return folder


def loaded(folder: Path) -> Any:
    from tmconvert.frontends.torch.pretrained import check_folder
    from tmconvert.frontends.torch.tracing.programs.pretrained import pretrained_model

    return pretrained_model(check_folder(str(folder)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        (
            {"architectures": ["BertModel"]},
            "it lacks weights of BertModel: pooler.dense.bias, pooler.dense.weight",
        ),
        ({"architectures": ["BertForSequenceClassification"]}, "it lacks weights of .* and 1 more"),
        ({"num_hidden_layers": 3}, "it lacks weights of BertForMaskedLM: bert.encoder.layer.1.* and 29 more"),
        ({"hidden_size": 32}, "its weights have other shapes than those of BertForMaskedLM"),
        ({"tie_word_embeddings": False}, "it lacks weights of BertForMaskedLM: cls.predictions.decoder"),
        ({"architectures": None}, "it lacks weights of BertModel"),
        ({"architectures": ["GPT2Model"]}, "cannot load it"),
    ],
)
def test_weights_that_are_missing(saved: Path, entries: dict[str, Any], reason: str) -> None:
    with pytest.raises(LoadError, match=reason) as caught:
        loaded(with_entries(saved, **entries))
    assert caught.value.code == "TM1028"


@pytest.mark.slow
def test_weights_that_a_class_does_not_miss_are_missing_if_they_are_random(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    kind = transformers.BertForSequenceClassification
    monkeypatch.setattr(kind, "_keys_to_ignore_on_load_missing", ["classifier", "pooler"])
    with pytest.raises(
        LoadError, match=r"it lacks weights of .*: bert\.pooler\.dense\.weight, classifier\.weight"
    ):
        loaded(with_entries(saved, architectures=[kind.__name__]))


@pytest.mark.slow
def test_weights_that_are_left_over(saved: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(saved / "model.safetensors")
    name = "other.\x1b[2J"
    save_file({**weights, name: weights["cls.predictions.bias"].clone()}, saved / "model.safetensors")
    (note,) = loaded(saved).notes
    assert note.startswith("weights that BertForMaskedLM does not have are left out: other.")
    with pytest.raises(LoadError, match="weights") as caught:
        loaded(with_entries(saved, architectures=["BertForPreTraining"]))
    assert "\x1b" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_code_that_a_known_model_names_is_not_run(saved: Path) -> None:
    (note,) = loaded(with_entries(saved, auto_map={"AutoModel": "code.Model"})).notes
    assert "(auto_map) is not run: the model is transformers' BertForMaskedLM" in note


@pytest.mark.slow
def test_a_class_that_does_not_fit_the_configuration(saved: Path) -> None:
    with pytest.raises(LoadError) as caught:
        tmconvert.load(with_entries(saved, architectures=["BertLMHeadModel"]))
    assert caught.value.code == "TM1028" and "no example inputs were found" in caught.value.message


@pytest.mark.slow
def test_weights_in_bfloat16_and_in_several_files(saved: Path) -> None:
    import torch
    import transformers

    model = transformers.BertForMaskedLM.from_pretrained(saved)
    model.to(torch.bfloat16).save_pretrained(saved.with_name("half"), max_shard_size="2KB")
    assert len(list(saved.with_name("half").glob("*.safetensors"))) > 1
    found = loaded(saved.with_name("half")).module
    for name, value in model.state_dict().items():
        torch.testing.assert_close(found.state_dict()[name], value, check_dtype=False, rtol=0, atol=0)
        assert found.state_dict()[name].dtype != torch.bfloat16
