"""The result of `tmconvert package`: the files, and what opened them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tmconvert.conversion.format_numbers import size


class Check(NamedTuple):
    """A check of a package: who opened which file, and what came of it.

    ``left_out`` states why the consumer did not open it; empty where it did.
    """

    consumer: str
    file: str
    result: str
    left_out: str = ""

    @property
    def text(self) -> str:
        if self.left_out:
            return "; ".join(filter(None, [f"not opened in {self.consumer}: {self.left_out}", self.result]))
        return f"{self.consumer}, {self.file}: {self.result}"


class PackageReport(NamedTuple):
    """The files of a package with their sizes in bytes, the checks, and notes.

    >>> tmconvert.package("folder", "out", kind="onnxruntime-genai").opened  # doctest: +SKIP
    True
    """

    folder: Path
    kind: str
    files: Sequence[tuple[str, int]]
    errors: Sequence[tuple[str, float | None]]
    checks: Sequence[Check]
    notes: Sequence[str]

    @property
    def opened(self) -> bool:
        """Whether the consumer opened the package and computed what the model does."""
        return bool(self.checks) and not any(each.left_out for each in self.checks)

    def lines(self) -> Iterator[str]:
        """Yields the text of the command."""
        errors = dict(self.errors)
        yield f"{self.folder}  ({self.kind})"
        for name, count in self.files:
            error = errors.get(name)
            yield f"  {name}  {size(count)}" + ("" if error is None else f", max error {error:.1e}")
        yield from (f"  {each.text}" for each in self.checks)

    def to_json(self) -> dict[str, Any]:
        return {
            "path": str(self.folder),
            "kind": self.kind,
            "files": [{"name": name, "bytes": count} for name, count in self.files],
            "errors": dict(self.errors),
            "opened": self.opened,
            "checks": [each._asdict() for each in self.checks],
            "notes": list(self.notes),
        }
