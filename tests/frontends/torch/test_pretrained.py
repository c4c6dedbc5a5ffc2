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
        ('{"model_type": "bert"}', ("pytorch_model.bin",), "it has no weights in safetensors"),
    ],
)
def test_folders_that_cannot_be_used(tmp_path: Path, config: str, files: Any, reason: str) -> None:
    with pytest.raises(LoadError, match=reason) as caught:
        tmconvert.load(folder_with(tmp_path / "net", config, *files))
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
