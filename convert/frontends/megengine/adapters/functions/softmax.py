"""softmax, logsoftmax and logsumexp of MegEngine."""

from __future__ import annotations

from tmconvert.frontends.megengine.adapters.functions import modes
from tmconvert.frontends.megengine.adapters.values import axes_of, axis_of, floating, rank, reshaped
from tmconvert.frontends.shared.adapter_table import Table

FUNCTIONS = Table("megengine.functional.nn.")
MODULES = Table("megengine.module.activation.")


@FUNCTIONS.add("softmax")
def softmax(g, inp, axis=None):
    if axis is None:  # the rule of MegEngine's own default
        axis = 0 if rank(g, inp) in (0, 1, 3) else 1
    if not isinstance(axis, (list, tuple)):
        return g.call("aten::softmax", inp, axis_of(g, inp, axis))
    axes = axes_of(g, inp, axis)
    powers = g.call("aten::exp", g.call("aten::sub", inp, g.call("aten::amax", inp, axes, True)))
    return g.call("aten::div", powers, g.call("aten::sum", powers, axes, True))


MODULES.add("Softmax")(lambda g, module, inputs: softmax(g, inputs, module.attributes.get("axis")))


@FUNCTIONS.add("logsoftmax")
def logsoftmax(g, inp, axis):
    x = floating(g, inp)
    if not isinstance(axis, (list, tuple)):
        return g.call("aten::log_softmax", x, axis_of(g, x, axis))
    return g.call("aten::sub", x, g.call("aten::logsumexp", x, axes_of(g, x, axis), True))


@FUNCTIONS.add("logsumexp")
def logsumexp(g, inp, axis, keepdims=False):
    """Without ``keepdims`` MegEngine squeezes all axes of extent 1 of the maximum that it adds."""
    x = floating(g, inp)
    axes = axes_of(g, x, axis)
    kept = [extent for i, extent in enumerate(g.type(x).shape) if i not in axes]
    if keepdims or 1 not in kept:
        return g.call("aten::logsumexp", x, axes, bool(keepdims))
    top = g.call("aten::amax", x, axes, True)
    total = g.call("aten::sum", g.call("aten::exp", g.call("aten::sub", x, top)), axes)
    squeezed = reshaped(g, top, [extent for extent in kept if extent != 1])
    return modes.applied(g, "ADD", squeezed, g.call("aten::log", total))
