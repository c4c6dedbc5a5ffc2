"""Parses example inputs in text form: ``float32[1,3,224,224]``, ``mask=bool[1,16]``, ``photos.npz``."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tmconvert.errors import UsageError
from tmconvert.formats.mapped_file import open_regular
from tmconvert.frontends.shared.array_files import array_of

Examples = tuple[tuple[Any, ...], dict[str, Any]]

FORMS = "float32[1,3,224,224], int64[1,16]<1000, mask=bool[1,16], FILE.npz, FILE.npy or name=3"
_NAMED = re.compile(r"(?P<name>[A-Za-z_][\w.]*)=(?P<value>.*)", re.DOTALL)
_RANDOM = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d\s,]*)\]\s*(<\s*(?P<limit>\d+))?")
_BELOW = 2  # integers are 0 and 1 unless a limit is given: valid as indices of anything
_DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
DTYPES = tuple(_DTYPES.split())


def is_example(text: str) -> bool:
    """Whether a text describes an example input, and is not the path of a file.

    >>> is_example("float32[1,3,8,8]"), is_example("x=float32[2]"), is_example("x.npz")
    (True, True, False)
    """
    match = _NAMED.fullmatch(text)
    random = _RANDOM.fullmatch((match["value"] if match else text).strip())
    return match is not None or (random is not None and random["dtype"] in DTYPES)


def parse_examples(texts: Sequence[str]) -> Examples:
    """Returns positional and keyword arguments: arrays, or Python numbers and strings.

    Random arrays are the same each time: floats standard normal, integers below their limit. The
    arrays of an npz file are keyword arguments by their names, positional ones where these are ``in0``,
    ``in1``, ... or ``arr_0``, ... Raises UsageError TM6011, TM6015.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for index, text in enumerate(texts):
        match = _NAMED.fullmatch(text)
        if match is not None:
            kwargs[match["name"]] = _value(match["value"], text, index)
        elif text.endswith(".npz"):
            positional, named = _archive(text)
            args += positional
            kwargs |= named
        else:
            args.append(_value(text, text, index))
    return tuple(args), kwargs


def _value(word: str, text: str, seed: int) -> Any:
    if word.endswith(".npy"):
        array = _loaded(word)
        if isinstance(array, np.ndarray):
            return array
        raise _unusable(word, "it is an archive of several arrays")
    match = _RANDOM.fullmatch(word.strip())
    if match is not None and match["dtype"] in DTYPES:
        shape = tuple(int(size) for size in match["shape"].split(",") if size.strip())
        return _random(match["dtype"], shape, match["limit"], np.random.default_rng(seed))
    try:
        value = ast.literal_eval(word)
    except (ValueError, SyntaxError):
        value = ()
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    raise UsageError(
        "TM6015",
        f"{text!r} is not a valid example input",
        notes=[("help", f"write {FORMS}"), ("dtypes", ", ".join(DTYPES))],
    )


def _random(dtype: str, shape: tuple[int, ...], limit: str | None, random: np.random.Generator) -> np.ndarray:
    if dtype.startswith(("float", "bfloat")) and limit is None:
        wide: np.ndarray = random.standard_normal(shape)
    elif dtype.startswith("complex") and limit is None:
        wide = random.standard_normal(shape) + 1j * random.standard_normal(shape)
    else:
        wide = random.integers(0, _BELOW if limit is None else max(int(limit), 1), shape)
    return np.asarray(wide).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def _archive(path: str) -> tuple[list[Any], dict[str, Any]]:
    archive = _loaded(path)
    if isinstance(archive, np.ndarray):
        return [archive], {}
    for pattern in ("in{}", "arr_{}"):
        names = [pattern.format(number) for number in range(len(archive))]
        if set(names) == set(archive):
            return [archive[name] for name in names], {}
    return [], archive


def _loaded(path: str) -> Any:
    """Returns the array of an npy file, or a dict of those of an npz file."""
    try:
        with open_regular(path) as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return loaded
            with loaded:
                return {name: array_of(loaded, name) for name in loaded.files}
    except Exception as error:  # NumPy and zipfile raise many kinds for a malformed file
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise _unusable(path, reason) from error


def _unusable(path: str, reason: str) -> UsageError:
    return UsageError(
        "TM6011",
        f"cannot use the inputs in {path}: {reason}",
        notes=[("help", "pass a file of numpy.save or numpy.savez without Python objects")],
    )
