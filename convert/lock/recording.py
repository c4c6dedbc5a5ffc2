"""Records a conversion in a lock."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tmconvert.conversion.options.commands import conversion_options
from tmconvert.frontends.torch.entry import is_factory
from tmconvert.inspection.environment import environment
from tmconvert.lock.arguments import recorded_arguments
from tmconvert.lock.digests import relative_path
from tmconvert.lock.lock_file import MOST_VALUES, Lock, digests, versions
from tmconvert.lock.opened_files import OpenedFiles
from tmconvert.symbolics.plugins import loaded_files

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report


STEPS = 2.0  # by which an output in integers may differ on another processor


class LockRecorder:
    """Writes the lock at ``path`` for the conversion that runs in its block.

    >>> with recording_lock("net.lock", "onnx", "net.tm", {}) as recorder:  # doctest: +SKIP
    ...     recorder.report = to_onnx("net.tm", "net.onnx")
    """

    def __init__(self, path: Path, target: str, model: object, arguments: Mapping[str, Any]) -> None:
        self.path, self.target, self.model, self.arguments = path, target, model, arguments
        self.report: Report | None = None
        self.opened = OpenedFiles()

    def write(self) -> None:
        """Writes the lock of a conversion that wrote files; nothing for one that was stopped."""
        report = self.report
        if report is None or report.stopped:
            return
        folder, arrays = self.path.parent, dict[str, np.ndarray]()
        options = conversion_options(self.target)
        arguments, unrecorded = recorded_arguments(self.arguments, options, folder, arrays)
        tolerances = self._add_case(report, arrays)
        found = report.verification
        lock = Lock(
            target=self.target,
            model=self._model(folder),
            object="" if self._is_named() else type(self.model).__qualname__,
            arguments=arguments,
            unrecorded=unrecorded,
            plugins=[relative_path(Path(each), folder) for each in loaded_files()],
            sources=digests(self._sources(report), folder),
            outputs=digests(report.paths, folder),
            versions=versions(),
            processor=sorted(environment().features or ()),
            verified_by="" if found is None else found.runtime,
            reference="" if found is None else found.reference,
            tolerances=tolerances,
        )
        lock.write(self.path, arrays)

    def _sources(self, report: Report) -> list[str]:
        """Returns the paths of all files that were read."""
        opened = self.opened.paths([*map(str, report.paths), str(self.path)])
        own = [os.fspath(self.model)] if isinstance(self.model, (str, PathLike)) else []
        found = {*opened, *map(os.path.realpath, own)}
        return sorted(each for each in found if Path(each).is_file())

    def _is_named(self) -> bool:
        return isinstance(self.model, (str, PathLike))

    def _model(self, folder: Path) -> str | None:
        if not isinstance(self.model, (str, PathLike)):
            return None
        name = os.fspath(self.model)
        return name if is_factory(name) or not Path(name).exists() else relative_path(Path(name), folder)

    def _add_case(self, report: Report, arrays: dict[str, np.ndarray]) -> dict[str, float]:
        """Adds the inputs and expected outputs of the verification, and returns the tolerances by output."""
        found, case = report.verification, report.case
        if (
            found is None
            or case is None
            or sum(each.size for part in case for each in part.values()) > MOST_VALUES
        ):
            return {}
        for prefix, part in zip(("in", "out"), case, strict=True):
            arrays.update({f"{prefix}.{name}": each for name, each in part.items()})
        worst = {each.output: max(each.tolerance, 2 * each.max_error) for each in found.comparisons}
        if not report.settings.get("integers"):
            return {name: worst.get(name, 0.0) for name in case[1]}
        return {name: STEPS if each.dtype.kind in "iu" else STEPS / 127 for name, each in case[1].items()}


@contextmanager
def recording_lock(
    path: str | PathLike[str], target: str, model: object, arguments: Mapping[str, Any]
) -> Iterator[LockRecorder]:
    """Hears which files the conversion of the block opens, and writes the lock after it."""
    recorder = LockRecorder(Path(path), target, model, arguments)
    with recorder.opened:
        yield recorder
    recorder.write()
