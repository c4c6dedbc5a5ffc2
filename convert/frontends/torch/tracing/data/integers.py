"""Integers that Python reads from tensors: ``lengths.max().item()``, ``sizes.tolist()``, ``int(n)``.

Such a number is a data-dependent size: that of ``torch.arange(tensor)``, which is put on the tape. From there
on it is followed like the size of any tensor. ``int(tensor)`` is a plain number whatever the tensor returns,
so that ``int`` itself is replaced in the file whose code calls it; the run starts again for that.
"""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
from functools import cache
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from tmconvert.errors import UnsupportedError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.names import Name
from tmconvert.frontends.torch.tracing.recording.tape import Tape, Value
from tmconvert.frontends.torch.tracing.sizes.integers import TracedFloat, TracedInt, truncated

if TYPE_CHECKING:
    from tmconvert.frontends.torch.tracing.recording.recorder import Recorder

INTEGERS = frozenset((torch.int64, torch.int32, torch.int16, torch.int8))
MOST = 64  # elements that a list of traced numbers has
READS = frozenset(("item", "tolist", "_local_scalar_dense"))
INSTEAD = (
    "use tensor ops there (torch.where, masks, torch.cond), or trace with --freeze-control-flow "
    "(freeze_control_flow=True), which keeps the branches of the example inputs"
)
TEXTS = ("__format__", "__repr__", "__str__")
WHAT = {
    "__bool__": "Python branches on it",
    "is_nonzero": "Python branches on it",
    "equal": "Python branches on it",
    "allclose": "Python branches on it",
    "__contains__": "Python branches on it",
    "item": "item() converts it to a number",
    "_local_scalar_dense": "it is converted to a number",
    "tolist": "tolist() converts it to numbers",
    "__int__": "int() converts it to a number",
    "__float__": "float() converts it to a number",
    "__index__": "it is used as a number, such as in range() or an index",
    **dict.fromkeys(TEXTS, "it is converted to text"),
    "numpy": "it is converted to a NumPy array",
    "__array__": "it is converted to a NumPy array",
}


class IntTaken(Exception):
    """Signals that the code of a file converts a tensor by ``int``, which the run has to replace there."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.file = file


class NumberRead(NamedTuple):
    """Traced numbers that the code of ``file``, if it may be changed, reads from a tensor at ``place``."""

    numbers: Any
    place: Source
    what: str
    file: str | None


def traced_numbers(recorder: Recorder, name: str, tensor: Any) -> Any:
    """Returns a tensor's integers as traced numbers, in lists for ``tolist``, or None."""
    if recorder.freeze_control_flow or tensor.dtype not in INTEGERS or not 0 < tensor.numel() <= MOST:
        return None
    # only a list needs to know how many elements there are
    if recorder.value_of(tensor).is_open and name == "tolist" and tensor.dim():
        return None
    if recorder.run(_least, tensor) < 0:
        return None
    if name == "__int__":
        file = file_of_caller()
        if file is not None:
            raise IntTaken(file)
        return None
    if name not in READS:
        return None
    return _listed(recorder, tensor) if name == "tolist" else _number(recorder, tensor)


def _least(tensor: torch.Tensor) -> int:
    return int(tensor.min())


def _listed(recorder: Recorder, tensor: torch.Tensor) -> Any:
    if not tensor.dim():
        return _number(recorder, tensor)
    rows = recorder.run(torch.Tensor.size, tensor, 0)
    parts = [recorder.record(_SELECT, torch.Tensor.select, (tensor, 0, row), {}) for row in range(rows)]
    return [_listed(recorder, part) for part in parts]


def _number(recorder: Recorder, tensor: torch.Tensor) -> TracedInt:
    if tensor.dim():
        tensor = recorder.record(_RESHAPE, torch.Tensor.reshape, (tensor, ()), {})
    counted = recorder.record(_ARANGE, torch.arange, (tensor,), {})
    recorder.tape.data_numbers[recorder.value_of(counted)] = recorder.value_of(tensor), tensor
    number = recorder.shape_of(counted)[0]
    assert isinstance(number, TracedInt)
    return number


_SELECT, _RESHAPE, _ARANGE = Name("select", True), Name("reshape", True), Name("torch.arange", False)


def read_tensor(recorder: Recorder, number: object) -> torch.Tensor | None:
    """Returns the tensor that a number was read of; None where it was written to since, and for others."""
    origin = number.origin if isinstance(number, TracedInt) else ()
    value, tensor = recorder.tape.data_numbers.get(origin[1] if origin else None, (None, None))  # type: ignore[arg-type]
    if value is None or recorder.value_of(tensor) is not value:
        return None
    recorder.used_numbers.add(id(origin[1]))
    return tensor


def comparisons_of_data(tape: Tape) -> set[tuple[str, str]]:
    """Returns the lines and operators of the comparisons of numbers that Python read of tensors."""
    numbers = {
        record.result: record.args[0]
        for record in (tape.top.records() if tape.data_numbers else ())
        if record.name == "size" and isinstance(record.result, Value)
    }
    return {
        (str(record.source), record.args[0])
        for record in (tape.top.records() if numbers else ())
        if record.name == "tm.assume"
        and any(
            numbers.get(each) in tape.data_numbers for each in record.args[1:3] if isinstance(each, Value)
        )
    }


# ---- int


class _CalledInt(type):
    """The type of ``TracedIntType``: calling it converts, and all else is as with ``int``."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if len(args) == 1 and not options:
            (given,) = args
            if isinstance(given, TracedInt):
                return given
            if isinstance(given, TracedFloat):
                return truncated(given)
            if isinstance(given, torch.Tensor) and given.numel() == 1:
                number = given.item()
                if isinstance(number, TracedInt):
                    return number
                return truncated(number) if isinstance(number, TracedFloat) else builtins.int(number)
        return builtins.int(*args, **options)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, builtins.int)


class TracedIntType(builtins.int, metaclass=_CalledInt):
    """``int`` in files whose code reads tensors by it: numbers of tensors, and sizes, stay traced."""


class _CalledFloat(type):
    """The type of ``TracedFloatType``, as ``_CalledInt``."""

    def __call__(cls, number: Any = 0.0) -> float:
        if isinstance(number, (TracedInt, TracedFloat)):
            return number * 1.0
        if isinstance(number, torch.Tensor) and number.numel() == 1 and number.is_floating_point():
            return number.item()
        return builtins.float(number)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, builtins.float)


class TracedFloatType(builtins.float, metaclass=_CalledFloat):
    """``float`` in files whose code converts sizes by it: they stay traced."""


def types_in(name: str) -> dict[str, Any]:
    """Returns the types that keep sizes traced, by the names that a module of Python uses for no more."""
    path = getattr(sys.modules[name], "__file__", None) or ""
    types = {"int": TracedIntType, "float": TracedFloatType}
    return {kind: traced for kind, traced in types.items() if _only_calls(path, kind)}


def file_of_caller(kind: str = "int") -> str | None:
    """Returns the name of a module whose code calls ``int`` or ``float`` and does no more with the name."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        "torch",
        "tmconvert",
    ):
        frame = frame.f_back
    if frame is None or kind in frame.f_globals:
        return None
    name = frame.f_globals.get("__name__", "")
    known = sys.modules.get(name)
    if known is None or vars(known) is not frame.f_globals or not _only_calls(frame.f_code.co_filename, kind):
        return None
    return name


@cache
def _only_calls(path: str, kind: str) -> bool:
    """Whether functions of a file call ``kind``, name it in annotations or test instances, and no more."""
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return False
    allowed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            allowed.add(id(node.func))
            if isinstance(node.func, ast.Name) and node.func.id in ("isinstance", "cast", "map"):
                allowed.update(id(each) for argument in node.args for each in ast.walk(argument))
        for field in ("annotation", "returns"):
            annotation = getattr(node, field, None)
            if annotation is not None:
                allowed.update(id(each) for each in ast.walk(annotation))
    functions = (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Lambda)))
    names = (node for function in functions for node in ast.walk(function) if isinstance(node, ast.Name))
    return all(node.id != kind or id(node) in allowed for node in names)


def reads_data(place: Source, what: str, reason: str = "") -> UnsupportedError:
    """Returns the error for code that makes a number of a tensor, which a file would have as a constant.

    ``reason`` states why a file cannot have both sides of a decision.
    """
    return UnsupportedError(
        "TM2011",
        f"the module reads the data of a tensor that depends on its input: {what}",
        source=place,
        excerpt=linecache.getline(place.file, place.line or 0).strip(),
        notes=[*([("note", reason)] if reason else []), ("help", INSTEAD)],
    )
