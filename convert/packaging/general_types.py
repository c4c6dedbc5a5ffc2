"""The type of model by which a consumer opens files whose own type it does not know.

Consumers of decoders take from the configuration how many layers the cache has, and which shapes; all else is
in the files. So a file of any type is opened by a type whose settings state these numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tmconvert.packaging.kind import Converted, write_json
from tmconvert.packaging.source import json_object
from tmconvert.packaging.tasks import DECODER, ENCODER_DECODER, ONCE, SENTENCES, VISION_LANGUAGE

_CONFIGURATION = "config.json"
_KEPT = (
    *("vocab_size", "max_position_embeddings", "bos_token_id", "eos_token_id", "pad_token_id"),
    *("decoder_start_token_id", "is_encoder_decoder", "transformers.js_config"),
)
_NAME = re.compile(r"past_key_values\.(\d+)\.(?:decoder\.|encoder\.)?(key|value)")
_STATE = re.compile(r"past_(?:conv|ssm)\.(\d+)")


class Caches(NamedTuple):
    """Caches of one shape in all layers: the number of layers and heads, and the sizes of keys and values."""

    layers: int
    heads: int
    key_size: int
    value_size: int


def write_general_type(made: Converted) -> str:
    """Changes the type in config.json to one that states the shapes of the caches, and returns its name.

    The result is empty, and nothing is changed, where no type does: for layers with different caches, and for
    a part that takes other inputs than the files of such a type.
    """
    path, states = made.folder / _CONFIGURATION, dict(_states(made.caches))
    found = caches_of({name: shape for name, shape in made.caches.items() if name not in states})
    document = json_object(path)
    if made.task in (ONCE, SENTENCES):
        changed = _once(made, document)
    elif states and made.task == DECODER:
        changed = {**_layers_with_states(set(states.values()), made.caches), **_kept(document)}
    elif found is None or states or made.task not in _TYPES:
        return ""
    else:
        changed = _TYPES[made.task](found, made, document)
    if changed:
        write_json(path, changed)
    return str(changed.get("model_type", ""))


def _states(names: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Yields the names of states that are not keys and values, with the numbers of their layers."""
    for name in names:
        found = _STATE.fullmatch(name)
        if found:
            yield name, int(found[1])


def _layers_with_states(states: set[int], names: Iterable[str]) -> dict[str, Any]:
    """Describes layers with states, and layers with keys and values; each may have both."""
    attention = {int(found[1]) for name in names if (found := _NAME.fullmatch(name))}
    count = max(attention | states) + 1
    if attention == states:
        return {"model_type": "falcon_h1", "num_hidden_layers": count}
    kinds = [
        "mamba" if each in states else "attention" if each in attention else "mlp" for each in range(count)
    ]
    return {"model_type": "nemotron_h", "num_hidden_layers": count, "layer_types": kinds}


def caches_of(shapes: Mapping[str, list[int | str]]) -> Caches | None:
    """Returns what the shapes of caches, by the names of inputs, have in common; None for different ones.

    >>> caches_of({f"past_key_values.0.{part}": ["batch", 2, "past", 8] for part in ("key", "value")})
    Caches(layers=1, heads=2, key_size=8, value_size=8)
    """
    layers, sizes, heads = set[int](), dict[str, set[int | str]](), set[int | str]()
    for name, shape in shapes.items():
        parts = _NAME.fullmatch(name)
        if parts is None or [type(each) for each in shape] != [str, int, str, int]:
            return None
        layers.add(int(parts[1]))
        heads.add(shape[1])
        sizes.setdefault(parts[2], set()).add(shape[3])
    if layers != set(range(len(layers))) or any(len(each) != 1 for each in (heads, *sizes.values())):
        return None
    if sizes.keys() != {"key", "value"}:
        return None
    key_size, value_size = (int(sizes[part].pop()) for part in ("key", "value"))
    return Caches(len(layers), int(heads.pop()), key_size, value_size)


def _once(made: Converted, document: Mapping[str, Any]) -> dict[str, Any]:
    """Describes one file, also of a type whose models have several."""
    first = made.files[0][1].inputs[0]["name"]
    sound = dict.fromkeys(("input_values", "input_features"), "wav2vec2")
    chosen = {"input_ids": "bert", "pixel_values": "vit", **sound}.get(first)
    return {**document, "model_type": chosen, "is_encoder_decoder": False} if chosen else {}


def _decoder(caches: Caches, made: Converted, document: Mapping[str, Any]) -> dict[str, Any]:
    counts = {
        "num_hidden_layers": caches.layers,
        "num_attention_heads": caches.heads,
        "num_key_value_heads": caches.heads,
        "hidden_size": caches.heads * caches.key_size,
    }
    if caches.key_size == caches.value_size:
        chosen = {"model_type": "gemma", "architectures": ["GemmaForCausalLM"], "head_dim": caches.key_size}
    else:
        sizes = {"qk_nope_head_dim": caches.key_size, "qk_rope_head_dim": 0, "v_head_dim": caches.value_size}
        chosen = {"model_type": "deepseek_v3", "architectures": ["DeepseekV3ForCausalLM"], **sizes}
    return {**chosen, **counts, **_kept(document)}


def _encoder_decoder(caches: Caches, made: Converted, document: Mapping[str, Any]) -> dict[str, Any]:
    inputs = {each["name"] for each in next(made.by_dtype()).files["encoder"][1].inputs}
    if caches.key_size != caches.value_size:
        return {}
    if inputs == {"pixel_values"}:
        settings = {
            "model_type": "trocr",
            "d_model": caches.heads * caches.key_size,
            "decoder_layers": caches.layers,
            "decoder_attention_heads": caches.heads,
        }
        decoder = {**settings, **_kept(document.get("decoder", document))}
        return {**document, "model_type": "vision-encoder-decoder", "decoder": decoder}
    if not inputs <= {"input_ids", "attention_mask"}:
        return {}
    return {
        "model_type": "bart",
        "architectures": ["BartForConditionalGeneration"],
        "d_model": caches.heads * caches.key_size,
        **{f"{side}_layers": caches.layers for side in ("encoder", "decoder")},
        **{f"{side}_attention_heads": caches.heads for side in ("encoder", "decoder")},
        **_kept(document),
    }


def _vision_language(caches: Caches, made: Converted, document: Mapping[str, Any]) -> dict[str, Any]:
    inputs = [each["name"] for each in next(made.by_dtype()).files["vision"][1].inputs]
    types = {("pixel_values",): "llava", ("pixel_attention_mask", "pixel_values"): "idefics3"}
    chosen = types.get(tuple(sorted(inputs)))
    if chosen is None:
        return {}
    text = _decoder(caches, made, document.get("text_config", {}))
    tokens = dict.fromkeys(("image_token_id", "image_token_index"), made.source.image_token)
    return {**document, "model_type": chosen, **tokens, "text_config": text}


def _kept(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in _KEPT if name in document}


_TYPES = {DECODER: _decoder, ENCODER_DECODER: _encoder_decoder, VISION_LANGUAGE: _vision_language}
