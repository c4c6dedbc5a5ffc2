"""Rewrite differences and quotients with constants as sums and products."""

from __future__ import annotations

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph
from tmconvert.passes.patterns.matching import array_of, is_quotient
from tmconvert.passes.rewriting import Emits, RewritePass
from tmconvert.symbolics.registry import op_has, trait_of
from tmconvert.symbolics.traits import Arithmetic


class NormElemWise(Emits, RewritePass[int]):
    """Rewrite x - c as x + (-c), c - x as -x + c, x / c as x * (1 / c) and c / x as (1 / x) * c.

    The match is the position of the constant.
    """

    name = "norm_elem_wise"

    def takes(self, function: str) -> bool:
        return op_has(function, Arithmetic)

    def match(self, graph: InternalGraph, call: CallFunction) -> int | None:
        arithmetic = trait_of(call, Arithmetic)
        if arithmetic is None or not arithmetic.is_inverse or any(call.kwargs.values()):
            return None
        arrays = [array_of(node) for node in call.args]
        known = [place for place, array in enumerate(arrays) if array is not None and array.dtype.kind == "f"]
        return known[0] if len(known) == 1 else None

    def check(self, graph: InternalGraph, call: CallFunction, match: int) -> str | None:
        constant = array_of(call.args[match])
        assert constant is not None
        if call.output.qparams is not None:
            return "it has quantization parameters of its own"
        with np.errstate(all="ignore"):
            if match == 1 and is_quotient(call) and not np.isfinite(1 / constant).all():
                return "it divides by 0"
        return None

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: int) -> str:
        g = self.emitter(call)
        x, constant = call.args[1 - match], array_of(call.args[match])
        assert constant is not None
        is_product = is_quotient(call)
        if match == 0:
            x = g.call("aten::reciprocal" if is_product else "aten::neg", x)
        else:
            constant = 1 / constant if is_product else -constant
        combined = g.call("aten::mul" if is_product else "aten::add", x, g.constant(constant))
        graph.substitute(call.output, combined)
        return f"is a {'product' if is_product else 'sum'} now"
