"""Converts models to graphs of ATen-style ops, on which passes work, and back to modules."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tmconvert.calibration.module import as_module
from tmconvert.calibration.open_sizes import open_sizes
from tmconvert.conversion.io_overrides import NO_OVERRIDES, bind_model
from tmconvert.errors import UnsupportedError, UsageError
from tmconvert.frontends.aten.vocabulary import IDENTIFIER
from tmconvert.ir import Constant, InternalGraph, QParams, TensorNode, TracedModule
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.fake_quant import Rounding, fake_quantize
from tmconvert.ir.symbolic.journal import SizeJournal
from tmconvert.ir.text import describe
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.unsupported import grouped
from tmconvert.symbolics.op import Ops

Work = Callable[[InternalGraph], None]


class RoundingEmitter(GraphEmitter):
    """Rounds constants that the source fake-quantizes, so that the model in ops computes the same."""

    def quantized(
        self, value: TensorNode, qparams: QParams, rounded: Rounding | None = fake_quantize
    ) -> TensorNode:
        made = super().quantized(value, qparams, rounded)
        is_new = made is not value or made in self._fresh
        if rounded is not None and is_new and isinstance(made.expr, Constant):
            made.expr.value = rounded(np.asarray(made.expr.value), qparams)
        return made


def is_normalized(module: TracedModule) -> bool:
    """Whether the calls of a model are ops of the catalogue."""
    return module.vocabulary is not None and module.vocabulary.identifier == IDENTIFIER


def normal_form(module: TracedModule, catalogue: Ops) -> InternalGraph:
    """Returns a new graph of ATen-style ops that computes what a model does, at the sizes of its example.

    Raises UnsupportedError TM2003 for unsupported calls.
    """
    if module.graph is None:
        raise UsageError("TM6004", f"{module!r} has no graph to transform")
    bound = bind_model(module, NO_OVERRIDES, catalogue)
    with SizeJournal():
        normalized = bound.normalized(catalogue, bound.example(), emitter=RoundingEmitter)
    if normalized.unsupported:
        first, *others = grouped(normalized.unsupported)
        notes = [("help", first.help)] if first.help else []
        notes += [("also", f"{group.op}: {group.reason}") for group in others]
        raise UnsupportedError(
            "TM2003", first.reason, source=first.first.source, excerpt=describe(first.first), notes=notes
        )
    return normalized.graph


def eliminate_dead_code(graph: InternalGraph) -> None:
    """Removes all calls on which no output depends."""
    EliminateDeadCode().run(graph)


def transformed(module: TracedModule, catalogue: Ops, work: Work, *, keeps_outputs: bool) -> TracedModule:
    """Returns a model in ATen-style ops with the graph of ``module`` after ``work``.

    Sizes stay dynamic if no constant depends on them; notes list the others. With ``keeps_outputs`` the
    outputs of the source framework are still the reference.
    """
    graph = normal_form(module, catalogue)
    sizes = open_sizes(bind_model(module, NO_OVERRIDES, catalogue), catalogue, work)
    work(graph)
    made = as_module(graph, module, catalogue)
    sizes.leave(made)
    take_example(made, module, keeps_outputs=keeps_outputs)
    return made


def take_example(made: TracedModule, source: TracedModule, *, keeps_outputs: bool) -> None:
    """Copies the example of a model to the model that was made from it."""
    example = source.example
    if example is not None:
        made.example = example if keeps_outputs else example._replace(outputs=None)
