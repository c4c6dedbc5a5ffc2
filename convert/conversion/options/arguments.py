"""Kinds of arguments of the public functions: a table by name, checked before anything else."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import numpy as np

from tmconvert.conversion.options.calibration import CalibrateOptions
from tmconvert.conversion.options.calls import bound_arguments
from tmconvert.conversion.options.commands import COMMAND_OPTIONS, conversion_options
from tmconvert.conversion.options.conversion import KEYWORDS
from tmconvert.conversion.options.declared import declared
from tmconvert.errors import UsageError
from tmconvert.errors.short_traceback import one_frame
from tmconvert.errors.values import PATH, is_path, type_and_value
from tmconvert.ir import TracedModule
from tmconvert.passes.manager import PassOptions
from tmconvert.progress import reporting
from tmconvert.targets.option import Option
from tmconvert.targets.options import AUTO

if TYPE_CHECKING:
    from tmconvert.conversion.model_objects import ObjectFiles

P = ParamSpec("P")
R = TypeVar("R")


class Kind(NamedTuple):
    """A kind of argument: ``expected`` describes values, ``fits`` tests one, ``code`` is that of errors."""

    expected: str
    fits: Callable[[Any], bool]
    code: str = "TM6009"


def _is_switch(value: object) -> bool:
    return isinstance(value, (bool, np.bool_))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _are_names(value: Any) -> bool:
    is_list = isinstance(value, Collection) and not isinstance(value, (str, bytes, bytearray, Mapping))
    return is_list and bool(_length(value)) and all(isinstance(name, str) for name in value)


def _length(value: Any) -> int:
    try:
        return len(value)
    except Exception:  # an array without axes, and code of the user's
        return 0


def _by_name(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in value)


def _names_by_name(value: Any) -> bool:
    return _by_name(value) and all(isinstance(name, str) for name in value.values())


def _are_input_qparams(value: Any) -> bool:
    return _by_name(value) and all(_is_input_qparams(qparams) for qparams in value.values())


def _is_input_qparams(value: object) -> bool:
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        return False
    dtype, scale, zero_point = value
    is_scale = isinstance(scale, (int, float, np.floating)) and not isinstance(scale, bool)
    return isinstance(dtype, str) and is_scale and _is_integer(zero_point)


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, (int, float, np.floating)) and not isinstance(value, bool)
    return is_number and 0 < value < float("inf")


def _is_share(value: Any) -> bool:
    return _is_positive(value) and value <= 1


def _are_numbers(value: Any) -> bool:
    is_list = isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim == 1)
    return is_list and all(isinstance(each, (int, float, np.integer, np.floating)) for each in value)


def _is_sequence(value: object) -> bool:
    return isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _are_inputs(value: object) -> bool:
    return isinstance(value, (list, tuple)) or _by_name(value) or _is_array(value)


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray) or (
        callable(getattr(value, "detach", None)) and hasattr(value, "shape")
    )


def _are_functions(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(map(callable, value))


def _are_pass_options(value: object) -> bool:
    if not isinstance(value, PassOptions):
        return False
    after, folder, stop, requested = value
    return (
        isinstance(after, (tuple, list))
        and all(isinstance(name, str) for name in after)
        and (folder is None or is_path(folder))
        and (stop is None or isinstance(stop, str))
        and isinstance(requested, tuple)
    )


_NONE: tuple[str, ...] = ()  # the default of names
_PATH = Kind(PATH, is_path)
# whoever writes to x.onnx/ means a folder, and pathlib would write the file x.onnx
_OUTPUT = Kind(
    "the path of a file without NUL characters, which does not end as that of a folder",
    lambda value: is_path(value) and not os.fspath(value).endswith(("/", os.sep)),
)
_SWITCH = Kind("True or False", _is_switch)
_OPTION = Kind("str", _is_text, "TM6002")
_VERSION = Kind("str", _is_text, "TM6001")
_NAMES = Kind("a list of names", _are_names, "TM6014")
_BY_NAME = Kind("a dict by name", _by_name, "TM6014")
_CALLABLE = Kind("a function", callable)
_MODEL = Kind(
    "a TracedModule, the path of a model file, or a PyTorch module",
    lambda value: not isinstance(value, PathLike) or is_path(value),
    "TM6008",
)
_DATA = Kind(
    "a path, arrays or a sequence of samples",
    lambda value: not isinstance(value, PathLike) or is_path(value),
    "TM6033",
)
_ARRAYS = Kind(
    "arrays by name or in order, a path, or text such as 'float32[1,3,8,8]'",
    lambda value: _are_inputs(value) or is_path(value),
    "TM6003",
)
# by the kind of a declared option
_KINDS_OF_OPTIONS: Mapping[str, Kind] = {
    "switch": _SWITCH,
    "integer": Kind("int", _is_integer, "TM6002"),
    "number": Kind("a positive number", _is_positive, "TM6032"),
    "opset": Kind(
        f"int or {AUTO!r}", lambda value: _is_integer(value) or (_is_text(value) and value == AUTO), "TM6001"
    ),
    "text": _OPTION,
    "path": _PATH,
    "names": _NAMES,
    "numbers": Kind("a list of numbers", _are_numbers, "TM6032"),
    "texts": Kind(
        "a description, or a list of descriptions",
        lambda value: _is_text(value) or (isinstance(value, (list, tuple)) and all(map(_is_text, value))),
        "TM6002",
    ),
    "passes": Kind("a list of passes", lambda value: isinstance(value, (list, tuple)), "TM6051"),
    "layouts": Kind(
        "str or a dict by name", lambda value: _is_text(value) or _names_by_name(value), "TM6002"
    ),
    "pairs": _BY_NAME,
    "rules": Kind("a dict by pattern", _names_by_name, "TM6032"),
    "settings": Kind("a dict by name", _by_name, "TM6032"),
    "data": _DATA,
    "qparams": Kind(
        'a dict by name of (type, scale, zero point), such as {"x": ("quint8", 0.5, 128)}',
        _are_input_qparams,
        "TM6014",
    ),
    "function": _CALLABLE,
    "pass options": Kind("PassOptions", _are_pass_options),
}


def _kind_of(option: Option) -> Kind | None:
    """Returns the kind of a keyword; None for one that is checked where it is used."""
    if option.kind == "text" and option.is_version:
        return _VERSION
    is_setting = option.kind == "text" and option.group == "calibration"
    return _OPTION._replace(code="TM6032") if is_setting else _KINDS_OF_OPTIONS.get(option.kind)


# keywords of conversions and of ``calibrate``, and the switches of all functions
_DECLARED = [option for options in (declared(CalibrateOptions), *KEYWORDS.values()) for option in options]
_DECLARED += [each for options in COMMAND_OPTIONS.values() for each in options if each.kind == "switch"]
# by the name of a parameter; FUNCTION.NAME where functions differ
KINDS: Mapping[str, Kind] = {
    **{each.name: kind for each in _DECLARED if each.is_keyword and (kind := _kind_of(each)) is not None},
    "model": _MODEL,
    "path": _PATH,
    "prototxt": _PATH,
    **dict.fromkeys(
        (
            "to_onnx.path",
            "simplify.path",
            "to_tflite.path",
            "to_target.path",
            "to_caffe.prototxt",
            "save.path",
        ),
        _OUTPUT,
    ),
    **dict.fromkeys(("caffemodel", "lock", "rebuild.folder", "diff.page"), _PATH),
    "package.source": _PATH,
    "package.output": _PATH,
    "package.kind": _OPTION,
    "package.dtypes": _NAMES,
    "package.weights": _OPTION,
    "package.cache_length": Kind("a positive int", lambda value: _is_integer(value) and value > 0, "TM6002"),
    "package.prefill_lengths": Kind(
        "a list of positive ints",
        lambda value: (
            isinstance(value, (list, tuple))
            and bool(value)
            and all(_is_integer(each) and each > 0 for each in value)
        ),
        "TM6002",
    ),
    "package.float_type": _OPTION,
    "package.opset": Kind("int or str", lambda value: _is_integer(value) or _is_text(value), "TM6001"),
    "check": _SWITCH,
    "format": _OPTION,
    "target": _VERSION,
    "version": Kind("int or str", lambda value: _is_integer(value) or _is_text(value), "TM6001"),
    "input_nodes": _NAMES,
    "data": _DATA,
    "file": _PATH,
    "bench.inputs": _ARRAYS,
    "run.inputs": _ARRAYS,
    "compare.inputs": _ARRAYS,
    "optimize.passes": Kind(
        "the name of a pass, or a list of passes",
        lambda value: isinstance(value, (str, list, tuple)),
        "TM6051",
    ),
    "parse_graph.text": Kind("str", _is_text),
    "parse_graph.weights": Kind(
        "a TracedModule, or arrays by digest",
        lambda value: (
            isinstance(value, TracedModule)
            or (_by_name(value) and all(isinstance(array, np.ndarray) for array in value.values()))
        ),
    ),
    "register_pass.name": Kind("str", _is_text, "TM6051"),
    "register_pass.pass_": _CALLABLE._replace(code="TM6051"),
    "register_pass.after": Kind(
        "the name of a pass, or a list of names",
        lambda value: _is_text(value) or value is _NONE or _are_names(value),
        "TM6051",
    ),
    "replace_pattern.model": Kind("a TracedModule", lambda value: isinstance(value, TracedModule), "TM6008"),
    "match_filters": Kind("a list of functions", _are_functions, "TM6054"),
    "decompose.table": Kind("a dict of functions by op", _by_name, "TM6052"),
    "split_module.by": _CALLABLE._replace(code="TM6052"),
    **dict.fromkeys(
        ("watch", "on", "verify_on", "fail_on"),
        Kind(
            "a list of names",
            lambda value: _are_names(value) or (isinstance(value, (list, tuple)) and not value),
            "TM6050",
        ),
    ),
    "view.source": _MODEL,
    "view.reports": Kind(
        "a list of paths",
        lambda value: isinstance(value, (list, tuple)) and all(map(is_path, value)),
        "TM6002",
    ),
    "stream.output": _PATH,
    "time": Kind(
        'axes by input, such as {"x": 2} or ["x:2"]',
        lambda value: (
            _is_text(value)
            or (isinstance(value, (list, tuple)) and all(map(_is_text, value)))
            or (_by_name(value) and all(map(_is_integer, value.values())))
        ),
        "TM6014",
    ),
    "chunk": Kind(
        "a positive int, or 'open'",
        lambda value: (
            value is None or (_is_text(value) and value == "open") or (_is_integer(value) and value > 0)
        ),
        "TM6002",
    ),
    "context": Kind(
        "an int from 0 on", lambda value: value is None or (_is_integer(value) and value >= 0), "TM6002"
    ),
    "threads": Kind("a positive int", lambda value: _is_integer(value) and value > 0, "TM6002"),
    "time_limit": Kind("a positive number", _is_positive, "TM6002"),
    "reduce.command": Kind(
        "a list of words",
        lambda value: isinstance(value, (list, tuple)) and bool(value) and all(map(_is_text, value)),
        "TM6002",
    ),
    "warm_up": Kind("an int from 0 on", lambda value: _is_integer(value) and value >= 0, "TM6002"),
    "seconds": Kind("a positive number", _is_positive, "TM6002"),
    "min_agreement": Kind("a number above 0 and at most 1", _is_share, "TM6002"),
    "first": _MODEL,
    "second": _MODEL,
    "verify_with": Kind(
        "a path, or arrays by name or in order",
        lambda value: value is None or is_path(value) or isinstance(value, Mapping) or _is_sequence(value),
        "TM6011",
    ),
    "verify.inputs": Kind("a sequence of arrays", _is_sequence, "TM6003"),
    "register_symbolic.name": Kind("str", _is_text, "TM6021"),
    "register_symbolic.function": _CALLABLE._replace(code="TM6021"),
    "register_symbolic.target": Kind("str", _is_text, "TM6021"),
    "register_symbolic.since": Kind("int", _is_integer, "TM6021"),
    "register_symbolic.reference": _CALLABLE._replace(code="TM6021"),
    "register_symbolic.result": Kind(
        "a function or str", lambda value: callable(value) or _is_text(value), "TM6021"
    ),
}


def check_options(target: str, options: Mapping[str, Any]) -> None:
    """Checks the keywords of ``to_target``.

    Raises UsageError for a keyword that conversions to ``target`` do not have, and for a value of another
    kind.
    """
    declared = {option.name: option for option in conversion_options(target) if option.is_keyword}
    for name, value in options.items():
        if name not in declared:
            raise UsageError(
                "TM6002",
                f"conversions to {target} have no option {name!r}",
                notes=[("help", f"its options: {', '.join(declared)}")],
            )
        _check(name, value, KINDS.get(name) or _kind_of(declared[name]), declared[name].default)


def check_arguments(name_of_function: str, bound: inspect.BoundArguments) -> None:
    """Raises UsageError for an argument of another kind than the table has for its name."""
    for name, value in bound.arguments.items():
        kind = KINDS.get(f"{name_of_function}.{name}") or KINDS.get(name)
        _check(name, value, kind, bound.signature.parameters[name].default)


def _check(name: str, value: Any, kind: Kind | None, default: Any) -> None:
    """Raises UsageError for a value of another kind; None is valid where it is the default."""
    if kind is not None and not (value is None and default is None) and not kind.fits(value):
        raise UsageError(kind.code, f"{name} must be {kind.expected}, got {type_and_value(value)}")


def entry_point(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a public function: its arguments are checked, and tracebacks of its errors end at the caller.

    An argument ``progress`` gets what the function reports. Raises CallError for unknown keywords, and too
    many or too few arguments; WriteError TM5001 for failures of the system, such as a full disk or a removed
    working folder.
    """

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        named = _with_observed(function.__name__, kwargs)
        bound = bound_arguments(function.__name__, inspect.signature(function), args, named)
        try:
            with _files_for_objects(function.__name__, bound) as files:
                check_arguments(function.__name__, bound)
                bound.apply_defaults()  # so that options have all fields of their TypedDict
                with reporting(bound.arguments.get("progress")):
                    result = function(*bound.args, **bound.kwargs)
                if files is not None:
                    files.finish(result)
                return result
        except OSError as error:
            from tmconvert.errors.environment import environment_error

            environmental = environment_error(error)
            if environmental is None:
                raise
            raise environmental from error

    return one_frame(called)


def _with_observed(function: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Replaces the Observation that is the argument ``seen`` by the options that it stands for."""
    observation = sys.modules.get("tmconvert.observation")
    if observation is None or not isinstance(given.get("seen"), observation.Observation):
        return given
    options = dict(given["seen"].options)
    inputs = options.pop("example_kwargs") if function == "trace" else {}
    return {**inputs, **options, **{name: value for name, value in given.items() if name != "seen"}}


def _files_for_objects(
    function: str, bound: inspect.BoundArguments
) -> AbstractContextManager[ObjectFiles | None]:
    """Replaces models and open files among the arguments by the paths of temporary files."""
    given = bound.arguments
    is_returned = function in _CONVERSIONS and given.get(_CONVERSIONS[function]) is None
    if not is_returned and not any(map(_may_be_file, given.values())):
        return nullcontext()
    from tmconvert.conversion.model_objects import ObjectFiles

    return ObjectFiles(function, bound)


_CONVERSIONS = {
    "to_onnx": "path",
    "simplify": "path",
    "to_tflite": "path",
    "to_caffe": "prototxt",
    "to_target": "path",
}
_FILE_METHODS = ("read", "write", "read_bytes", "ListFields", "graph_signature")


def _may_be_file(value: object) -> bool:
    """Whether a value may be a model as an object, or an open file; see ``model_objects.py``."""
    if isinstance(value, (str, PathLike, TracedModule, Mapping, list)) or value is None:
        return False
    if isinstance(value, tuple):
        return any(map(_may_be_file, value))
    return (
        isinstance(value, (bytes, bytearray, memoryview))
        or type(value).__module__.startswith(("onnx_ir", "torch.onnx"))
        or hasattr(value, "model")
        or any(hasattr(value, name) for name in _FILE_METHODS)
    )
