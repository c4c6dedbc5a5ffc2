"""Folders of transformers: ``config.json`` with weights in safetensors. Torch is not imported here."""

from __future__ import annotations

import json
from os import PathLike, fspath
from pathlib import Path

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source

CONFIG = "config.json"
MOST_BYTES = 1 << 24  # of a configuration


def is_pretrained(model: str | PathLike[str]) -> bool:
    """Whether the path is a folder with a configuration, as ``save_pretrained`` of transformers writes it."""
    try:
        return (Path(fspath(model)) / CONFIG).is_file()
    except (OSError, ValueError):
        return False


def check_folder(folder: str) -> None:
    """Raises LoadError TM1028 for a folder without a configuration of transformers or without safetensors."""
    _check_config(folder)
    if not any(Path(folder).glob("*.safetensors")):
        raise unusable(
            folder,
            "it has no weights in safetensors",
            "save the model with model.save_pretrained(folder); pickles of weights are not read",
        )


def _check_config(folder: str) -> None:
    """Raises LoadError TM1028 for a folder whose configuration is not one of transformers."""
    path = Path(folder) / CONFIG
    try:
        if path.stat().st_size > MOST_BYTES:
            raise unusable(folder, f"{CONFIG} is larger than {MOST_BYTES >> 20} MiB")
        config = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise unusable(folder, f"{CONFIG} cannot be read: {error}") from error
    if not isinstance(config, dict) or not ("model_type" in config or "architectures" in config):
        raise unusable(folder, f"{CONFIG} is not a configuration of transformers: it has no model_type")


def unusable(folder: str, reason: str, help: str = "") -> LoadError:
    return LoadError(
        "TM1028",
        f"the folder is not a model that can be traced: {reason}",
        source=Source(folder),
        notes=[("help", help)] if help else [],
    )
