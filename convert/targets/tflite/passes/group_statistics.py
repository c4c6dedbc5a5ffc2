"""TFLite: groups of channels are normalized where they are, whatever the memory order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.symbolics.idioms.normalizing import scaled
from tmconvert.symbolics.op import Op
from tmconvert.targets.tflite.runtimes import runtime_refusal

# of CONV_2D, the first that has groups
GROUPED = 6


class GroupStatistics:
    """aten::group_norm of images [N, C, H, W] by means over H and W, then over the channels of a group.

    The latter is a convolution of [N, C, 1, 1], whose result has the mean of its group for each channel: no
    of the image is taken apart, as that would cost a transpose on either side of the norm.
    """

    name = "group_statistics"

    def __init__(self, catalogue: Mapping[str, Op], version: int) -> None:
        self.catalogue = catalogue
        self.version = version

    def run(self, graph: InternalGraph) -> bool:
        changed = False
        if runtime_refusal("CONV_2D", GROUPED, self.version) is not None:
            return False
        for expr in graph.exprs():
            if isinstance(expr, CallFunction) and expr.function == "aten::group_norm" and _is_image(expr):
                self._norm(graph, expr)
                changed = True
        return changed

    def _norm(self, graph: InternalGraph, expr: CallFunction) -> None:
        x, weight, bias = expr.args
        dtype, channels, groups = x.type.dtype, x.type.shape[1], expr.kwargs["num_groups"]
        g = GraphEmitter(
            graph,
            self.catalogue,
            source=expr.source,
            made_by=self.name,
            name=expr.output.name,
            before=expr,
        )
        width = channels // groups
        share = g.constant(np.full((channels, width, 1, 1), 1 / width, dtype))

        def mean(image: Any) -> Any:
            plane = g.call("aten::mean", image, [2, 3], True)
            if width == 1:
                return plane
            return g.call("aten::conv2d", plane, share, None, [1, 1], [0, 0], [1, 1], groups)

        centred = g.call("aten::sub", x, mean(x))
        variance = mean(g.call("aten::mul", centred, centred))
        root = g.call("aten::sqrt", g.call("aten::add", variance, g.constant(expr.kwargs["eps"], dtype)))
        column = [1, channels, 1, 1]
        factor, summand = (each and g.call("aten::reshape", each, column) for each in (weight, bias))
        made = scaled(g, g.call("aten::div", centred, root), factor, summand, dtype)
        graph.substitute(expr.output, made)


def _is_image(expr: CallFunction) -> bool:
    x = expr.args[0]
    is_known = not is_symbolic((expr.kwargs, x.type.shape)) and x.type.rank == 4
    return is_known and x.type.dtype == np.float32 and expr.kwargs["num_groups"] > 1 and x.type.size > 0
