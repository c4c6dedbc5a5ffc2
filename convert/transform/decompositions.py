"""Replaces ops of a model by functions of other ops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmconvert.errors import TmconvertError, UsageError
from tmconvert.errors.suggestions import no_such_name
from tmconvert.errors.values import shown_value
from tmconvert.ir import CallFunction, InternalGraph, TensorNode, TracedModule
from tmconvert.ir.tree import leaves
from tmconvert.ir.types import AnyCallable
from tmconvert.passes.rewriting import emitter_before
from tmconvert.symbolics.custom import raised_at
from tmconvert.symbolics.op import Attribute, Op, Ops
from tmconvert.transform.catalogue_calls import CatalogueCalls
from tmconvert.transform.normal_form import transformed
from tmconvert.transform.pattern import parameter_names

MADE_BY = "decompose"


def decompose_model(module: TracedModule, table: Mapping[str, AnyCallable], catalogue: Ops) -> TracedModule:
    """Returns the model in ATen-style ops, with the ops of ``table`` replaced by what its functions compute.

    Raises UsageError TM6050 for an unknown op, TM6052 for a function that fails, TM6054 for one whose results
    have other types.
    """
    for name, function in table.items():
        if name not in catalogue:
            raise no_such_name(name, catalogue, "there is no op")
        if not callable(function):
            raise UsageError("TM6052", f"the decomposition of {name} must be a function")

    def work(graph: InternalGraph) -> None:
        for call in list(graph):
            if isinstance(call, CallFunction) and call.function in table:
                _replace(graph, call, table[call.function], catalogue)

    return transformed(module, catalogue, work, keeps_outputs=False)


def _replace(graph: InternalGraph, call: CallFunction, function: AnyCallable, catalogue: Ops) -> None:
    arguments = _arguments(call, function, catalogue[call.function])
    try:
        with CatalogueCalls(emitter_before(call, catalogue, MADE_BY)) as g:
            made = leaves(function(g, *arguments))
    except Exception as error:
        known = error if isinstance(error, TmconvertError) else None
        reason = known.message if known else f"{type(error).__name__}: {error}"
        raise UsageError(
            "TM6052",
            f"the decomposition of {call.function} failed: {reason}",
            source=raised_at(error),
            notes=known.notes if known else [],
        ) from error
    if len(made) != len(call.outputs) or not all(isinstance(node, TensorNode) for node in made):
        raise UsageError(
            "TM6054",
            f"the decomposition of {call.function} must return {len(call.outputs)} values, got "
            f"{shown_value(made)}",
        )
    for old, new in zip(call.outputs, made, strict=True):
        assert isinstance(old, TensorNode)
        if new.type != old.type:
            raise UsageError(
                "TM6054",
                f"the decomposition of {call.function} gives {new.type}, not {old.type}",
                source=call.source,
            )
        graph.replace_uses(old, new)
    names = [node.name for node in call.outputs]
    qparams = [getattr(node, "qparams", None) for node in call.outputs]
    graph.remove(call)
    for new, name, params in zip(made, names, qparams, strict=True):
        if new.expr is not None and new.expr.made_by == MADE_BY and graph.node_called(name) is None:
            new.qparams = params
            graph.rename(new, name)


def _arguments(call: CallFunction, function: AnyCallable, op: Op) -> list[Any]:
    """Returns the arguments that a function takes after ``g``; attributes that it lacks are the defaults."""
    values = op.by_name(call.args, call.kwargs)
    taken = parameter_names(function)[1:]
    for name in taken:
        if name not in values:
            raise no_such_name(name, values, f"{op.name} has no argument", "TM6054")
    for argument in op.args:
        is_default = isinstance(argument, Attribute) and values[argument.name] == argument.default
        if argument.name not in taken and not is_default and values[argument.name] is not None:
            raise UsageError(
                "TM6054",
                f"the decomposition of {op.name} does not take {argument.name}, which is "
                f"{shown_value(values[argument.name])}",
                source=call.source,
            )
    return [values[name] for name in taken]
