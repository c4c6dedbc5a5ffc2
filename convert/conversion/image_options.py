"""Options of a conversion that follow from the preprocessing of its images."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path

from tmconvert.calibration.settings import CalibrationRequest, Settings
from tmconvert.conversion.io_overrides import IoOverrides
from tmconvert.conversion.preprocessing import ImageInput, Preprocessing
from tmconvert.errors import UsageError
from tmconvert.targets.options import IoLayout, TargetOptions
from tmconvert.targets.target import Target

_PIXELS = ("quint8", 1.0, 0)  # type, scale and zero point of images of uint8


def for_images(
    images: Mapping[str, ImageInput], target: Target, options: TargetOptions, overrides: IoOverrides
) -> tuple[TargetOptions, IoOverrides]:
    """Returns options and overrides with the layout and type of each image, by the name of its input.

    In integer files whose inputs are quantized, images of uint8 are inputs with the scale 1.
    """
    if target.default_io_layout == "nhwc":
        layouts: dict[str, IoLayout] = dict.fromkeys(images, "source")  # the described one
        options = options._replace(io_layouts=tuple({**layouts, **dict(options.io_layouts)}.items()))
    integers = options.integers
    pixels = [name for name, image in images.items() if image.dtype == "uint8"]
    if integers is None or not target.quantizes_inputs or not pixels:
        return options, overrides
    if integers.io_type == "int8":
        options = options._replace(integers=integers._replace(io_type="uint8"))
    given = {**dict.fromkeys(pixels, _PIXELS), **overrides.input_qparams}
    return options, overrides._replace(input_qparams=given)


def calibration_for(wanted: Preprocessing, requested: CalibrationRequest) -> CalibrationRequest:
    """Returns a request for calibration with the layout of the images.

    Raises UsageError TM6002 for a normalization, which the model has already, and for files of images in
    another order of colours than they are read in.
    """
    if not wanted.images or not requested.has_data:
        return requested
    if requested.settings.scales:
        raise UsageError(
            "TM6002",
            "mean and std of the calibration apply to images that the model does not normalize",
            notes=[("help", "omit them: preprocess describes the same images")],
        )
    if any(each.colours == "bgr" for each in wanted.images):
        for data in (requested.data, requested.report_data):
            if isinstance(data, str | PathLike) and _has_images(Path(data)):
                raise UsageError(
                    "TM6002",
                    f"the images in {data} are read as rgb, but preprocess describes bgr",
                    notes=[("help", "pass .npy files in that order, or describe rgb")],
                )
    (layout, *others) = {each.layout for each in wanted.images}
    if others or layout == requested.settings.layout:
        return requested
    settings = Settings.of({**requested.settings._asdict(), "layout": layout})
    return requested._replace(settings=settings)


def _has_images(folder: Path) -> bool:
    from tmconvert.calibration.images import IMAGES

    return folder.is_dir() and any(path.suffix.lower() in IMAGES for path in folder.rglob("*"))
