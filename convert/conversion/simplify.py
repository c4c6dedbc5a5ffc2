"""Converts ONNX files to ONNX files in which nodes that cannot be converted stay, and simplifies them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from tmconvert.conversion.format_numbers import counted
from tmconvert.conversion.io_description import FedTensor
from tmconvert.conversion.options.conversion import OnnxOptions
from tmconvert.conversion.options.declared import declared
from tmconvert.conversion.pipeline import check_verified, convert
from tmconvert.conversion.report import Report
from tmconvert.conversion.request import ConversionRequest
from tmconvert.errors import (
    InternalError,
    LoadError,
    TmconvertError,
    UnsupportedError,
    UsageError,
    VerificationError,
    WriteError,
)
from tmconvert.errors.environment import environment_error
from tmconvert.errors.values import type_and_value
from tmconvert.formats.onnx.element_types import ELEMENT_TYPES
from tmconvert.formats.onnx.external_data import is_inside, location_of, tensors_of
from tmconvert.formats.onnx.model import (
    parsed_once,
    read_model,
    read_whole_model,
    set_input_shapes,
    without_functions,
)
from tmconvert.formats.onnx.recognize import is_onnx
from tmconvert.formats.onnx.split import STANDARD, CannotStay, SplitModel, size_of
from tmconvert.ir.types import TensorType
from tmconvert.output.atomic import commit_together, staged_outputs, temporary_folder
from tmconvert.symbolics.op import Ops
from tmconvert.targets.options import AUTO, OLDEST_OPSET
from tmconvert.targets.registry import runtime_for, target_named
from tmconvert.verification.compare import check, example_inputs
from tmconvert.verification.input_files import given_inputs
from tmconvert.verification.verify import Verification

NOT_VERIFIED = "TM4006"
ROUNDS = 40  # each finds nodes to keep
SIZES = ((2, 2), (2, 64), (3, 3), (3, 96), (1, 1), (1, 64))  # of open axes, and of those of images
COMPARED = 2  # sets of inputs


# options that do not change what the file computes, or how
NEUTRAL = frozenset((
    *("verify", "verification", "verify_with", "require_verified", "progress", "allow_random"),
    *("pass_options", "passes", "external_data", "value_info", "accept_range", "metadata", "labels"),
))  # fmt: skip


# options of a conversion that concern more than the nodes that are converted
_FOR_WHOLE_MODELS = (
    *("inputs", "outputs", "rename", "names", "preprocess", "softmax", "argmax"),
    *("input_shapes", "dynamic_shapes", "fix", "quantized", "calibration", "qparams", "verify_on"),
    "pass_options",
)


_ORT_DIFFERS = "nodes stayed whose results in ONNX Runtime differ from the ONNX standard"


class Unchanged(Exception):
    """A file cannot be simplified, for the reason that is the text."""


@parsed_once()
def convert_with_kept_nodes(
    request: ConversionRequest, arguments: Mapping[str, Any], catalogue: Ops, error: TmconvertError
) -> Report | None:
    """Converts an ONNX file, for which that was an ``error``, to one in which the nodes that cannot be
    converted stay as they are. So do nodes whose results in ONNX Runtime differ from the standard: those
    that make the outputs that ``error`` is about. All others are verified.

    Returns None where nodes cannot stay: for other sources and targets, with options that concern the whole
    model, and where ONNX Runtime does not load operators of ONNX. Without ``arguments["opset"]`` the opset is
    the nearest one to the default in which the kept nodes mean the same. Raises UnsupportedError TM2003 for
    an opset in which they mean something else, VerificationError TM4006 where that is required, WriteError.
    """
    model = request.model
    if request.target.name != "onnx" or not isinstance(model, (str, PathLike)) or not _is_onnx(Path(model)):
        return None
    if any(arguments.get(name) for name in _FOR_WHOLE_MODELS):
        return None
    is_free = arguments.get("opset") in (None, AUTO)
    with temporary_folder() as folder:
        work = _Simplification(Path(model), request.paths[0], request, catalogue, folder, is_free)
        try:
            report = work.run_with_kept(getattr(error, "outputs", ()))
            if getattr(error, "outputs", ()):
                report.notes.append(f"{_ORT_DIFFERS} ({error.message})")
            return report
        except (WriteError, OtherOpset):
            raise
        except (TmconvertError, Unchanged, CannotStay, ValueError) as failure:
            if getattr(failure, "code", "") == NOT_VERIFIED:
                raise
            return None


def _is_onnx(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return is_onnx(file.read(3))
    except (OSError, ValueError):  # a factory, a folder
        return False


@parsed_once()
def simplify_model(model: object, path: Any, arguments: Mapping[str, Any], catalogue: Ops) -> Report:
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
            return _Simplification(source, out, request, catalogue, folder).run(bool(changes))
        except (WriteError, UsageError):
            raise
        except Exception as error:  # whatever it is, the model itself is right; a defect is reported
            if isinstance(error, (Unchanged, CannotStay)) and changes:
                reason = (
                    f"options change the model ({', '.join(changes)}), which cannot be simplified: {error}"
                )
                raise UnsupportedError("TM2003", reason) from error
            if changes:
                raise
            return _unchanged(source, out, opset, request.annotations.metadata, *_why(error))


def _why(error: Exception) -> tuple[str, list[str]]:
    """Returns why a model stays as it is, and a note on a defect of tmconvert, if it is due to one."""
    if isinstance(error, (Unchanged, CannotStay)):
        return str(error), []
    known = environment_error(error) if isinstance(error, OSError) else error
    if not isinstance(known, TmconvertError):
        known = InternalError("TM9000", f"{type(error).__name__}: {error}")
    why = f"{known.code}: {known.message}"
    is_defect = isinstance(known, InternalError)
    return why, [f"this is a defect of tmconvert, please report it: {why}"] * is_defect


def _opset_of(path: str) -> int:
    """Returns the opset to write, that of the file where it can be. Raises LoadError."""
    imports = {each.domain: each.version for each in read_model(path).opset_import}
    found = next((imports[name] for name in STANDARD if name in imports), OLDEST_OPSET)
    return max(int(found), OLDEST_OPSET)


class OtherOpset(UnsupportedError):
    """Kept nodes are other operators in the requested opset."""


class _Simplification:
    def __init__(
        self,
        path: Path,
        out: Path,
        request: ConversionRequest,
        catalogue: Ops,
        folder: Path,
        is_opset_free: bool = False,
    ) -> None:
        self.path, self.out, self.request, self.catalogue = path, out, request, catalogue
        self.is_opset_free, self.verifies_part = is_opset_free, False
        self.folder, self.written = folder, folder / "written" / out.name
        self.written.parent.mkdir()

    def run(self, may_grow: bool) -> Report:
        """Returns the report of a file, which is smaller unless it ``may_grow``.

        Raises Unchanged, and what ``convert`` raises for the part without kept nodes.
        """
        most = size_of(read_model(str(self.path)).graph.node)
        report, split = self._converted(None if may_grow else most)
        if report is None or (split and not may_grow and size_of(self._made().graph.node) > most):
            if split is None:
                split = SplitModel(self._whole())
                self._convert_part(split)
            report, split = self._with_kept(split, split.grown(self._made()))
            if report is None:
                raise Unchanged("all of its nodes stay: each would become more")
        found = report.verification
        if not may_grow and found is not None and (found.refusal or found.undecided):
            raise Unchanged(found.refusal or "rounding decides its outputs")
        made = None if split is None else self._joined(report, split)
        if made is not None and not may_grow and size_of(made.graph.node) > most:
            raise Unchanged("the result would have more nodes")
        return self._commit(report, made)

    def run_with_kept(self, wrong: Sequence[str]) -> Report:
        """Returns the report of a file in which the nodes that cannot be converted stay.

        Those that make the outputs ``wrong`` stay, too; then the others are verified by themselves. Raises as
        ``run``, and Unchanged where ONNX Runtime refuses operators of ONNX.
        """
        split = SplitModel(self._whole())
        self.verifies_part = bool(wrong) and self.request.verify
        report, split = self._with_kept(split, {split.makers[name] for name in wrong if name in split.makers})
        if report is None:
            version = self.request.target.version_name(self.version)
            report = Report("onnx", version, self.request.paths)
        if not self.request.options.allow_random and split.makes_random_numbers():
            raise Unchanged("it makes random numbers")
        return self._commit(report, self._joined(report, split))

    @property
    def version(self) -> int:
        return self.request.options.version

    def _made(self) -> Any:
        """Returns the model that was written, without large weights."""
        return read_model(str(self.written))

    def _whole(self) -> Any:
        """Returns the model with all weights, without functions, and with the requested shapes of inputs."""
        model = without_functions(read_whole_model(str(self.path)))
        names = [each.name for each in model.graph.input]
        set_input_shapes(model, self.request.overrides.resolved(names).input_shapes)
        return model

    def _converted(self, most: int | None) -> tuple[Report | None, SplitModel | None]:
        """Converts the model; the report is None where it would have more than ``most`` nodes."""

        def check_size(path: Path) -> None:
            if most is not None and size_of(read_model(str(path)).graph.node) > most:
                raise Grown

        try:
            return self._convert(self.path, check_size), None
        except Grown:
            return None, None
        except (UnsupportedError, LoadError) as error:
            split = SplitModel(self._whole())
            report, split = self._with_kept(split, _numbers(error, split))
            if report is None:
                raise Unchanged(f"all of its nodes stay: {error.message}") from error
            return report, split

    def _with_kept(self, split: SplitModel, kept: set[int]) -> tuple[Report | None, SplitModel]:
        """Converts the nodes that are not kept, without ``kept`` and those that turn out to stop it.

        The report is None where all nodes stay.
        """
        for _ in range(ROUNDS):
            split = split.keep(kept)
            self._choose_opset(split)
            if not split.part.graph.node:
                return None, split
            try:
                return self._convert_part(split), split
            except (UnsupportedError, LoadError) as error:
                kept = (_numbers(error, split) & split.needed) - split.kept
                if not kept:
                    raise
        raise Unchanged("too many nodes cannot be converted")

    def _choose_opset(self, split: SplitModel) -> None:
        """Takes an opset in which the kept nodes are as in the model. Raises OtherOpset."""
        changed = split.changed(self.version)
        if not changed:
            return
        nearest = split.nearest_opset(self.version)
        if not self.is_opset_free:
            kinds = ", ".join(changed)
            raise OtherOpset(
                "TM2003",
                f"{kinds} cannot stay, since it is another operator in opset {self.version}",
                notes=[("help", f"use --opset {nearest}")],
            )
        options = self.request.options._replace(version=nearest)
        self.request = replace(self.request, options=options)

    def _joined(self, report: Report, split: SplitModel) -> Any:
        """Returns the model of what was converted and the kept nodes, and completes its report."""
        if split.part.graph.node:
            made = split.joined(read_whole_model(str(self.written), keeps_links=True))
        else:
            made = split.alone(self.version)
        report.notes = [*map(split.with_names, report.notes), _note_on(split)]
        if not self.request.verify:
            return made
        path = self.written.with_name("joined.onnx")
        path.write_bytes(made.SerializeToString())
        try:
            report.verification = _compared(self.path, path, made.graph, self.request.verify_with)
        except (LoadError, KeyError, NotRun) as error:
            is_refusal = isinstance(error, NotRun) and error.is_refusal and split.has_standard_nodes()
            if is_refusal or self.request.overrides.input_shapes:
                raise Unchanged(str(error)) from error
            report.notes.append(f"not verified: the model does not run on random inputs ({error})")
            report.verification = None
        return made

    def _convert_part(self, split: SplitModel) -> Report:
        part = self.folder / "part.onnx"
        part.write_bytes(split.part.SerializeToString())
        # the part has the shapes, and what it is joined to is compared as a whole
        overrides = self.request.overrides._replace(input_shapes={}, is_part=True)
        verify = self.verifies_part
        return self._convert(
            part, verify=verify, verify_with=None, require_verified=False, overrides=overrides
        )

    def _convert(self, path: Path, check: Callable[[Path], None] = lambda _: None, **changes: Any) -> Report:
        request = replace(self.request, model=str(path), paths=(self.written,), **changes)
        return convert(request, self.catalogue, check)

    def _commit(self, report: Report, made: Any) -> Report:
        """Writes the model ``made``, or without one what was written, and metadata after it."""
        if self.request.require_verified:
            check_verified(report)
        source, appended, shown = read_model(str(self.path)), b"", self._made() if made is None else made
        if made is None and source.graph.name in ("", shown.graph.name):
            appended = _missing_metadata(source, shown)
        else:
            made = read_whole_model(str(self.written), keeps_links=True) if made is None else made
            _keep_metadata(source, made, self.request.annotations.metadata)
        data = [path for path in self.written.parent.iterdir() if path.suffix == ".data"]
        report.paths = (self.out, *(self.out.with_name(each.name) for each in data))
        with staged_outputs(*report.paths, named=bool(data)) as outputs:
            if made is not None:
                outputs[0].file.write(made.SerializeToString())
            copied = [*data] if made is not None else [self.written, *data]
            for output, each in zip(outputs[len(outputs) - len(copied) :], copied, strict=True):
                with each.open("rb") as file:
                    shutil.copyfileobj(file, output.file)
            outputs[0].file.write(appended)
            for output in outputs:
                output.finish()
            commit_together(outputs)
        _describe(report, shown, self.written if made is None else self.out)
        return report


class Grown(Exception):
    """The file has more nodes than its source."""


class NotRun(Exception):
    """The model does not run on the inputs tried; with ``is_refusal`` ONNX Runtime does not load it."""

    def __init__(self, error: VerificationError) -> None:
        super().__init__(str(error.message))
        self.is_refusal = any(phrase in error.message for phrase in _REFUSALS)


# what ONNX Runtime says of files that it does not load, whatever the inputs
_REFUSALS = (
    *("Load model from", "NOT_IMPLEMENTED", "INVALID_GRAPH", "during initialization"),
    "does not know an operator",
)


def _compared(path: Path, joined: Path, graph: Any, given: object) -> Verification | None:
    """Runs the model and the file of ``graph`` on ``given``, or on inputs with which the model runs.

    Raises NotRun, KeyError for strings, sequences and the like, VerificationError for other outputs.
    """
    runtime, names, found = runtime_for("onnx"), [each.name for each in graph.output], list[Verification]()
    if runtime is None:
        return None
    version = f"{runtime.name} {runtime.version}"
    for inputs in _inputs_for(graph, given):
        fed = dict(zip((each.name for each in graph.input), inputs, strict=True))
        try:
            expected = runtime.run([path], fed, names)
        except VerificationError as error:
            refusal = error
            continue
        comparisons = check(runtime.run([joined], fed, names), expected, names)
        found.append(Verification(version, tuple(comparisons), reference=version))
        if len(found) == COMPARED:
            break
    if not found:
        raise NotRun(refusal) from refusal
    return found[0]


def _inputs_for(graph: Any, given: object) -> Iterator[Sequence[np.ndarray]]:
    """Yields ``given``, or random inputs of several sizes, also with integers of 1, and of 1 or 0 only."""
    sizes = SIZES if given is None else SIZES[:1]
    for seed, size in enumerate(sizes):
        types = {each.name: _type_for(each.type.tensor_type, *size) for each in graph.input}
        if given is not None:
            yield given_inputs(given, list(types), list(types))
            return
        random = example_inputs(list(types.values()), seed)
        yield random
        if seed < COMPARED or any(each.size == 0 for each in random):
            yield [np.ones_like(each) if each.dtype.kind in "iu" else each for each in random]
            yield from ([fill(each) for each in random] for fill in (np.ones_like, np.zeros_like))


def _type_for(type_: Any, size: int, image: int) -> TensorType:
    """Returns the type of an example for an input. Raises KeyError for strings, sequences and the like."""
    given = [int(each.dim_value) for each in type_.shape.dim]
    shape = tuple(each or (image if len(given) > 3 and axis > 1 else size) for axis, each in enumerate(given))
    return TensorType(ELEMENT_TYPES[type_.elem_type].dtype, shape)


def _numbers(error: TmconvertError, split: SplitModel) -> set[int]:
    """Returns the indices of the nodes that an error is about."""
    scopes = [*getattr(error, "scopes", ()), *([error.source.scope] if error.source is not None else [])]
    return {number for scope in scopes if (number := split.number_of(scope)) is not None}


def _note_on(split: SplitModel) -> str:
    kinds = sorted({split.nodes[number].op_type for number in split.kept})
    shown = f"{', '.join(kinds[:6])}{', ...' if len(kinds) > 6 else ''}"
    return f"{counted(len(split.kept), 'node')} stayed as in the model: {shown}"


def _keep_metadata(source: Any, made: Any, given: Mapping[str, str]) -> None:
    _set_metadata(made, source, given)
    made.doc_string = made.doc_string or source.doc_string
    made.domain, made.model_version = source.domain, source.model_version
    made.graph.name = source.graph.name or made.graph.name


def _missing_metadata(source: Any, made: Any) -> bytes:
    """Returns fields of a message that, after those of ``made``, give it the metadata of ``source``."""
    fields = type(made)(domain=source.domain, model_version=source.model_version)
    fields.doc_string = made.doc_string or source.doc_string
    known = {each.key for each in made.metadata_props}
    fields.metadata_props.extend(each for each in source.metadata_props if each.key not in known)
    return bytes(fields.SerializeToString())


def _set_metadata(made: Any, source: Any, given: Mapping[str, str]) -> None:
    """Stores the metadata of ``source``, those of ``made`` and those ``given``; the last of a key counts."""
    texts = {each.key: each.value for model in (made, source, made) for each in model.metadata_props}
    del made.metadata_props[:]
    for key, text in {**texts, **given}.items():
        made.metadata_props.add(key=key, value=text)


def _unchanged(
    path: Path, out: Path, version: int, given: Mapping[str, str], why: str, defects: Sequence[str] = ()
) -> Report:
    """Copies a model with its external data, and adds the metadata that are ``given``."""
    model = read_model(str(path))
    locations = sorted(filter(None, {location_of(tensor) for tensor in tensors_of(model.graph)}))
    names = ["", *(each for each in locations if is_inside(each) and (path.parent / each).exists())]
    paths = [out, *(out.parent / name for name in names[1:])]
    pairs = list(zip([path, *map(path.parent.joinpath, names[1:])], paths, strict=True))
    pairs = [
        (source, target)
        for source, target in pairs
        if (given and target == out) or not _is_same(source, target)
    ]
    with staged_outputs(*(target for _, target in pairs)) as outputs:
        for (source, _), output in zip(pairs, outputs, strict=True):
            if given and source == path:
                whole = read_whole_model(str(path), keeps_links=True)
                _set_metadata(whole, model, given)
                output.file.write(whole.SerializeToString())
            else:
                with source.open("rb") as file:
                    shutil.copyfileobj(file, output.file)
            output.finish()
        commit_together(outputs)
    notes = [f"not verified: the file is unchanged, since the model cannot be simplified ({why})", *defects]
    report = Report("onnx", version, tuple(paths), notes=notes)
    _describe(report, model, out)
    return report


def _is_same(source: Path, target: Path) -> bool:
    return target.exists() and target.samefile(source)


def _describe(report: Report, model: Any, path: Path) -> None:
    """Sets the fields of a report that describe its file, whose inputs and outputs are those of ``path``."""
    written = target_named("onnx").written_model(path)
    report.fed_inputs = [FedTensor(each) for each in written.input_tensors]
    report.fed_outputs = [FedTensor(each) for each in written.output_tensors]
    report.inputs, report.outputs = (
        [each.to_json() for each in tensors] for tensors in (report.fed_inputs, report.fed_outputs)
    )
    report.operators = size_of(model.graph.node)
