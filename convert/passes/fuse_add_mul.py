"""The rule of ``FoldScaleBias`` for factors and summands in a row, as a pass with MegEngine's name."""

from __future__ import annotations

from collections.abc import Mapping

from tmconvert.ir import InternalGraph
from tmconvert.passes.fold_scale_bias import FoldScaleBias, MergeConstants
from tmconvert.passes.rewriting import PassRecord, apply_rules
from tmconvert.symbolics.op import Op


class FuseAddMul(FoldScaleBias):
    """Merge factors and summands in a row into one factor and one summand."""

    name = "fuse_add_mul"

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        super().__init__(catalogue, roots=False)

    def run(self, graph: InternalGraph) -> PassRecord:
        record = PassRecord(self.name)
        apply_rules(record, graph, (MergeConstants(self),))
        return record
