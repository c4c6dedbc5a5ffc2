"""Packages of LiteRT-LM: one ``.litertlm`` file with a decoder, its tokenizer and its settings.

The container is written by the package litert-lm-builder. Names of signatures, inputs and outputs are those
that https://github.com/google-ai-edge/LiteRT-LM looks for; the settings are the message LlmMetadata of its
``runtime/proto/llm_metadata.proto``.
"""

from __future__ import annotations

import hashlib
import importlib
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmconvert.errors import LoadError, UsageError
from tmconvert.errors.source import Source
from tmconvert.formats.mapped_file import read_regular
from tmconvert.frontends.torch.entry import trace_static_decoder
from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.kind import Converted, Kind, Lengths, Modules
from tmconvert.packaging.source import PackageSource, json_object
from tmconvert.packaging.tasks import DECODER

if TYPE_CHECKING:
    import numpy as np

    from tmconvert.ir import TracedModule

FILE, TOKENIZER = "model.litertlm", "tokenizer.json"
_BUILDER = "litert_lm_builder"
_MOST, _PREFILL = 4096, 128  # positions of caches, and tokens of a prefill, by default
_WRITTEN = "1970-01-01T00:00:00+00:00"  # the time in the file: the same source gives the same bytes


class StaticDecoder(dict[str, "TracedModule"]):
    """The signatures of a decoder; ``logits_after(tokens)`` runs the whole model."""

    logits_after: Callable[[Sequence[int]], np.ndarray]


def _refusal(source: PackageSource) -> str:
    if not (source.folder / TOKENIZER).is_file():
        return f"the file has a tokenizer, and the folder has no {TOKENIZER}"
    return "" if end_tokens(source) else "it needs a token that ends a text, and the configuration has none"


def _trace(source: PackageSource, task: str, lengths: Lengths) -> Modules:
    """Raises UsageError TM6002 for lengths that the model does not have, LoadError TM1021, TM1028."""
    _module("litertlm_builder")  # before the model is loaded
    length = min(source.context, _MOST) if lengths.cache is None else lengths.cache
    prefills = sorted(set(lengths.prefills or [min(_PREFILL, max(1, length // 2))]))
    if length > source.context:
        raise UsageError("TM6002", f"cache_length is {length}, but the model has {source.context} positions")
    if prefills[-1] >= length:  # a step of as many tokens has no place for any before them
        reason = f"a prefill of {prefills[-1]} tokens is not shorter than the caches: {length}"
        raise UsageError("TM6002", reason)
    made, logits_after = trace_static_decoder(str(source.folder), length, prefills)
    decoder = StaticDecoder(made)
    decoder.logits_after = logits_after
    return decoder


def _module(name: str) -> Any:
    try:
        return importlib.import_module(f"{_BUILDER}.{name}")
    except ImportError as error:
        raise LoadError(
            "TM1021",
            "a .litertlm file is written by litert-lm-builder, which is not installed",
            notes=[("help", "pip install litert-lm-builder")],
        ) from error


def _write(made: Converted) -> None:
    """Replaces the TFLite file by the container that has it."""
    library = _module("litertlm_builder")
    path, folder = made.folder / FILE, made.folder / "sections"
    model, settings, tokenizer = folder / "model.tflite", folder / "settings.pb", folder / TOKENIZER
    folder.mkdir()
    path.rename(model)
    content = (made.source.folder / TOKENIZER).read_bytes()
    tokenizer.write_bytes(content)
    settings.write_bytes(_settings(made).SerializeToString(deterministic=True))
    builder = library.LitertLmFileBuilder()
    builder.add_llm_metadata(str(settings))
    builder.add_hf_tokenizer(str(tokenizer))
    builder.add_tflite_model(str(model), library.TfLiteModelType.PREFILL_DECODE)
    with path.open("wb") as file, _fixed_metadata(library, [settings, tokenizer, model]):
        builder.build(file)
    shutil.rmtree(folder)


@contextmanager
def _fixed_metadata(library: Any, sections: Sequence[Path]) -> Iterator[None]:
    """Makes the builder write an id of the content and a fixed time, not a random id and the time of day.

    It has no parameters for them.
    """
    digest = hashlib.sha256()
    for each in sections:
        with each.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    texts = {"uuid": str(uuid.UUID(bytes=digest.digest()[:16], version=5)), "creation_timestamp": _WRITTEN}
    original = library.populate_system_metadata
    library.populate_system_metadata = lambda given: [
        *given,
        *(library.Metadata(key, text, library.DType.STRING) for key, text in texts.items()),
    ]
    try:
        yield
    finally:
        library.populate_system_metadata = original


def _settings(made: Converted) -> Any:
    """Returns the message LlmMetadata: the tokens that begin and end a text, lengths, and the template."""
    source = made.source
    settings = _module("runtime.proto.llm_metadata_pb2").LlmMetadata()
    if start := start_tokens(source):
        settings.start_token.token_ids.ids.extend(start)
    for token in end_tokens(source):
        settings.stop_tokens.add().token_ids.ids.append(token)
    settings.max_num_tokens = cache_length(made)
    settings.jinja_prompt_template = _chat_template(source)
    settings.llm_model_type.generic_model.SetInParent()
    if source.generation.get("do_sample"):
        sampler = settings.sampler_params
        sampler.type = sampler.TOP_P
        sampler.k = int(source.setting("top_k") or 50)  # the default of transformers
        sampler.p = float(source.setting("top_p") or 1.0)
        sampler.temperature = float(source.setting("temperature") or 1.0)
    return settings


def cache_length(made: Converted) -> int:
    """Returns the number of positions of the caches in a package."""
    inputs = made.files[0][1].signatures["decode"].inputs
    return next(int(each["shape"][2]) for each in inputs if each["name"].startswith("kv_cache_"))


def end_tokens(source: PackageSource) -> list[int]:
    """Returns the tokens that end a text, without which LiteRT-LM opens no session; padding is one, too."""
    padding = source.setting("pad_token_id")
    return source.ends or ([] if padding is None else [int(padding)])


def start_tokens(source: PackageSource) -> list[int]:
    """Returns the tokens that the tokenizer puts before a text, which LiteRT-LM adds by itself."""
    tokenizer = tokenizer_of(source)
    plain, whole = (tokenizer.encode("a", add_special_tokens=each).ids for each in (False, True))
    count = next((n for n in range(len(whole)) if whole[n : n + len(plain)] == plain), 0)
    return list(whole[:count])


def tokenizer_of(source: PackageSource) -> Any:
    """Returns the tokenizer of a folder. Raises LoadError TM1021, TM1028."""
    try:
        library = importlib.import_module("tokenizers")
    except ImportError as error:  # transformers needs it, too
        raise LoadError("TM1021", "the tokenizer is read by tokenizers, which is not installed") from error
    path = source.folder / TOKENIZER
    try:
        return library.Tokenizer.from_file(str(path))
    except Exception as error:  # of no kind of its own
        raise LoadError(
            "TM1028", f"{TOKENIZER} cannot be read: {error!s:.200}", source=Source(str(path))
        ) from error


def _chat_template(source: PackageSource) -> str:
    path = source.folder / "chat_template.jinja"
    if path.is_file():
        return bytes(read_regular(path)).decode("utf-8", "replace")
    path = source.folder / "tokenizer_config.json"
    found = json_object(path).get("chat_template") if path.is_file() else None
    return found if isinstance(found, str) else ""


KIND = Kind(
    "litert-lm",
    Consumer("litert-lm", "open_litert_lm.py", "pip install litert-lm-api"),
    {DECODER: {"": FILE}},
    refusal=_refusal,
    trace=_trace,
    write=_write,
    target="tflite",
    trial="text_generation",
    takes_lengths=True,
    copies_files=False,
)
