"""Padding: constant, reflected, replicated and circular."""

from __future__ import annotations

import functools

import numpy as np

from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.torch.adapters.shapes import views
from tmconvert.frontends.torch.adapters.shapes.slicing import cut, stack
from tmconvert.frontends.torch.adapters.values import rank, static_ints
from tmconvert.ir.symbolic.clamps import maximum

ATEN, FUNCTIONS, METHODS = Table(), Table(), Table()


@ATEN.add("pad", "_pad_enum")
def pad(g, input, pad, mode="constant", value=None):
    """``pad`` has two amounts per axis, starting at the last axis; negative ones crop."""
    amounts = static_ints(g, pad)
    dtype = g.type(input).dtype
    pairs = [(amounts[i], amounts[i + 1]) for i in range(0, len(amounts), 2)][::-1]
    pairs = [(0, 0)] * (rank(g, input) - len(pairs)) + pairs
    number = 0 if value is None else value
    number = float(number) if dtype.kind in "fV" else int(np.asarray(number).astype(dtype))
    if mode == "constant":
        return g.call("aten::pad", input, [n for pair in pairs for n in pair], mode, number)
    if g.type(input).size == 0:
        shape = [sum(pair) + extent for pair, extent in zip(pairs, g.type(input).shape, strict=True)]
        return views.expand(g, g.constant(0, dtype), shape)
    for axis, (before, after) in enumerate(pairs):
        extent = g.type(input).shape[axis]
        if mode != "circular" and isinstance(extent, int) and min(before, after) < 0 < max(before, after):
            input = g.call(
                "aten::index_select", input, axis, g.constant(_around(extent, before, after, mode))
            )
            pairs[axis] = (0, 0)
        elif before < 0 or after < 0:
            input = cut(g, input, axis, -before if before < 0 else 0, extent + after if after < 0 else extent)
    if mode == "circular":
        return g.call("aten::_pad_circular", input, [0 if n < 0 else n for n in amounts])
    return g.call("aten::pad", input, [0 if n < 0 else n for pair in pairs for n in pair], mode)


def _around(extent: int, before: int, after: int, mode: str) -> np.ndarray:
    """Returns the source index of each element of circular padding; also cropped elements are copied."""
    places = np.arange(-before, extent + after)
    if mode == "replicate":
        return np.clip(places, 0, extent - 1)
    return extent - 1 - np.abs(extent - 1 - np.abs(places))


ATEN.add("constant_pad_nd")(lambda g, input, pad, value=0: ATEN["pad"](g, input, pad, "constant", value))


@ATEN.add("pad_sequence")
def pad_sequence(g, sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Pads the first axis of each to the longest one, and stacks them."""
    lengths = [g.type(each).shape[0] for each in sequences]
    longest = functools.reduce(maximum, lengths)
    padded = []
    for each, length in zip(sequences, lengths, strict=True):
        pair = [longest - length, 0] if padding_side == "left" else [0, longest - length]
        padded.append(pad(g, each, [0] * (2 * rank(g, each) - 2) + pair, "constant", padding_value))
    return stack(g, padded, 0 if batch_first else 1)


def _padding(name: str, mode: str) -> None:
    def adapter(g, input, padding):
        return pad(g, input, padding, mode)

    ATEN.add(name)(adapter)


_padding("_pad_circular", "circular")
for _axes in (1, 2, 3):
    _padding(f"reflection_pad{_axes}d", "reflect")
    _padding(f"replication_pad{_axes}d", "replicate")
