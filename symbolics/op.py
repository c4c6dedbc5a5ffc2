"""Op: the definition of one ATen-style op; its file in ``ops/`` declares it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tmconvert.errors import InternalError, UsageError
from tmconvert.ir.expr import CallFunction
from tmconvert.ir.graph import InternalGraph
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.ir.symbolic.journal import retried, validated
from tmconvert.ir.types import TensorType, name_of
from tmconvert.symbolics.dialects import DIALECTS
from tmconvert.symbolics.layouts import SOURCE, LayoutRule
from tmconvert.symbolics.target_names import TARGETS
from tmconvert.symbolics.traits import DrawsRandom, T, Trait

FLOATS = ("float32", "float16", "float64")
INTEGERS = ("int32", "int64", "int16", "int8", "uint8")
NUMBERS = FLOATS + INTEGERS
ANY_DTYPE = (*NUMBERS, "bool")
WIDE_UNSIGNED = ("uint16", "uint32", "uint64")  # of inputs and outputs; only casts compute with them
INDICES = ("int64", "int32")

_REQUIRED = object()
# what type rules raise for arguments that do not fit each other
_MISFITS = (TypeError, ValueError, IndexError, ZeroDivisionError)


class SchemaError(InternalError):
    """Arguments do not fit the signature of an op."""

    def __init__(self, op: str, message: str) -> None:
        super().__init__("TM3004", f"{op}: {message}")


class Tensor(NamedTuple):
    """A tensor argument; an omitted optional one is None. ``ranks`` None: any."""

    name: str
    dtypes: tuple[str, ...] = NUMBERS
    optional: bool = False
    ranks: tuple[int, ...] | None = None


class Tensors(NamedTuple):
    """An argument that is a list of one or more tensors; ``optional`` ones may be None."""

    name: str
    dtypes: tuple[str, ...] = NUMBERS
    ranks: tuple[int, ...] | None = None
    optional: bool = False


class Attribute(NamedTuple):
    """A constant argument. ``convert`` makes it canonical or raises ValueError/TypeError."""

    name: str
    convert: Callable[[Any], Any]
    default: Any = _REQUIRED

    @property
    def is_required(self) -> bool:
        return self.default is _REQUIRED


def integer(name: str, default: Any = _REQUIRED) -> Attribute:
    return Attribute(name, _exact_int, default)


def number(name: str, default: Any = _REQUIRED) -> Attribute:
    """A float, or an int kept as one; may be None where the default is None."""
    return Attribute(
        name, lambda value: None if value is None and default is None else _number(value), default
    )


def numbers(name: str, default: Any = _REQUIRED) -> Attribute:
    """A list of floats; may be None where the default is None."""
    return Attribute(name, lambda value: [_number(item) for item in value], default)


def boolean(name: str, default: Any = _REQUIRED) -> Attribute:
    return Attribute(name, _exact_bool, default)


def integers(name: str, default: Any = _REQUIRED, *, length: int | None = None) -> Attribute:
    """A list of ints; a single int is repeated to ``length``, by default one."""

    def convert(value: Any) -> list[int]:
        is_one = not isinstance(value, (list, tuple)) and np.ndim(value) == 0
        items = [value] * (length or 1) if is_one else list(value)
        if length is not None and len(items) != length:
            raise ValueError(f"{len(items)} values, expected {length}")
        return [_exact_int(item) for item in items]

    return Attribute(name, convert, default)


def choice(name: str, choices: Sequence[str], default: Any = _REQUIRED) -> Attribute:
    def convert(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"{value!r} must be one of {', '.join(choices)}")
        return str(value)

    return Attribute(name, convert, default)


def graph(name: str) -> Attribute:
    """A subgraph (``ir/subgraphs.py``)."""

    def convert(value: Any) -> InternalGraph:
        if not isinstance(value, InternalGraph):
            raise TypeError(f"{value!r} is not a graph")
        return value

    return Attribute(name, convert)


def _exact_int(value: Any) -> Any:
    """An int, or a Dim."""
    if isinstance(value, Dim):
        return value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{value!r} is not an integer")
    return int(value)


def _exact_bool(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{value!r} is not a bool")
    return bool(value)


def _number(value: Any) -> int | float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        raise TypeError(f"{value!r} is not a number")
    return value.item() if isinstance(value, np.number) else value


Symbolic = Callable[..., Any]
Argument = Tensor | Tensors | Attribute


@dataclass(eq=False)
class Op:
    """Signature, type rule, layout rule, traits, reference kernel and symbolics of one op.

    ``args`` are in ATen's order with ATen's names and defaults, except that ATen's ``self`` and
    ``input`` are called ``x``. ``result`` computes the TensorType (or a list of them) from the
    arguments by name, tensors given as TensorTypes. ``layout`` is a LayoutRule, or a function from
    the same arguments to one. ``traits`` are what passes know of the op (``traits.py``), one of a kind.
    """

    name: str
    args: Sequence[Argument]
    result: Callable[..., TensorType | list[TensorType]]
    layout: LayoutRule | Callable[..., LayoutRule] = SOURCE
    traits: Sequence[Trait] = ()
    kernel: Callable[..., Any] | None = None
    decomposition: Callable[..., Any] | None = None
    decomposed_from: dict[str, int] = field(default_factory=dict)
    needs_itself: bool = False
    symbolics: dict[str, dict[int, Symbolic]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    retired: dict[str, int] = field(default_factory=dict)
    conditions: dict[str, Callable[..., bool]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tensors = [argument for argument in self.args if not isinstance(argument, Attribute)]
        self._traits = {type(trait): trait for trait in self.traits}

    # ---- declarations

    def reference(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Declares the NumPy kernel; it is called with the arguments by name, tensors as arrays."""
        self.kernel = function
        return function

    def decompose(
        self, function: Callable[..., Any] | None = None, *, needs_itself: bool = False, **since: int
    ) -> Callable[..., Any]:
        """Declares the decomposition into other ops: ``function(g, **arguments)``, ``g`` an Emitter.

        ``@op.decompose(onnx=9)``: some of these ops begin at opset 9. With ``needs_itself`` it has simpler
        calls of the same op, and is for targets that have a symbolic of it.
        """

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            self.decomposition, self.decomposed_from, self.needs_itself = function, since, needs_itself
            return function

        return register if function is None else register(function)

    def native_where(self, target: str) -> Callable[[Callable[..., bool]], Callable[..., bool]]:
        """Declares for which calls the symbolics of ``target`` apply; other calls are decomposed.

        ``function(**arguments)`` gets tensors as TensorNodes.
        """

        def register(function: Callable[..., bool]) -> Callable[..., bool]:
            self.conditions[target] = function
            return function

        return register

    def onnx(self, since: int) -> Callable[[Symbolic], Symbolic]:
        return self.symbolic("onnx", since)

    def tflite(self, since: int = 0) -> Callable[[Symbolic], Symbolic]:
        return self.symbolic("tflite", since)

    def caffe(self, *dialects: str) -> Callable[[Symbolic], Symbolic]:
        """Declares the symbolic of some Caffe dialects; without names, of all without a specific one."""

        def register(function: Symbolic) -> Symbolic:
            for dialect in dialects or DIALECTS[:1]:
                self.symbolic("caffe", DIALECTS.index(dialect))(function)
            return function

        return register

    def symbolic(self, target: str, since: int) -> Callable[[Symbolic], Symbolic]:
        """Declares the symbolic of ``target`` from version ``since`` on: ``function(g, **arguments)``.

        Raises UsageError TM6021 for a function with other parameters than the op; tests check those of the
        built-in targets.
        """

        def register(function: Symbolic) -> Symbolic:
            if target not in TARGETS:
                self._check_parameters(function)
            if function.__name__ == "<lambda>":  # the name that a traceback shows, and grep finds
                function.__name__ = f"{self.name.rpartition(':')[2]}_{target}{since or ''}"
            known = self.symbolics.setdefault(target, {})
            if since in known:
                raise InternalError(
                    "TM3005",
                    f"{self.name} has two symbolics for {target} {since}: "
                    f"{known[since].__name__} and {function.__name__}",
                )
            known[since] = function
            return function

        return register

    def _check_parameters(self, function: Symbolic) -> None:
        names = [argument.name for argument in self.args]
        signature = inspect.signature(function)
        try:
            signature.bind(None, **dict.fromkeys(names))
        except TypeError as error:
            found, wanted = ", ".join(signature.parameters), ", ".join(["g", *names])
            raise UsageError(
                "TM6021",
                f"cannot register {function.__name__}: it takes ({found}), but a symbolic of {self.name} "
                f"must take ({wanted})",
            ) from error

    def unsupported(self, target: str, reason: str) -> None:
        """Declares why ``target`` cannot express this op."""
        self.reasons[target] = reason

    def retire(self, target: str, version: int) -> None:
        """Uses the decomposition from ``version`` on, since no runtime has the operator of the symbolics."""
        self.retired[target] = version

    # ---- use

    def trait(self, kind: type[T]) -> T | None:
        """Returns the trait of a class; None if the op does not have it."""
        found = self._traits.get(kind)
        assert found is None or isinstance(found, kind)
        return found

    def has(self, kind: type[Trait]) -> bool:
        return kind in self._traits

    def bind(
        self, args: Sequence[Any], attributes: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Returns canonical (tensor arguments, attributes): all of them, in the order of the signature.

        Positional arguments are those that are not named, so that the canonical pair can be bound again.
        """
        tensors, bound, given = [], {}, list(args)
        named = dict(attributes)
        for argument in self.args:
            is_named = argument.name in named or not given
            value = named.pop(argument.name, _REQUIRED) if is_named else given.pop(0)
            if isinstance(argument, Attribute):
                bound[argument.name] = self._attribute(argument, value)
            else:
                tensors.append(self._tensor(argument, value))
        if given or named:
            extra = ", ".join(map(str, [*given, *named]))
            raise SchemaError(self.name, f"too many arguments: {extra}")
        return tuple(tensors), bound

    def _attribute(self, argument: Attribute, value: Any) -> Any:
        if value is _REQUIRED:
            value = argument.default
        if value is _REQUIRED:
            raise SchemaError(self.name, f"{argument.name} is missing")
        if value is None and argument.default is None:
            return None
        try:
            return argument.convert(value)
        except (TypeError, ValueError) as error:
            raise SchemaError(self.name, f"{argument.name}: {error}") from error

    def _tensor(self, argument: Tensor | Tensors, value: Any) -> Any:
        if isinstance(argument, Tensors):
            if not isinstance(value, (list, tuple)) or not value:
                raise SchemaError(self.name, f"{argument.name} must be a list of tensors")
            if not argument.optional and any(item is None for item in value):
                raise SchemaError(self.name, f"{argument.name} must be a list of tensors")
            return list(value)
        if value is _REQUIRED or value is None:
            if not argument.optional:
                raise SchemaError(self.name, f"{argument.name} is missing")
            return None
        if isinstance(value, (list, tuple)):
            raise SchemaError(self.name, f"{argument.name} must be one tensor")
        return value

    def by_name(self, tensors: Sequence[Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Merges the canonical pair that ``bind`` returns into one mapping."""
        named = {argument.name: value for argument, value in zip(self._tensors, tensors, strict=True)}
        return {**named, **attributes}

    def infer(self, types: Sequence[Any], attributes: Mapping[str, Any]) -> list[TensorType]:
        """Infers result types from canonical arguments, tensors given as TensorTypes. Raises SchemaError."""
        self.check_types(types)
        try:
            arguments = self.by_name(types, attributes)
            result = validated(lambda: retried(lambda: self.result(**arguments), *_MISFITS))
        except _MISFITS as error:
            raise SchemaError(self.name, str(error)) from error
        return result if isinstance(result, list) else [result]

    def check_types(self, types: Sequence[Any]) -> None:
        """Raises SchemaError where a tensor has a dtype or rank that the signature does not allow."""
        for argument, given in zip(self._tensors, types, strict=True):
            for type_ in given if isinstance(given, list) else [given]:
                if type_ is not None and name_of(type_.dtype) not in argument.dtypes:
                    raise SchemaError(
                        self.name,
                        (f"{argument.name} is {type_}, but must be one of {', '.join(argument.dtypes)}"),
                    )
                if type_ is not None and argument.ranks is not None and type_.rank not in argument.ranks:
                    ranks = " or ".join(map(str, argument.ranks))
                    raise SchemaError(self.name, f"{argument.name} {type_} must have rank {ranks}")

    def evaluate(self, arrays: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        """Computes the result by the reference kernel: an array, or a list of several.

        Raises InternalError TM3006 where there is no kernel.
        """
        arguments = self.by_name(arrays, attributes)
        if self.kernel is None:
            raise InternalError("TM3006", f"{self.name} has no reference kernel")
        with np.errstate(all="ignore"):
            result = self.kernel(**arguments)
        if isinstance(result, list) and len(result) != 1:
            return [np.asarray(item) for item in result]
        # NumPy gives scalars for arrays of rank 0
        return np.asarray(result[0] if isinstance(result, list) else result)

    def layout_rule(self, types: Sequence[Any], attributes: Mapping[str, Any]) -> LayoutRule:
        if isinstance(self.layout, LayoutRule):
            return self.layout
        return self.layout(**self.by_name(types, attributes))

    @property
    def is_random(self) -> bool:
        """Whether each call has other results, so that calls are never computed before the model runs."""
        return self.has(DrawsRandom)

    def lookup(self, target: str, version: int) -> Symbolic | None:
        """Returns the symbolic with the largest ``since`` up to ``version``, of the dialect or of all."""
        if version >= self.retired.get(target, version + 1):
            return None
        known = self.symbolics.get(target, {})
        if target == "caffe":  # dialects do not follow one another
            return known.get(version, known.get(0))
        usable = [since for since in known if since <= version]
        return known[max(usable)] if usable else None

    def lowest_version(self, target: str) -> int | None:
        """Returns the first version of ``target`` with a symbolic."""
        return min(self.symbolics.get(target, {}), default=None)

    def decomposed_since(self, target: str) -> int | None:
        """Returns the first version of ``target`` where the decomposition works."""
        if self.decomposition is None or target in self.reasons:
            return None
        return self.decomposed_from.get(target, 0)

    def is_decomposed(self, target: str, version: int, call: CallFunction | None = None) -> bool:
        """Whether this op, or this ``call`` of it, is decomposed for ``target`` at ``version``."""
        since, condition = self.decomposed_since(target), self.conditions.get(target)
        if since is None or since > version:
            return False
        if self.lookup(target, version) is None:
            return not self.needs_itself
        if condition is None or call is None:
            return False
        return not condition(**self.by_name(call.args, call.kwargs))


Ops = Mapping[str, Op]  # by name
