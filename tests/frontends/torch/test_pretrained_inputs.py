"""Example inputs of models of transformers, for programs that open packages."""

from __future__ import annotations

from typing import Any

import pytest

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

from tmconvert.frontends.torch.tracing.programs.pretrained_inputs import example_of  # noqa: E402

SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
TEXT = {**SIZES, "vocab_size": 9, "max_position_embeddings": 16}
WIDE = {"d_model": 8, "vocab_size": 9, "encoder_layers": 1, "decoder_layers": 1, "decoder_ffn_dim": 8} | {
    "encoder_ffn_dim": 8,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
}


IMAGES = {"image_size": 16, "patch_size": 8}
BOTH = {"text_config": {**TEXT, "eos_token_id": 2}, "vision_config": {**SIZES, **IMAGES}, "projection_dim": 8}


@pytest.mark.parametrize(
    ("kind", "settings", "wanted"),
    [
        ("BertForMultipleChoice", TEXT, {"input_ids": (2, 4, 8)}),
        (
            "ASTForAudioClassification",
            {**SIZES, "max_length": 32, "num_mel_bins": 16},
            {"input_values": (2, 32, 16)},
        ),
        (
            "ParakeetForCTC",
            {"vocab_size": 9, "encoder_config": {**SIZES, "num_mel_bins": 16}},
            {"input_features": (2, 200, 16)},
        ),
        (
            "VitPoseForPoseEstimation",
            {"backbone_config": {**SIZES, "model_type": "vitpose_backbone", "image_size": [32, 16]}},
            {"pixel_values": (2, 3, 32, 16)},
        ),
        (
            "VivitForVideoClassification",
            {**SIZES, **IMAGES, "num_frames": 4},
            {"pixel_values": (2, 4, 3, 16, 16)},
        ),
        ("ViltForQuestionAnswering", {**TEXT, **IMAGES}, {"pixel_values": (2, 3, 16, 16)}),
        (
            "Siglip2VisionModel",
            {**SIZES, "num_patches": 16, "patch_size": 4},
            {
                "pixel_values": (2, 16, 48),
                "pixel_attention_mask": (2, 16),
                "spatial_shapes": (2, 2),
            },
        ),
        # which makes the tokens of its decoder itself
        ("BartForSequenceClassification", WIDE, {"input_ids": (2, 8), "decoder_input_ids": None}),
    ],
)
def test_inputs_of_a_task(kind: str, settings: Any, wanted: dict[str, Any]) -> None:
    found = getattr(transformers, kind)
    with torch.device("meta"):
        model = found(found.config_class(**settings))
    inputs = example_of(model, lambda *_: {}, for_package=True).inputs
    assert {name: tuple(inputs[name].shape) if name in inputs else None for name in wanted} == wanted


@pytest.mark.parametrize(
    ("kind", "texts", "images"),
    [
        ("CLIPModel", (3, {0: "text_batch_size", 1: "sequence_length"}), (2, {0: "batch_size"})),
        ("OwlViTForObjectDetection", (4, {0: "text_batch_size", 1: "sequence_length"}), (1, {})),
        ("CLIPSegForImageSegmentation", (2, {0: "batch_size", 1: "sequence_length"}), (2, {0: "batch_size"})),
    ],
)
def test_texts_and_images_of_a_step(kind: str, texts: Any, images: Any) -> None:
    """Zero-shot classification passes one image and many texts."""
    found = getattr(transformers, kind)
    more = {"extract_layers": [0], "reduce_dim": 8, "decoder_intermediate_size": 8}
    model = found(found.config_class(**BOTH, **(more if "CLIPSeg" in kind else {}))).eval()
    example = example_of(model, lambda *_: {}, for_package=True)
    for name, wanted in (("input_ids", texts), ("attention_mask", texts), ("pixel_values", images)):
        assert (len(example.inputs[name]), example.sizes[name]) == wanted


def test_images_of_any_size() -> None:
    """The configuration of a network of convolutions has no size."""
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1])
    model = transformers.ResNetModel(config)
    open_sizes = {True: {0: "batch_size", 2: "height", 3: "width"}, False: {0: "batch"}}
    for for_package, wanted in open_sizes.items():
        assert example_of(model, lambda *_: {}, for_package=for_package).sizes["pixel_values"] == wanted


def test_boxes_around_words() -> None:
    model = transformers.LayoutLMModel(transformers.LayoutLMConfig(**TEXT, max_2d_position_embeddings=9))
    boxes = example_of(model, lambda *_: {}, for_package=True).inputs["bbox"]
    assert boxes.shape == (2, 8, 4) and (boxes[..., 2:] >= boxes[..., :2]).all()
