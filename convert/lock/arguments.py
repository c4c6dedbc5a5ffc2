"""Arguments of a conversion as JSON, with arrays in a file of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.errors import LoadError
from tmconvert.lock.digests import relative_path
from tmconvert.targets.option import Option

# keywords that decide nothing about the files
_OF_A_CALL = frozenset(("progress", "lock", "pass_options"))
_ARRAY, _PAIRS = "$array", "$pairs"  # in place of an array, and of a dict whose keys are not texts


class Unrecordable(ValueError):
    """A value that no text can stand for, such as a function."""


def recorded_arguments(
    arguments: Mapping[str, Any], options: Iterable[Option], folder: Path, arrays: dict[str, np.ndarray]
) -> tuple[dict[str, Any], list[str]]:
    """Returns the keywords that differ from their defaults as JSON values, and the names of the others.

    Paths become relative to ``folder``; arrays go into ``arrays``.

    >>> recorded_arguments({"opset": 18, "argmax": False}, conversion_options("onnx"), Path("."), {})
    ({'opset': 18}, [])
    """
    found: dict[str, Any] = {}
    others = []
    known = {each.name: each for each in options if each.is_keyword}
    for name, value in arguments.items():
        option = known.get(name)
        is_default = value is None or value == () or (option is not None and value is option.default)
        if is_default or name in _OF_A_CALL:
            continue
        is_path = option is not None and option.kind in ("path", "data")
        try:
            if is_path and isinstance(value, (str, PathLike)):
                found[name] = relative_path(Path(value), folder)
            else:
                found[name] = _as_json(value, name, arrays)
        except Unrecordable:
            others.append(name)
    return found, others


def restored_arguments(
    recorded: Mapping[str, Any], options: Iterable[Option], folder: Path, arrays: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """Returns the keywords that ``recorded_arguments`` described. Raises LoadError TM1029."""
    paths = {each.name for each in options if each.is_keyword and each.kind in ("path", "data")}
    try:
        found = {name: _restored(value, arrays) for name, value in recorded.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise LoadError("TM1029", f"the arguments of the lock are damaged: {error}") from error
    is_path = {name: name in paths and isinstance(value, str) for name, value in found.items()}
    return {name: str(folder / value) if is_path[name] else value for name, value in found.items()}


def _as_json(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Mapping):
        pairs = [[_as_json(key, name, arrays), _as_json(each, name, arrays)] for key, each in value.items()]
        return dict(pairs) if all(isinstance(key, str) for key in value) else {_PAIRS: pairs}
    if isinstance(value, (list, tuple)):
        return [_as_json(each, name, arrays) for each in value]
    if isinstance(value, np.ndarray) or callable(getattr(value, "detach", None)):
        array = np.asarray(value.detach().cpu()) if not isinstance(value, np.ndarray) else value
        if array.dtype.kind in "biufc":
            arrays[key := f"{name}.{len(arrays)}"] = array
            return {_ARRAY: key}
    raise Unrecordable


def _restored(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if isinstance(value, list):
        return [_restored(each, arrays) for each in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {_ARRAY}:
        return arrays[value[_ARRAY]]
    if value.keys() == {_PAIRS}:
        return {_restored(key, arrays): _restored(each, arrays) for key, each in value[_PAIRS]}
    return {key: _restored(each, arrays) for key, each in value.items()}
