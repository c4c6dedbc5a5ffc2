"""The record of finished conversions, by digests: what is finished is not done again.

The record is the JSON file ``RECORD`` in the folder of the outputs. An entry holds for one conversion the
SHA-256 of everything that decides its files (version, arguments, contents of the model, of files next to it
with the same stem, and of the files in its options), the digests of the files that the conversion opened, and
those of the files that it wrote. It is sealed with a key that this user's computer keeps: an entry that came
with a stranger's folder is not believed, and no file that it names is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tmconvert._version import __version__
from tmconvert.cli.batch import sealed
from tmconvert.cli.batch.work import Conversion, ModelWork, Outcome
from tmconvert.errors import WriteError
from tmconvert.formats.mapped_file import open_regular
from tmconvert.frontends.torch.entry import is_factory
from tmconvert.frontends.torch.hub_cache import cached_folder
from tmconvert.lock.digests import file_digest, relative_path
from tmconvert.output.atomic import staged_outputs

RECORD = "tmconvert-finished.json"
MOST_BYTES = 1 << 26  # of a record
SHARE = 0.02  # of the time of a batch, for writing records


class _Record:
    """The entries of one record, a line each, which is encoded once, however often the record is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.entries = _read(path)
        self._texts: dict[str, str] = {}

    def add(self, name: str, entry: dict[str, Any]) -> None:
        self.entries[name] = entry
        self._texts.pop(name, None)

    def write(self) -> None:
        """Writes the document; a folder that is not writable is ignored."""
        for name in self.entries.keys() - self._texts.keys():
            self._texts[name] = json.dumps({name: self.entries[name]}, sort_keys=True)[1:-1]
        entries = ",\n".join(self._texts[name] for name in sorted(self._texts))
        text = f'{{"version": 1, "conversions": {{\n{entries}\n}}}}\n'
        with contextlib.suppress(WriteError), staged_outputs(self.path) as (output,):
            output.file.write(text.encode())
            output.commit()


class Finished:
    """The conversions that are finished, of one batch.

    Their records are written while the batch runs, so that little is done again after a power failure: as
    often as takes a small part of the time. They are complete at the end of the context, however it ends.
    """

    def __init__(self, *, is_read: bool = True) -> None:
        self.is_read = is_read
        self.digests: dict[Path, str] = {}
        self._records: dict[Path, _Record] = {}
        self._unwritten: dict[Path, _Record] = {}
        self._start = time.time()
        self._due = 0.0  # when records are written next

    def __enter__(self) -> Finished:
        return self

    def __exit__(self, *_: object) -> None:
        self.write()

    def unfinished(self, work: ModelWork) -> tuple[ModelWork, list[Outcome]]:
        """Splits work into what is to be done, and the outcomes of what is finished."""
        left, done = [], []
        for conversion in work.conversions:
            entry = self._record(conversion).entries.get(_name(conversion)) if self.is_read else None
            if entry is not None and self._is_current(work, conversion, entry):
                paths, report = conversion.paths, entry.get("report")
                done.append(Outcome(work.model, conversion.target, paths, 0, 0.0, report, is_unchanged=True))
            else:
                left.append(conversion)
        return work._replace(conversions=tuple(left)), done

    def add(self, work: ModelWork, outcome: Outcome) -> None:
        """Records a conversion that ended well."""
        conversion = next(each for each in work.conversions if each.paths == outcome.paths)
        key = self._key(work, conversion)
        if outcome.status or outcome.report is None or key is None:
            return
        folder = _record_of(conversion).parent
        files, sources = (
            {relative_path(Path(path), folder): file_digest(Path(path)) for path in paths}
            for paths in (outcome.report["paths"], outcome.sources)
        )
        if any(_is_newer(path, self._start) for path in outcome.sources):
            return  # it may have changed after it was read
        record = self._record(conversion)
        entry = {"key": key, "files": files, "sources": sources, "report": outcome.report}
        record.add(_name(conversion), sealed.with_seal(entry))
        self._unwritten[record.path] = record
        if time.monotonic() >= self._due:
            self.write()

    def write(self) -> None:
        """Writes all records that have new entries."""
        start = time.monotonic()
        for record in self._unwritten.values():
            record.write()
        self._unwritten.clear()
        end = time.monotonic()
        self._due = end + (end - start) / SHARE

    def _record(self, conversion: Conversion) -> _Record:
        path = _record_of(conversion)
        if path not in self._records:
            self._records[path] = _Record(path)
        return self._records[path]

    def _is_current(self, work: ModelWork, conversion: Conversion, entry: Any) -> bool:
        if not isinstance(entry, dict) or not sealed.is_ours(entry):
            return False
        files = entry.get("files")
        if not files or entry.get("key") != self._key(work, conversion):
            return False
        folder = _record_of(conversion).parent
        sources = entry.get("sources", {})
        return all(file_digest(folder / path) == digest for path, digest in (files | sources).items())

    def _key(self, work: ModelWork, conversion: Conversion) -> str | None:
        """Returns the digest of all that decides the files; None for a factory, whose code is not known."""
        if is_factory(work.model):
            return None
        model = Path(work.model)
        if not os.path.exists(model):  # noqa: PTH110
            model = cached_folder(work.model) or model
        folder = _record_of(conversion).parent  # a path starts there, wherever the command is run
        names = [Path(path).name for path in conversion.paths]
        texts = [__version__, conversion.target, *names, *conversion.flags]
        made = hashlib.sha256(json.dumps(texts).encode())
        siblings = sorted(
            each for each in model.parent.glob(f"{glob_escaped(model.stem)}*") if each.is_file()
        )
        siblings += [model] if model.is_dir() else []
        outputs = {Path(path).absolute() for path in conversion.paths}
        sources = [each for each in siblings if _is_source(each, model, outputs)]
        for path in [*sources, *map(Path, conversion.flags)]:
            for file in _files(path):
                if file not in self.digests:
                    self.digests[file] = file_digest(file) or ""
                made.update(f"{relative_path(file, folder)}:{self.digests[file]};".encode())
        return made.hexdigest()


def glob_escaped(text: str) -> str:
    """Returns a pattern that only ``text`` itself fits."""
    return "".join(f"[{each}]" if each in "*?[" else each for each in text)


def _is_source(path: Path, model: Path, outputs: set[Path]) -> bool:
    """Whether a file belongs to a model: it is the model, or one of its weights next to it."""
    has_weights = path.suffix in (".caffemodel", ".data", ".json") or path.name.endswith(".onnx.data")
    return path == model or (has_weights and path.absolute() not in outputs)


def _files(path: Path) -> Iterator[Path]:
    if os.path.isdir(path):  # noqa: PTH112  (a method of Path raises for a text that is too long)
        yield from sorted(each for each in path.rglob("*") if each.is_file())
    elif os.path.isfile(path):  # noqa: PTH113
        yield path


def _name(conversion: Conversion) -> str:
    return " ".join((conversion.target, *(Path(path).name for path in conversion.paths)))


def _record_of(conversion: Conversion) -> Path:
    return Path(conversion.paths[0]).parent / RECORD


def _read(path: Path) -> dict[str, Any]:
    """Returns the entries of a record; none if the file is missing or not a record."""
    try:
        with open_regular(path) as file:
            data = file.read(MOST_BYTES + 1)
        document = json.loads(data) if len(data) <= MOST_BYTES else {}
    except (OSError, ValueError, RecursionError):
        return {}
    entries = document.get("conversions") if isinstance(document, dict) else None
    return entries if isinstance(entries, dict) and document.get("version") == 1 else {}


def _is_newer(path: str, moment: float) -> bool:
    try:
        return Path(path).stat().st_mtime > moment
    except (OSError, ValueError):
        return False


def folders_of(work: Iterable[ModelWork]) -> list[Path]:
    """Returns the folders of all outputs, which are made before the first conversion."""
    return sorted({Path(path).parent for each in work for one in each.conversions for path in one.paths})
