"""Reads the metadata and labels of a request, and adds what the conversion knows of images."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from tmconvert.errors import UsageError
from tmconvert.errors.values import type_and_value
from tmconvert.formats.mapped_file import read_regular
from tmconvert.output.metadata import OWN, Annotations, ImageInput

if TYPE_CHECKING:
    from tmconvert.conversion.request import ConversionRequest
    from tmconvert.lowering.target_graph import TargetGraph

NAMES = "names"  # of classes by index, the key by which ultralytics stores them


def requested_annotations(
    metadata: Mapping[str, Any] | None, labels: str | PathLike[str] | Sequence[str] | None
) -> Annotations:
    """Returns the annotations for arguments; ``labels`` are texts, or the path of a file with one a line.

    Values that are no texts become JSON, and labels also metadata, unless these have ``NAMES``. Raises
    UsageError TM6002.

    >>> requested_annotations({"stride": 32}, ["cat", "dog"]).metadata
    {'stride': '32', 'names': '{"0": "cat", "1": "dog"}'}
    """
    texts = {key: _text(key, value) for key, value in (metadata or {}).items()}
    own = next((key for key in texts if not key or key.startswith(OWN)), None)
    if own is not None:
        raise UsageError("TM6002", f"the key {own!r} of metadata is reserved: use one without {OWN!r}")
    listed = _labels(labels)
    if listed:
        texts.setdefault(NAMES, _text(NAMES, dict(enumerate(listed))))
    return Annotations(texts, listed, is_given=bool(texts))


def _text(key: str, value: Any) -> str:
    if isinstance(value, str):
        text = value
    else:
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            reason = f"metadata[{key!r}] must be a text or a value of JSON, got {type_and_value(value)}"
            raise UsageError("TM6002", reason) from error
    if any("\ud800" <= letter <= "\udfff" for letter in key + text):
        raise UsageError("TM6002", f"metadata[{key!r}] is not valid Unicode")
    return text


def _labels(given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    lines, source = given, "labels"
    if isinstance(given, (str, PathLike)):
        source = f"the file of labels {given}"
        lines = read_text(given, source).rstrip().splitlines()
    if not isinstance(lines, Sequence) or not all(isinstance(each, str) for each in lines):
        raise UsageError("TM6002", f"labels must be a path or a list of texts, got {type_and_value(given)}")
    stripped = tuple(each.strip() for each in lines)
    if not stripped or any("\n" in each or not each for each in stripped):
        help = "write each label, which is not empty, in a line of its own"
        raise UsageError("TM6002", f"{source} must have one text for each class", notes=[("help", help)])
    return stripped


def read_text(path: str | PathLike[str], what: str) -> str:
    """Returns the text of a file of UTF-8. Raises UsageError TM6002."""
    try:
        return read_regular(path).decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError("TM6002", f"{what} cannot be read: {reason}") from error


def annotate(graph: TargetGraph, request: ConversionRequest, stored: Mapping[str, str]) -> list[str]:
    """Adds the annotations of a request, and the metadata ``stored`` in its source, to what is written.

    Returns notes for the report.
    """
    given = request.annotations
    images = _images(request, graph.input_names) if given.is_given else {}
    graph.annotations = given._replace(metadata={**stored, **given.metadata}, images=images)
    count = len(given.labels)
    if not count or request.preprocessing.argmax or any(count in each.shape for each in graph.outputs):
        return []
    return [f"no output has the size {count}, the number of labels: check that they are those of the model"]


def _images(request: ConversionRequest, names: Sequence[str]) -> dict[str, ImageInput]:
    """Returns the inputs that take images, as far as options describe them."""
    described, settings = request.preprocessing.images, request.calibration.settings
    if described:  # the file normalizes the pixels itself
        of_rgb = (each for each in described if each.layout == "nhwc" and each.colours == "rgb")
        return {each.name or names[0]: ImageInput((0.0,), (1.0,)) for each in of_rgb}
    if not settings.scales:
        return {}
    mean, std = (
        tuple(255 * each for each in numbers or (neutral,))
        for numbers, neutral in ((settings.mean, 0.0), (settings.std, 1.0))
    )
    return dict.fromkeys(names, ImageInput(mean, std))
