"""Folders of transformers: ``config.json`` with weights in safetensors. Torch is not imported here."""

from __future__ import annotations

import json
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.mapped_file import read_regular

if TYPE_CHECKING:
    from tmconvert.frontends.torch.checkpoint_layouts import Scheme

CONFIG, WEIGHTS = "config.json", "model.safetensors"
INDEX, ADAPTER = f"{WEIGHTS}.index.json", "adapter_config.json"
MOST_BYTES = 1 << 24  # of a configuration, and of an index
# settings that state how many positions a model has, the most common first
POSITIONS = (
    *("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"),
    "max_target_positions",
)


class PretrainedFolder(NamedTuple):
    """A folder that was checked.

    ``configuration`` is what may be handed to transformers, ``names_code`` whether the original has an
    ``auto_map``. ``files`` are the names of the files with weights, each with the names of the tensors
    to take from it; None stands for all. ``scheme`` is how matrices of integers are stored, if some are.
    """

    path: str
    configuration: dict[str, Any]
    names_code: bool
    files: dict[str, list[str] | None]
    scheme: Scheme | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a GGUF file, which has the configuration, too."""
        return self.path.endswith(".gguf")

    @property
    def around(self) -> str:
        """Returns the folder whose other files are not read; for a file, one that does not exist."""
        return f"{self.path}.d" if self.is_file else self.path


def is_pretrained(model: str | PathLike[str]) -> bool:
    """Whether the path is a folder with a configuration, as ``save_pretrained`` of transformers writes it."""
    try:
        return (Path(fspath(model)) / CONFIG).is_file()
    except (OSError, ValueError):
        return False


def check_folder(folder: str) -> PretrainedFolder:
    """Checks the configuration and finds the weights.

    Raises LoadError TM1028 for a folder without a configuration of transformers or without safetensors, and
    for one whose configuration asks for code, other files or downloads.
    """
    from tmconvert.frontends.torch.pretrained_configuration import Refusal, checked_configuration

    config = read_json(folder, CONFIG)
    if not ("model_type" in config or "architectures" in config):
        raise unusable(folder, f"{CONFIG} is not a configuration of transformers: it has no model_type")
    scheme = _scheme(folder, config)
    try:
        configuration, names_code = checked_configuration(config)
    except Refusal as refusal:
        raise unusable(folder, f"{CONFIG}: {refusal}", refusal.help) from None
    except RecursionError as error:
        raise unusable(folder, f"{CONFIG} is nested too deeply") from error
    if (Path(folder) / ADAPTER).exists():
        raise unusable(
            folder,
            f"it has an adapter ({ADAPTER}), which changes the weights",
            "merge it with peft: model.merge_and_unload().save_pretrained(folder)",
        )
    return PretrainedFolder(folder, configuration, names_code, _weight_files(folder), scheme)


def _scheme(folder: str, config: dict[str, Any]) -> Scheme | None:
    """Returns the scheme of the folder's integers, and takes its description out of the configuration.

    Raises LoadError TM1028 for one that cannot be read.
    """
    from tmconvert.frontends.torch.checkpoint_layouts import scheme_of

    described = [config.pop(key, None) for key in ("quantization_config", "compression_config")]
    given = next(filter(None, described), None)
    found = None if given is None else scheme_of(given)
    if isinstance(found, str):
        raise unusable(
            folder,
            f"{CONFIG}: quantization_config: {found}",
            "save the model with float weights (model.dequantize(), model.save_pretrained(folder))",
        )
    return found


def _weight_files(folder: str) -> dict[str, list[str] | None]:
    """Returns the files with weights, by the index if the folder has one instead of a single file."""
    if (Path(folder) / WEIGHTS).is_file():
        return {WEIGHTS: None}
    if not (Path(folder) / INDEX).is_file():
        raise unusable(
            folder,
            f"it has no weights in safetensors ({WEIGHTS} or {INDEX})",
            "save the model with model.save_pretrained(folder); pickles of weights are not read",
        )
    places = read_json(folder, INDEX).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise unusable(folder, f"{INDEX} has no weight_map")
    files: dict[str, list[str] | None] = {}
    for tensor, file in places.items():
        if not isinstance(file, str) or not file.endswith(".safetensors") or Path(file).name != file:
            raise unusable(
                folder, f"{INDEX} names {file!r:.80}, which is not a safetensors file of the folder"
            )
        files.setdefault(file, []).append(tensor)  # type: ignore[union-attr]
    missing = [file for file in files if not (Path(folder) / file).is_file()]
    if missing:
        raise unusable(folder, f"{missing[0]:.80} is missing, which {INDEX} names")
    return files


def read_json(folder: str, name: str) -> dict[str, Any]:
    """Returns the object in a JSON file of a folder. Raises LoadError TM1028."""
    path = Path(folder) / name
    try:
        if path.stat().st_size > MOST_BYTES:
            raise unusable(folder, f"{name} is larger than {MOST_BYTES >> 20} MiB")
        found = json.loads(read_regular(path))
    except (OSError, ValueError, RecursionError) as error:
        raise unusable(folder, f"{name} cannot be read: {error}") from error
    return found if isinstance(found, dict) else {}


def unusable(folder: str, reason: str, help: str = "") -> LoadError:
    return LoadError(
        "TM1028",
        f"the folder is not a model that can be traced: {reason}",
        source=Source(folder),
        notes=[("help", help)] if help else [],
    )
