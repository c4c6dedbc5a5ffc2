"""Calibration settings, and the calibration request of a conversion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from tmconvert.errors import UsageError
from tmconvert.errors.values import type_and_value
from tmconvert.progress import Progress

KINDS = ("int8", "int16x8", "float")
LAYOUTS = ("nchw", "nhwc")
RESIZES = ("stretch", "crop", "pad")
_NUMBERS = ("mean", "std")
PIXELS = ("mean", "std", "layout", "resize")  # what is said of images
# the type of each setting, and its name in messages
_TYPES: dict[str, tuple[type, str]] = {
    "method": (str, "str"),
    "per_channel": (bool, "True or False"),
    "rules": (Mapping, "a dict by pattern"),
    "bias_correction": (bool, "True or False"),
    "equalization": (bool, "True or False"),
    "mean": (Sequence, "a list of numbers"),
    "std": (Sequence, "a list of numbers"),
    "layout": (str, "str"),
    "resize": (str, "str"),
}
Resize = Literal["stretch", "crop", "pad"]
ImageLayout = Literal["nchw", "nhwc"]  # of images as inputs of the model


class Settings(NamedTuple):
    """``method`` is one of "minmax", "percentile", "mse" and "entropy".

    ``per_channel`` gives weights a scale for each channel. ``rules`` are patterns of module paths or tensor
    names, as of fnmatch, with "int8", "int16x8" or "float"; the last match applies. ``bias_correction``
    compensates the mean error of rounding in the biases. ``equalization`` scales channels between layers,
    which keeps the function of the float model. ``mean``, ``std`` and ``layout`` ("nchw" or "nhwc", of the
    model's input) are for images and arrays of uint8: (value / 255 - mean) / std for each channel; the value
    if neither is given. ``resize`` is how images of another size are changed: "stretch" both sides, or scale
    them alike and "crop" the longer or "pad" the shorter side, with black.
    """

    method: Literal["minmax", "percentile", "mse", "entropy"] = "mse"
    per_channel: bool = True
    rules: Mapping[str, Literal["int8", "int16x8", "float"]] = MappingProxyType({})
    bias_correction: bool = True
    equalization: bool = True
    mean: Sequence[float] = ()
    std: Sequence[float] = ()
    layout: ImageLayout = "nchw"
    resize: Resize = "stretch"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        """Validates settings. Raises UsageError TM6032 for unknown names and invalid values."""
        if not isinstance(given, Mapping):
            message = f"calibration settings must be a dict by name, got {type_and_value(given)}"
            raise UsageError("TM6032", message)
        for name in given:
            _one_of(f"{name!r} is not a calibration setting", name, cls._fields)
        made = cls(**{**given, **{name: _numbers(name, given[name]) for name in _NUMBERS if name in given}})
        made._check()
        return made

    def _check(self) -> None:
        for name, value in self._asdict().items():
            wanted, expected = _TYPES[name]
            if not isinstance(value, wanted):
                raise UsageError("TM6032", f"{name} must be {expected}, got {type_and_value(value)}")
        if self.method != self._field_defaults["method"]:
            from tmconvert.calibration.ranges import METHODS

            _one_of(f"unknown calibration method {self.method!r}", self.method, METHODS)
        _one_of(f"unknown layout {self.layout!r}", self.layout, LAYOUTS)
        _one_of(f"unknown resize {self.resize!r}", self.resize, RESIZES)
        for pattern, kind in self.rules.items():
            _one_of(f"the rule {pattern}={kind} has the unknown type {kind!r}", kind, KINDS)
        if not all(math.isfinite(each) and each > 0 for each in self.std):
            raise UsageError("TM6032", f"std must be positive, got {list(self.std)}")
        if not all(map(math.isfinite, self.mean)):
            raise UsageError("TM6032", f"mean must be finite, got {list(self.mean)}")

    def to_json(self) -> dict[str, Any]:
        """Returns the settings that differ from the defaults."""
        plain = self._field_defaults
        chosen = {name: value for name, value in self._asdict().items() if value != plain[name]}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in chosen.items()}

    @property
    def scales(self) -> bool:
        """Whether mean or std are set, so that pixels are normalized."""
        return len(self.mean) + len(self.std) > 0


def _numbers(name: str, given: Any) -> tuple[float, ...]:
    try:
        return tuple(map(float, given))
    except (TypeError, ValueError):
        raise UsageError("TM6032", f"{name} must be a list of numbers, got {type_and_value(given)}") from None


def _one_of(message: str, value: object, choices: Any) -> None:
    if value not in choices:
        raise UsageError("TM6032", message, notes=[("help", f"use {', '.join(choices)}")])


class CalibrationRequest(NamedTuple):
    """The data for the calibration of a conversion and for its report; None for no data."""

    data: Any = None
    settings: Settings = Settings()
    report_data: Any = None
    progress: Progress | None = None

    @property
    def has_data(self) -> bool:
        return self.data is not None or self.report_data is not None

    @classmethod
    def of(
        cls,
        data: object,
        chosen: Mapping[str, object] | None,
        report_data: object = None,
        *,
        has_task: bool = False,
    ) -> CalibrationRequest:
        """Returns the request for data and settings; ``chosen`` are keywords of ``tmconvert.calibrate``.
        ``has_task`` states that data of a task are read, too. Raises UsageError TM6002, TM6032.
        """
        given = {} if chosen is None else dict(chosen) if isinstance(chosen, Mapping) else chosen
        progress: Any = given.pop("progress", None) if isinstance(given, dict) else None
        if progress is not None and not callable(progress):
            raise UsageError("TM6032", f"progress must be a function, got {type_and_value(progress)}")
        settings = Settings.of(given)
        used = PIXELS if report_data is not None or has_task else ()
        for_nothing = [name for name in given if data is None and name not in used]
        if for_nothing:
            names = ", ".join(sorted(for_nothing))
            raise UsageError("TM6002", f"{names} passed without data: settings require calibration")
        return cls(data, settings, report_data, progress)
