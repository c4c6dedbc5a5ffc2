"""Makes a model of transformers from a configuration that was checked, and from weights that are read here.

Transformers gets no path: neither a file of the folder nor one that the configuration names is opened by it.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from tmconvert.errors import LoadError, TmconvertError
from tmconvert.frontends.torch.pretrained import CONFIG, PretrainedFolder, unusable
from tmconvert.frontends.torch.tracing.programs.checkpoint_integers import mark_parameters, restore_weights
from tmconvert.frontends.torch.tracing.programs.confined_libraries import confined
from tmconvert.frontends.torch.tracing.recording.users_code import shown
from tmconvert.frontends.torch.tracing.special.stand_ins import put_stand_ins
from tmconvert.ir.types import Kwargs

OLDEST = (4, 56)  # of transformers: the first release whose from_pretrained has dtype
SHOWN, LONGEST = 3, 80  # names in a message, and characters of each
T = TypeVar("T")


class Pretrained(NamedTuple):
    """A module in evaluation mode, in float32, and notes for the report."""

    module: Any
    notes: list[str]


def pretrained_model(folder: PretrainedFolder) -> Pretrained:
    """Returns the model of a folder. Raises LoadError TM1028.

    All its weights are those of the folder: if one is missing or of another shape, that is an error. Code
    and files other than those of installed packages are not executed and not opened meanwhile.
    """
    transformers = _transformers(folder.path)
    weights = _weights(folder)
    matrices = restore_weights(folder, weights)
    readable = [folder.path] if folder.is_file else []
    try:
        with tempfile.TemporaryDirectory() as checked, confined(folder.around, checked, *readable):
            config = _config(transformers, folder, Path(checked))
            kind = _class(transformers, folder, config)
            if folder.is_file:
                from tmconvert.frontends.torch.tracing.programs.gguf_file import gguf_weights

                weights, matrices = gguf_weights(folder.path, kind, config)
            model, report = _filled(transformers, kind, config, weights)
            _check(folder, kind, model, report, weights)
            drawn = _drawn(transformers, kind, config, weights, model)
        if drawn:
            raise unusable(folder.path, f"it lacks weights of {kind.__name__}: {_list(drawn)}")
    except LoadError:
        raise
    except Exception as error:  # of many kinds: unknown options, other shapes
        raise unusable(folder.path, f"transformers cannot load it: {shown(error):.300}") from error
    notes = [*_notes(folder, kind, report), *mark_parameters(model, matrices, weights)]
    put_stand_ins(model)
    return Pretrained(model.eval(), notes)


def example_inputs(folder: PretrainedFolder, model: Any, prepare: Callable[[Any], T]) -> T:
    """Returns what ``prepare`` makes of the model: inputs for which it runs. Raises LoadError TM1028."""
    try:
        with confined(folder.around):
            return prepare(model)
    except TmconvertError:
        raise
    except Exception as error:  # of many kinds: the configuration contradicts the class
        raise unusable(
            folder.path,
            f"no example inputs were found for {type(model).__name__}: {shown(error):.300}",
            "pass inputs with --input (example_kwargs=...)",
        ) from error


def _transformers(folder: str) -> Any:
    try:
        import safetensors.torch
        import transformers
    except ImportError as error:
        raise unusable(folder, "transformers is not installed", "pip install transformers") from error
    numbers = re.findall(r"\d+", transformers.__version__)
    if tuple(map(int, numbers[:2])) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        raise unusable(
            folder,
            f"transformers {transformers.__version__} is too old",
            f"pip install 'transformers>={oldest}'",
        )
    assert safetensors.torch
    return transformers


def _weights(folder: PretrainedFolder) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    weights: dict[str, torch.Tensor] = {}
    for file, names in folder.files.items():
        try:
            found = load_file(Path(folder.path) / file)
        except Exception as error:  # of the library in Rust: damaged headers, types that torch lacks
            raise unusable(folder.path, f"{file} cannot be read: {shown(error):.300}") from error
        absent = [name for name in names or () if name not in found]
        if absent:
            raise unusable(folder.path, f"{file} lacks weights that the index names: {_list(absent)}")
        weights |= found if names is None else {name: found[name] for name in names}
    return weights


def _config(transformers: ModuleType, folder: PretrainedFolder, checked: Path) -> Any:
    """Returns the configuration object. ``checked`` is an empty folder for what transformers reads."""
    document = dict(folder.configuration)
    if not document.get("model_type"):
        document["model_type"] = _architecture(transformers, folder).config_class.model_type
    kind = document["model_type"]
    if kind not in transformers.CONFIG_MAPPING:
        code = f", and code that {CONFIG} names (auto_map) is not run" if folder.names_code else ""
        raise unusable(
            folder.path,
            f"transformers {transformers.__version__} has no models of the type {kind:.{LONGEST}}{code}",
        )
    (checked / CONFIG).write_text(json.dumps(document))
    return transformers.AutoConfig.from_pretrained(checked, local_files_only=True, trust_remote_code=False)


def _architecture(transformers: ModuleType, folder: PretrainedFolder) -> Any:
    """Returns the class that the configuration names: a model with its own configuration, no other object."""
    name = (folder.configuration.get("architectures") or [""])[0]
    found: Any = getattr(transformers, name, None) if name else None
    is_model = isinstance(found, type) and issubclass(found, transformers.PreTrainedModel)
    if is_model and found.config_class:
        return found
    raise unusable(
        folder.path,
        f"{CONFIG}: architectures names {name:.{LONGEST}}, which is not a model of transformers "
        f"{transformers.__version__}",
        "name the class of the model; code in the folder is not run",
    )


def _class(transformers: ModuleType, folder: PretrainedFolder, config: object) -> Any:
    """Returns the class of the model; that of the headless model where the configuration names none."""
    if folder.configuration.get("architectures"):
        return _architecture(transformers, folder)
    found = transformers.MODEL_MAPPING.get(type(config), None)
    if found is None:
        raise unusable(folder.path, f"{CONFIG} does not name the class of the model (architectures)")
    return found[0] if isinstance(found, tuple) else found


def _filled(
    transformers: ModuleType, kind: Any, config: object, weights: dict[str, Tensor]
) -> tuple[Any, Kwargs]:
    """Returns a model with weights, and transformers' report of names that do not fit.

    Transformers renames what older releases wrote, and ties weights. The method of the base class is called,
    since those of some models load more files.
    """
    load = transformers.PreTrainedModel.from_pretrained.__func__
    model, report = load(
        kind,
        None,
        config=config,
        state_dict=dict(weights),
        dtype=torch.float32,
        ignore_mismatched_sizes=True,
        output_loading_info=True,
        local_files_only=True,
    )
    return model, report


def _check(
    folder: PretrainedFolder, kind: type, model: torch.nn.Module, report: Kwargs, weights: dict[str, Tensor]
) -> None:
    """Raises LoadError TM1028 for weights that are missing or have other shapes."""
    name = kind.__name__
    empty = [name for name, each in model.state_dict(keep_vars=True).items() if each.is_meta]
    for problem, names in (
        ("it lacks weights of", [*report["missing_keys"], *empty]),
        ("its weights have other shapes than those of", report["mismatched_keys"]),
        ("its weights do not fit", report.get("error_msgs")),
    ):
        if names:
            raise unusable(
                folder.path,
                f"{problem} {name}: {_list(names)}",
                f"architectures in {CONFIG} must name the class that was saved",
            )
    unused = report["unexpected_keys"]
    if unused and not folder.configuration.get("architectures"):
        raise unusable(
            folder.path,
            f"{name} has no place for some of its weights: {_list(unused)}",
            f"name the class of the model as architectures in {CONFIG}",
        )


def _drawn(
    transformers: ModuleType, kind: Any, config: object, weights: dict[str, Tensor], model: torch.nn.Module
) -> list[str]:
    """Returns names of weights that the folder lacks, transformers does not miss, and a seed decides.

    Classes list weights that need not be saved. Most are computed, or start as zeros or ones; of others, a
    second model with another seed has other values.
    """
    patterns = getattr(kind, "_keys_to_ignore_on_load_missing", None)
    if not patterns:
        return []
    found = {
        name: value
        for name, value in model.state_dict().items()
        if name not in weights and any(re.search(pattern, name) for pattern in patterns)
    }
    if not found:
        return []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(torch.initial_seed() + 1)
        other = _filled(transformers, kind, config, weights)[0].state_dict()
    return [name for name, value in found.items() if not torch.equal(value, other[name])]


def _notes(folder: PretrainedFolder, kind: type, report: Kwargs) -> list[str]:
    notes = []
    if folder.names_code:
        notes.append(
            f"code that {CONFIG} names (auto_map) is not run: the model is transformers' {kind.__name__}"
        )
    if report["unexpected_keys"]:
        notes.append(
            f"weights that {kind.__name__} does not have are left out: {_list(report['unexpected_keys'])}"
        )
    return notes


def _list(names: Collection[object]) -> str:
    """Formats a few names: strings, or tuples of a name and shapes."""
    texts = sorted(
        each if isinstance(each, str) else " ".join(map(str, each)) if isinstance(each, tuple) else str(each)
        for each in names
    )
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(f"{text:.{LONGEST}}" for text in texts[:SHOWN]) + more
