"""Runs written files on data of a task, and scores what they compute.

A task is a row of ``TASKS``: the name of its score, whether more is better, and the function that scores a
side on the data. Each reads a sample at a time.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tmconvert.calibration.data import ARRAYS
from tmconvert.calibration.images import IMAGES
from tmconvert.calibration.settings import Settings
from tmconvert.calibration.unfit import unfit
from tmconvert.conversion.format_numbers import counted
from tmconvert.errors import UsageError
from tmconvert.errors.source import printable
from tmconvert.errors.values import type_and_value
from tmconvert.inspection.compared_models import FileSide, SourceSide
from tmconvert.inspection.evaluate import samples_of
from tmconvert.inspection.given_inputs import is_channels_last
from tmconvert.inspection.metrics import log_likelihoods, spearman, word_errors
from tmconvert.inspection.transcribe import read_wave, transcriber
from tmconvert.progress import begin, counter
from tmconvert.targets.options import check_choice

Side = FileSide | SourceSide


class Score(NamedTuple):
    """The score of a file on ``samples``; ``others`` are further ones by name."""

    file: str
    value: float
    samples: int
    others: Mapping[str, float] = {}

    def to_json(self) -> dict[str, Any]:
        return {**self._asdict(), "others": dict(self.others)}


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
    data = Path(given)
    if not sides:
        raise UsageError("TM6002", "no files to score")
    chosen = TASKS[task]
    if not data.exists():
        raise unfit(f"{data} does not exist", chosen.score.__doc__ or "")
    begin("compare")
    found = Scores(task, chosen.metric, [chosen.score(side, data, options) for side in sides])
    required = options["required_score"]
    for each in found.files if required is not None else ():
        is_reached = each.value >= required if chosen.is_better_above else each.value <= required
        if not is_reached:
            found.failures.append(f"{chosen.metric} of {each.file} is {each.value:.4f}, not {required:g}")
    return found


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


def _rows(path: Path, width: int) -> list[list[str]]:
    """Returns the rows of a CSV or TSV file, less one of names. Raises UsageError TM6033."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        delimiter = "\t" if path.suffix.lower() in (".tsv", ".txt") else ","
        rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    short = next((number for number, row in enumerate(rows, 1) if len(row) < width), None)
    if short is not None or not rows:
        what = "no rows" if short is None else f"fewer than {width} columns in row {short}"
        raise unfit(f"{path} has {what}", "the columns are described in `tmconvert evaluate --help`")
    return rows


def _labelled(data: Path) -> list[tuple[Path, int]]:
    """Returns files with the indices of their classes: those of sorted folders, or numbers that names are."""
    if data.is_dir():
        files = [each for each in sorted(data.rglob("*")) if each.suffix.lower() in IMAGES | ARRAYS]
        pairs = [(each, each.relative_to(data).parts[0]) for each in files if each.parent != data]
    else:
        rows = _rows(data, 2)
        rows = rows if (data.parent / rows[0][0]).exists() else rows[1:]
        pairs = [(data.parent / name, label.strip()) for name, label, *_ in rows]
    if not pairs:
        raise unfit(f"{data} has no files in folders of classes", "make a folder for each class, or a CSV")
    names = sorted({label for _, label in pairs})
    indices = {name: int(name) if all(map(str.isdecimal, names)) else at for at, name in enumerate(names)}
    return [(path, indices[label]) for path, label in pairs]


def _top_1(side: Side, data: Path, options: Mapping[str, Any]) -> Score:
    """A folder of images with a folder for each class, or a CSV of file and class."""
    settings = Settings.of({name: options[name] for name in ("mean", "std", "resize")})
    right, right_5, total, count = 0, 0, 0, counter("compare")
    files = _labelled(data)
    samples = (
        (number, label, arrays)
        for number, (path, label) in enumerate(files, 1)
        for arrays in samples_of(side, path, settings)
    )
    for number, label, arrays in samples:
        scores = np.asarray(side.outputs(arrays)[0]).reshape(-1)
        if label >= scores.size:
            message = f"{side.title} has {scores.size} scores of classes, but the data have the class {label}"
            raise unfit(message, "folders are classes in the order of their names, or by number")
        order = np.argsort(-scores, kind="stable")[:5]
        right, right_5, total = right + (order[0] == label), right_5 + (label in order), total + 1
        if count is not None:
            count(number, len(files))
    return Score(side.title, float(right) / total, total, {"top-5": float(right_5) / total})


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


class _Text:
    """A model of text with its tokenizer, and its inputs by name."""

    def __init__(self, side: Side, options: Mapping[str, Any]) -> None:
        self.side, self.names = side, [info.name for info in side.inputs]
        if "input_ids" not in self.names:
            raise UsageError("TM6003", f"{side.title} has no input called input_ids")
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise unfit(
                "texts require tokenizers, which is not installed", "pip install tokenizers"
            ) from error
        self.tokenizer = Tokenizer.from_file(str(_next_to(side, "tokenizer.json", options["tokenizer"])))
        self.tokenizer.no_padding()
        sizes = (side.inputs[self.names.index("input_ids")].shape or ())[1:]
        self.length = next((each for each in sizes if isinstance(each, int)), 0)

    def tokens(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text).ids)

    def outputs(self, tokens: Sequence[int]) -> dict[str, np.ndarray]:
        """Returns the outputs for a list of tokens without a cache."""
        side, count = self.side, len(tokens)
        filled = {
            "input_ids": np.array([tokens]),
            "attention_mask": np.ones((1, count)),
            "position_ids": np.arange(count)[None],
            "token_type_ids": np.zeros((1, count)),
        }
        arrays = []
        for info in side.inputs:
            dtype = np.dtype(info.dtype or "float32")
            if info.name in filled:
                arrays.append(filled[info.name].astype(dtype))
            elif info.name.startswith("past_key_values."):
                shape = list(info.shape or ())
                # the batch is one, and a second open size the length
                sizes = [each if isinstance(each, int) else 0 if at else 1 for at, each in enumerate(shape)]
                arrays.append(np.zeros(sizes, dtype))
            else:
                raise UsageError("TM6003", f"no text fills the input {info.name} of {side.title}")
        return dict(zip(side.output_names, side.outputs(arrays), strict=True))


def _next_to(side: Side, name: str, given: str | None) -> Path:
    """Returns a file of a package: the given one, or that in the folder of the model or the one above."""
    if given is not None:
        return Path(given) / name if Path(given).is_dir() else Path(given)
    folder = Path(side.title).parent
    for each in (folder, folder.parent):
        if (each / name).is_file():
            return each / name
    raise unfit(f"there is no {name} next to {side.title}", "name the file or its folder with --tokenizer")


def _perplexity(side: Side, data: Path, options: Mapping[str, Any]) -> Score:
    """A text; the model predicts each of its tokens from those before it, in windows."""
    model, count = _Text(side, options), counter("compare")
    tokens = model.tokens(data.read_text(encoding="utf-8"))
    window = model.length or options["window"]
    total, scored = 0.0, 0
    starts = range(0, len(tokens) - (window - 1 if model.length else 1), window)
    for number, start in enumerate(starts, 1):
        part = tokens[start : start + window]
        outputs = model.outputs(part)
        logits = outputs.get("logits", next(iter(outputs.values())))[0]
        total -= float(log_likelihoods(logits[:-1], np.array(part[1:])).sum())
        scored += len(part) - 1
        if count is not None:
            count(number, len(starts))
    if not scored:
        raise unfit(f"{data} has {counted(len(tokens), 'token')}, fewer than a window", "use a longer text")
    return Score(side.title, math.exp(total / scored), scored, {"loss": total / scored})


def _similarity(side: Side, data: Path, options: Mapping[str, Any]) -> Score:
    """A CSV or TSV of two sentences and their similarity, compared with the cosine of their vectors."""
    model, rows = _Text(side, options), _rows(data, 3)
    rows = rows if _is_number(rows[0][2]) else rows[1:]
    cosines = []
    for one, other, *_ in rows:
        a, b = (_vector(model.outputs(model.tokens(text))) for text in (one, other))
        cosines.append(float(a @ b / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-30)))
    return Score(side.title, spearman(cosines, [float(row[2]) for row in rows]), len(rows))


def _vector(outputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns the vector of a text: an output of vectors, or the mean over the tokens."""
    vectors = [array for array in outputs.values() if array.ndim == 2]
    array = outputs.get("sentence_embedding", vectors[0] if vectors else next(iter(outputs.values())))
    return np.asarray(array[0] if array.ndim == 2 else array[0].mean(axis=0), np.float64)


def _words(side: Side, data: Path, options: Mapping[str, Any]) -> Score:
    """A CSV or TSV of WAV files and their texts, transcribed by a model of CTC."""
    if len(side.inputs) != 1:
        raise UsageError("TM6003", f"{side.title} takes {len(side.inputs)} inputs, not one of samples")
    text_of = transcriber(_next_to(side, "vocab.json", options["tokenizer"]))
    rows, errors, words = _rows(data, 2), 0, 0
    rows = rows if (data.parent / rows[0][0]).exists() else rows[1:]
    for name, text, *_ in rows:
        sound = read_wave(data.parent / name, options["sampling_rate"])
        sound = (sound - sound.mean()) / np.sqrt(sound.var() + 1e-7)  # as Wav2Vec2's feature extractor
        found = text_of(np.asarray(side.outputs([sound[None].astype(np.float32)])[0])[0])
        wanted = text.lower().split()
        errors, words = errors + word_errors(wanted, found.lower().split()), words + len(wanted)
    return Score(side.title, errors / max(words, 1), len(rows), {"errors": errors, "words": words})


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


TASKS = {
    "top-1": Task("accuracy", "sample", True, _top_1),
    "map": Task("mAP", "image", True, _boxes),
    "wer": Task("WER", "recording", False, _words),
    "perplexity": Task("perplexity", "token", False, _perplexity),
    "similarity": Task("Spearman", "pair", True, _similarity),
}
