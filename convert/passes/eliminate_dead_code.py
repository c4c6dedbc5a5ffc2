"""Dead-code elimination."""

from __future__ import annotations

from tmconvert.ir import InternalGraph
from tmconvert.ir.dead_code import remove_dead_code
from tmconvert.passes.rewriting import PassRecord


class EliminateDeadCode:
    """Remove calls and constants whose results are not used.

    The first tensor with a data-dependent size stays while the size is used.
    """

    name = "eliminate_dead_code"

    def run(self, graph: InternalGraph) -> PassRecord:
        record = PassRecord(self.name)
        if graph.dead_code_removed_at == graph.edits:
            return record
        remove_dead_code(
            graph,
            lambda expr: record.did(expr, "was removed: nothing uses it"),
            lambda expr: record.refuse(
                expr, "nothing uses its elements, but its data-dependent size is used"
            ),
        )
        graph.dead_code_removed_at = graph.edits
        return record
