"""TFLite: decompose group norms so that they need no transposes, in any layout."""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.passes.rewriting import Emits, RewritePass
from tmconvert.symbolics.idioms.normalizing import scaled
from tmconvert.symbolics.op import Ops
from tmconvert.targets.tflite.runtimes import runtime_refusal

# of CONV_2D, the first that has groups
GROUPED = 6
MOST_DENSE = 128  # channels, for which weights between all of them have 64 KiB


class GroupStatistics(Emits, RewritePass[TensorNode]):
    """Decompose group norms of images into means over H and W and a grouped convolution.

    The latter is a convolution of [N, C, 1, 1], whose result has the mean of its group for each channel: no
    axis of the image is split, which would need a transpose on either side of the norm. The match is the
    image.
    """

    name = "group_statistics"

    def __init__(self, catalogue: Ops, version: int) -> None:
        super().__init__(catalogue)
        self.version = version

    def takes(self, function: str) -> bool:
        return function == "aten::group_norm"

    def match(self, graph: InternalGraph, call: CallFunction) -> TensorNode | None:
        x = call.args[0]
        return x if isinstance(x, TensorNode) and x.type.rank == 4 else None

    def check(self, graph: InternalGraph, call: CallFunction, match: TensorNode) -> str | None:
        if runtime_refusal("CONV_2D", GROUPED, self.version) is not None:
            return f"TFLite 2.{self.version} has no grouped convolutions"
        if is_symbolic((call.kwargs, match.type.shape)):
            return "one of its sizes is symbolic"
        if match.type.dtype != np.float32:
            return f"it is of {match.type.dtype}, not float32"
        if call.kwargs["num_groups"] == 1:
            return "it has one group"
        return None if match.type.size else "it has no elements"

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: TensorNode) -> str:
        self._norm(graph, call)
        return "was decomposed into means and a grouped convolution"

    def _norm(self, graph: InternalGraph, expr: CallFunction) -> None:
        x, weight, bias = expr.args
        dtype, channels, groups = x.type.dtype, x.type.shape[1], expr.kwargs["num_groups"]
        g = self.emitter(expr)
        width = channels // groups
        # LiteRT 2.3's GPU computes groups wrong whose channels 4 does not divide
        is_dense = width % 4 != 0 and channels <= MOST_DENSE
        shares = np.full((channels, width, 1, 1), 1 / width, dtype)
        if is_dense:
            shares = np.kron(np.eye(groups, dtype=dtype), shares[:width, :, 0, 0])[..., None, None]
        share = g.constant(shares)

        def mean(image: object) -> Any:
            plane = g.call("aten::mean", image, [2, 3], True)
            if width == 1:
                return plane
            return g.call(
                "aten::conv2d", plane, share, None, [1, 1], [0, 0], [1, 1], 1 if is_dense else groups
            )

        centred = g.call("aten::sub", x, mean(x))
        variance = mean(g.call("aten::mul", centred, centred))
        root = g.call("aten::sqrt", g.call("aten::add", variance, g.constant(expr.kwargs["eps"], dtype)))
        column = [1, channels, 1, 1]
        factor, summand = (each and g.call("aten::reshape", each, column) for each in (weight, bias))
        made = scaled(g, g.call("aten::div", centred, root), factor, summand, dtype)
        graph.substitute(expr.output, made)
