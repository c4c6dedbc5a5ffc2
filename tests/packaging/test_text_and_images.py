"""Packages of models of text and images: their parts, and the masks of their decoders."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.packaging.conftest import TINY, names_in
from tmconvert import api
from tmconvert.errors import UnsupportedError


def test_tokens_of_a_prefix_attend_to_each_other() -> None:
    torch = pytest.importorskip("torch")
    from tmconvert.frontends.torch.tracing.programs.vision_language import prefix_mask

    first = prefix_mask(torch.tensor([[1, 1, 0]]), 3)
    assert first.tolist() == [[[[True, True, False]] * 3]]
    later = prefix_mask(torch.ones(1, 4, dtype=torch.int64), 2)
    assert later.tolist() == [[[[True, True, True, False], [True] * 4]]]


def test_features_replace_the_embeddings_of_image_tokens() -> None:
    torch = pytest.importorskip("torch")
    from tmconvert.frontends.torch.tracing.programs.vision_language import MergedEmbeddings

    table = torch.nn.Embedding.from_pretrained(torch.arange(8.0)[:, None])
    model: Any = SimpleNamespace(get_input_embeddings=lambda: table, config=SimpleNamespace(image_token_id=5))
    tokens = torch.tensor([[1, 5, 2], [5, 5, 3]])
    for features, wanted in (
        ([70.0, 80.0, 90.0], [[1, 70, 2], [80, 90, 3]]),
        ([70.0], [[1, 70, 2], [5, 5, 3]]),
        ([], [[1, 5, 2], [5, 5, 3]]),
    ):
        made = MergedEmbeddings(model)(tokens, torch.tensor(features)[:, None].reshape(-1, 1))
        assert made["inputs_embeds"][..., 0].tolist() == wanted


def test_images_are_numbered_after_the_past() -> None:
    torch = pytest.importorskip("torch")
    from tmconvert.frontends.torch.tracing.programs.vision_language import blocks

    is_image = torch.tensor([[True, True, False, True], [False, False, True, True]])
    assert blocks(is_image, 2).tolist() == [[-1, -1, 1, 1, -1, 2], [-1, -1, -1, -1, 1, 1]]


def folder_of_text_and_images(path: Path, kind: str, images: str, text: str, **settings: Any) -> Path:
    transformers = pytest.importorskip("transformers")
    import torch

    torch.manual_seed(0)
    sizes = {name: value for name, value in TINY.items() if name.endswith(("size", "layers", "heads"))}
    sizes.pop("vocab_size")
    config = getattr(transformers, kind)(
        vision_config=getattr(transformers, images)(**sizes, image_size=16, patch_size=8).to_dict(),
        text_config=getattr(transformers, text)(**TINY, num_key_value_heads=2, head_dim=8).to_dict(),
        image_token_id=60,
        **settings,
    )
    model = transformers.AutoModelForImageTextToText.from_config(config).eval()
    for each in model.parameters():
        each.data.add_(torch.randn_like(each) * 0.15)
    model.save_pretrained(path)
    return path


@pytest.mark.slow
def test_text_and_images_for_transformers_js(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    source = folder_of_text_and_images(tmp_path / "net", "LlavaConfig", "CLIPVisionConfig", "LlamaConfig")
    report = api.package(source, tmp_path / "out", kind="transformers.js", dtypes=["fp32"])
    assert "48 of 48 tokens are PyTorch's" in report.checks[0].result
    config = json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))
    assert config["text_config"]["num_hidden_layers"] == 2
    weights: list[bytes] = []
    for name in ("vision_encoder", "embed_tokens", "decoder_model_merged"):
        graph = onnx.load(tmp_path / "out" / "onnx" / f"{name}.onnx").graph
        weights += [each.raw_data for each in graph.initializer if np.prod(each.dims) > 64]
    assert len(set(weights)) == len(weights) > 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("configs", "options", "shares"),
    [
        (("LlavaConfig", "CLIPVisionConfig", "LlamaConfig"), {}, True),
        (("Gemma3Config", "SiglipVisionConfig", "Gemma3TextConfig"), {"mm_tokens_per_image": 4}, False),
    ],
    ids=["causal", "both ways within an image"],
)
def test_text_and_images_for_genai(
    configs: tuple[str, str, str], options: dict[str, int], shares: bool, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    source = folder_of_text_and_images(tmp_path / "net", *configs, **options)
    report = api.package(source, tmp_path / "out", kind="onnxruntime-genai")
    assert "48 of 48 tokens are PyTorch's" in report.checks[0].result
    config = json.loads((tmp_path / "out" / "genai_config.json").read_text("utf-8"))
    assert config["search"]["past_present_share_buffer"] is shares
    parts = {part: config["model"][part]["filename"] for part in ("vision", "embedding", "decoder")}
    assert parts == {"vision": "vision.onnx", "embedding": "embedding.onnx", "decoder": "model.onnx"}
    assert ("input_ids" in config["model"]["decoder"]["inputs"]) is not shares


@pytest.mark.parametrize(
    ("configs", "options", "reason"),
    [
        (
            ("Gemma3Config", "SiglipVisionConfig", "Gemma3TextConfig"),
            {"mm_tokens_per_image": 4},
            "its decoder also takes the types of tokens",
        ),
        # the window is longer than the text whose logits are compared when the parts are made
        (
            ("PaliGemmaConfig", "SiglipVisionConfig", "Gemma2Config"),
            {"projection_dim": 32},
            "attends both ways, and to windows",
        ),
    ],
)
def test_decoders_that_need_more_than_embeddings_are_refused(
    configs: tuple[str, str, str], options: dict[str, int], reason: str, tmp_path: Path
) -> None:
    source = folder_of_text_and_images(tmp_path / "net", *configs, **options)
    with pytest.raises(UnsupportedError, match=reason) as caught:
        api.package(source, tmp_path / "out", kind="transformers.js")
    assert caught.value.code == "TM2032" and names_in(tmp_path) == ["net"]
