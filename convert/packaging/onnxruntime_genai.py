"""Packages of onnxruntime-genai: a decoder with its cache, ``genai_config.json`` and the tokenizer.

A model of text and images has three files; that of the embeddings takes the features of images. Sources of
the format: https://onnxruntime.ai/docs/genai/reference/config.html, and ``src/config.h`` of the program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tmconvert.frontends.torch.entry import trace_parts
from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.kind import (
    Converted,
    Kind,
    ModelFile,
    Modules,
    layout,
    refused,
    trace_whole,
    write_json,
)
from tmconvert.packaging.rounded_activations import round_activations
from tmconvert.packaging.shared_cache import share_caches
from tmconvert.packaging.source import PackageSource
from tmconvert.packaging.tasks import DECODER, VISION_LANGUAGE

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report

# settings of generate that its search has, with their neutral values
_SEARCH = {"do_sample": False, "temperature": 1.0, "top_k": 50, "top_p": 1.0, "repetition_penalty": 1.0}
_PARTS = {"vision": "vision.onnx", "embedding": "embedding.onnx", "decoder": "model.onnx"}
_ROUNDED = (
    f"inputs of products with int4 weights in {_PARTS['decoder']} are rounded to 8 bits: "
    "--activations float32 keeps them"
)
_NO_END = "the configuration has no token that ends a text: onnxruntime-genai ends one at token {}"
_CACHE = "{}.%d.{}"
_MOST_SHARED = 4096  # positions that caches have from the start, by default
# a type whose program takes features of images of any model, and rewinds
_TEXT_AND_IMAGES = "gemma3"
_KNOWN_INPUTS = ("pixel_values", "input_ids", "image_features")  # others have the names of tensors


def _trace(source: PackageSource, task: str) -> Modules:
    if task == VISION_LANGUAGE:
        return trace_parts(str(source.folder), split="merged vision-language")
    return trace_whole(source, task)


def _write(made: Converted) -> str:
    configuration = _configuration(made)
    search = configuration["search"]
    decoder = made.folder / configuration["model"]["decoder"]["filename"]
    reason = share_caches(decoder)
    search["past_present_share_buffer"] = not reason
    if not reason:
        search["max_length"] = min(search["max_length"], _MOST_SHARED)
    write_json(made.folder / "genai_config.json", configuration)
    notes = [f"caches grow with the text, and are copied in each step: {reason}"] if reason else []
    if "eos_token_id" not in configuration["model"]:
        notes.append(_NO_END.format(configuration["model"].get("pad_token_id", 0)))
    if made.rounds_activations and round_activations(decoder):
        notes.append(_ROUNDED)
    return "; ".join(notes)


def _configuration(made: Converted) -> dict[str, Any]:
    """Returns the settings of a decoder with an open cache, and of the parts before it, if there are any.

    The type of a decoder is the generic ``decoder``.
    """
    source, caches = made.source, made.caches
    shapes = {tuple(shape) for shape in caches.values()}
    if len(shapes) != 1 or [type(each) for each in next(iter(shapes))] != [str, int, str, int]:
        found = ", ".join(str(list(each)) for each in sorted(shapes, key=str)) or "none"
        raise refused(KIND, source, f"its layers need caches of one shape, and have: {found}")
    heads, size = (int(each) for each in shapes.pop()[1::2])
    layers = len(caches) // 2
    start, padding = (source.known_token(source.setting(f"{name}_token_id")) for name in ("bos", "pad"))
    ends = source.known_ends
    files = next(made.by_dtype()).files
    file, report = files.get("decoder") or files[""]
    names = [each["name"] for each in report.inputs]
    inputs = {name: name for name in names if name not in caches}
    attention = source.text.get("num_attention_heads") or source.text.get("n_head") or heads
    decoder = {
        "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
        "filename": file.path,
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
        "type": _TEXT_AND_IMAGES if "vision" in files else "decoder",
        "bos_token_id": start,
        "eos_token_id": ends[0] if len(ends) == 1 else ends or None,
        "pad_token_id": padding if padding is not None else next(iter(ends), None),
        "context_length": source.context,
        "vocab_size": source.text.get("vocab_size"),
        "decoder": decoder,
    }
    for part in ("vision", "embedding"):
        if part in files:
            model[part] = _part(*files[part])
    search = {name: source.setting(name) for name in _SEARCH}
    chosen = {name: _SEARCH[name] if value is None else value for name, value in search.items()}
    return {
        "model": {name: value for name, value in model.items() if value is not None},
        "search": {**chosen, "max_length": source.context},
    }


def _part(file: ModelFile, report: Report) -> dict[str, Any]:
    """Returns the settings of a part before the decoder; the program has names of its own for its inputs."""
    inputs, outputs = ([each["name"] for each in side] for side in (report.inputs, report.outputs))
    return {
        "filename": file.path,
        "inputs": {name: name for name in inputs if name in _KNOWN_INPUTS},
        "outputs": {name: name for name in outputs},
    }


KIND = Kind(
    "onnxruntime-genai",
    Consumer("onnxruntime-genai", "open_genai.py", "pip install onnxruntime-genai"),
    {**layout("", DECODER), VISION_LANGUAGE: _PARTS},
    options={"opset": 23},  # the first one with Attention
    trace=_trace,
    write=_write,
    takes_activations=True,
)
