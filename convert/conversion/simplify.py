"""Simplifies ONNX files: a conversion from ONNX to ONNX in which nodes that cannot be converted stay."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from tmconvert.conversion.format_numbers import counted
from tmconvert.conversion.io_description import FedTensor
from tmconvert.conversion.options.conversion import OnnxOptions
from tmconvert.conversion.options.declared import declared
from tmconvert.conversion.pipeline import convert
from tmconvert.conversion.report import Report
from tmconvert.conversion.request import ConversionRequest
from tmconvert.errors import (
    LoadError,
    TmconvertError,
    UnsupportedError,
    UsageError,
    VerificationError,
    WriteError,
)
from tmconvert.errors.values import type_and_value
from tmconvert.formats.onnx.element_types import ELEMENT_TYPES
from tmconvert.formats.onnx.external_data import is_inside, location_of, tensors_of
from tmconvert.formats.onnx.model import read_model, read_whole_model, without_functions
from tmconvert.formats.onnx.split import STANDARD, SplitModel, size_of
from tmconvert.ir.types import TensorType
from tmconvert.output.atomic import commit_together, staged_outputs, temporary_folder
from tmconvert.symbolics.op import Op
from tmconvert.targets.options import OLDEST_OPSET
from tmconvert.targets.registry import runtime_for, target_named
from tmconvert.verification.compare import check, example_inputs

ROUNDS = 40  # each finds nodes to keep
EXAMPLE_SIZE = 2  # of open sizes


# options that do not change what the file computes, or how
NEUTRAL = frozenset(
    (
        *("verify", "verification", "verify_with", "require_verified", "progress", "allow_random"),
        *("pass_options", "passes", "external_data", "value_info", "accept_range"),
    )
)


class Unchanged(Exception):
    """A file cannot be simplified, for the reason that is the text."""


def simplify_model(
    model: Any, path: Any, arguments: Mapping[str, Any], catalogue: Mapping[str, Op]
) -> Report:
    """Writes an ONNX file of an ONNX model, in which the nodes that cannot be converted stay.

    A model that cannot be simplified is copied, with a note that states why, unless ``arguments`` change it.
    Raises LoadError for what is no ONNX model, WriteError, UsageError, and where they change it what
    ``convert`` raises.
    """
    if not isinstance(model, (str, PathLike)):
        raise UsageError("TM6008", f"model must be an ONNX model, got {type_and_value(model)}")
    opset = _opset_of(fspath(model))
    options = (each for each in declared(OnnxOptions) if each.name not in NEUTRAL)
    changes = [each.name for each in options if arguments[each.name] != each.default]
    arguments = {**arguments, "opset": arguments["opset"] or opset}
    request = ConversionRequest.of("onnx", model, [path], arguments)
    source, out = Path(model), request.paths[0]
    with temporary_folder() as folder:
        try:
            return _Simplification(source, out, request, catalogue, folder).run(must_shrink=not changes)
        except (WriteError, UsageError):
            raise
        except Exception as error:  # whatever it is, the model itself is right
            if isinstance(error, (Unchanged, ValueError)) and changes:
                reason = (
                    f"options change the model ({', '.join(changes)}), which cannot be simplified: {error}"
                )
                raise UnsupportedError("TM2003", reason) from error
            if changes:
                raise
            why = f"{error.code}: {error.message}" if isinstance(error, TmconvertError) else str(error)
            return _unchanged(source, out, opset, why)


def _opset_of(path: str) -> int:
    """Returns the opset to write, that of the file where it can be. Raises LoadError."""
    imports = {each.domain: each.version for each in read_model(path).opset_import}
    found = next((imports[name] for name in STANDARD if name in imports), OLDEST_OPSET)
    return max(int(found), OLDEST_OPSET)


class _Simplification:
    def __init__(
        self, path: Path, out: Path, request: ConversionRequest, catalogue: Mapping[str, Op], folder: Path
    ) -> None:
        self.path, self.out, self.request, self.catalogue = path, out, request, catalogue
        self.folder, self.written = folder, folder / "written" / out.name
        self.written.parent.mkdir()

    def run(self, *, must_shrink: bool) -> Report:
        """Raises Unchanged, and what ``convert`` raises for the part without kept nodes."""
        source = read_model(str(self.path))
        most = size_of(source.graph.node)
        report, split = self._converted()
        if must_shrink and size_of(self._made().graph.node) > most:
            split = SplitModel(self._whole(), () if split is None else split.kept)
            report = self._convert_part(split)
            grown = split.grown(self._made())
            report, split = self._with_kept(split.kept | grown)
        made = self._made()
        found = report.verification
        if must_shrink and found is not None and (found.refusal or found.undecided):
            raise Unchanged(found.refusal or "rounding decides its outputs")
        if split is not None:
            made = split.joined(made)
            report.notes = [*map(split.with_names, report.notes), _note_on(split)]
            if self.request.verify:
                unseen = _compared(self.path, self._joined_file(made))
                if unseen:
                    report.notes, report.verification = [*report.notes, *unseen], None
        if must_shrink and size_of(made.graph.node) > most:
            raise Unchanged("the result would have more nodes")
        _keep_metadata(source, made)
        return self._commit(report, made)

    def _made(self) -> Any:
        return read_whole_model(str(self.written), keeps_links=True)

    def _whole(self) -> Any:
        """Returns the model with all weights, and without functions."""
        return without_functions(read_whole_model(str(self.path)))

    def _converted(self) -> tuple[Report, SplitModel | None]:
        try:
            return self._convert(self.path), None
        except (UnsupportedError, LoadError) as error:
            return self._with_kept(set(), error.message)

    def _with_kept(self, kept: set[int], why: str = "each would become more") -> tuple[Report, SplitModel]:
        """Converts the nodes other than ``kept``, and than those that turn out to stop the conversion."""
        model = self._whole()
        for _ in range(ROUNDS):
            split = SplitModel(model, kept)
            if not split.part.graph.node:
                raise Unchanged(f"all of its nodes stay: {why}")
            try:
                return self._convert_part(split), split
            except (UnsupportedError, LoadError) as error:
                found = _numbers(error) - split.kept
                if not found:
                    raise
                kept |= found | split.kept
        raise Unchanged("too many nodes cannot be converted")

    def _convert_part(self, split: SplitModel) -> Report:
        part = self.folder / "part.onnx"
        part.write_bytes(split.part.SerializeToString())
        return self._convert(part)

    def _convert(self, path: Path) -> Report:
        return convert(replace(self.request, model=str(path), paths=(self.written,)), self.catalogue)

    def _joined_file(self, made: Any) -> Path:
        path = self.written.with_name("joined.onnx")
        path.write_bytes(made.SerializeToString())
        return path

    def _commit(self, report: Report, made: Any) -> Report:
        data = [path for path in self.written.parent.iterdir() if path.suffix == ".data"]
        report.paths = (self.out, *(self.out.with_name(each.name) for each in data))
        with staged_outputs(*report.paths, named=bool(data)) as outputs:
            outputs[0].file.write(made.SerializeToString())
            for output, each in zip(outputs[1:], data, strict=True):
                with each.open("rb") as file:
                    shutil.copyfileobj(file, output.file)
            for output in outputs:
                output.finish()
            commit_together(outputs)
        _describe(report, made)
        return report


def _compared(path: Path, joined: Path) -> list[str]:
    """Runs the model and the joined file; their nodes other than the kept ones are verified already.

    Returns a note where the model does not run on random inputs. Raises VerificationError for other outputs.
    """
    runtime, graph = runtime_for("onnx"), read_model(str(path)).graph
    stored, names = {each.name for each in graph.initializer}, [each.name for each in graph.output]
    inputs = [each for each in graph.input if each.name not in stored]
    if runtime is None:
        return []
    try:
        types = [_type_for(each.type.tensor_type) for each in inputs]
        given = dict(zip((each.name for each in inputs), example_inputs(types), strict=True))
        expected = runtime.run([path], given, names)
    except (LoadError, VerificationError, KeyError) as error:
        return [f"not verified: the model does not run on random inputs ({error})"]
    check(runtime.run([joined], given, names), expected, names)
    return []


def _type_for(type_: Any) -> TensorType:
    """Returns the type of an example for an input. Raises KeyError for strings, sequences and the like."""
    shape = tuple(int(each.dim_value) or EXAMPLE_SIZE for each in type_.shape.dim)
    return TensorType(ELEMENT_TYPES[type_.elem_type].dtype, shape)


def _numbers(error: TmconvertError) -> set[int]:
    """Returns the indices of the nodes that an error is about."""
    scopes = [*getattr(error, "scopes", ()), *([error.source.scope] if error.source is not None else [])]
    return {number for scope in scopes if (number := SplitModel.number_of(scope)) is not None}


def _note_on(split: SplitModel) -> str:
    kinds = sorted({split.nodes[number].op_type for number in split.kept})
    shown = f"{', '.join(kinds[:6])}{', ...' if len(kinds) > 6 else ''}"
    return f"{counted(len(split.kept), 'node')} stayed as in the model: {shown}"


def _keep_metadata(source: Any, made: Any) -> None:
    known = {each.key for each in made.metadata_props}
    made.metadata_props.extend(each for each in source.metadata_props if each.key not in known)
    made.doc_string = made.doc_string or source.doc_string
    made.domain, made.model_version = source.domain, source.model_version
    made.graph.name = source.graph.name or made.graph.name


def _unchanged(path: Path, out: Path, version: int, why: str) -> Report:
    """Copies a model with its external data."""
    model = read_model(str(path))
    locations = sorted(filter(None, {location_of(tensor) for tensor in tensors_of(model.graph)}))
    names = ["", *(each for each in locations if is_inside(each) and (path.parent / each).exists())]
    paths = [out, *(out.parent / name for name in names[1:])]
    pairs = list(zip([path, *map(path.parent.joinpath, names[1:])], paths, strict=True))
    pairs = [(source, target) for source, target in pairs if not _is_same(source, target)]
    with staged_outputs(*(target for _, target in pairs)) as outputs:
        for (source, _), output in zip(pairs, outputs, strict=True):
            with source.open("rb") as file:
                shutil.copyfileobj(file, output.file)
            output.finish()
        commit_together(outputs)
    notes = [f"not verified: the file is unchanged, since the model cannot be simplified ({why})"]
    report = Report("onnx", version, tuple(paths), notes=notes)
    _describe(report, model)
    return report


def _is_same(source: Path, target: Path) -> bool:
    return target.exists() and target.samefile(source)


def _describe(report: Report, model: Any) -> None:
    """Sets the fields of a report that describe its file."""
    written = target_named("onnx").written_model(report.paths[0])
    report.fed_inputs = [FedTensor(each) for each in written.input_tensors]
    report.fed_outputs = [FedTensor(each) for each in written.output_tensors]
    report.inputs, report.outputs = (
        [each.to_json() for each in tensors] for tensors in (report.fed_inputs, report.fed_outputs)
    )
    report.operators = size_of(model.graph.node)
