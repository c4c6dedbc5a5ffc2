"""Packages of onnxruntime-genai: a decoder with its cache, ``genai_config.json`` and the tokenizer.

Source of the format: the configuration reference of onnxruntime-genai,
https://onnxruntime.ai/docs/genai/reference/config.html.
"""

from __future__ import annotations

from typing import Any

from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.kind import Converted, Kind, layout, refused, write_json
from tmconvert.packaging.shared_cache import share_caches
from tmconvert.packaging.source import PackageSource
from tmconvert.packaging.tasks import DECODER

# settings of generate that its search has, with their neutral values
_SEARCH = {"do_sample": False, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "repetition_penalty": 1.0}
_CACHE = "{}.%d.{}"
_MOST_SHARED = 4096  # positions that caches have from the start, by default


def _write(made: Converted) -> str:
    configuration = _configuration(made)
    search, reason = configuration["search"], share_caches(made.folder / made.files[0][0].path)
    search["past_present_share_buffer"] = not reason
    if not reason:
        search["max_length"] = min(search["max_length"], _MOST_SHARED)
    write_json(made.folder / "genai_config.json", configuration)
    return reason and f"caches grow with the text, and are copied in each step: {reason}"


def _configuration(made: Converted) -> dict[str, Any]:
    """Returns the settings of one file with an open cache; its type is the generic ``decoder``."""
    source, caches = made.source, made.caches
    shapes = {tuple(shape) for shape in caches.values()}
    if len(shapes) != 1 or [type(each) for each in next(iter(shapes))] != [str, int, str, int]:
        found = ", ".join(str(list(each)) for each in sorted(shapes, key=str)) or "none"
        raise refused(KIND, source, f"its layers need caches of one shape, and have: {found}")
    heads, size = (int(each) for each in shapes.pop()[1::2])
    layers = len(caches) // 2
    start, padding = (_known(source, source.setting(f"{name}_token_id")) for name in ("bos", "pad"))
    ends = known_ends(source)
    names = [each["name"] for each in made.files[0][1].inputs]
    inputs = {name: name for name in ("input_ids", "attention_mask", "position_ids") if name in names}
    attention = source.text.get("num_attention_heads") or source.text.get("n_head") or heads
    decoder = {
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
        "filename": made.files[0][0].path,
        "head_size": size,
        "hidden_size": source.text.get("hidden_size") or source.text.get("n_embd") or attention * size,
        "num_attention_heads": attention,
        "num_hidden_layers": layers,
        "num_key_value_heads": heads,
        "inputs": inputs
        | {f"past_{part}_names": _CACHE.format("past_key_values", part) for part in ("key", "value")},
        "outputs": {"logits": "logits"}
        | {f"present_{part}_names": _CACHE.format("present", part) for part in ("key", "value")},
    }
    model = {
        "type": "decoder",
        "bos_token_id": start,
        "eos_token_id": ends[0] if len(ends) == 1 else ends or None,
        "pad_token_id": padding if padding is not None else next(iter(ends), None),
        "context_length": source.context,
        "vocab_size": source.text.get("vocab_size"),
        "decoder": decoder,
    }
    search = {name: source.setting(name) for name in _SEARCH}
    chosen = {name: _SEARCH[name] if value is None else value for name, value in search.items()}
    return {
        "model": {name: value for name, value in model.items() if value is not None},
        "search": {**chosen, "max_length": source.context},
    }


def known_ends(source: PackageSource) -> list[int]:
    """Returns the tokens that end a text, without those beyond the vocabulary."""
    return [each for each in source.ends if _known(source, each) is not None]


def _known(source: PackageSource, token: Any) -> int | None:
    """Returns a token of the vocabulary; None for another one, which onnxruntime-genai refuses."""
    size = source.text.get("vocab_size")
    return token if isinstance(token, int) and 0 <= token < (size or token + 1) else None


KIND = Kind(
    "onnxruntime-genai",
    Consumer("onnxruntime-genai", "open_genai.py", "pip install onnxruntime-genai"),
    layout("", DECODER),
    options={"opset": 23},  # the first one with Attention
    write=_write,
)
