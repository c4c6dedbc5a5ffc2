"""The result of `tmconvert rebuild`: whether files are as they were, and what is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tmconvert.inspection.environment import environment
from tmconvert.lock.digests import file_digest
from tmconvert.lock.lock_file import Lock, versions


class Difference(NamedTuple):
    """A difference from the lock: ``kind`` is source, version, processor or output."""

    kind: str
    name: str
    locked: str
    now: str

    @property
    def text(self) -> str:
        if self.kind in ("source", "output"):
            state = "differs" if self.now else "is missing"
            return (
                f"{self.kind} {self.name} {state}: SHA-256 {self.locked[:12]}, now {self.now[:12] or 'none'}"
            )
        return f"{self.kind} {self.name}: {self.locked or 'none'} then, {self.now or 'none'} now"


class Rebuilt(NamedTuple):
    """The files that were made again, and all that differs from the lock.

    >>> tmconvert.rebuild("net.onnx.lock").ok  # doctest: +SKIP
    True
    """

    paths: tuple[Path, ...]
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """Whether all files have the bytes of the lock."""
        return not any(each.kind == "output" for each in self.differences)

    def lines(self) -> Iterator[str]:
        """Returns the text of the command."""
        for path in self.paths:
            is_other = any(each.kind == "output" and each.name == path.name for each in self.differences)
            yield f"{path.name}: {'other bytes' if is_other else 'the same bytes'}"
        yield from (f"  {each.text}" for each in self.differences)

    def to_json(self) -> dict[str, object]:
        differences = [each._asdict() for each in self.differences]
        return {"ok": self.ok, "paths": [str(each) for each in self.paths], "differences": differences}


def differences_of_sources(lock: Lock, folder: Path) -> list[Difference]:
    """Returns the sources that are not those of the lock, which is in ``folder``."""
    now = {name: file_digest(folder / name) or "" for name in lock.sources}
    return _differences("source", lock.sources, now)


def differences_of_machine(lock: Lock) -> list[Difference]:
    """Returns the versions and features of the processor that are not those of the lock."""
    found = _differences("version", lock.versions, versions())
    features = sorted(environment().features or ())
    if features != sorted(lock.processor):
        found.append(Difference("processor", "features", " ".join(lock.processor), " ".join(features)))
    return found


def differences_of_outputs(lock: Lock, paths: tuple[Path, ...]) -> list[Difference]:
    """Returns the written files whose bytes are not those of the lock; files are known by their names."""
    now = {path.name: file_digest(path) or "" for path in paths}
    return _differences("output", {Path(name).name: each for name, each in lock.outputs.items()}, now)


def _differences(kind: str, locked: Mapping[str, str], now: Mapping[str, str]) -> list[Difference]:
    names = dict.fromkeys([*locked, *now])
    return [
        Difference(kind, name, locked.get(name, ""), now.get(name, ""))
        for name in names
        if locked.get(name, "") != now.get(name, "")
    ]
