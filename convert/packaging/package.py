"""Makes a package: one trace, its conversions, the files around them, and the check by the consumer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tmconvert.errors import UsageError
from tmconvert.output.new_folder import refuse_existing, staged_folder
from tmconvert.packaging.kind import (
    DTYPES,
    INT4,
    STATES,
    Converted,
    Kind,
    Lengths,
    ModelFile,
    Modules,
    refused,
)
from tmconvert.packaging.registry import kind_named
from tmconvert.packaging.report import PackageReport
from tmconvert.packaging.tasks import ONCE, refusal_of_task
from tmconvert.packaging.trial import check_package

if TYPE_CHECKING:
    from tmconvert.conversion.report import Report

Convert = Callable[..., "Report"]  # to_onnx, to_tflite


def make_package(
    source: str,
    output: Path,
    kind_name: str,
    converters: Mapping[str, Convert],
    *,
    options: Mapping[str, Any],
    dtypes: Sequence[str] | None,
    lengths: Lengths,
    activations: str | None,
    download: bool,
    allow_code: bool,
    verify: bool,
) -> PackageReport:
    """Writes the package ``output``, which must not exist; ``options`` are those of conversions, by the
    functions ``converters`` by target.

    The folder gets its name when all its files are written and, with ``verify``, its consumer has opened it.
    Raises UsageError TM6002, LoadError, UnsupportedError, VerificationError, WriteError.
    """
    kind = kind_named(kind_name)
    chosen = _options_by_dtype(kind, options, dtypes)
    takes_activations = kind.takes_activations and chosen.get("", {}).get("weights") == "int4"
    if activations and not takes_activations:
        raise UsageError(
            "TM6002", "activations are rounded with int4 weights for onnxruntime-genai: omit them"
        )
    if not kind.takes_lengths and lengths != Lengths():
        raise UsageError("TM6002", f"{kind.name} opens files with open sizes: omit the lengths")
    refuse_existing(output)
    found = kind.find(source, download=download, allow_code=allow_code)
    task = kind.task(found)
    reason = refusal_of_task(task, tuple(kind.files)) or kind.refusal(found)
    if reason:
        raise refused(kind, found, reason)
    files = [
        ModelFile(kind.path(task, part, dtype), each, part, dtype)
        for dtype, each in chosen.items()
        for part in kind.files[task]
    ]
    with staged_folder(output) as staged:
        modules = kind.trace(found, task, *([lengths] if kind.takes_lengths else []))
        reports = _convert_files(kind.target, modules, files, staged, converters[kind.target], verify)
        rounds = takes_activations and activations != "float32"
        made = Converted(found, task, modules, reports, staged, rounds_activations=rounds)
        refuse_unknown_states(kind, made)
        for name, content in found.copied_files() if kind.copies_files else ():
            (staged / name).write_bytes(content)
        note = kind.write(made)
        checks = check_package(kind, made) if verify else []
    return PackageReport(
        output,
        kind.name,
        [(name, (output / name).stat().st_size) for name in _names(output)],
        [(file.path, report.max_error) for file, report in made.files],
        checks,
        [*_notes(made, verify=verify), *([note] if note else [])],
    )


def _options_by_dtype(
    kind: Kind, options: Mapping[str, Any], dtypes: Sequence[str] | None
) -> dict[str, dict[str, Any]]:
    """Returns the options of conversions by data type, the most exact first. Raises UsageError TM6002."""
    chosen = {name: value for name, value in options.items() if value is not None}
    chosen |= {name: value for name, value in kind.options.items() if not chosen.get(name)}
    if kind.target == "tflite" and (others := sorted(chosen.keys() - {"weights"})):
        raise UsageError("TM6002", f"{kind.name} opens TFLite files: omit {', '.join(others)}")
    if not kind.suffixes:
        if dtypes is not None:
            raise UsageError("TM6002", f"{kind.name} opens files of one data type: use weights, not dtypes")
        takes_int4 = kind.target == "onnx" and chosen.get("weights") == "int4"
        return {"": {**(INT4 if takes_int4 else {}), **chosen}}
    for name in ("weights", "float_type"):
        if name in chosen:
            raise UsageError("TM6002", f"{kind.name} opens a file by data type: use dtypes, not {name}")
    unknown = [each for each in dtypes or () if each not in kind.suffixes]
    if unknown or (dtypes is not None and not dtypes):
        raise UsageError("TM6002", f"unknown data types {unknown}: use some of {', '.join(kind.suffixes)}")
    return {each: {**DTYPES[each], **chosen} for each in kind.suffixes if dtypes is None or each in dtypes}


def refuse_unknown_states(kind: Kind, made: Converted) -> None:
    """Raises UnsupportedError TM2032 for states of a decoder that no name of optimum exists for."""
    inputs = [each["name"] for each in made.files[-1][1].inputs]
    others = ("cache_",) if kind.takes_states else ("cache_", *STATES)
    unknown = [name for name in inputs if name.startswith(others)]
    if made.task != ONCE and unknown:
        listed = ", ".join(unknown[:3])
        raise refused(kind, made.source, f"it has no names for the states of its layers: {listed}")


def _convert_files(
    target: str,
    modules: Modules,
    files: Sequence[ModelFile],
    staged: Path,
    convert: Convert,
    verify: bool,
) -> list[tuple[ModelFile, Report]]:
    reports = []
    for file in files:
        path = staged / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        if target == "tflite":
            report = convert(dict(modules), path, verify=verify, **file.options)
        else:
            report = convert(modules[file.part], path, names="optimum", verify=verify, **file.options)
        reports.append((file, report))
    return reports


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
            yield f"{file.path} was not compared with PyTorch: the outputs, or the runtime, are missing"
