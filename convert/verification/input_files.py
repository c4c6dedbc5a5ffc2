"""Reads the arrays of an .npz file for the inputs of a model."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from tmconvert.errors import UsageError
from tmconvert.formats.mapped_file import open_regular
from tmconvert.frontends.shared.array_files import UNREADABLE, array_of
from tmconvert.ir.extract import by_matching_name

if TYPE_CHECKING:
    import numpy as np


def read_inputs(
    path: str | PathLike[str], names: Sequence[str], renamed: Sequence[str] = (), *, in_order: bool = False
) -> list[np.ndarray]:
    """Reads the arrays of an .npz file for the inputs ``names``, or for their names in the written file,
    ``renamed``, in that order.

    Arrays may also be named in0, in1, ...; with ``in_order`` they may have any names, if there is one for
    each input. Raises UsageError TM6011.
    """
    import numpy as np

    with _faults(path), open_regular(path) as file:
        archive = np.load(file, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise _unusable(path, "it is one array (.npy)")
        with archive:
            numbered = [f"in{index}" for index in range(len(names))]
            known = list(dict.fromkeys([*names, *renamed]))
            stored = by_matching_name({name: name for name in archive.files}, known)
            choices = (each for each in (names, renamed, numbered) if set(each) & set(stored))
            is_ordered = in_order and len(archive.files) == len(names)
            keys = next(choices, list(stored) if is_ordered else numbered)
            missing = [
                name if key == name else f"{name} ({key})"
                for name, key in zip(names, keys, strict=True)
                if key not in stored
            ]
            if missing:
                has = ", ".join(archive.files) or "nothing"
                raise _unusable(path, f"no array for the input {', '.join(missing)}; it has {has}")
            return [array_of(archive, stored[key]) for key in keys]


def given_inputs(given: Any, names: Sequence[str], renamed: Sequence[str]) -> Sequence[np.ndarray]:
    """Returns inputs to verify with, from an .npz file, by name, or in order. Raises UsageError TM6011."""
    if isinstance(given, (str, PathLike)):
        return read_inputs(given, names, renamed)
    if not isinstance(given, Mapping):
        return list(given)
    stored = by_matching_name({name: name for name in given}, [*names, *renamed])
    pairs = list(zip(names, renamed, strict=True))
    missing = [pair[0] for pair in pairs if not set(pair) & set(stored)]
    if missing:
        raise _unusable("verify_with", f"no array for the input {', '.join(missing)}")
    return [given[stored[one if one in stored else other]] for one, other in pairs]


@contextlib.contextmanager
def _faults(path: str | PathLike[str]) -> Iterator[None]:
    """Converts errors of NumPy and zipfile for a missing or malformed file to UsageError."""
    try:
        yield
    except UNREADABLE as error:
        reason = getattr(error, "strerror", None)
        if reason is None and "allow_pickle" in str(error):
            reason = "it holds Python objects, which are never loaded, or is not an .npz file"
        if isinstance(error, IsADirectoryError):
            reason = "it is a folder, and a run takes one file"
        raise _unusable(path, reason or str(error) or type(error).__name__) from error


def _unusable(path: str | PathLike[str], reason: str) -> UsageError:
    return UsageError(
        "TM6011",
        f"cannot use the inputs in {path}: {reason}",
        notes=[
            ("help", "pass an .npz file of numpy.savez, with arrays named as the inputs, or in0, in1, ...")
        ],
    )
