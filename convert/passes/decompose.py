"""Decompose ops that the target lacks into ops that it has."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Any

from tmconvert.errors import InternalError, Refusal, TmconvertError
from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.subgraphs import subgraphs_of, within
from tmconvert.ir.symbolic.data_dependent import taken_over
from tmconvert.ir.symbolic.journal import current_journal
from tmconvert.passes.rewriting import Emits, PassRecord
from tmconvert.symbolics.op import Op, Ops

if TYPE_CHECKING:
    from tmconvert.passes.unsupported import Unsupported


class Undecomposed(Exception):
    """A decomposition has refused a call."""

    def __init__(self, unsupported: Unsupported) -> None:
        super().__init__(unsupported.reason)
        self.unsupported = unsupported


def _made(op: Op, call: CallFunction, emitter: GraphEmitter) -> Any:
    """Runs the decomposition of a call; where it does not support symbolic sizes, that is a Refusal."""
    assert op.decomposition is not None
    try:
        return op.decomposition(emitter, **op.by_name(call.args, call.kwargs))
    except Refusal:
        raise
    except Exception as error:
        from tmconvert.passes.symbolic_calls import refuse_symbolic

        refuse_symbolic(call, error)
        if isinstance(error, TmconvertError):
            raise
        message = f"the decomposition of {op.name} failed: {error}"
        raise InternalError("TM9004", message, source=call.source, excerpt=repr(call)) from error


class Decompose(Emits):
    """Decompose calls of ops that have no symbolic for a target.

    Calls of ``others``, and those that a decomposition emits, are decomposed as well. A call of an op that
    the target does not support for a stated reason stays: the lowering reports it. Results keep their names
    and types. Raises Undecomposed where a decomposition refuses a call.
    """

    name = "decompose"

    def __init__(self, catalogue: Ops, target: str, version: int, others: Collection[str] = ()) -> None:
        super().__init__(catalogue)
        self.others = others
        self.target = target
        self.version = version

    def run(self, graph: InternalGraph) -> PassRecord:
        record = PassRecord(self.name)
        while calls := [expr for expr in graph if self._wanted(expr)]:
            for call in calls:
                assert isinstance(call, CallFunction)
                self._replace(graph, call)
                record.did(call, f"was decomposed: {self.target} has no {call.function}")
        for expr in graph:
            for body in subgraphs_of(expr):  # decompositions make such graphs, too
                record.add(within(expr, body, partial(self.run, body)))
        return record

    def _wanted(self, expr: object) -> bool:
        if not isinstance(expr, CallFunction):
            return False
        op = self.catalogue.get(expr.function)
        if op is not None and expr.function in self.others:
            return op.decomposition is not None and not op.needs_itself
        return op is not None and op.is_decomposed(self.target, self.version, expr)

    def _replace(self, graph: InternalGraph, call: CallFunction) -> None:
        op = self.catalogue[call.function]
        emitter = self.emitter(call)
        current_journal().at(f"{emitter.name} ({call.function})", call.source)
        try:
            made = _made(op, call, emitter)
        except Refusal as refusal:
            from tmconvert.passes.symbolic_calls import give_up_sizes
            from tmconvert.passes.unsupported import Unsupported

            current_journal().check()  # it may have failed between a symbol and its number
            give_up_sizes(call, refusal.reason)
            current_journal().check()
            raise Undecomposed(Unsupported(call, refusal.reason, refusal.help)) from refusal
        results = list(made) if isinstance(made, (list, tuple)) else [made]
        if len(results) != len(call.outputs):
            raise InternalError(
                "TM9004",
                f"the decomposition of {op.name} gives {len(results)} results, not {len(call.outputs)}",
                source=call.source,
                excerpt=repr(call),
            )
        was = [node.type for node in call.outputs if isinstance(node, TensorNode)]
        taken_over(graph, was, [node.type for node in results], self.catalogue)
        for old, new in zip(call.outputs, results, strict=True):
            assert isinstance(old, TensorNode)
            if new.type != old.type:
                current_journal().check()  # a decomposition that specialized a size has numbers in its types
                from tmconvert.passes.symbolic_calls import give_up_sizes

                give_up_sizes(call, f"{call.function} is decomposed to {new.type}, not {old.type}")
                current_journal().check()
                raise InternalError(
                    "TM9004",
                    f"the decomposition of {op.name} gives {new.type}, not {old.type}",
                    source=call.source,
                    excerpt=repr(call),
                )
            graph.replace_uses(old, new)
        old_nodes = list(call.outputs)
        graph.remove(call)
        for old, new in zip(old_nodes, results, strict=True):
            assert isinstance(old, TensorNode)
            if new.expr is not None and new.expr.made_by == self.name:  # not an argument passed through
                new.qparams = old.qparams
                graph.rename(new, old.name)
