"""Packages of sentence-transformers: ``onnx/model.onnx`` that also pools, its modules and the tokenizer.

The file has two outputs: ``last_hidden_state``, from which the ONNX backend of sentence-transformers computes
the rest by its own modules, and ``sentence_embedding``, the vector of a text for programs that run the file
alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from tmconvert.frontends.torch.entry import trace_parts
from tmconvert.frontends.torch.pretrained import WEIGHTS
from tmconvert.frontends.torch.sentence_module import SENTENCE, TOKENS, SentenceModule, Settings
from tmconvert.packaging.consumer import Consumer
from tmconvert.packaging.general_types import write_general_type
from tmconvert.packaging.kind import Converted, Kind, Modules, refused, write_json
from tmconvert.packaging.source import PackageSource, json_object, json_value
from tmconvert.packaging.tasks import DECODER, ONCE, SENTENCES, task_of

POOLING_MODES = {  # keys of older releases, in the order in which their vectors are concatenated
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_MODULES = "modules.json"
# settings that packages share with their source, by file; others may name code
_SETTINGS = {
    "config_sentence_transformers.json": ("prompts", "default_prompt_name", "similarity_fn_name"),
    "sentence_bert_config.json": (
        *("max_seq_length", "do_lower_case", "transformer_task", "modality_config", "module_output_name"),
        "processing_kwargs",
    ),
}
_OLDER = ("roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")  # in names of the second
_TYPE = "sentence_transformers.models"
Found = Mapping[str, object]  # settings in a file
# types of encoder-decoders whose encoder alone sentence-transformers runs
_ENCODERS = (
    *("t5", "mt5", "umt5", "longt5", "switch_transformers", "blenderbot", "blenderbot-small", "m2m_100"),
    *("pegasus", "pegasus_x", "marian"),
)
_ACTIVATION = re.compile(r"torch\.nn(?:\.\w+)*\.([A-Z]\w*)")


def _task(source: PackageSource) -> str:
    task, kind = task_of(source), source.configuration.get("model_type")
    is_listed = (source.folder / _MODULES).is_file()
    if task == ONCE or (task == DECODER and is_listed) or kind in _ENCODERS:
        return SENTENCES
    return task


def _refusal(source: PackageSource) -> str:
    if not (source.folder / "tokenizer_config.json").is_file():
        return "the folder has no tokenizer"
    try:
        sentence_modules(source)
    except ValueError as error:
        return str(error)
    return ""


def _trace(source: PackageSource, task: str) -> Modules:
    return trace_parts(str(source.folder), pooling=sentence_modules(source))


def _write(made: Converted) -> str:
    folder, source = made.folder, made.source
    found = sentence_modules(source)
    outputs = {each["name"]: each["shape"] for each in made.files[0][1].outputs}
    wanted = ["last_hidden_state", *([SENTENCE] if counts_prompts(found) else [])]
    if list(outputs) != wanted:
        raise refused(KIND, source, f"the encoder returns {', '.join(outputs)}")
    write_json(folder / "config.json", source.configuration)
    for name, keys in _SETTINGS.items():
        given = _settings(source, name)
        if given is not None:
            write_json(folder / name, {key: given[key] for key in keys if key in given})
    listed = [{"idx": 0, "name": "0", "path": "", "type": f"{_TYPE}.Transformer"}]
    for number, each in enumerate(found, 1):
        path = f"{number}_{each.kind}"
        listed.append({"idx": number, "name": str(number), "path": path, "type": f"{_TYPE}.{each.kind}"})
        (folder / path).mkdir()
        settings: Found = each.settings
        kept = {key: settings[key] for key in _KINDS[each.kind].keys if key in settings}
        if each.kind == "Pooling" and not kept:
            kept = {"word_embedding_dimension": outputs["last_hidden_state"][-1], "pooling_mode": "mean"}
        write_json(folder / path / "config.json", kept)
        if each.weights:
            (folder / path / WEIGHTS).write_bytes(Path(each.weights).read_bytes())
    write_json(folder / _MODULES, listed)
    if len(wanted) == 1:
        return f"{SENTENCE} is left out: the file has no input for the number of tokens of a prompt"
    return ""


def _settings(source: PackageSource, name: str) -> dict[str, Any] | None:
    """Returns the settings in a file of the source, which has older names; None where there is none."""
    names = (name, *(name.replace("_bert_", f"_{each}_") for each in _OLDER))
    path = next((source.folder / each for each in names if (source.folder / each).is_file()), None)
    return json_object(path) if path else None


def counts_prompts(modules: list[SentenceModule]) -> bool:
    """Whether tokens of a prompt count as those of the text after it."""
    return all(each.settings.get("include_prompt", True) for each in modules)


def sentence_modules(source: PackageSource) -> list[SentenceModule]:
    """Returns the modules after the encoder; the mean of tokens for a folder without a list of modules.

    Raises ValueError with the reason for modules that are not known.
    """
    _check_encoder(_settings(source, "sentence_bert_config.json") or {})
    if not (source.folder / _MODULES).is_file():
        return [SentenceModule("Pooling", {"modes": ("mean",)})]
    listed = json_value(source.folder / _MODULES)
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise ValueError(f"{_MODULES} is not a list of modules")
    kinds = [str(each.get("type", "")).rpartition(".")[2] for each in listed]
    unknown = [each for each in kinds[1:] if each not in _KINDS and each != "Dropout"]
    if kinds[:1] != ["Transformer"] or kinds.count("Pooling") != 1 or unknown:
        known = ", ".join(("Dropout", *_KINDS))
        raise ValueError(
            f"its modules are {', '.join(kinds) or 'none'}; known are a Transformer, one Pooling, and {known}"
        )
    given = zip(kinds[1:], listed[1:], strict=True)
    return [_module(source, kind, str(each.get("path", ""))) for kind, each in given if kind != "Dropout"]


def _check_encoder(settings: Found) -> None:
    """Raises ValueError for a Transformer module that returns something else than vectors of tokens."""
    found = (settings.get("transformer_task"), settings.get("module_output_name"))
    if found[0] not in (None, "feature-extraction") or found[1] not in (None, TOKENS):
        raise ValueError(f"its encoder is to return {found[1]} of the task {found[0]}, not {TOKENS}")


def _module(source: PackageSource, kind: str, name: str) -> SentenceModule:
    path = Path(name)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{_MODULES} names a folder outside of the model")
    file = source.folder / path / "config.json"
    found = _KINDS[kind]
    settings = found.check(json_object(file) if found.keys else {})
    weights = source.folder / path / WEIGHTS
    if found.has_weights and not weights.is_file():
        raise ValueError(f"{name} has no weights in safetensors; pickles of weights are not read")
    return SentenceModule(kind, cast(Settings, settings), str(weights) if found.has_weights else "")


def _pooling(settings: Found) -> Found:
    given = settings.get("pooling_mode")
    if given is None:
        modes = tuple(mode for key, mode in POOLING_MODES.items() if settings.get(key)) or ("mean",)
    else:
        modes = tuple(map(str, given)) if isinstance(given, list) else (str(given),)
    if not modes or not set(modes) <= set(POOLING_MODES.values()):
        known = ", ".join(POOLING_MODES.values())
        raise ValueError(f"its pooling is {', '.join(modes) or 'unknown'}; known are {known}")
    return {**settings, "modes": modes}


def _dense(settings: Found) -> Found:
    _check_sizes("Dense", settings, "in_features", "out_features")
    given = settings.get("activation_function", "torch.nn.modules.activation.Tanh")
    activation = _ACTIVATION.fullmatch(str(given)) if given is not None else None
    name = activation[1] if activation else "Identity"
    if given is not None and (activation is None or name not in _ACTIVATIONS):
        raise ValueError(f"the activation of its Dense is {given!s:.80}; known are {', '.join(_ACTIVATIONS)}")
    for key in ("module_input_name", "module_output_name"):
        if settings.get(key) not in (None, TOKENS, SENTENCE):
            raise ValueError(f"the {key} of its Dense is {settings[key]!s:.80}, not {TOKENS} or {SENTENCE}")
    return {**settings, "activation": name}


def _norm(settings: Found) -> Found:
    _check_sizes("LayerNorm", settings, "dimension")
    return settings


def _check_sizes(kind: str, settings: Found, *names: str) -> None:
    for name in names:
        size = settings.get(name)
        if not isinstance(size, int) or size <= 0:
            raise ValueError(f"the {name} of its {kind} is {size!s:.80}, not a size")


class _Checked(NamedTuple):
    """How the settings of a module are checked, which of them packages have, and whether it has weights."""

    check: Callable[[Found], Found] = dict
    keys: tuple[str, ...] = ()
    has_weights: bool = False


_ACTIVATIONS = (
    *("Identity", "Tanh", "ReLU", "GELU", "Sigmoid", "SiLU", "LeakyReLU", "ELU", "ReLU6", "Softplus"),
    *("Mish", "Softsign", "Hardtanh", "Hardswish", "Hardsigmoid", "SELU", "CELU", "LogSigmoid", "Tanhshrink"),
)
_KINDS = {
    "Pooling": _Checked(
        _pooling,
        (
            *("word_embedding_dimension", "embedding_dimension", "pooling_mode", *POOLING_MODES),
            "include_prompt",
        ),
    ),
    "Dense": _Checked(
        _dense,
        (
            *("in_features", "out_features", "bias", "activation_function"),
            *("module_input_name", "module_output_name"),
        ),
        has_weights=True,
    ),
    "LayerNorm": _Checked(_norm, ("dimension",), has_weights=True),
    "Normalize": _Checked(),
}

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
    generalize=write_general_type,
)
