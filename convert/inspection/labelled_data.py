"""Labelled data of tasks: tables of files and texts, and folders of classes."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from tmconvert.calibration.data import ARRAYS
from tmconvert.calibration.images import IMAGES
from tmconvert.calibration.unfit import unfit
from tmconvert.conversion.format_numbers import counted

_COLUMNS = "the columns are described in `tmconvert evaluate --help`"


def table_rows(path: Path, width: int, is_data: Callable[[Sequence[str]], bool]) -> list[list[str]]:
    """Returns the rows of a CSV or TSV file with ``width`` columns or more, less a first one of names.

    The first row has names where it is no data. Without one there are exactly ``width`` columns, since a
    text with a comma that is not quoted would lose its end. Raises UsageError TM6033.
    """
    delimiter = "\t" if path.suffix.lower() in (".tsv", ".txt") else ","
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise unfit(f"{path} cannot be read as a table: {error}", "use UTF-8") from error
    if not rows or len(rows[0]) < width:
        raise unfit(f"{path} has {'fewer columns than ' + str(width) if rows else 'no rows'}", _COLUMNS)
    has_names = not is_data(rows[0])
    columns, found = len(rows[0]) if has_names else width, rows[has_names:]
    for number, row in enumerate(found, 1 + has_names):
        if len(row) != columns:
            how = f"row {number} has {counted(len(row), 'column')}, not {columns}"
            raise unfit(f"{path}: {how}", f"put texts with commas into quotes; {_COLUMNS}")
        if not is_data(row):
            raise unfit(f"{path}: row {number} has no data: {','.join(row):.100}", _COLUMNS)
    if not found:
        raise unfit(f"{path} has no rows after the names of its columns", _COLUMNS)
    return found


def labelled_files(data: Path) -> tuple[list[tuple[Path, int]], int | None]:
    """Returns files with the indices of their classes, and the number of classes that have names.

    Classes are those of sorted folders, or numbers that their names are; the number is None for these.
    Raises UsageError TM6033 for files without a class.
    """
    if data.is_dir():
        folders = [each for each in sorted(data.iterdir()) if each.is_dir() and each.name[0] != "."]
        pairs = [(file, each.name) for each in folders for file in _samples_in(each)]
        without = [each.name for each in _samples_in(data) if each.parent == data]
        if pairs and without:
            how = f"{counted(len(without), 'file')} of {data} in no folder of a class: {without[0]}"
            raise unfit(how, "make a folder for each class")
        names = [each.name for each in folders]
    else:
        rows = table_rows(data, 2, lambda row: Path(row[0]).suffix.lower() in IMAGES | ARRAYS)
        pairs = [(data.parent / name, label.strip()) for name, label, *_ in rows]
        names = sorted({label for _, label in pairs})
    if not pairs:
        raise unfit(f"{data} has no files in folders of classes", "make a folder for each class, or a CSV")
    if "" in names:
        raise unfit(f"{data} has a file without a class", _COLUMNS)
    are_numbers = all(each.isascii() and each.isdecimal() for each in names)
    indices = {name: int(name) if are_numbers else at for at, name in enumerate(names)}
    return [(path, indices[label]) for path, label in pairs], None if are_numbers else len(names)


def _samples_in(folder: Path) -> list[Path]:
    found = (each for each in sorted(folder.rglob("*")) if each.suffix.lower() in IMAGES | ARRAYS)
    return [
        each for each in found if not any(part.startswith(".") for part in each.relative_to(folder).parts)
    ]
