"""The file of a lock: JSON, with arrays in an .npz file next to it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert._version import __version__
from tmconvert.errors import LoadError
from tmconvert.formats.mapped_file import open_regular
from tmconvert.inspection.environment import environment
from tmconvert.lock.digests import file_digest, product_digest, relative_path
from tmconvert.output.array_archive import write_arrays
from tmconvert.output.atomic import staged_outputs

FORMAT = 1
MOST_BYTES = 1 << 26  # of the JSON
MOST_VALUES = 1 << 24  # of inputs and outputs, which are recorded for `tmconvert verify --lock`
# packages that decide what a model is, besides those of ``environment``
_OF_MODELS = ("protobuf", "flatbuffers", "torchvision", "transformers", "timm", "safetensors")


@dataclass(frozen=True)
class Lock:
    """The record of a conversion.

    ``model`` is the path or name of the source, None for an object of Python that ``object`` describes.
    ``sources`` and ``outputs`` are SHA-256 digests by path, relative to the lock's folder. ``unrecorded`` are
    names of arguments that no text can stand for. ``tolerances`` are those of outputs by name, in the units
    of ``Comparison.max_error``. The arrays next to the lock are those of arguments, and inputs ``in.NAME``
    and expected outputs ``out.NAME`` as the file has them.
    """

    target: str
    model: str | None
    object: str
    arguments: dict[str, Any]
    unrecorded: list[str]
    plugins: list[str]
    sources: dict[str, str]
    outputs: dict[str, str]
    versions: dict[str, str]
    processor: list[str]
    verified_by: str = ""
    reference: str = ""
    tolerances: dict[str, float] = field(default_factory=dict)

    def write(self, path: Path, arrays: Mapping[str, np.ndarray]) -> None:
        """Writes the lock and its arrays. Raises WriteError TM5001."""
        if arrays:
            write_arrays(arrays, arrays_path(path))
        document = {"format": FORMAT, **asdict(self)}
        if arrays:
            document["arrays"] = file_digest(arrays_path(path))
        with staged_outputs(path) as (output,):
            output.file.write((json.dumps(document, indent=1, sort_keys=True) + "\n").encode())
            output.commit()


def arrays_path(path: Path) -> Path:
    """Returns the path of the arrays next to a lock: ``net.lock`` has ``net.lock.npz``."""
    return path.with_name(f"{path.name}.npz")


def read_lock(path: Path) -> tuple[Lock, dict[str, np.ndarray]]:
    """Returns a lock and its arrays. Raises LoadError TM1029 for a file that is not a valid lock."""
    try:
        with open_regular(path) as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError(f"it is larger than {MOST_BYTES >> 20} MiB")
        document = json.loads(data)
        if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
            raise ValueError(f"it is not a lock of format {FORMAT}")
        digest = document.pop("arrays", None)
        lock = Lock(**document)
        _check(lock)
        arrays = {} if digest is None else _read_arrays(arrays_path(path), digest)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise LoadError("TM1029", f"{path} is not a valid lock: {reason}") from error
    return lock, arrays


def _check(lock: Lock) -> None:
    """Raises ValueError for a field of another type."""
    tables = (lock.sources, lock.outputs, lock.versions, lock.arguments, lock.tolerances)
    if not all(isinstance(each, dict) for each in tables):
        raise ValueError("a field that must be a table is not")
    lists = (*lock.unrecorded, *lock.plugins, *lock.processor)
    values = (text for table in tables[:3] for text in table.values())
    words = (lock.target, lock.object, lock.verified_by, lock.reference, lock.model or "", *lists, *values)
    if not all(isinstance(each, str) for each in words):
        raise ValueError("a field that must be a text is not")
    if not all(isinstance(each, (int, float)) for each in lock.tolerances.values()):
        raise ValueError("tolerances must be numbers")


def _read_arrays(path: Path, digest: object) -> dict[str, np.ndarray]:
    if file_digest(path) != digest:
        raise ValueError(f"{path.name}, which has its arrays, is missing or was changed")
    with np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in archive.files}


def versions() -> dict[str, str]:
    """Returns the versions that decide which bytes a conversion writes."""
    found = environment()
    known = {name: each for name, each in found.packages.items() if each is not None}
    for name in _OF_MODELS:
        if name in sys.modules or name in ("protobuf", "flatbuffers"):
            try:
                known[name] = version(name)
            except PackageNotFoundError:
                continue
    python = ".".join(map(str, sys.version_info[:3]))
    own = {"tmconvert": __version__, "tmconvert's files": product_digest()[:16]}
    return {**own, "python": python, "system": sys.platform, **dict(sorted(known.items()))}


def digests(paths: Sequence[str | Path], folder: Path) -> dict[str, str]:
    """Returns the digests of files by their paths, relative to ``folder``; "" for one that is missing."""
    found = {relative_path(Path(path), folder): file_digest(Path(path)) or "" for path in paths}
    return dict(sorted(found.items()))
