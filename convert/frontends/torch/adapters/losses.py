"""Losses that look into their data, and so cannot be traced through."""

from __future__ import annotations

import math
from typing import Any

from ....errors import Refusal
from ....ir.emitter import Emitter
from ...table import Table
from .arithmetic import add, clamp_min, div, mul, sub
from .reductions import ATEN as REDUCTIONS
from .unary import ATEN as UNARY
from .values import is_tensor, reshaped

FUNCTIONS = Table()


@FUNCTIONS.add("torch.nn.functional.gaussian_nll_loss")
def gaussian_nll_loss(
    g: Emitter,
    input: Any,
    target: Any,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """(log v + (input - target)^2 / v) / 2, where v is ``var`` and at least ``eps``.

    A variance below 0, an error in torch, counts as ``eps``.
    """
    shape = g.type(input).shape
    if not is_tensor(var):
        var = g.constant(var, g.type(input).dtype)
    elif g.type(var).shape == shape[:-1]:
        var = reshaped(g, var, [*shape[:-1], 1])
    var = clamp_min(g, var, eps)
    error = UNARY["square"](g, sub(g, input, target))
    loss = mul(g, add(g, UNARY["log"](g, var), div(g, error, var)), 0.5)
    loss = add(g, loss, 0.5 * math.log(2 * math.pi)) if full else loss
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise Refusal(f"{reduction!r} is not a valid reduction")
    return REDUCTIONS[reduction](g, loss)
