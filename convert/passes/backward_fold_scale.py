"""The rule of ``FoldScaleBias`` for the layer before, as a pass with MegEngine's name."""

from __future__ import annotations

from collections.abc import Mapping

from tmconvert.ir import InternalGraph
from tmconvert.passes.fold_scale_bias import FoldScaleBias, IntoLayerBefore
from tmconvert.passes.rewriting import PassRecord, apply_rules
from tmconvert.symbolics.op import Op


class BackwardFoldScale(FoldScaleBias):
    """Fold constant factors and summands into the weights of the layer before them, through a ReLU, too."""

    name = "backward_fold_scale"

    def __init__(self, catalogue: Mapping[str, Op]) -> None:
        super().__init__(catalogue, roots=False)

    def run(self, graph: InternalGraph) -> PassRecord:
        record = PassRecord(self.name)
        apply_rules(record, graph, (IntoLayerBefore(self),))
        return record
