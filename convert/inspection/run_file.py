"""Runs a written file in its runtime: layout, quantization and names of inputs are taken care of."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

import numpy as np

from tmconvert.calibration.settings import Settings
from tmconvert.errors import UsageError, VerificationError
from tmconvert.formats.mapped_file import shape_problem, unusable_file
from tmconvert.inspection.given_inputs import Inputs, given_inputs
from tmconvert.inspection.written_file import tensors_of
from tmconvert.ir.arrays import as_array
from tmconvert.ir.extract import by_matching_name
from tmconvert.ir.fake_quant import quantize
from tmconvert.ir.types import QParams
from tmconvert.targets.recognize import target_of_file
from tmconvert.targets.target import Target
from tmconvert.targets.written_model import TensorInfo, WrittenModel
from tmconvert.verification.input_files import read_inputs

MOST_OUTSIDE = 0.02  # of the values of an input, which calibration may have clipped
NHWC_TO_NCHW, NCHW_TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)


class FileRunner:
    """A written file that is run on arrays of real values; it warns of those beyond the range of an input.

    >>> FileRunner(Path("model.tflite")).run({"x": x})  # doctest: +SKIP
    """

    def __init__(self, path: Path, *, warns: bool = True, signature: str = "") -> None:
        self.path, self.warns, self.signature = path, warns, signature
        self.target: Target = target_of_file(path)
        self.model: WrittenModel = self.target.signature_model(path, signature)
        self.inputs, self.outputs = tensors_of(self.target, self.model)
        for each in (*self.inputs, *self.outputs):
            if problem := shape_problem(each.shape or ()):
                raise unusable_file(path, f"{each.name!r:.80} {problem}")

    def run(
        self, inputs: Inputs | None, watch: Sequence[str] = (), settings: Settings | None = None
    ) -> dict[str, np.ndarray]:
        """Returns the outputs by name, and the tensors ``watch``, as real values.

        Raises UsageError TM6003 for inputs that do not fit; VerificationError TM4002, TM4003.
        """
        fed = self.fed(self.arrays(inputs, settings))
        made = self.computed(fed, [each.name for each in self.outputs])
        found = {each.name: real(array, each) for each, array in zip(self.outputs, made, strict=True)}
        return {**self.watched(fed, watch), **found}

    def computed(self, fed: Mapping[str, np.ndarray], names: Sequence[str]) -> Sequence[np.ndarray]:
        """Returns outputs as the file has them."""
        runtime = self.target.signature_runtime(self.path, self.signature)
        if runtime is None:
            raise no_runtime(self.target)
        return runtime.run(self.target.model_files(self.path), fed, names)

    def between(self, fed: Mapping[str, np.ndarray], names: Sequence[str]) -> Sequence[np.ndarray]:
        """Returns tensors that operators compute, as the file has them."""
        return self.target.signature_values(self.path, self.signature, fed, names)

    def arrays(self, inputs: Inputs | None, settings: Settings | None = None) -> list[np.ndarray]:
        """Returns the arrays in the order of the inputs, from any form of inputs."""
        names = [each.name for each in self.inputs]
        inputs = given_inputs(inputs, self.inputs, settings)
        if isinstance(inputs, (str, PathLike)):
            return list(read_inputs(inputs, names, in_order=True))
        if isinstance(inputs, Mapping):
            given = by_matching_name(inputs, names)
            if given.keys() != set(names):
                raise self.misfit(f"got arrays for {', '.join(map(str, inputs)) or 'nothing'}")
            return [as_array(given[name], f"input {name!r}") for name in names]
        found = [as_array(each, f"input {number}") for number, each in enumerate(inputs)]
        if len(found) != len(names):
            raise self.misfit(f"got {len(found)} arrays")
        return found

    def misfit(self, got: str) -> UsageError:
        """Returns the error for inputs that do not fit, with those of the file."""
        takes = ", ".join(f"{each.name} {each.type_text}" for each in self.inputs)
        return UsageError("TM6003", f"the file takes {takes or 'no inputs'}; {got}")

    def fed(self, arrays: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        """Returns what the runtime is given: in the layout and type of the file."""
        return {each.name: self._fed(array, each) for each, array in zip(self.inputs, arrays, strict=True)}

    def _fed(self, array: np.ndarray, info: TensorInfo) -> np.ndarray:
        array = self._in_layout(array, info)
        if not info.dtype or array.dtype.name == info.dtype:
            return np.asarray(array, order="C")
        dtype = np.dtype(info.dtype)
        if dtype.kind in "iu" and array.dtype.kind == "f":
            if len(info.scale) != 1:
                raise self.misfit(f"{info.name} is {array.dtype.name}, and the file states no scale for it")
            if self.warns:
                _warn_of_saturation(array, info)
            return quantized(array, info)
        if dtype.kind in "iub" and array.dtype.kind in "iub":
            same = array.astype(dtype)
            if not np.array_equal(same, array):
                raise self.misfit(f"{info.name} has values that {info.dtype} cannot represent")
            return same
        return array.astype(dtype, order="C")

    def _in_layout(self, array: np.ndarray, info: TensorInfo) -> np.ndarray:
        """Returns the array in the shape of the file: as it is, with moved channels, or with a batch of 1."""
        if info.shape is None or _fits(array.shape, info.shape):
            return array
        order = NCHW_TO_NHWC if info.layout == "NHWC" else NHWC_TO_NCHW
        for each in (array, array[None]):
            if _fits(each.shape, info.shape):
                return each
            if each.ndim == 4 and _fits(tuple(each.shape[axis] for axis in order), info.shape):
                return each.transpose(order)
        raise self.misfit(f"{info.name} has the shape {list(array.shape)}")

    def watched(self, fed: Mapping[str, np.ndarray], watch: Sequence[str]) -> dict[str, np.ndarray]:
        """Returns the tensors whose names fit the patterns ``watch``. Raises UsageError TM6050."""
        from fnmatch import fnmatchcase

        from tmconvert.errors.suggestions import no_such_name

        if not watch:
            return {}
        known = computed_names(self.model)
        for pattern in watch:
            if not any(fnmatchcase(name, pattern) for name in known):
                raise no_such_name(pattern, known, "the file has no tensor")
        names = [name for name in known if any(fnmatchcase(name, pattern) for pattern in watch)]
        return self.values(fed, names)

    def values(self, fed: Mapping[str, np.ndarray], names: Sequence[str]) -> dict[str, np.ndarray]:
        """Returns real values of tensors that operators compute, which is done one by one."""
        made = self.between(fed, names)
        known = self.model.quantized
        return {
            name: real(array, known[name]) if name in known else array
            for name, array in zip(names, made, strict=True)
        }


def computed_names(model: WrittenModel) -> list[str]:
    """Returns the names of the tensors that operators compute, in order of execution."""
    names = dict.fromkeys(name for layer in model.layers if layer.inputs for name in layer.outputs)
    return [name for name in names if name not in model.inner]


def _fits(shape: Sequence[int], wanted: Sequence[int | str]) -> bool:
    return len(shape) == len(wanted) and all(
        not isinstance(size, int) or size == own for own, size in zip(shape, wanted, strict=True)
    )


def qparams_of(info: TensorInfo) -> QParams:
    """Returns the parameters of a tensor with one scale."""
    ends = np.iinfo(info.dtype)
    return QParams(info.dtype, info.scale, info.zero_point, int(ends.min), int(ends.max))


def quantized(array: np.ndarray, info: TensorInfo) -> np.ndarray:
    """Returns real values as integers of the file."""
    return quantize(array, qparams_of(info)).astype(info.dtype, order="C")


def _warn_of_saturation(array: np.ndarray, info: TensorInfo) -> None:
    """Logs a warning where values lie outside of the range of an input, as pixels that were not scaled do."""
    qparams = qparams_of(info)
    scale, point = qparams.scale[0], qparams.zero_point[0]
    low, high = (qparams.quant_min - point) * scale, (qparams.quant_max - point) * scale
    outside = float(np.mean((array < low - scale) | (array > high + scale))) if array.size else 0.0
    if outside > MOST_OUTSIDE:
        logging.getLogger("tmconvert").warning(
            "%.0f %% of the values of %s are outside of its range, %.4g to %.4g",
            100 * outside,
            info.name,
            low,
            high,
        )


def real(array: np.ndarray, info: TensorInfo) -> np.ndarray:
    """Returns the real values of a tensor: float32 for integers with scales."""
    if not info.scale or array.dtype.kind not in "iu":
        return array
    shape = [1] * array.ndim
    if len(info.scale) > 1 and info.axis is not None:
        shape[info.axis] = len(info.scale)
    scale, point = (
        np.asarray(each, np.float32).reshape(shape if len(each) > 1 else ())
        for each in (info.scale, info.zero_point)
    )
    return np.asarray((array.astype(np.float32) - point) * scale, np.float32)


def no_runtime(target: Target) -> VerificationError:
    """Returns the error for a file whose runtime is not installed."""
    return VerificationError(
        "TM4003",
        f"no runtime for {target.title} is installed",
        notes=[("help", f"pip install {target.runtime_package!r}")],
    )
