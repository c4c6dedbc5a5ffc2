"""Runs written files on data of a task, and scores what they compute.

A task is a row of ``TASKS``: the name of its score, whether more is better, and the function that scores a
side on the data. Each reads a sample at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tmconvert.calibration.settings import Settings
from tmconvert.calibration.unfit import unfit
from tmconvert.conversion.format_numbers import counted
from tmconvert.errors import UsageError
from tmconvert.errors.source import printable
from tmconvert.errors.values import type_and_value
from tmconvert.inspection.evaluate import samples_of
from tmconvert.inspection.given_inputs import is_channels_last
from tmconvert.inspection.labelled_data import labelled_files
from tmconvert.inspection.task_score import Score, Side
from tmconvert.inspection.text_tasks import score_perplexity, score_similarity, score_words
from tmconvert.progress import begin, counter
from tmconvert.targets.options import check_choice


@dataclass
class Scores:
    """The result of ``tmconvert.score``: one of ``files`` each, ``failures`` that miss the required score."""

    task: str
    metric: str
    files: list[Score] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.failures

    def to_json(self) -> dict[str, Any]:
        """Returns the JSON document of ``tmconvert evaluate --task ... --json``."""
        return {
            "task": self.task,
            "metric": self.metric,
            "ok": self.ok,
            "files": [each.to_json() for each in self.files],
            "failures": self.failures,
        }

    def __str__(self) -> str:
        return "\n".join(map(printable, self.lines()))

    def lines(self) -> Iterator[str]:
        """Returns the text of ``tmconvert evaluate --task``: a table with differences from the first file."""
        first, width = self.files[0], max(len(each.file) for each in self.files)
        yield f"{self.task} on {counted(first.samples, TASKS[self.task].unit)}"
        yield f"  {'file':<{width}}  {self.metric:>12}  difference"
        for each in self.files:
            difference = "" if each is first else f"{each.value - first.value:+.4f}"
            others = "".join(f"  {name} {value:.4f}" for name, value in each.others.items())
            yield f"  {each.file:<{width}}  {each.value:>12.4f}  {difference:>10}{others}".rstrip()
        yield from (f"FAILED: {each}" for each in self.failures)


class Task(NamedTuple):
    """A task: ``metric`` is the name of its score, ``unit`` that of a sample."""

    metric: str
    unit: str
    is_better_above: bool
    score: Callable[[Side, Path, Mapping[str, Any]], Score]


def score_sides(sides: Sequence[Side], given: str | PathLike[str], options: Mapping[str, Any]) -> Scores:
    """Returns the scores of files on the data ``given``.

    Raises UsageError TM6002, TM6033, VerificationError.
    """
    task = _checked(options)
    if not isinstance(given, (str, PathLike)):
        raise UsageError("TM6002", f"data must be a path, got {type_and_value(given)}")
    if not sides:
        raise UsageError("TM6002", "no files to score")
    chosen = TASKS[task]
    found = Scores(task, chosen.metric, [score_file(side, Path(given), options) for side in sides])
    required = options["required_score"]
    for each in found.files if required is not None else ():
        is_reached = each.value >= required if chosen.is_better_above else each.value <= required
        if not is_reached:
            found.failures.append(f"{chosen.metric} of {each.file} is {each.value:.4f}, not {required:g}")
    return found


def score_file(side: Side, data: Path, options: Mapping[str, Any]) -> Score:
    """Returns the score of a file for options that were checked. Raises UsageError TM6003, TM6033."""
    chosen = TASKS[options["task"]]
    if not data.exists():
        raise unfit(f"{data} does not exist", chosen.score.__doc__ or "")
    begin("compare")
    return chosen.score(side, data, options)


def _checked(options: Mapping[str, Any]) -> str:
    """Returns the task. Raises UsageError TM6002 for wrong options."""
    task, tokenizer = options["task"], options["tokenizer"]
    check_choice("task", task if isinstance(task, str) else type_and_value(task), [*TASKS])
    if tokenizer is not None and not isinstance(tokenizer, (str, PathLike)):
        raise UsageError("TM6002", f"tokenizer must be a path, got {type_and_value(tokenizer)}")
    for name in ("window", "sampling_rate"):
        value = options[name]
        if not isinstance(value, int) or value < 2:
            raise UsageError("TM6002", f"{name} must be an int above 1, got {type_and_value(value)}")
    return str(task)


def _top_1(side: Side, data: Path, options: Mapping[str, Any]) -> Score:
    """A folder of images with a folder for each class, or a CSV of file and class."""
    settings = Settings.of({name: options[name] for name in ("mean", "std", "resize")})
    right, right_5, total, count = 0, 0, 0, counter("compare")
    files, names = labelled_files(data)
    samples = (
        (number, label, arrays)
        for number, (path, label) in enumerate(files, 1)
        for arrays in samples_of(side, path, settings)
    )
    for number, label, arrays in samples:
        scores = np.asarray(side.outputs(arrays)[0])
        rows = scores.reshape(scores.shape[0] if scores.ndim > 1 else 1, -1)
        _check_classes(side, rows.shape[1], label, names)
        for row in rows:
            order = np.argsort(-row, kind="stable")[:5]
            right, right_5, total = right + (order[0] == label), right_5 + (label in order), total + 1
        if count is not None:
            count(number, len(files))
    return Score(side.title, float(right) / total, total, {"top-5": float(right_5) / total})


def _check_classes(side: Side, count: int, label: int, names: int | None) -> None:
    """Raises UsageError TM6033 where scores of ``count`` classes do not have those of the data."""
    data = f"class {label}" if label >= count else f"{names} classes with names"
    if label >= count or names not in (None, count):
        message = f"{side.title} has {count} scores of classes, but the data have the {data}"
        raise unfit(message, "name folders by the index of their class, or have one for each class")


def _boxes(side: Side, data: Path, options: Mapping[str, Any]) -> Score:
    """A file of labels in COCO's format, with its images next to it."""
    from tmconvert.inspection.detect import MOST, boxes_of, in_picture, precisions, read_labels

    settings = Settings.of({name: options[name] for name in ("mean", "std", "resize")})
    labels, found, count = read_labels(data), [], counter("compare")
    ids, images = sorted(labels.getCatIds()), labels.loadImgs(labels.getImgIds())
    axes = (1, 2) if is_channels_last(side.inputs[0]) else (2, 3)
    for number, each in enumerate(images, 1):
        (arrays,) = samples_of(side, data.parent / each["file_name"], settings)
        size = (arrays[0].shape[axes[0]], arrays[0].shape[axes[1]])
        outputs = dict(zip(side.output_names, side.outputs(arrays), strict=True))
        boxes = boxes_of(outputs, size, ids)
        if boxes is None:
            help = "the forms of outputs are in docs/how-to/verify.md"
            raise unfit(f"the outputs of {side.title} are not boxes in a known form", help)
        corners = in_picture(boxes.corners, size, (each["height"], each["width"]), options["resize"])
        for at in np.argsort(-boxes.scores, kind="stable")[:MOST]:
            category = int(boxes.classes[at])
            category = category if boxes.is_id else ids[category] if category < len(ids) else -1
            box = [*map(float, corners[at, :2]), *map(float, corners[at, 2:] - corners[at, :2])]
            row = {"image_id": each["id"], "category_id": category, "bbox": box}
            found.append({**row, "score": float(boxes.scores[at])})
        if count is not None:
            count(number, len(images))
    value, at_half = precisions(labels, found)
    return Score(side.title, value, len(images), {"at 0.5": at_half})


TASKS = {
    "top-1": Task("accuracy", "sample", True, _top_1),
    "map": Task("mAP", "image", True, _boxes),
    "wer": Task("WER", "recording", False, score_words),
    "perplexity": Task("perplexity", "token", False, score_perplexity),
    "similarity": Task("Spearman", "pair", True, score_similarity),
}
