"""Runs two models on the samples of a data set, and measures how far their outputs differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tmconvert.calibration.data import FORMS, Data, Samples
from tmconvert.calibration.images import IMAGES
from tmconvert.calibration.settings import Settings
from tmconvert.calibration.unfit import unfit
from tmconvert.conversion.preprocessing import ImageInput, Preprocessing
from tmconvert.errors import UsageError
from tmconvert.inspection.compare import AnySide, in_order_of, output_places
from tmconvert.inspection.compared_models import FileSide
from tmconvert.inspection.differences import aligned
from tmconvert.inspection.evaluation import SHOWN, Evaluation, OutputEvaluation, SampleEvaluation
from tmconvert.inspection.given_inputs import is_channels_last
from tmconvert.ir import TensorNode, TensorType
from tmconvert.progress import begin, counter
from tmconvert.targets.written_model import TensorInfo
from tmconvert.verification.noise import decibels

Named = tuple[str, list[np.ndarray]]


class Gate(NamedTuple):
    """The least ratio of each output in dB, and the least agreement, from 0 to 1; None for any."""

    min_sqnr: float | None
    min_agreement: float | None

    def failures(self, outputs: Sequence[OutputEvaluation]) -> Iterator[str]:
        """Yields the limits that are missed. Raises UsageError TM6002 for one that applies to no output."""
        ratios = [(each.name, each.decibels) for each in outputs if each.decibels is not None]
        shares = [(each.name, each.agreement) for each in outputs if each.agreement is not None]
        if self.min_sqnr is not None:
            if not ratios:
                raise UsageError("TM6002", "min_sqnr requires an output of floats, whose noise is measured")
            for name, ratio in ratios:
                if not ratio >= self.min_sqnr:
                    yield f"signal to noise of {name} is {ratio:.1f} dB, less than {self.min_sqnr:g}"
        if self.min_agreement is not None:
            if not shares:
                raise UsageError("TM6002", "min_agreement requires an output of scores of classes")
            for name, share in shares:
                if not share >= self.min_agreement:
                    yield f"the agreement of {name} is {share:.4f}, less than {self.min_agreement:g}"


def evaluate_sides(first: AnySide, second: AnySide, data: Data, settings: Settings, gate: Gate) -> Evaluation:
    """Returns how far the outputs of two sides differ on the samples of ``data``.

    Raises UsageError TM6002 for limits that apply to no output, TM6003 for models with other inputs or
    outputs, TM6033 for data that do not fit; VerificationError TM4002, TM4003.
    """
    begin("compare")
    count = counter("compare")
    places, sums, samples = output_places(first, second), list[_Sums](), list[SampleEvaluation]()
    for name, ours, theirs in _samples(first, second, data, settings):
        one, other = first.outputs(ours), second.outputs(theirs)
        sums = sums or [_Sums(first.output_names[place]) for place, _ in places]
        found = [
            each.add(np.asarray(one[mine]), np.asarray(other[its]), name)
            for each, (mine, its) in zip(sums, places, strict=True)
        ]
        ratios = [each.decibels for each in found if each.decibels is not None]
        largest, agrees = max(each.max_difference for each in found), all(each.agrees for each in found)
        samples.append(SampleEvaluation(name, min(ratios, default=None), largest, agrees))
        if count is not None:
            count(len(samples), len(samples) + 1)
    made = Evaluation(first.title, second.title, len(samples), [each.result() for each in sums])
    made.worst = sorted(samples, key=_badness)[:SHOWN]
    made.failures = list(gate.failures(made.outputs))
    return made


def _badness(sample: SampleEvaluation) -> tuple[bool, float, float]:
    return sample.agrees, math.inf if sample.decibels is None else sample.decibels, -sample.max_difference


@dataclass
class _Sums:
    """Sums over the samples of an output."""

    name: str
    signal: float = 0.0
    other: float = 0.0
    product: float = 0.0
    noise: float = 0.0
    largest: float = 0.0
    rows: int = 0
    agreeing: int = 0
    has_classes: bool = True
    is_real: bool = False
    order: tuple[int, ...] | None = None

    def add(self, expected: np.ndarray, actual: np.ndarray, sample: str) -> SampleEvaluation:
        """Adds a sample, and returns what it has on its own. Raises UsageError TM6003 for another shape."""
        if not self.rows:  # the layout of the first sample is that of all
            _, self.order = aligned(expected, actual)
        if self.order is not None:
            actual = actual.transpose(self.order)
        if actual.size != expected.size or _squeezed(actual) != _squeezed(expected):
            has = f"{list(expected.shape)} and {list(actual.shape)}"
            raise UsageError("TM6003", f"the output {self.name} has the shapes {has} for {sample}")
        is_real = expected.dtype.kind not in "iub" or actual.dtype.kind not in "iub"
        rows, same = _agreement(expected, actual.reshape(expected.shape), is_real)
        self.has_classes &= same is not None
        self.is_real |= is_real
        self.rows, self.agreeing = self.rows + rows, self.agreeing + (same or 0)
        one, other = np.asarray(expected, np.float64).ravel(), np.asarray(actual, np.float64).ravel()
        is_finite = np.isfinite(one) & np.isfinite(other)
        is_apart = not np.array_equal(one[~is_finite], other[~is_finite], equal_nan=True)
        one, other = one[is_finite], other[is_finite]
        signal, noise = float(one @ one), math.inf if is_apart else float(np.sum((one - other) ** 2))
        largest = math.inf if is_apart else float(np.max(np.abs(one - other), initial=0.0))
        self.signal, self.noise, self.largest = (
            self.signal + signal,
            self.noise + noise,
            max(self.largest, largest),
        )
        self.other, self.product = self.other + float(other @ other), self.product + float(one @ other)
        ratio = decibels(signal, noise) if is_real else None
        return SampleEvaluation(sample, ratio, largest, same is None or same == rows)

    def result(self) -> OutputEvaluation:
        lengths = math.sqrt(self.signal * self.other)
        cosine = self.product / lengths if lengths else float(self.signal == self.other)
        return OutputEvaluation(
            self.name,
            decibels(self.signal, self.noise) if self.is_real else None,
            self.largest,
            cosine,
            self.agreeing / self.rows if self.has_classes and self.rows else None,
            self.rows,
        )


def _squeezed(array: np.ndarray) -> list[int]:
    return [size for size in array.shape if size != 1]


def _agreement(expected: np.ndarray, actual: np.ndarray, is_real: bool) -> tuple[int, int | None]:
    """Returns the number of rows and of those that agree; None where rows are not scores of classes.

    Scores of classes are vectors of two values or more.
    """
    rows = expected.shape[0] if expected.ndim > 1 else 1
    one, other = expected.reshape(rows, -1), actual.reshape(rows, -1)
    if not is_real:
        return rows, int((one == other).all(1).sum())
    if sum(size > 1 for size in expected.shape[min(1, expected.ndim - 1) :]) != 1:
        return rows, None
    return rows, int((one.argmax(1) == other.argmax(1)).sum())


def _samples(
    first: AnySide, second: AnySide, data: Data, settings: Settings
) -> Iterator[tuple[str, list[np.ndarray], list[np.ndarray]]]:
    """Yields the name of each sample, and its arrays for both models.

    The data are read as inputs of the first model, and brought into the layout of the second one. Where only
    one of them takes pixels, because the file has the preprocessing, each reads the data on its own.
    """
    ours, theirs = _preprocessing(first), _preprocessing(second)
    described = [each for each in (ours, theirs) if each is not None]
    if len(described) == 1 and not settings.scales:
        settings = settings._replace(mean=described[0].mean, std=described[0].std)
    if len(described) == 1:
        _check_colours(described[0], data)
        whole = settings._replace(mean=(), std=())
        pairs = zip(
            _read(first, data, settings if ours is None else whole),
            _read(second, data, settings if theirs is None else whole),
            strict=True,
        )
        yield from ((name, one, other) for (name, one), (_, other) in pairs)
        return
    for name, one in _read(first, data, settings):
        yield name, one, in_order_of(second, first, one)


def samples_of(side: AnySide, data: Data, settings: Settings) -> Iterator[list[np.ndarray]]:
    """Yields the samples of ``data`` for one side; a file with the preprocessing in it gets pixels."""
    described = _preprocessing(side)
    if described is not None:
        _check_colours(described, data)
        settings = settings._replace(mean=(), std=())
    yield from (arrays for _, arrays in _read(side, data, settings))


def _preprocessing(side: AnySide) -> ImageInput | None:
    """Returns the preprocessing in a file that takes pixels from 0 to 255, None for other models."""
    if isinstance(side, FileSide):
        stored = Preprocessing.from_json(side.runner.target.stored_options(side.path))
        if stored.images:
            return stored.images[0]
    return ImageInput() if side.inputs and _is_raw(side.inputs[0]) else None


def _is_raw(info: TensorInfo) -> bool:
    is_unscaled = not info.scale or (tuple(info.scale), tuple(info.zero_point)) == ((1.0,), (0,))
    return info.dtype == "uint8" and is_unscaled


def _check_colours(image: ImageInput, data: Any) -> None:
    """Raises UsageError TM6002 for images, which are read as RGB, and a file that takes others."""
    if image.colours == "bgr" and _has_images(data):
        raise UsageError("TM6002", "images are read as rgb, but the preprocessing in the file takes bgr")


def _read(side: AnySide, data: Data, settings: Settings) -> Iterator[Named]:
    """Yields the named samples for one side."""
    if not side.inputs:
        raise UsageError("TM6003", f"{side.title} has no inputs")
    if is_channels_last(side.inputs[0]):
        settings = settings._replace(layout="nhwc")
    names, shapes = [info.name for info in side.inputs], _shapes(side)
    types = [
        TensorType(_dtype(info), _closed(shape, ())) for info, shape in zip(side.inputs, shapes, strict=True)
    ]
    if any(not isinstance(size, int) for shape in shapes for size in shape):
        if _has_images(data) and not all(isinstance(size, int) for size in shapes[0][1:]):
            raise unfit(f"{side.title} has open sizes of images, to which none can be resized", FORMS)
        given = Samples(data, list(zip(names, types, strict=True)), settings).first_shapes()
        closed = map(_closed, shapes, given)
        types = [TensorType(type_.dtype, shape) for type_, shape in zip(types, closed, strict=True)]
    yield from Samples(data, list(zip(names, types, strict=True)), settings).named()


def _dtype(info: TensorInfo) -> np.dtype[Any]:
    """Returns the type of the real values of an input."""
    is_quantized = info.scale and not _is_raw(info)
    return np.dtype("float32" if is_quantized else info.dtype or "float32")


def _has_images(data: Data) -> bool:
    if not isinstance(data, (str, PathLike)):
        return False
    path = Path(data)
    return any(each.suffix.lower() in IMAGES for each in (path, *path.rglob("*")))


def _shapes(side: AnySide) -> list[Sequence[int | str]]:
    """Returns the shape of each input, with names for open sizes."""
    if isinstance(side, FileSide):
        return [info.shape or () for info in side.inputs]
    assert side.module.graph is not None
    nodes = [node for node in side.module.graph.inputs[1:] if isinstance(node, TensorNode)]
    return [
        tuple(size if isinstance(size, int) else str(size) for size in node.shape or ()) for node in nodes
    ]


def _closed(shape: Sequence[int | str], data: Sequence[int]) -> tuple[int, ...]:
    """Returns a shape with the open sizes of an array of data; the first axis counts samples."""
    whole = (1, *data) if len(data) == len(shape) - 1 else tuple(data)
    extents = (1, *whole[1:]) if len(whole) == len(shape) else (1,) * len(shape)
    return tuple(
        size if isinstance(size, int) else extent for size, extent in zip(shape, extents, strict=True)
    )
