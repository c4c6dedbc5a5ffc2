"""Calibration data, one sample at a time: .npz files, folders of .npy files or of images."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.calibration.images import IMAGES, image, scale_pixels
from tmconvert.calibration.settings import CalibrationRequest, Settings
from tmconvert.calibration.streams import PICKLED, Member, members, parts, whole
from tmconvert.calibration.unfit import unfit
from tmconvert.errors.values import type_and_value
from tmconvert.formats.mapped_file import open_regular
from tmconvert.frontends.shared.array_files import UNREADABLE
from tmconvert.ir import Input, InternalGraph, TensorNode
from tmconvert.ir.extract import by_matching_name
from tmconvert.ir.types import TensorType

ARRAYS = frozenset({".npy", ".npz"})
REPORTED = 4  # samples of a calibration that a report is made of
EMPTY = "the data contains no samples"
FORMS = "pass a .npz file, or a folder of .npy or .npz files or of images"
# A few bytes of a compressed file may stand for any number of samples: beyond so many, each must be stored in
# so many bytes at least.
FREE_SAMPLES = 10_000
BYTES_PER_SAMPLE = 16
_LAST_TO_FIRST = (0, 3, 1, 2)
Data = (
    str
    | PathLike[str]
    | Mapping[str, np.ndarray]
    | np.ndarray
    | Iterable[object]
    | Callable[[], Iterable[object]]
)


def inputs_of(graph: InternalGraph) -> list[tuple[str, TensorType]]:
    """Returns the inputs of a normalized graph, by argument name."""
    return [
        (node.expr.name, node.type)
        for node in graph.inputs
        if isinstance(node, TensorNode) and isinstance(node.expr, Input)
    ]


def report_samples(
    measuring: CalibrationRequest, graph: InternalGraph
) -> tuple[Iterable[list[np.ndarray]], str]:
    """Returns the samples for layer statistics, as inputs of a normalized graph, and their description.

    They are the data for the report, or else some of the calibration data, evenly spread.
    """
    samples, name = measured_samples(measuring, graph)
    if measuring.report_data is not None:
        return samples, f"the samples of {name}"
    return spread(samples, name, REPORTED)


def measured_samples(measuring: CalibrationRequest, graph: InternalGraph) -> tuple[Samples, str]:
    """Returns the data for the report, or else that of the calibration, and its name."""
    given = measuring.data if measuring.report_data is None else measuring.report_data
    samples = Samples(given, inputs_of(graph), measuring.settings)
    samples.may_be_unscaled = measuring.data is not None  # mean and std are those of the calibration's images
    return samples, str(given) if isinstance(given, (str, PathLike)) else "the data passed"


def spread(samples: Samples, name: str, most: int) -> tuple[list[list[np.ndarray]], str]:
    """Returns at most so many samples, evenly spread, and their description.

    They are the first ones of an object whose items are made as it is iterated, such as a data loader.
    """
    if not isinstance(samples.data, (Path, Mapping, Sequence, np.ndarray)):
        found = list(islice(samples, most))
        return found, f"the first {len(found)} samples of {name}" if len(found) > 1 else f"a sample of {name}"
    count = samples.exact_count()
    if not count:
        raise unfit(EMPTY, "")
    some = min(most, count)
    places = [(2 * number + 1) * count // (2 * some) for number in range(some)]
    found = list(samples.at(places))
    about = f"{some} of the {count} samples" if some < count else f"the {count} samples"
    return found, f"{about} of {name}" if count > 1 else f"a sample of {name}"


class MadeSamples:
    """The samples that a function makes, a new iterator each time."""

    def __init__(self, make: Callable[[], Iterable[object]]) -> None:
        self.make = make

    def __iter__(self) -> Iterator[object]:
        try:
            made = self.make()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise unfit(
                f"the function of the data failed: {reason}", "it is called without arguments"
            ) from error
        if not isinstance(made, Iterable):
            raise unfit(f"the function of the data must make samples, got {type_and_value(made)}", FORMS)
        return iter(made)


class Samples:
    """The samples of ``data``, each with the arrays of ``inputs`` (name, type) in order.

    ``data`` is a path, or a mapping from names to arrays, an array for a model of one input, a sequence of
    samples, or a function that makes an iterator of samples, as converters of TensorFlow take it. Arrays are
    of one sample, of one without the batch of 1, or of many along the first axis; those of uint8 are scaled
    as images are. ``sizes`` describes the open sizes that were taken from the first sample. It can be
    iterated several times. Raises UsageError TM6033 for data that does not fit the inputs,
    with the name of the file.
    """

    def __init__(
        self,
        data: Data,
        inputs: Sequence[tuple[str, TensorType]],
        settings: Settings | None = None,
        sizes: str = "",
    ) -> None:
        self.inputs, self.sizes = inputs, sizes
        self.settings = (settings or Settings())._replace(rules={})  # it may be pickled
        self.may_be_unscaled = False
        if callable(data) and not isinstance(data, Iterable):
            data = MadeSamples(data)
        if not isinstance(data, (str, PathLike, Mapping, np.ndarray, Iterable)):
            raise unfit(
                f"data must be a path, arrays or a sequence of samples, got {type_and_value(data)}", FORMS
            )
        self.data: Any = Path(data) if isinstance(data, (str, PathLike)) else data
        if isinstance(data, np.ndarray) and inputs and data.ndim == len(inputs[0][1].shape):
            self.data = {inputs[0][0]: data}  # many along the first axis, not one in each row
        if isinstance(self.data, Path) and not _is_there(self.data):
            raise unfit(f"{self.data} does not exist", FORMS)
        if hasattr(data, "__next__"):
            raise unfit(
                "the data can be iterated only once, but is needed twice",
                "pass a list of samples, or the function that makes the iterator",
            )

    def __len__(self) -> int:
        """Returns the number of samples if it is known without reading them all; a file counts as one."""
        if isinstance(self.data, Mapping) or (isinstance(self.data, Path) and self.data.is_file()):
            array, (name, type_) = self._arrays(self.data)[0], self.inputs[0]
            return self._lot(array, type_, name).count
        return sum(1 for _ in self._sources())

    def __iter__(self) -> Iterator[list[np.ndarray]]:
        return (sample for _, sample in self.named())

    def named(self) -> Iterator[tuple[str, list[np.ndarray]]]:
        """Yields the samples with their names: the file below the folder, and the index among several."""
        is_empty = True
        for place, source in enumerate(self._sources()):
            name = "" if isinstance(self.data, Mapping) else f"[{place}]"
            if isinstance(source, Path):
                name = source.name if source == self.data else str(source.relative_to(self.data))
            for number, sample in enumerate(self._samples(source)):
                is_empty = False
                yield name if self._is_single(source) else f"{name}[{number}]", sample
        if is_empty:
            raise unfit(EMPTY, "")

    def _is_single(self, source: object) -> bool:
        """Whether a source is one sample, as an image and an item of a sequence usually are."""
        return not isinstance(source, Mapping) and self._count(source) == 1

    def first_shapes(self) -> list[tuple[int, ...]]:
        """Returns the shapes of the arrays of the first file or mapping, in order."""
        for source in self._sources():
            return [tuple(array.shape) for array in self._arrays(source)]
        raise unfit(EMPTY, "")

    def exact_count(self) -> int:
        """Returns the number of samples; of files no more is read than their headers."""
        return sum(map(self._count, self._sources()))

    def _count(self, source: object) -> int:
        if isinstance(source, Path) and source.suffix.lower() in IMAGES:
            return 1
        where = source if isinstance(source, Path) else "the data"
        (name, type_), array = self.inputs[0], self._arrays(source)[0]
        return self._lot(array, type_, f"{name} in {where}").count

    def part(self, first: int, end: int) -> Iterator[list[np.ndarray]]:
        """Yields the samples from number ``first`` to before ``end``; other files are not read."""
        passed = 0
        for source in self._sources():
            count = self._count(source)
            if passed + count > first:
                yield from islice(self._samples(source), max(first - passed, 0), end - passed)
            passed += count
            if passed >= end:
                return

    def at(self, places: Sequence[int]) -> Iterator[list[np.ndarray]]:
        """Yields the samples with these numbers, which are in order; of other files headers are read."""
        left, passed = [*places], 0
        for source in self._sources():
            if not left:
                return
            count = self._count(source)
            inside = [place - passed for place in left if place < passed + count]
            if inside:
                first = islice(self._samples(source), inside[-1] + 1)
                yield from (sample for number, sample in enumerate(first) if number in inside)
            left, passed = left[len(inside) :], passed + count

    def _sources(self) -> Iterator[Any]:
        """Yields files, or mappings of arrays."""
        if isinstance(self.data, Mapping) or (isinstance(self.data, Path) and self.data.is_file()):
            yield self.data
        elif isinstance(self.data, Path):
            yield from self._files(self.data)
        else:
            yield from self.data

    def _files(self, folder: Path) -> list[Path]:
        """Yields the files of the folder and its subfolders."""
        found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in IMAGES | ARRAYS)
        if not found:
            raise unfit(f"{folder} has no .npy, .npz or image file", FORMS)
        return found

    def _samples(self, source: object) -> Iterator[list[np.ndarray]]:
        where = str(source) if isinstance(source, Path) else "the data"
        arrays = self._arrays(source)
        names = [name for name, _ in self.inputs]
        lots = [
            self._lot(array, type_, f"{name} in {where}")
            for array, (name, type_) in zip(arrays, self.inputs, strict=True)
        ]
        if len({lot.count for lot in lots}) > 1:
            numbers = ", ".join(f"{lot.count} of {name}" for name, lot in zip(names, lots, strict=True))
            raise unfit(
                f"{where} has different numbers of samples: {numbers}", ("a sample must have all inputs")
            )
        if isinstance(source, Path):
            _check_budget(source, lots[0].count if lots else 0)
        if self.settings.scales and not self.may_be_unscaled and not any(lot.is_scaled for lot in lots):
            has = ", ".join(f"{lot.array.dtype} for {lot.type}" for lot in lots)
            raise unfit(
                f"mean and std apply to images, or arrays of uint8, for float inputs, but {where} has {has}",
                "omit them: the values are used unchanged",
            )
        try:
            for number, sample in enumerate(zip(*(lot.samples() for lot in lots), strict=True), 1):
                yield [self._check(*each, where, number) for each in zip(sample, lots, names, strict=True)]
        except UNREADABLE as error:
            raise unfit(f"{where} cannot be read: {error}", "") from error

    def _check(self, array: np.ndarray, lot: _Lot, name: str, where: str, number: int) -> np.ndarray:
        """Returns the array cast to the type of the input, after checks."""
        if lot.is_scaled:
            array = scale_pixels(array, self.settings, f"{name} in {where}")
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise unfit(f"{name} has NaN or infinity in sample {number} of {where}", "")
        return np.asarray(array, lot.type.dtype, order="C")

    def _arrays(self, source: object) -> list[Any]:
        """Returns the arrays of a source in the order of the inputs."""
        where = str(source) if isinstance(source, Path) else "a sample"
        if isinstance(source, Path):
            source = self._read(source)
        takes = ", ".join(f"{name} {type_}" for name, type_ in self.inputs)
        if not isinstance(source, Mapping):
            source = list(source) if isinstance(source, (list, tuple)) else [source]
            if len(source) != len(self.inputs):
                has = "1 array" if len(source) == 1 else f"{len(source)} arrays"
                raise unfit(f"{where} has {has}, but the model takes {takes}", _list_names(self.inputs))
            return [np.asarray(array) for array in source]
        names = [name for name, _ in self.inputs]
        source = by_matching_name(source, names)
        for keys in (names, [f"in{index}" for index in range(len(names))]):
            if set(keys) <= set(source):
                return [source[name] for name in keys]
        if len(names) == 1 == len(source):
            return list(source.values())
        has = ", ".join(map(str, source)) or "no arrays"
        raise unfit(f"{where} has {has}, but the model takes {takes}", _list_names(self.inputs))

    def _read(self, path: Path) -> Any:
        if path.suffix.lower() in IMAGES:
            return image(path, self.inputs, self.settings.layout, self.settings.resize)
        if path.suffix.lower() not in ARRAYS:
            raise unfit(f"{path} is not an .npz or .npy file or an image", FORMS)
        try:
            if path.suffix.lower() == ".npz":
                return members(path)
            open_regular(path).close()  # a device or a pipe may have no end
            return np.lib.format.open_memmap(path, mode="r")
        except UNREADABLE as error:
            reason = PICKLED if "Python objects" in str(error) else error
            raise unfit(f"{path} cannot be read: {reason}", "") from error

    def _lot(self, array: object, type_: TensorType, name: str) -> _Lot:
        """Returns the samples in an array: one, or many along the first axis."""
        array = array if isinstance(array, Member) else np.asarray(array)
        if array.dtype.kind != type_.dtype.kind and (
            array.dtype.kind not in "iu" or type_.dtype.kind not in "iuf"
        ):
            raise unfit(f"{name} has the dtype {array.dtype}, but the model takes {type_}", "")
        wanted = type_.shape
        if array.shape == wanted or (wanted[:1] == (1,) and array.shape == wanted[1:]):
            return _Lot(array, type_, None)
        if array.shape[1:] != wanted[1:] or len(array.shape) != len(wanted) or array.shape[0] < wanted[0]:
            raise unfit(
                f"{name} has the shape {list(array.shape)}, but the model takes {type_}",
                _fitting(array, wanted, self.sizes),
            )
        return _Lot(array, type_, array.shape[0] // wanted[0])


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


@dataclass(frozen=True)
class _Lot:
    """Samples of one input: ``number`` along the first axis, or a single one."""

    array: np.ndarray | Member
    type: TensorType
    number: int | None

    @property
    def count(self) -> int:
        return 1 if self.number is None else self.number

    @property
    def is_scaled(self) -> bool:
        """Whether the values are pixels, to which mean and std apply."""
        is_float = self.type.dtype.kind == "f"
        return self.array.dtype == np.uint8 and is_float and len(self.type.shape) == 4

    def samples(self) -> Iterator[np.ndarray]:
        """Yields the samples in the model's shape."""
        some = [whole(self.array)] if self.number is None else parts(self.array, self.type.shape[0])
        for sample in some:
            yield sample.reshape(self.type.shape)


def _check_budget(file: Path, count: int) -> None:
    """Raises UsageError TM6033 where a file has more samples than its size can justify."""
    size = file.stat().st_size
    if count > FREE_SAMPLES + size // BYTES_PER_SAMPLE:
        raise unfit(
            f"{file} has {count} samples in {size} bytes: nearly all of them are equal",
            f"pass {FREE_SAMPLES} samples or fewer; a few hundred are enough",
        )


def _fitting(array: np.ndarray | Member, wanted: Sequence[int], sizes: str) -> str:
    """Returns the remedy for a wrong shape; ``sizes`` are those that the first sample has."""
    is_last = len(array.shape) == len(wanted) == 4 and array.shape[3] == wanted[1] != array.shape[1]
    if is_last:
        return (
            "the data has channels last, but the model has channels first: "
            f"transpose{_LAST_TO_FIRST} converts it"
        )
    if list(array.shape[1:]) == list(wanted[1:]) and array.shape[0]:
        return (
            f"the model has batch size {wanted[0]}: pass as many samples, or build the model with batch "
            "size 1"
        )
    if sizes and len(array.shape) == len(wanted):
        return f"the first sample has {sizes}: crop, pad or resize all samples to equal sizes"
    return "pass arrays of that shape, or many along the first axis"


def _list_names(inputs: Sequence[tuple[str, TensorType]]) -> str:
    names = ", ".join(f"{name}=..." for name, _ in inputs)
    return f"pass .npz files written by numpy.savez(file, {names})"
