"""The names of targets, and the words for their versions in messages."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from tmconvert.symbolics.entry_points import installed

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "tmconvert.targets"


class TargetWords(NamedTuple):
    """Words of messages for a target, for a version of it, and for the option that chooses the version."""

    title: str
    version: str = "version {}"
    option: str = "version {}"


# the targets that have symbolics of tmconvert's own
BUILT_IN = {
    "onnx": TargetWords("ONNX", "opset {}", "--opset {}"),
    "tflite": TargetWords("TFLite", "runtime 2.{}", "--runtime 2.{}"),
    "caffe": TargetWords("Caffe"),
}
TARGETS = tuple(BUILT_IN)
_others: dict[str, TargetWords] = {}


def words_of(target: str) -> TargetWords:
    """The words for a target; for one that is not loaded, its name is the title."""
    return BUILT_IN.get(target) or _others.get(target) or TargetWords(target)


def add_target(name: str, title: str) -> None:
    """Makes the title of a target of another package known to messages, and its name to symbolics."""
    _others[name] = TargetWords(title)


@cache
def installed_targets() -> dict[str, EntryPoint]:
    """The entry points of other packages in the group ``tmconvert.targets``, by name of the target."""
    return {point.name: point for point in installed(GROUP) if point.name not in BUILT_IN}


def known_targets() -> list[str]:
    """The names of all targets: built in, installed, and registered in this process."""
    return list(dict.fromkeys([*TARGETS, *installed_targets(), *_others]))
