"""Makes a package: one trace, its conversions, the files around them, and the check by the consumer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmconvert.errors import UsageError
from tmconvert.frontends.torch.entry import trace_pretrained
from tmconvert.frontends.torch.request import Tracing
from tmconvert.output.new_folder import refuse_existing, staged_folder
from tmconvert.packaging.kind import DTYPES, INT4, Converted, Kind, ModelFile, refused
from tmconvert.packaging.registry import kind_named
from tmconvert.packaging.report import PackageReport
from tmconvert.packaging.source import PackageSource, find_source

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report
    from tmconvert.ir import TracedModule

Convert = Callable[..., "Report"]  # to_onnx
DEFAULT_DTYPES = ("fp32", "fp16", "q8", "q4")


def make_package(
    source: str,
    output: Path,
    kind_name: str,
    convert: Convert,
    *,
    options: Mapping[str, Any],
    dtypes: Sequence[str] | None,
    download: bool,
    verify: bool,
) -> PackageReport:
    """Writes the package ``output``, which must not exist; ``options`` are those of ``convert``.

    The folder gets its name when all its files are written and, with ``verify``, its consumer has opened it.
    Raises UsageError TM6002, LoadError, UnsupportedError, VerificationError, WriteError.
    """
    kind = kind_named(kind_name)
    files = _model_files(kind, options, dtypes)
    refuse_existing(output)
    found = find_source(source, download=download)
    reason = kind.refusal(found)
    if reason:
        raise refused(kind.name, found, reason)
    with staged_folder(output) as staged:
        pooling = kind.pooling(found)
        module = trace_pretrained(str(found.folder), Tracing(), for_package=True, pooling=pooling)
        made = _converted(found, module, files, staged, convert, verify=verify)
        for name, content in found.copied_files():
            (staged / name).write_bytes(content)
        kind.write(made)
        checks = kind.check(made) if verify else []
    return PackageReport(
        output,
        kind.name,
        [(name, (output / name).stat().st_size) for name in _names(output)],
        [(file.path, report.max_error) for file, report in made.files],
        checks,
        list(_notes(made, verify=verify)),
    )


def _model_files(kind: Kind, options: Mapping[str, Any], dtypes: Sequence[str] | None) -> list[ModelFile]:
    """Returns the model files with the options of their conversions. Raises UsageError TM6002."""
    chosen = {name: value for name, value in options.items() if value is not None}
    if not kind.has_dtypes:
        if dtypes is not None:
            raise UsageError("TM6002", f"{kind.name} opens one model file: use weights, not dtypes")
        if chosen.get("weights") == "int4":
            chosen = {**INT4, **chosen}
        return [ModelFile(kind.path(""), chosen)]
    for name in ("weights", "float_type"):
        if name in chosen:
            raise UsageError("TM6002", f"{kind.name} opens a file by data type: use dtypes, not {name}")
    unknown = [each for each in dtypes or () if each not in DTYPES]
    if unknown or (dtypes is not None and not dtypes):
        raise UsageError("TM6002", f"unknown data types {unknown}: use some of {', '.join(DTYPES)}")
    # in the order of the table: the first one is the most exact
    wanted = DEFAULT_DTYPES if dtypes is None else [each for each in DTYPES if each in dtypes]
    return [ModelFile(kind.path(each), {**DTYPES[each], **chosen}) for each in wanted]


def _converted(
    source: PackageSource,
    module: TracedModule,
    files: Sequence[ModelFile],
    staged: Path,
    convert: Convert,
    *,
    verify: bool,
) -> Converted:
    reports = []
    for file in files:
        path = staged / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        reports.append((file, convert(module, path, names="optimum", verify=verify, **file.options)))
    return Converted(source, module, reports, staged)


def _names(folder: Path) -> list[str]:
    """Returns the paths of all files in a folder, sorted."""
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


def _notes(made: Converted, *, verify: bool) -> Iterator[str]:
    seen: set[str] = set()
    for file, report in made.files:
        for note in report.notes:
            if note not in seen:
                seen.add(note)
                yield f"{file.path}: {note}"
        if verify and not report.verified:
            yield f"{file.path} was not compared with PyTorch: the outputs, or ONNX Runtime, are missing"
