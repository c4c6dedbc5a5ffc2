"""The data that a calibration looks at, one sample after the other: .npz, folders of .npy or of images."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UsageError
from ...ir.types import TensorType

IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp"})
ARRAYS = frozenset({".npy", ".npz"})


@dataclass(frozen=True)
class Pixels:
    """How images become inputs: (value / 255 - mean) / std for each channel; the value if neither is given.

    ``layout`` is that of the model's input, "nchw" or "nhwc".
    """

    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    layout: str = "nchw"


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
        pixels: Pixels | None = None,
    ) -> None:
        self.inputs = inputs
        self.pixels = pixels or Pixels()
        self.data = Path(data) if isinstance(data, (str, PathLike)) else data
        if isinstance(self.data, Path) and not self.data.exists():
            raise _unfit(f"{self.data} is not there", "give a .npz file, or a folder of .npy files or images")

    def __len__(self) -> int:
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
        where = str(source) if isinstance(source, Path) else "the data"
        arrays = self._arrays(source)
        batches = [
            self._split(array, type_, f"{name} in {where}")
            for array, (name, type_) in zip(arrays, self.inputs, strict=True)
        ]
        counts = {len(batch) for batch in batches}
        if len(counts) > 1:
            numbers = " and ".join(map(str, sorted(counts)))
            raise _unfit(f"{where} has {numbers} samples of different inputs", "")
        yield from (list(sample) for sample in zip(*batches, strict=True))

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
        try:
            if path.suffix.lower() in IMAGES:
                return self._image(path)
            made = np.load(path, mmap_mode="r" if path.suffix == ".npy" else None, allow_pickle=False)
        except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
            raise _unfit(f"{path} cannot be read: {error}", "") from error
        return dict(made.items()) if hasattr(made, "files") else made

    def _image(self, path: Path) -> np.ndarray:
        try:
            from PIL import Image
        except ImportError as error:
            raise _unfit("images are read by Pillow, which is not installed", "pip install pillow") from error
        (_, type_), *_ = self.inputs
        if len(type_.shape) != 4:
            raise _unfit(f"{path} is an image, and the model takes {type_}", "give .npy files")
        is_last = self.pixels.layout == "nhwc"
        channels = type_.shape[3 if is_last else 1]
        height, width = type_.shape[1:3] if is_last else type_.shape[2:4]
        with Image.open(path) as opened:
            image = opened.convert({1: "L", 3: "RGB", 4: "RGBA"}.get(channels, "RGB")).resize((width, height))
        array = np.asarray(image, np.float32).reshape(height, width, -1)
        if self.pixels.mean or self.pixels.std:
            mean, std = (np.array(each or fill, np.float32) for each, fill in self._scaling())
            array = (array / np.float32(255) - mean) / std
        array = array if is_last else array.transpose(2, 0, 1)
        return np.ascontiguousarray(array[None]).astype(type_.dtype)

    def _scaling(self) -> list[tuple[tuple[float, ...], tuple[float, ...]]]:
        return [(self.pixels.mean, (0.0,)), (self.pixels.std, (1.0,))]

    def _split(self, array: Any, type_: TensorType, name: str) -> list[np.ndarray]:
        """The samples along the first axis, in the model's type."""
        array = np.asarray(array)
        if array.dtype.kind != type_.dtype.kind and not (
            array.dtype.kind in "iu" and type_.dtype.kind == "f"
        ):
            raise _unfit(f"{name} is of {array.dtype}, and the model takes {type_}", "")
        if array.shape == type_.shape[1:] and type_.shape[:1] == (1,):
            array = array[None]
        batch = type_.shape[0] if type_.shape else 1
        if array.shape == type_.shape:
            return [array.astype(type_.dtype, copy=False)]
        if array.shape[1:] != type_.shape[1:] or array.ndim != len(type_.shape) or array.shape[0] < batch:
            raise _unfit(
                f"{name} has the shape {list(array.shape)}, and the model takes {type_}",
                "give arrays of that shape, or many along the first axis",
            )
        return [
            array[i : i + batch].astype(type_.dtype, copy=False)
            for i in range(0, array.shape[0] - batch + 1, batch)
        ]


def _unfit(message: str, help: str) -> UsageError:
    return UsageError("TM6033", message, notes=[("help", help)] if help else [])
