"""Custom ops, built from the functions that users pass to ``tmconvert.register_symbolic``."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tmconvert.errors import Refusal, TmconvertError, UsageError
from tmconvert.errors.source import Source
from tmconvert.errors.values import shown_value
from tmconvert.ir import InternalGraph, TensorNode
from tmconvert.ir.emitter import EagerEmitter, GraphEmitter
from tmconvert.ir.symbolic.journal import SizesSpecialized
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.ir.types import TensorType
from tmconvert.symbolics.op import ANY_DTYPE, Attribute, Op, Tensor
from tmconvert.symbolics.target_names import TARGETS, known_targets

Function = Callable[..., Any]

# The attribute of a call that holds the types its source recorded, where no rule computes them.
RECORDED = "recorded_types"
_NOT_THE_USERS = ("tmconvert", "importlib", "runpy", "numpy", "torch")


@dataclasses.dataclass(eq=False)
class CustomOp(Op):
    """An op whose signature is that of the user's functions.

    Arguments that are tensors, or lists with tensors, are tensor arguments; others are attributes. The
    declared ``args`` are for documentation: parameters with a default are shown as attributes.
    """

    parameters: tuple[inspect.Parameter, ...] = ()

    def bind(
        self, args: Sequence[Any], attributes: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        named = dict(attributes)
        recorded = {RECORDED: named.pop(RECORDED)} if RECORDED in named else {}
        given = self._given(list(args), named)
        try:
            bound = inspect.Signature(self.parameters).bind(**given)
        except TypeError as error:
            raise _unfit(self.name, f"a call does not match its parameters: {error}") from error
        bound.apply_defaults()
        tensors = {name: value for name, value in bound.arguments.items() if _holds_tensors(value)}
        rest = {name: value for name, value in bound.arguments.items() if name not in tensors}
        listed = (list(value) if isinstance(value, tuple) else value for value in tensors.values())
        return tuple(listed), {**rest, **recorded}

    def _given(self, args: list[Any], named: dict[str, Any]) -> dict[str, Any]:
        """Returns all arguments by name; positional ones are assigned to the parameters without one."""
        free = [parameter.name for parameter in self.parameters if parameter.name not in named]
        if len(args) > len(free):
            takes = ", ".join(parameter.name for parameter in self.parameters)
            problem = f"its functions take ({takes}), but the call has {len(args) + len(named)} arguments"
            raise _unfit(self.name, problem, "declare all parameters of the op, after g")
        return {**dict(zip(free, args, strict=False)), **named}

    def by_name(self, tensors: Sequence[Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
        names = [parameter.name for parameter in self.parameters if parameter.name not in attributes]
        return {**dict(zip(names, tensors, strict=True)), **attributes}

    def infer(self, types: Sequence[Any], attributes: Mapping[str, Any]) -> list[TensorType]:
        if RECORDED in attributes:
            return [TensorType(np.dtype(dtype), tuple(shape)) for dtype, shape in attributes[RECORDED]]
        return super().infer(types, attributes)

    def check_types(self, types: Sequence[Any]) -> None:
        """Checks types of arguments; the user's functions accept any."""

    def evaluate(self, arrays: Sequence[Any], attributes: Mapping[str, Any]) -> Any:
        if self.kernel is None:
            raise Refusal(f"{self.name} has no reference kernel", "pass reference= to register_symbolic")
        return super().evaluate(arrays, attributes)

    def computes_types(self) -> bool:
        """Whether a result rule or a decomposition computes the types of the results."""
        return self.result is not _unknown_result


def _holds_tensors(value: Any) -> bool:
    items = value if isinstance(value, (list, tuple)) else [value]
    return any(isinstance(item, (TensorNode, np.ndarray, TensorType)) for item in items)


def _unknown_result(**arguments: Any) -> TensorType:
    raise Refusal("the types of its results are unknown", "pass result= to register_symbolic")


def extended(
    known: Op | None, name: str, function: Function,
    *, target: str | None, since: int, reference: Function | None, result: Function | str | None,
    catalogue: Callable[[], Mapping[str, Op]],
) -> Op:  # fmt: skip
    """Returns the op ``name`` with one more of the user's functions, added to the registered op ``known``.

    Raises UsageError TM6021 for what cannot be registered.
    """
    if target is not None and target not in known_targets():
        raise _unfit(name, f"unknown target {target!r}", f"targets: {', '.join(known_targets())}")
    op = _fresh(name, _parameters(name, function)) if known is None else _copied(known)
    _check_signatures(op, function, reference, result)
    if target is None:
        _decomposed(op, _said(name, function), catalogue)
    else:
        was = op.symbolics.get(target, {})
        # of an op of ours the user's function stands in for all symbolics from its version on
        kept = {version: other for version, other in was.items() if _stays(op, version, since)}
        op.symbolics[target] = {**kept, since: _symbolic(name, function)}
        op.reasons.pop(target, None)
        op.retired.pop(target, None)
    if result is not None:
        op.result = (lambda **arguments: arguments[result]) if isinstance(result, str) else result
    if reference is not None:
        op.kernel = _kernel(_said(name, reference))
    for other in TARGETS:
        if not op.symbolics.get(other) and op.decomposition is None and isinstance(op, CustomOp):
            op.reasons[other] = f"register_symbolic({name!r}, target={other!r}) was used without a function"
    return op


def _stays(op: Op, version: int, since: int) -> bool:
    return version < since or (isinstance(op, CustomOp) and version != since)


def _fresh(name: str, parameters: tuple[inspect.Parameter, ...]) -> CustomOp:
    args = [
        Tensor(each.name, ANY_DTYPE)
        if each.default is each.empty
        else Attribute(each.name, lambda value: value, each.default)
        for each in parameters
    ]
    return CustomOp(name, args=args, result=_unknown_result, parameters=parameters)


def _copied(op: Op) -> Op:
    existing = copy.copy(op)
    existing.symbolics = {target: dict(known) for target, known in op.symbolics.items()}
    existing.reasons, existing.retired = dict(op.reasons), dict(op.retired)
    return existing


# ---- signatures


def _parameters(name: str, function: Function) -> tuple[inspect.Parameter, ...]:
    """Returns the parameters after ``g``."""
    parameters = _signature(name, function).parameters.values()
    if not parameters:
        raise _unfit(name, f"{_called(function)} takes no arguments", "its first parameter must be g")
    first, *others = parameters
    variable = (first.VAR_POSITIONAL, first.VAR_KEYWORD)
    if first.kind in variable or any(other.kind in variable for other in others):
        raise _unfit(name, f"{_called(function)} takes *args or **kwargs", "name its parameters")
    return tuple(other.replace(kind=other.KEYWORD_ONLY, annotation=other.empty) for other in others)


def _signature(name: str, function: Function) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise _unfit(name, f"{shown_value(function)} has no readable signature") from error


def _check_signatures(op: Op, symbolic: Function, reference: Any, result: Any) -> None:
    """Checks that all functions of an op take its arguments; a result rule and a kernel take no ``g``."""
    names = [argument.name for argument in op.args]
    if isinstance(result, str) and result not in names:
        raise _unfit(op.name, f"result is {result!r}, but must be one of {', '.join(names)}")
    found = [(symbolic, [parameter.name for parameter in _parameters(op.name, symbolic)])]
    plain = [function for function in (reference, result) if callable(function)]
    found += [(function, list(_signature(op.name, function).parameters)) for function in plain]
    for function, given in found:
        if given != names:
            raise _unfit(
                op.name,
                f"{_called(function)} takes ({', '.join(given)}), but must take ({', '.join(names)})",
                "the functions of an op have the same parameters; a symbolic has g before them",
            )


def _called(function: Any) -> str:
    return getattr(function, "__name__", repr(function))


def _unfit(name: str, problem: str, help: str = "") -> UsageError:
    return UsageError("TM6021", f"cannot register {name}: {problem}", notes=[("help", help)] if help else [])


# ---- the user's functions as an op calls them


def _said(name: str, function: Function) -> Function:
    """Wraps ``function``: exceptions in it are reported with the user's line."""

    @functools.wraps(function)
    def called(*args: Any, **arguments: Any) -> Any:
        arguments.pop(RECORDED, None)
        try:
            return function(*args, **arguments)
        except (Refusal, SizesSpecialized, TmconvertError):
            raise
        except Exception as error:
            raise UsageError(
                "TM6022",
                f"{_called(function)}, registered for {name}, failed: {type(error).__name__}: {error}",
                source=raised_at(error),
            ) from error

    return called


def _symbolic(name: str, function: Function) -> Function:
    """Wraps a symbolic, which must return as many results as the call has."""
    called = _said(name, function)

    @functools.wraps(function)
    def checked(g: Any, **arguments: Any) -> Any:
        first_new = len(g.graph.operators)
        result = called(g, **arguments)
        for operator in g.graph.operators[first_new:]:
            for value in operator.outputs:
                value.is_typed = False  # few users say the shapes of intermediate results
        values = list(result) if isinstance(result, (list, tuple)) else [result]
        wanted = len(g.result_types)
        if len(values) != wanted or not all(hasattr(value, "is_constant") for value in values):
            got = ", ".join(type(value).__name__ for value in values)
            raise UsageError(
                "TM6022",
                f"{_called(function)}, registered for {name}, returned ({got}), not {wanted} "
                f"{'result' if wanted == 1 else 'results'} of g.op",
                source=_definition(function),
            )
        return values if isinstance(result, (list, tuple)) else result

    return checked


def raised_at(error: BaseException) -> Source:
    """Returns the innermost line of the user's code in the traceback of an error."""
    place = Source("")
    trace = error.__traceback__
    while trace is not None:
        package = str(trace.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if package not in _NOT_THE_USERS:
            place = Source(trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return place


def _definition(function: Function) -> Source:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return Source("") if code is None else Source(code.co_filename, code.co_firstlineno)


def _kernel(function: Function) -> Function:
    """Wraps a kernel with several results, so that it returns a list."""

    def kernel(**arguments: Any) -> Any:
        result = function(**arguments)
        return list(result) if isinstance(result, tuple) else result

    return kernel


def _decomposed(op: Op, said: Function, catalogue: Callable[[], Mapping[str, Op]]) -> None:
    """Wraps a decomposition, from which types and values are also computed for a user's op."""
    op.decomposition, op.decomposed_from = said, {}
    op.reasons = {}
    if not isinstance(op, CustomOp):
        op.symbolics = {}
        return

    def result(**arguments: Any) -> Any:
        graph = InternalGraph()

        def node(leaf: Any) -> Any:
            if not isinstance(leaf, TensorType):
                return leaf
            return graph.add_input(TensorNode(graph.free_name("x"), leaf.shape, leaf.dtype), made_by="result")

        made = said(GraphEmitter(graph, catalogue(), made_by="result"), **map_leaves(node, arguments))
        types = [leaf.type for leaf in leaves(made)]
        return types if isinstance(made, (list, tuple)) else types[0]

    op.result = result
    op.kernel = _kernel(lambda **arguments: said(EagerEmitter(catalogue()), **arguments))
