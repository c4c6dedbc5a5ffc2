"""Packages of LiteRT-LM: signatures of decoders, the container, and what is refused."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.packaging.conftest import TINY
from tests.packaging.test_package import folder_of, names_in
from tmconvert import api
from tmconvert.errors import TmconvertError, UnsupportedError, VerificationError
from tmconvert.packaging import litert_lm
from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.text_generation import tokens_of

TOKENS = 61


@pytest.fixture
def source(decoder: Path) -> Path:
    """A decoder with windows, and a tokenizer with a word for each token, which puts 1 before a text."""
    words = {f"<{number}>": number for number in range(TOKENS)}
    start = {"SpecialToken": {"id": "<1>", "type_id": 0}}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [start, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [],
            "special_tokens": {"<1>": {"id": "<1>", "ids": [1], "tokens": ["<1>"]}},
        },
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "<0>"},
    }
    (decoder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (decoder / "chat_template.jinja").write_text("{{ messages }}", encoding="utf-8")
    return decoder


@pytest.mark.slow
def test_a_decoder_for_litert_lm(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = pytest.importorskip("litert_lm_builder.runtime.proto.llm_metadata_pb2")
    pytest.importorskip("ai_edge_litert")
    options: dict[str, Any] = {"kind": "litert-lm", "cache_length": 48, "prefill_lengths": [4, 16]}
    report = api.package(source, tmp_path / "out", **options)
    (check,) = report.checks
    # 16 for each of ten texts, less where one ends
    assert "tokens are PyTorch's" in check.result and names_in(tmp_path / "out") == ["model.litertlm"]
    found = re.search(r"(\d+) of (\d+) tokens", check.result)
    assert found is not None and found[1] == found[2] and int(found[1]) > 60
    if check.left_out:
        assert "litert-lm-api" in check.left_out and check.result.startswith("LiteRT ")
    api.package(source, tmp_path / "again", **options, verify=False)
    content = (tmp_path / "out" / "model.litertlm").read_bytes()
    assert content == (tmp_path / "again" / "model.litertlm").read_bytes()
    assert b"prefill_4" in content and b"kv_cache_v_1" in content and b"1970-01-01" in content
    settings = metadata.LlmMetadata()
    settings.start_token.token_ids.ids.append(1)
    settings.stop_tokens.add().token_ids.ids.append(0)  # padding, as the configuration has no end
    settings.max_num_tokens, settings.jinja_prompt_template = 48, "{{ messages }}"
    settings.llm_model_type.generic_model.SetInParent()
    assert settings.SerializeToString(deterministic=True) in content

    def ask(consumer: Consumer, question: Any, *_: Any) -> Any:
        decoded = [["<9> " * count for count in range(len(each) + 1)] for each in question["decoded"]]
        return {"version": "1", "tokens": question["prompts"], "replies": ["<0>"] * 10, "decoded": decoded}

    monkeypatch.setattr(Consumer, "ask", ask)
    with pytest.raises(VerificationError, match="other tokens than PyTorch") as caught:
        api.package(source, tmp_path / "other", **options)
    assert caught.value.code == "TM4008" and "other" not in names_in(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["float16", "int8", "int4"])
def test_rounded_weights(source: Path, tmp_path: Path, weights: Any) -> None:
    pytest.importorskip("litert_lm_builder")
    report = api.package(
        source, tmp_path / "out", kind="litert-lm", cache_length=48, prefill_lengths=[16], weights=weights
    )
    (check,) = report.checks
    found = re.search(r"(\d+) of (\d+) tokens", check.result)
    assert found is not None and int(found[2]) > 60
    content = (tmp_path / "out" / "model.litertlm").read_bytes()
    assert b"prefill_16" in content and weights.encode() in content


@pytest.mark.slow
def test_caches_of_a_fixed_length_compute_what_growing_ones_do(source: Path) -> None:
    torch = pytest.importorskip("torch")
    import transformers

    from tmconvert.frontends.torch.tracing.programs.static_decoder import (
        cache_shapes,
        random_caches,
        static_parts,
    )

    model = transformers.AutoModelForCausalLM.from_pretrained(source).eval()
    parts = static_parts(model, random_caches(model, cache_shapes(model), 24), [16])
    tokens = torch.arange(3, 23)[None]
    caches = {name: each for name, each in parts["decode"].inputs.items() if name.startswith("kv_cache_")}
    with torch.no_grad():
        padded = torch.cat([tokens[:, :14], torch.zeros(1, 2, dtype=torch.int64)], 1)
        positions = torch.cat([torch.arange(14), torch.zeros(2, dtype=torch.int64)])  # as LiteRT-LM fills it
        made = parts["prefill_16"].module(padded.int(), positions.int(), **caches)
        for position in range(14, 20):  # past the window of 8
            place = torch.tensor([position], dtype=torch.int32)
            made = parts["decode"].module(tokens[:, position : position + 1].int(), place, **made)
            logits = made.pop("logits")
            expected = model(input_ids=tokens[:, : position + 1], use_cache=False).logits[:, -1:]
            np.testing.assert_allclose(logits.numpy(), expected.numpy(), atol=1e-4)


def test_biases_by_distance_have_all_positions() -> None:
    """Falcon makes a mask of the tokens so far for them, which are fewer than the positions of the caches."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")

    from tmconvert.frontends.torch.tracing.programs.static_decoder import (
        cache_shapes,
        random_caches,
        static_parts,
    )

    torch.manual_seed(0)
    sizes = {**TINY, "num_kv_heads": 4}
    config = transformers.FalconConfig(**sizes, alibi=True, multi_query=False, max_position_embeddings=64)
    model = transformers.FalconForCausalLM(config).eval()
    part = static_parts(model, random_caches(model, cache_shapes(model), 24), [8])["prefill_8"]
    with torch.no_grad():
        made = part.module(**part.inputs)
        tokens = part.inputs["tokens"]
        wanted = model(input_ids=tokens, use_cache=True)
    keys = next(each for name, each in wanted.items() if hasattr(each, "layers")).layers[1].keys
    np.testing.assert_allclose(made["kv_cache_k_1"][:, :, :8], keys, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        ({}, "TM2032", "has no tokenizer.json"),
        ({"opset": 21}, "TM6002", "opens TFLite files: omit opset"),
        ({"dtypes": ["q4"]}, "TM6002", "use weights, not dtypes"),
        ({"cache_length": 0}, "TM6002", "a positive int"),
        ({"prefill_lengths": []}, "TM6002", "a list of positive ints"),
        ({"kind": "optimum", "cache_length": 8}, "TM6002", "omit the lengths"),
    ],
)
def test_refused_options(options: dict[str, Any], code: str, reason: str, tmp_path: Path) -> None:
    source = folder_of(tmp_path / "net", "LlamaForCausalLM")
    with pytest.raises(TmconvertError, match=reason) as caught:
        api.package(source, tmp_path / "out", **{"kind": "litert-lm", **options})
    assert caught.value.code == code and names_in(tmp_path) == ["net"]


@pytest.mark.parametrize(
    ("lengths", "reason"),
    [((128, None), "the model has 64 positions"), ((32, [48]), "not shorter than the caches")],
)
def test_lengths_that_do_not_fit(
    lengths: Any, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litert_lm, "_module", lambda name: None)
    source = folder_of(tmp_path / "net", "LlamaForCausalLM", max_position_embeddings=64, eos_token_id=2)
    (source / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(TmconvertError, match=reason):
        api.package(
            source, tmp_path / "out", kind="litert-lm", cache_length=lengths[0], prefill_lengths=lengths[1]
        )


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (("conv_states",), "no caches of keys and values"),
        (("keys", "values", "conv_states"), "other states, too: conv_states"),
    ],
)
def test_other_states_are_refused(names: tuple[str, ...], reason: str) -> None:
    torch = pytest.importorskip("torch")
    from tmconvert.frontends.torch.tracing.programs.static_decoder import cache_shapes

    layer = SimpleNamespace(**{name: torch.zeros(1, 2, 1, 8) for name in names})
    cache = {"past_key_values": SimpleNamespace(layers=[layer])}
    with pytest.raises(UnsupportedError, match=reason) as caught:
        cache_shapes(lambda **_: cache)
    assert caught.value.code == "TM2032"


def test_the_builder_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "litert_lm_builder.litertlm_builder", None)
    source = folder_of(tmp_path / "net", "LlamaForCausalLM", eos_token_id=2)
    (source / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(TmconvertError, match="litert-lm-builder") as caught:
        api.package(source, tmp_path / "out", kind="litert-lm")
    assert caught.value.code == "TM1021" and names_in(tmp_path) == ["net"]


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [("a b c", [5, 6, 7]), ("a b", [5, 6, -1]), (" a bx", [5, 6, -1]), ("x", [-1, -1, -1])],
)
def testtokens_of_a_reply(reply: str, wanted: list[int]) -> None:
    assert tokens_of(reply, ["", "a", "a b", "a b c\ufffd"], [5, 6, 7]) == wanted
