"""Passes as operations on a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tmconvert.ir import InternalGraph, TracedModule
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.manager import PassManager
from tmconvert.symbolics.op import Op
from tmconvert.transform.named_passes import requested_passes, with_required
from tmconvert.transform.normal_form import transformed


def optimize_model(
    module: TracedModule, passes: Sequence[object], catalogue: Mapping[str, Op]
) -> tuple[TracedModule, PassManager]:
    """Returns the model after these passes, and their records. Raises UsageError TM6051, TM6052, TM6053."""
    managers: list[PassManager] = []

    def work(graph: InternalGraph) -> None:
        order = with_required(requested_passes(passes, catalogue), catalogue)
        managers.append(PassManager([*order, EliminateDeadCode()], catalogue))
        managers[-1].run(graph)

    made = transformed(module, catalogue, work, keeps_outputs=True)
    return made, managers[-1]
