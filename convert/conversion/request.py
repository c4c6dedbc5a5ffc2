"""The request of a conversion, or of the verification of a written file: made and checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tmconvert.calibration.settings import CalibrationRequest
from tmconvert.conversion.io_overrides import NO_OVERRIDES, IoOverrides, names_of_file
from tmconvert.conversion.options.commands import conversion_options
from tmconvert.conversion.output_paths import check_names, keep_model
from tmconvert.conversion.preprocessing import Preprocessing
from tmconvert.errors import UsageError
from tmconvert.errors.values import shown_value
from tmconvert.frontends.torch.request import Tracing
from tmconvert.ir import TracedModule
from tmconvert.ir.types import Arrays
from tmconvert.output.atomic import check_writable
from tmconvert.output.metadata import Annotations
from tmconvert.passes.manager import PassOptions
from tmconvert.targets.options import Parameters, TargetOptions, check_choice
from tmconvert.targets.registry import target_named
from tmconvert.targets.target import Target

# a PyTorch module, too, where example inputs can be given
Model = TracedModule | str | PathLike[str] | Any
# type, scale and zero point of inputs, by name
InputQparams = Mapping[str, tuple[str, float, int]]


class ScoreBound(NamedTuple):
    """A score on data of a task that may be worse than that of the float model by at most ``margin``."""

    task: str
    data: str | PathLike[str]
    margin: float
    tokenizer: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ScoreBound | None:
        """Returns the score_bound that options state; None without. Raises UsageError TM6002."""
        task, data, margin = (given.get(name) for name in ("task", "task_data", "score_margin"))
        missing = [name for name in ("task", "task_data", "score_margin") if given.get(name) is None]
        if len(missing) == 3:
            return None
        if missing or task is None or data is None or margin is None:
            raise UsageError("TM6002", f"task, task_data and score_margin go together: add {missing[0]}")
        return cls(task, data, margin, given.get("tokenizer"))


@dataclass(frozen=True)
class ConversionRequest:
    """A validated conversion request: source, files to write, and all options.

    ``model`` is the source, not loaded yet; ``paths`` are the files that are always written, the structure
    first. ``preprocessing`` is added to the model. ``inputs`` are those to verify with; without any, those of
    ``tracing`` or random ones are used. For a file to verify, ``stored`` are the options of the conversion
    that wrote it, by name. ``min_sqnr`` is the lowest signal-to-noise ratio of outputs, in dB, and
    ``score_bound`` the worst score, for which rules are found; ``tries_rules`` measures the gain of rules
    after the conversion. ``verify_on`` are names of accelerators. ``lock`` is the path of a record of the
    conversion. ``signature`` is the name of the model in a file of several.
    """

    model: Model
    paths: tuple[Path, ...]
    options: TargetOptions
    overrides: IoOverrides = NO_OVERRIDES
    tracing: Tracing = field(default_factory=Tracing)
    calibration: CalibrationRequest = field(default_factory=CalibrationRequest)
    verify: bool = True
    require_verified: bool = False
    verification: str | None = None
    verify_with: Any = None
    pass_options: PassOptions = field(default_factory=PassOptions)
    inputs: Sequence[np.ndarray] | None = None
    stored: Mapping[str, Any] = field(default_factory=dict)
    names: str | None = None
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    min_sqnr: float | None = None
    score_bound: ScoreBound | None = None
    tries_rules: bool = False
    verify_on: Sequence[str] | None = None
    lock: Path | None = None
    annotations: Annotations = field(default_factory=Annotations)
    signature: str = ""

    @property
    def target(self) -> Target:
        return target_named(self.options.target)

    @classmethod
    def of(
        cls,
        target: str,
        model: Model,
        paths: Sequence[str | PathLike[str] | None],
        arguments: Mapping[str, Any],
    ) -> ConversionRequest:
        """Returns the request for a call of ``to_TARGET``; of ``arguments`` only the options are read.

        ``paths`` are the arguments for files, None for missing ones. Raises UsageError for invalid values,
        options that exclude each other, and outputs that would replace the model.
        """
        chosen = target_named(target)
        given = {
            option.name: arguments.get(option.name, option.default)
            for option in conversion_options(target)
            if option.is_keyword
        }
        wanted = Preprocessing.of(given["preprocess"], given["softmax"], given["argmax"])
        options = requested_options(chosen, given)
        score_bound, data = ScoreBound.of(given), given["calibration"]
        calibration = CalibrationRequest.of(
            data, _settings(given, options), given.get("report_data"), has_task=score_bound is not None
        )
        if wanted.images:
            from tmconvert.conversion.image_options import calibration_for

            calibration = calibration_for(wanted, calibration)
        request = cls(
            model,
            chosen.output_paths([Path(path) for path in paths if path is not None]),
            options,
            io_overrides_of(*(given[name] for name in _OVERRIDES)),
            tracing_of(given),
            calibration,
            given["verify"],
            bool(given["require_verified"]),
            given["verification"],
            given["verify_with"],
            (given["pass_options"] or PassOptions())._replace(requested=tuple(given["passes"] or ())),
            names=given["names"],
            preprocessing=wanted,
            min_sqnr=given.get("min_sqnr"),
            score_bound=score_bound,
            tries_rules=bool(given.get("try_rules")),
            verify_on=tuple(given["verify_on"]) or None,
            lock=None if given["lock"] is None else Path(given["lock"]),
            annotations=_annotations(given.get("metadata"), given.get("labels")),
        )
        request._check()
        return request

    @classmethod
    def of_file(
        cls,
        model: Model,
        path: Path,
        inputs: Arrays | None,
        overrides: IoOverrides,
        calibration: object,
        signature: str = "",
    ) -> ConversionRequest:
        """Returns the request that wrote the file at ``path``, as far as the file records it.

        Raises LoadError for a file of an unknown format, UsageError TM6002 for unknown options.
        """
        from tmconvert.targets.recognize import target_of_file

        target = target_of_file(path)
        stored = target.stored_options(path)
        options = stored_options(target, stored)
        if options is None:
            options, overrides = target.default_options(), names_of_file(stored, overrides)
        elif overrides == NO_OVERRIDES:
            overrides = IoOverrides.from_json(stored)
        data = CalibrationRequest(calibration)
        wanted = Preprocessing.from_json(stored)
        return cls(
            model,
            (path,),
            options,
            overrides,
            calibration=data,
            inputs=inputs,
            stored=stored,
            preprocessing=wanted,
            signature=signature,
        )

    def _check(self) -> None:
        data, options = self.calibration, self.options
        if data.data is not None and options.integers is None and options.parameters is None:
            raise UsageError(
                "TM6002",
                "calibration requires quantized, or qparams, for which it measures scales",
                notes=[("help", "add --quantized (quantized=True), or --qparams FILE (qparams=...)")],
            )
        if data.report_data is not None and options.integers is None:
            raise UsageError("TM6002", "report_data requires quantized, whose layers are reported")
        for name in ("require_verified", "verification", "verify_with", "verify_on"):
            value = getattr(self, name)
            if value is not False and value is not None and not self.verify:
                raise UsageError(
                    "TM6002", f"{name} applies to a file that is verified: omit verify=False (--no-verify)"
                )
        if self.min_sqnr is not None and (options.integers is None or not self.verify):
            raise UsageError("TM6002", "min_sqnr requires quantized and verification")
        if self.tries_rules and (data.data is None or options.integers is None or not self.verify):
            raise UsageError("TM6002", "try_rules requires quantized, calibration and verification")
        has_bits = options.weights is not None or (options.integers is not None and data.data is not None)
        if self.score_bound is not None and not has_bits:
            raise UsageError("TM6002", "score_margin requires weights, or quantized and calibration")
        searches = {
            "try_rules": self.tries_rules,
            "min_sqnr": self.min_sqnr is not None,
            "score_margin": self.score_bound is not None,
        }
        if len(both := [name for name, is_given in searches.items() if is_given]) > 1:
            raise UsageError("TM6002", f"{' and '.join(both)} both find rules: use one of them")
        if self.verify_on:
            from tmconvert.verification.accelerators.registry import accelerators_named

            accelerators_named(self.verify_on, self.target.name)
        files = [*self.paths, *self.target.further_paths(self.paths)]
        locks = [] if self.lock is None else [self.lock]
        keep_model(self.model, *files, *options.extra_files, *locks)
        target = self.target
        check_names(f"{target.title} files", target.suffixes, files)
        if data.data is not None or locks:
            check_writable(*files, *options.extra_files, *locks)


def _annotations(metadata: Any, labels: Any) -> Annotations:
    if not metadata and labels is None:
        return Annotations()
    from tmconvert.conversion.annotations import requested_annotations

    return requested_annotations(metadata, labels)


# the parameters of ``io_overrides_of``, in order
_OVERRIDES = ("input_shapes", "inputs", "outputs", "rename", "input_qparams", "accept_range")


def tracing_of(options: Mapping[str, Any]) -> Tracing:
    """Returns the arguments of tracing among the keywords of a function. Raises UsageError TM6008, TM6014."""
    return Tracing.of(
        options["example_inputs"],
        options["example_kwargs"],
        options.get("dynamic_shapes"),
        options["freeze_control_flow"],
        options["allow_code"],
        options["training"],
        options["signature"],
        options.get("fix"),
        options["state"],
        options["noise"],
        options["roll_loops"],
    )


def io_overrides_of(
    input_shapes: Mapping[str, Sequence[int]] | None,
    inputs: Sequence[str] | None,
    outputs: Sequence[str] | None,
    rename: Mapping[str, str] | None = None,
    input_qparams: InputQparams | None = None,
    accept_range: bool = False,
) -> IoOverrides:
    """Returns the overrides of inputs and outputs from arguments; a missing argument is None."""
    return IoOverrides(
        input_shapes or {}, {}, inputs, outputs, rename or {}, input_qparams or {}, accept_range
    )


def requested_options(target: Target, given: Mapping[str, Any]) -> TargetOptions:
    """Returns the options that ``target`` reads, from all options by name.

    Raises UsageError TM6001 for an unknown version, TM6002 for other invalid values and for options that
    exclude each other.
    """
    if given.get("noise") == "operator":
        given = {**given, "allow_random": True}
    for option in conversion_options(target.name):
        value = given.get(option.name)
        if value is None or value is False or option.is_version or not option.is_keyword:
            continue
        if option.needs and (given[option.needs] is None or given[option.needs] is False):
            shown = shown_value(value)
            raise UsageError("TM6002", f"{option.name} is {shown}, but applies only with {option.needs}")
        if option.choices:
            check_choice(option.name, value, option.choices)
    options = _with_rules(_with_random(target.requested_options(given), given), given)
    options = with_profile(options, given.get("profile"), _version_of(target, given))
    qparams, bakes_weights = given["qparams"], given["fake_quant_weights"]
    if qparams is None and not bakes_weights:
        return options
    from tmconvert.qparams.formats import DEFAULT, format_called

    format = format_called(given["qparams_format"] or DEFAULT)
    if options.integers is not None or options.weights is not None:
        name = "fake_quant_weights" if qparams is None else "qparams"
        other = "quantized" if options.weights is None else f"weights={options.weights!r}"
        raise UsageError("TM6002", f"{name} applies to a plain float model: omit {other}")
    path = None if qparams is None else Path(qparams)
    return options._replace(parameters=Parameters(path, format.name, bool(bakes_weights)))


def _version_of(target: Target, given: Mapping[str, Any]) -> object:
    declared = (each for each in conversion_options(target.name) if each.is_version)
    return next((given.get(each.name) for each in declared), None)


def with_profile(options: TargetOptions, name: str | None, version: object) -> TargetOptions:
    """Returns the options of a conversion for a profile, whose version of the target is the default.

    Raises UsageError TM6002 for an unknown profile, and one for files of another kind; TM6070.
    """
    if not name:
        return options
    from tmconvert.profiles.registry import profile_named

    profile = profile_named(name)
    if options.target not in profile.targets:
        takes = " and ".join(profile.targets)
        raise UsageError("TM6002", f"the profile {name} is for files of {takes}, not of {options.target}")
    if version is None and profile.version:
        known = target_named(options.target).version_number(
            int(profile.version) if options.target == "onnx" else profile.version
        )
        options = options._replace(version=known)
    return options._replace(profile=name)


def _settings(given: Mapping[str, Any], options: TargetOptions) -> Any:
    """Returns the calibration settings, with the rules that are for calibration."""
    settings, rules = given["calibration_settings"], given.get("rules")
    if not rules or options.rules or not (settings is None or isinstance(settings, Mapping)):
        return settings
    if given["calibration"] is None:
        help = [("help", "give --weights, --float-type, or data for --calibration")]
        raise UsageError("TM6002", "rules apply to types of weights or floats, or to calibration", notes=help)
    settings = settings or {}
    known = settings.get("rules", {})
    return {**settings, "rules": {**known, **rules} if isinstance(known, Mapping) else known}


def _with_rules(options: TargetOptions, given: Mapping[str, Any]) -> TargetOptions:
    """Returns the options with the rules for weights or floats. Raises UsageError TM6032."""
    if options.weights is not None:
        (declared,) = (each for each in conversion_options(options.target) if each.name == "weights")
        types: tuple[str, ...] = (*declared.choices, "float32")
    elif options.float_type in ("float16", "bfloat16"):
        types = options.float_type, "float32"
    else:
        return options
    rules = given.get("rules") or {}
    for pattern, type in rules.items():
        if type not in types:
            help = [("help", f"use {', '.join(types)}")]
            message = f"the rule {pattern}={type} has the unknown type {type!r}"
            raise UsageError("TM6032", message, notes=help)
    return options._replace(rules=tuple(rules.items()))


def _with_random(options: TargetOptions, given: Mapping[str, Any]) -> TargetOptions:
    """Raises UsageError TM6002 for an invalid seed, and for files whose weights or layers are rounded."""
    if not given.get("allow_random"):
        return options
    seed = given.get("seed")
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 1 << 31):
        raise UsageError("TM6002", f"seed must be an integer from 0 to 2147483647, got {seed!r}")
    if options.integers is not None or options.weights is not None:
        name = "quantized" if options.weights is None else f"weights={options.weights!r}"
        raise UsageError("TM6002", f"allow_random applies to a plain float model: omit {name}")
    return options._replace(allow_random=True, seed=seed)


def stored_options(target: Target, stored: Mapping[str, Any]) -> TargetOptions | None:
    """Returns the options of the conversion that wrote a file from its metadata; None for a plain float file.

    Raises UsageError TM6001, TM6002 for unknown options.
    """
    integers = stored.get("integers") or {}
    own = [stored.get(option.name) for option in target.options]
    own += [stored.get("weights"), stored.get("fake_quant_weights"), stored.get("float_type") == "bfloat16"]
    own += [stored.get("io_type") if stored.get("float_type") else None, stored.get("state_as")]
    is_plain = not (integers or any(own))
    if is_plain or not isinstance(integers, Mapping):
        return None
    given: dict[str, Any] = {}
    for option in conversion_options(target.name):
        if option.is_version:
            value = stored.get(target.name)
        elif option.needs == "quantized":
            value = integers.get(option.name)
        else:
            value = stored.get(option.name, option.default)
        given[option.name] = bool(value) if option.kind == "switch" else value
    return requested_options(target, {**given, **_OF_OTHER_FILES, "quantized": bool(integers)})


# options for files beside the model, of which the model records nothing
_OF_OTHER_FILES = {"qparams": None, "qparams_format": None}
