"""Models by their names of Hugging Face, from the local cache."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import tmconvert
from tests.cli.runner import run
from tmconvert.errors import LoadError
from tmconvert.frontends.torch.hub_cache import cache, cached_folder


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "hub"


def snapshot(hub: Path, name: str, revision: str) -> Path:
    folder = hub / f"models--{name.replace('/', '--')}" / "snapshots" / revision
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def test_the_folder_of_a_name(hub: Path) -> None:
    first = snapshot(hub, "org/net", "abc")
    assert cached_folder("org/net") == first
    second = snapshot(hub, "org/net", "def")
    assert cached_folder("org/net") is None  # which of both is not known
    refs = first.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text("def")
    assert cached_folder("org/net") == second
    (refs / "main").write_text("../../../other")  # a branch leads to no other folder
    assert cached_folder("org/net") is None
    assert cached_folder("net") is None and cached_folder("../org/net") is None and cached_folder("") is None
    folder = snapshot(hub, "gpt2", "a")
    assert cached_folder("gpt2") == folder


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert cache() == Path("~/.cache/huggingface/hub").expanduser()
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache() == Path("/x/huggingface/hub")
    monkeypatch.setenv("HF_HOME", "/home")
    assert cache() == Path("/home/hub")
    monkeypatch.setenv("HF_HUB_CACHE", "/cache")
    assert cache() == Path("/cache")


def test_a_name_is_the_model_in_the_cache(hub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    folder = snapshot(hub, "org/net", "abc")
    with pytest.raises(LoadError, match="transformers is not installed") as caught:
        tmconvert.load("org/net")
    assert str(folder) in str(caught.value)


@pytest.mark.slow
def test_a_name_that_is_not_in_the_cache(hub: Path) -> None:
    with pytest.raises(LoadError, match="TM1001") as caught:
        tmconvert.load("org/net")
    said = str(caught.value)
    assert "run `hf download org/net`, or pass a folder" in said and str(hub) in said
    Path("org").mkdir()
    assert "hf download" not in run("inspect", "org/net").stderr  # the name is a path
    assert "hf download" not in run("inspect", "net.onnx").stderr


@pytest.mark.slow
def test_a_name_converts(hub: Path) -> None:
    transformers = pytest.importorskip("transformers")
    folder = snapshot(hub, "org/net", "abc")
    config = transformers.BertConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=20, vocab_size=31
    )
    transformers.BertModel(config).save_pretrained(folder)
    outcome = run("convert", "org/net", "--to", "onnx,tflite", "--json")
    assert outcome.status == 0 and "Loading weights" not in outcome.stderr
    assert [each["is_unchanged"] for each in outcome.json["conversions"]] == [False, False]
    outcome = run("convert", "org/net", "--to", "onnx,tflite", "--json")
    assert [each["is_unchanged"] for each in outcome.json["conversions"]] == [True, True]
