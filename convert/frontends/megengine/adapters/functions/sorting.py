"""megengine.functional.math: sort, argsort and topk of vectors and of matrix rows.

MegEngine sorts pairs of an element and its index: of equal elements the lower index comes first in ascending
order, the higher one in descending order.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import modes
from tmconvert.frontends.megengine.adapters.values import axis_of, rank, reshaped, static_int
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.data_dependent import data_symbols

FUNCTIONS = Table("megengine.functional.math.")


def _ordered(g: Emitter, inp, k: int, descending: bool) -> list[Any]:
    """Returns the first ``k`` elements of the sorted rows, and their indices."""
    if rank(g, inp) not in (1, 2):
        raise Refusal(f"sort supports only tensors of rank 1 and 2, not {g.type(inp)}")
    extent = g.type(inp).shape[-1]
    if not descending:
        call = ("aten::sort",) if k == extent else ("aten::topk", k, -1, False)
        return g.call(call[0], inp, *call[1:])
    values, after = g.call("aten::topk", g.call("aten::flip", inp, [-1]), k, -1, True)
    return [values, g.call("aten::sub", g.constant(extent - 1, np.int32), after)]


@FUNCTIONS.add("sort")
def sort(g, inp, descending=False, dim=None):
    """``dim``, and tensors of all ranks, were added in 1.13.1."""
    if dim is not None:
        order = list(range(rank(g, inp)))
        where = axis_of(g, inp, dim)
        order[where], order[-1] = order[-1], order[where]
        moved = g.call("aten::permute", inp, order)
        shape = g.type(moved).shape
        made = sort(g, reshaped(g, moved, [-1, shape[-1]]), descending)
        return [g.call("aten::permute", reshaped(g, each, list(shape)), order) for each in made]
    return _ordered(g, inp, g.type(inp).shape[-1], bool(descending))


FUNCTIONS.add("argsort")(lambda g, inp, descending=False: sort(g, inp, descending)[1])


@FUNCTIONS.add("topk")
def topk(g, inp, k, descending=True, kth_only=False, no_sort=False):
    """Sorted even with ``no_sort``, which allows any order. A negative ``k`` selects from the other end."""
    number = static_int(g, k, "k")
    extent = g.type(inp).shape[-1]
    is_open = bool(data_symbols(extent))  # then all are sorted, and as many taken as there are
    count = extent if is_open else min(abs(number), extent)
    if number == 0 or (not is_open and count == 0):
        raise Refusal("topk with k=0 is not supported")
    values, indices = _ordered(g, inp, count, bool(descending) == (number > 0))
    if is_open:
        axis, count = rank(g, inp) - 1, abs(number)
        values, indices = (g.call("aten::slice", each, axis, 0, count) for each in (values, indices))
    if not kth_only:
        return [values, indices]
    kth = g.call("aten::select", values, rank(g, inp) - 1, count - 1)
    same = modes.compared(g, "eq", reshaped(g, kth, [*g.type(kth).shape, 1]), inp)
    return [kth, g.call("aten::argmax", g.call("aten::to", same, dtype="int8"), -1)]
