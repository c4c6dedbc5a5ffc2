"""Calls with function arguments: torch.cond, torch.while_loop, autograd.Functions with a symbolic.

Each function is traced as a scope of its own, and becomes a subgraph among the arguments of the recorded
call.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_map, tree_unflatten

from tmconvert.errors import UnsupportedError
from tmconvert.frontends.torch.tracing.recording.recorder import Recorder
from tmconvert.frontends.torch.tracing.recording.source_lines import user_place
from tmconvert.frontends.torch.tracing.recording.structure import plain_structure
from tmconvert.frontends.torch.tracing.recording.tape import Record, Scope, Value
from tmconvert.frontends.torch.tracing.special import symbolic
from tmconvert.ir.tree import leaves, map_leaves

Function = Callable[..., Any]


def conditional(recorder: Recorder, pred: Any, true_fn: Function, false_fn: Function, operands: Any) -> Any:
    decision = recorder.value_of(pred)
    given = recorder.values_of(plain_structure(tuple(operands)))
    scopes, results = [], []
    for label, function in (("cond_true", true_fn), ("cond_false", false_fn)):
        scope, result = _body(recorder, label, function, operands, given)
        scopes.append(scope)
        results.append(result)
    types = [recorder.run(_types, result) for result in results]
    if types[0] != types[1]:
        shown = [", ".join(f"{dtype}{list(shape)}" for dtype, shape in each) for each in types]
        raise UnsupportedError(
            "TM2018",
            f"the branches of torch.cond return different types: {shown[0]} and {shown[1]}",
            source=user_place(),
        )
    taken = results[0] if recorder.run(bool, pred) else results[1]
    return _recorded(recorder, "torch.cond", (decision, *scopes, given), scopes, taken)


def while_loop(recorder: Recorder, cond_fn: Function, body_fn: Function, carried: Any, around: Any) -> Any:
    given = recorder.values_of(tuple(carried))
    # traced with tensors of its own: what they are in one round is not what they were before it
    first = [recorder.run(torch.clone, tensor) for tensor in carried]
    scopes, results = [], []
    for label, function in (("loop_condition", cond_fn), ("loop_body", body_fn)):
        scope, result = _body(recorder, label, function, first, None)
        scopes.append(scope)
        results.append(result)
    if recorder.run(_types, results[1]) != recorder.run(_types, first):
        raise UnsupportedError(
            "TM2018",
            "the body of torch.while_loop returns other types than those of its initial values",
            source=user_place(),
        )

    def loop() -> Any:
        state = tuple(carried)
        while cond_fn(*state):
            state = tuple(body_fn(*state))
        return state

    return _recorded(recorder, "torch.while_loop", (*scopes, given), scopes, recorder.run(loop))


def _scan(recorder: Recorder, combine_fn: Function, init: Sequence[Any], xs: Sequence[Any]) -> Any:
    """Records a scan. ``combine_fn`` takes leaves and returns two trees: the carry and the stacked
    outputs.
    """
    given = recorder.values_of((tuple(init), tuple(xs)))
    state = [recorder.run(torch.clone, tensor) for tensor in init]
    slices = [recorder.run(lambda tensor: tensor[0].clone(), tensor) for tensor in xs]
    scope, (carry, _) = _body(recorder, "scan_step", combine_fn, [*state, *slices], None)
    if recorder.run(_types, carry) != recorder.run(_types, state):
        reason = "the step of a scan returns a carry of other types than the initial one"
        raise UnsupportedError("TM2018", reason, source=user_place())

    def scanned() -> Any:
        carry, rows = list(init), []
        for parts in zip(*(tensor.unbind(0) for tensor in xs), strict=True):
            after, row = combine_fn(*carry, *parts)
            carry = _tensors(after)
            rows.append(row)
        return after, tree_map(lambda *column: torch.stack(column), *rows)

    return _recorded(recorder, "torch.scan", (scope, *given), [scope], recorder.run(scanned))


def _map(recorder: Recorder, f: Function, xs: Sequence[object], args: Sequence[Any], *, specs: Any) -> Any:
    """Records a map: a scan without a carry; ``f`` takes trees of these specs."""

    def step(*slices: Any) -> Any:
        parts = tree_unflatten(list(slices), specs["xs_spec"])
        return (), f(parts, *tree_unflatten(list(args), specs["args_spec"]))

    return _scan(recorder, step, [], xs)[1]


HIGHER_ORDER: dict[str, Function] = {
    "_cond_op_wrapper": conditional,
    "_while_loop_op_wrapper": while_loop,
    "run_flattened_scan": _scan,
}


def called_by_name(recorder: Recorder, name: str, wrapper: Function, args: tuple[Any, ...]) -> Any:
    """Records a higher-order function by the name of what wraps it, one of ``watches.HIGHER_ORDER``."""
    if name == "run_flattened_map":
        return _map(recorder, *args, specs=inspect.getclosurevars(wrapper).nonlocals)
    return HIGHER_ORDER[name](recorder, *args)


def applied(recorder: Recorder, cls: Any, forward: Function, args: tuple[Any, ...]) -> Any:
    """Records a call of an autograd.Function that has a symbolic for ONNX; its forward alone if the symbolic
    needs TorchScript.
    """
    said = recorder.run(symbolic.said_by, cls, args)
    if said is None:
        return forward(*args)
    given = recorder.values_of(plain_structure(args))
    scope, result = _body(recorder, cls.__name__, forward, args, given)
    scope.class_name = f"{cls.__module__}.{cls.__qualname__}"
    inputs = recorder.values_of(list(said.inputs))
    arguments = (scope, given, said.operators, said.results, inputs)
    if len(said.results) != len(_tensors(result)):
        raise UnsupportedError(
            "TM2017",
            f"the symbolic of {cls.__name__} returns {len(said.results)} results, its forward "
            f"{len(_tensors(result))}",
            source=symbolic.place_of(cls),
        )
    return _recorded(recorder, "torch.autograd.Function.apply", arguments, [scope], result)


# ---- bodies


def _body(
    recorder: Recorder, label: str, function: Function, args: Sequence[Any], given: Any
) -> tuple[Scope, Any]:
    """Returns the scope of a call of ``function``, and its result. If ``given`` is None, ``args`` are new
    inputs.
    """
    outer = recorder.scope
    name = f"{label}@{outer.subgraphs}"
    outer.subgraphs += 1
    scope = Scope(f"{outer.path}.{name}" if outer.path else name, label, outer, source=user_place())
    if given is None:
        given = tuple(_formal(recorder, scope, tensor) for tensor in args)
    scope.args, scope.parameters = given, _parameters(function, len(given))
    before = recorder.values_of(_tensors(args))
    recorder.scope = scope
    try:
        result = function(*args)
        scope.result = recorder.values_of(plain_structure(result))
    finally:
        recorder.scope = outer
    if before != recorder.values_of(_tensors(args)):
        raise UnsupportedError(
            "TM2018", (f"{label} writes in place to one of its arguments"), source=user_place()
        )
    return scope, result


def _formal(recorder: Recorder, scope: Scope, tensor: torch.Tensor) -> Value:
    ((dtype, shape),) = recorder.run(_types, tensor)
    value = Value(scope, "input", shape, str(dtype).removeprefix("torch."), depends=True)
    recorder.run(recorder.aliases.add, tensor, value)
    return value


def _parameters(function: Function, count: int) -> tuple[str, ...]:
    try:
        names = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        names = []
    return (*names, *(f"input_{number}" for number in range(len(names), count)))[:count]


def _recorded(
    recorder: Recorder, name: str, args: tuple[object, ...], scopes: Sequence[Scope], result: object
) -> Any:
    """Puts the call on the tape, and returns its result as new tensors."""
    values: list[Value] = []
    depends = any(
        leaf.depends for leaf in leaves((args, [scope.result for scope in scopes])) if isinstance(leaf, Value)
    )

    def fresh(leaf: object) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        tensor = recorder.run(torch.clone, leaf)
        hint = f"{name.rpartition('.')[2]}_out"
        ((dtype, shape),) = recorder.run(_types, tensor)
        value = Value(recorder.scope, hint, shape, str(dtype).removeprefix("torch."), depends=depends)
        recorder.run(recorder.aliases.add, tensor, value)
        values.append(value)
        return tensor

    result = map_leaves(fresh, result)
    recorder.scope.items.append(
        Record(name, False, args, {}, tuple(values), user_place(), subgraphs=tuple(scopes))
    )
    return result


def _types(tree: object) -> list[tuple[torch.dtype, tuple[int, ...]]]:
    return [(tensor.dtype, tuple(tensor.shape)) for tensor in _tensors(tree)]


def _tensors(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in leaves(plain_structure(tree)) if isinstance(leaf, torch.Tensor)]
