"""Packages of sentence-transformers: ``onnx/model.onnx`` that also pools, its modules and the tokenizer.

The file has two outputs: ``last_hidden_state``, which the ONNX backend of sentence-transformers pools again,
and ``sentence_embedding``, the vector of a text for programs that run the file alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tmconvert.frontends.torch.entry import trace_parts
from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.kind import Converted, Kind, Modules, Vectors, refused, write_json
from tmconvert.packaging.source import PackageSource, json_object, json_value
from tmconvert.packaging.tasks import ONCE, SENTENCES, task_of

POOLING_MODES = {  # keys of older releases
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}
_KNOWN = ("cls", "mean", "max", "mean_sqrt_len_tokens", "lasttoken")
_MODULES = "modules.json"
# settings that packages share with their source, by file; others may name code
_SETTINGS = {
    "config_sentence_transformers.json": ("prompts", "default_prompt_name", "similarity_fn_name"),
    "sentence_bert_config.json": ("max_seq_length", "do_lower_case"),
}
_TYPE = "sentence_transformers.models"


def _task(source: PackageSource) -> str:
    task = task_of(source)
    return SENTENCES if task == ONCE else task


def _refusal(source: PackageSource) -> str:
    if not (source.folder / "tokenizer_config.json").is_file():
        return "the folder has no tokenizer"
    try:
        vectors_of(source)
    except ValueError as error:
        return str(error)
    return ""


def _trace(source: PackageSource, task: str) -> Modules:
    return trace_parts(str(source.folder), pooling=vectors_of(source))


def _write(made: Converted) -> None:
    folder, source = made.folder, made.source
    names = [each["name"] for each in made.files[0][1].outputs]
    if names != ["last_hidden_state", "sentence_embedding"]:
        raise refused(KIND, source, f"the encoder returns {', '.join(names)}")
    modes, normalizes = vectors_of(source)
    write_json(folder / "config.json", source.configuration)
    for name, keys in _SETTINGS.items():
        if (source.folder / name).is_file():
            found = json_object(source.folder / name)
            write_json(folder / name, {key: found[key] for key in keys if key in found})
    parts = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules: list[dict[str, Any]] = [
        {"idx": number, "name": str(number), "path": path, "type": f"{_TYPE}.{name}"}
        for number, (path, name) in enumerate(parts if normalizes else parts[:2])
    ]
    write_json(folder / _MODULES, modules)
    width = made.files[0][1].outputs[0]["shape"][-1]
    chosen = {key: mode in modes for key, mode in POOLING_MODES.items()}
    settings = [{}, {"word_embedding_dimension": width, **chosen}, {}]
    for module, setting in zip(modules[1:], settings[1:], strict=False):
        (folder / module["path"]).mkdir()
        write_json(folder / module["path"] / "config.json", setting)


def vectors_of(source: PackageSource) -> Vectors:
    """Returns what the modules of a folder compute; the mean of tokens where it has no list of modules.

    Raises ValueError with the reason for modules that are not known.
    """
    if not (source.folder / _MODULES).is_file():
        return Vectors(("mean",), normalizes=False)
    modules = json_value(source.folder / _MODULES)
    if not isinstance(modules, list) or not all(isinstance(each, dict) for each in modules):
        raise ValueError(f"{_MODULES} is not a list of modules")
    kinds = [str(each.get("type", "")).rpartition(".")[2] for each in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise ValueError(f"its modules are {', '.join(kinds) or 'none'}, not Transformer, Pooling, Normalize")
    path = Path(str(modules[1].get("path", "")))
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{_MODULES} names a folder outside of the model")
    modes = _modes(json_object(source.folder / path / "config.json"))
    if not modes or not set(modes) <= set(_KNOWN):
        raise ValueError(f"its pooling is {', '.join(modes) or 'unknown'}; known are {', '.join(_KNOWN)}")
    return Vectors(modes, "Normalize" in kinds)


def _modes(configuration: Mapping[str, Any]) -> tuple[str, ...]:
    given = configuration.get("pooling_mode")
    if given is None:
        return tuple(mode for key, mode in POOLING_MODES.items() if configuration.get(key))
    return tuple(map(str, given)) if isinstance(given, list) else (str(given),)


KIND = Kind(
    "sentence-transformers",
    Consumer(
        "sentence-transformers", "open_sentence_transformers.py", "pip install 'sentence-transformers[onnx]'"
    ),
    {SENTENCES: {"": "onnx/model.onnx"}},
    refusal=_refusal,
    task=_task,
    trace=_trace,
    write=_write,
)
