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
