"""The data that a calibration looks at, one sample after the other: .npz, folders of .npy or of images."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UsageError
from ...ir import Input, InternalGraph, TensorNode
from ...ir.types import TensorType
from .settings import Measuring, Settings
from .streams import PICKLED, Member, members, parts, whole

IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp"})
REPORTED = 4  # samples of a calibration that a report is made of
ARRAYS = frozenset({".npy", ".npz"})
_UNREADABLE = (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error)


def inputs_of(graph: InternalGraph) -> list[tuple[str, TensorType]]:
    """The inputs of a normalized graph, by the names of the arguments."""
    return [
        (node.expr.name, node.type)
        for node in graph.inputs
        if isinstance(node, TensorNode) and isinstance(node.expr, Input)
    ]


def report_samples(measuring: Measuring, graph: InternalGraph) -> tuple[Iterable[list[np.ndarray]], str]:
    """What to measure layers on, as inputs of a normalized graph, and what that is in words.

    All that was given for the report, or the first samples of a calibration.
    """
    given = measuring.data if measuring.report_data is None else measuring.report_data
    samples = Samples(given, inputs_of(graph), measuring.settings)
    name = str(given) if isinstance(given, (str, PathLike)) else "the data given"
    if measuring.report_data is not None:
        return samples, f"the samples of {name}"
    first = list(islice(samples, REPORTED))
    return first, f"the first {len(first)} samples of {name}" if len(first) > 1 else f"a sample of {name}"


class Samples:
    """The samples of ``data``, each the arrays of ``inputs`` (name, type) in order.

    ``data`` is a path, or a mapping from names to arrays, or a sequence of samples. Arrays are of one sample,
    of one without the batch of 1, or of many along the first axis. It can be gone through several times.
    Raises UsageError TM6033 for what does not fit, with the name of the file.
    """

    def __init__(
        self,
        data: str | PathLike[str] | Mapping[str, np.ndarray] | Sequence[Any],
        inputs: Sequence[tuple[str, TensorType]],
        settings: Settings | None = None,
    ) -> None:
        self.inputs = inputs
        self.settings = settings or Settings()
        self.data = Path(data) if isinstance(data, (str, PathLike)) else data
        if isinstance(self.data, Path) and not self.data.exists():
            raise _unfit(f"{self.data} is not there", "give a .npz file, or a folder of .npy files or images")

    def __len__(self) -> int:
        """How many samples there are, as far as that is told without reading them all: files count as one."""
        if isinstance(self.data, Mapping) or (isinstance(self.data, Path) and self.data.is_file()):
            array, (_, type_) = self._arrays(self.data)[0], self.inputs[0]
            return self._lot(array, type_, "").count
        return sum(1 for _ in self._sources())

    def __iter__(self) -> Iterator[list[np.ndarray]]:
        for source in self._sources():
            yield from self._samples(source)

    def _sources(self) -> Iterator[Any]:
        """Files, or mappings of arrays."""
        if isinstance(self.data, Mapping) or (isinstance(self.data, Path) and self.data.is_file()):
            yield self.data
        elif isinstance(self.data, Path):
            yield from self._files(self.data)
        else:
            yield from self.data

    def _files(self, folder: Path) -> list[Path]:
        found = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGES | ARRAYS)
        if not found:
            raise _unfit(f"{folder} has no .npy, .npz or image file", "")
        return found

    def _samples(self, source: Any) -> Iterator[list[np.ndarray]]:
        where = self._where(source)
        arrays = self._arrays(source)
        lots = [
            self._lot(array, type_, f"{name} in {where}")
            for array, (name, type_) in zip(arrays, self.inputs, strict=True)
        ]
        counts = {lot.count for lot in lots}
        if len(counts) > 1:
            numbers = " and ".join(map(str, sorted(counts)))
            raise _unfit(f"{where} has {numbers} samples of different inputs", "")
        try:
            yield from (list(sample) for sample in zip(*(lot.samples() for lot in lots), strict=True))
        except _UNREADABLE as error:
            raise _unfit(f"{where} cannot be read: {error}", "") from error

    @staticmethod
    def _where(source: Any) -> str:
        return str(source) if isinstance(source, Path) else "the data"

    def _arrays(self, source: Any) -> list[Any]:
        """The arrays of a source in the order of the inputs."""
        if isinstance(source, Path):
            source = self._read(source)
        if not isinstance(source, Mapping):
            source = list(source) if isinstance(source, (list, tuple)) else [source]
            if len(source) != len(self.inputs):
                raise _unfit(f"a sample has {len(source)} arrays, the model {len(self.inputs)} inputs", "")
            return [np.asarray(array) for array in source]
        names = [name for name, _ in self.inputs]
        if set(names) <= set(source):
            return [source[name] for name in names]
        if len(names) == 1 == len(source):
            return list(source.values())
        raise _unfit(
            f"the data has {', '.join(map(str, source))}, and the model takes {', '.join(names)}",
            "name the arrays as the inputs",
        )

    def _read(self, path: Path) -> Any:
        if path.suffix.lower() in IMAGES:
            return self._image(path)
        try:
            if path.suffix == ".npz":
                return members(path)
            return np.lib.format.open_memmap(path, mode="r")
        except _UNREADABLE as error:
            reason = PICKLED if "Python objects" in str(error) else error
            raise _unfit(f"{path} cannot be read: {reason}", "") from error

    def _image(self, path: Path) -> np.ndarray:
        try:
            from PIL import Image
        except ImportError as error:
            raise _unfit(
                "images are read by Pillow, which is not installed", "pip install 'tmconvert[images]'"
            ) from error
        (_, type_), *_ = self.inputs
        if len(type_.shape) != 4:
            raise _unfit(f"{path} is an image, and the model takes {type_}", "give .npy files")
        is_last = self.settings.layout == "nhwc"
        channels = type_.shape[3 if is_last else 1]
        height, width = type_.shape[1:3] if is_last else type_.shape[2:4]
        with Image.open(path) as opened:
            image = opened.convert({1: "L", 3: "RGB", 4: "RGBA"}.get(channels, "RGB")).resize((width, height))
        array = np.asarray(image, np.float32).reshape(height, width, -1)
        if self.settings.mean or self.settings.std:
            mean, std = (np.array(each or fill, np.float32) for each, fill in self._scaling())
            array = (array / np.float32(255) - mean) / std
        array = array if is_last else array.transpose(2, 0, 1)
        return np.ascontiguousarray(array[None]).astype(type_.dtype)

    def _scaling(self) -> list[tuple[Sequence[float], Sequence[float]]]:
        return [(self.settings.mean, (0.0,)), (self.settings.std, (1.0,))]

    def _lot(self, array: Any, type_: TensorType, name: str) -> _Lot:
        """The samples in an array of one or, along the first axis, of many."""
        array = array if isinstance(array, Member) else np.asarray(array)
        if array.dtype.kind != type_.dtype.kind and not (
            array.dtype.kind in "iu" and type_.dtype.kind == "f"
        ):
            raise _unfit(f"{name} is of {array.dtype}, and the model takes {type_}", "")
        wanted = type_.shape
        if array.shape == wanted or (wanted[:1] == (1,) and array.shape == wanted[1:]):
            return _Lot(array, type_, 1)
        if array.shape[1:] != wanted[1:] or len(array.shape) != len(wanted) or array.shape[0] < wanted[0]:
            raise _unfit(
                f"{name} has the shape {list(array.shape)}, and the model takes {type_}",
                "give arrays of that shape, or many along the first axis",
            )
        return _Lot(array, type_, array.shape[0] // wanted[0])


@dataclass(frozen=True)
class _Lot:
    """``count`` samples of one input."""

    array: np.ndarray | Member
    type: TensorType
    count: int

    def samples(self) -> Iterator[np.ndarray]:
        """Each in the model's type and shape."""
        some = [whole(self.array)] if self.count == 1 else parts(self.array, self.type.shape[0])
        for sample in some:
            yield np.ascontiguousarray(sample, self.type.dtype).reshape(self.type.shape)


def _unfit(message: str, help: str) -> UsageError:
    return UsageError("TM6033", message, notes=[("help", help)] if help else [])
