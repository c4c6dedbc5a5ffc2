"""Replaces steps of attention and windows over other axes by forms that the rules of streams know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tmconvert.ir import CallFunction, InternalGraph, TensorNode
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fuse_attention import FuseAttention
from tmconvert.passes.rewriting import emitter_before
from tmconvert.streaming.builder import known_array
from tmconvert.symbolics.op import Op

HIDDEN = -1e4  # values of scores from which on a softmax shows nothing


def form_for_steps(graph: InternalGraph, catalogue: Mapping[str, Op]) -> InternalGraph:
    """Returns the graph with attention as one op, and with windows over other axes than time as slices."""
    for call in list(graph):
        if isinstance(call, CallFunction) and call.function in _FORMS:
            _FORMS[call.function](graph, call, catalogue)
    EliminateDeadCode().run(graph)
    fusion = FuseAttention(catalogue)
    fusion.takes_plain_masks = True
    fusion.run(graph)
    EliminateDeadCode().run(graph)
    return graph


def _matmul(graph: InternalGraph, call: CallFunction, catalogue: Mapping[str, Op]) -> None:
    product = emitter_before(call, catalogue, "stream").call("aten::matmul", *call.args)
    graph.substitute(call.output, product)


def _fill(graph: InternalGraph, call: CallFunction, catalogue: Mapping[str, Op]) -> None:
    scores, mask, value = call.args
    _add_mask(graph, call, catalogue, scores, mask, value)


def _choose(graph: InternalGraph, call: CallFunction, catalogue: Mapping[str, Op]) -> None:
    mask, one, other = call.args
    if known_array(mask, catalogue) is not None:
        emitter = emitter_before(call, catalogue, "stream")
        _add_mask(graph, call, catalogue, one, emitter.call("aten::logical_not", mask), other)


def _add_mask(
    graph: InternalGraph,
    call: CallFunction,
    catalogue: Mapping[str, Op],
    scores: TensorNode,
    mask: TensorNode,
    value: TensorNode,
) -> None:
    """Adds a mask that hides scores from a softmax, rather than to write a low value over them."""
    hides, low = known_array(mask, catalogue), known_array(value, catalogue)
    if hides is None or low is None or low.size > 1 or low.dtype.kind != "f" or low.item() > HIDDEN:
        return
    bias: Any = np.zeros(1, low.dtype)
    expr = scores.expr
    if isinstance(expr, CallFunction) and expr.function == "aten::add":
        for product, other in (expr.args, expr.args[::-1]):
            known = known_array(other, catalogue)
            if known is not None and product.type == scores.type:
                scores, bias = product, known
                break
    added = np.where(hides, low.reshape(()), bias).astype(scores.type.dtype)
    emitter = emitter_before(call, catalogue, "stream")
    graph.substitute(call.output, emitter.call("aten::add", scores, emitter.constant(added)))


def _columns(graph: InternalGraph, call: CallFunction, catalogue: Mapping[str, Op]) -> None:
    """Takes windows along one axis as slices, where readers give the other axis its place back."""
    x, options = call.args[0], call.kwargs
    axis = 3 if options["kernel_size"][0] == 1 else 2
    along, still = axis - 2, 3 - axis
    batch, channels, *sizes = x.type.shape
    size, stride = options["kernel_size"][along], options["stride"][along]
    padding, dilation = options["padding"][along], options["dilation"][along]
    count = (sizes[along] + 2 * padding - dilation * (size - 1) - 1) // stride + 1
    whole = [batch, channels * size, *(count if i == along else extent for i, extent in enumerate(sizes))]
    is_one = [options[name][still] for name in ("kernel_size", "stride", "padding")] == [1, 1, 0]
    readers = [each for each in call.output.users if isinstance(each, CallFunction)]
    if not is_one or any(each.output.type.shape != tuple(whole) for each in readers):
        return
    emitter = emitter_before(call, catalogue, "stream")
    around = [padding if each // 2 == axis else 0 for each in range(8)]
    padded = emitter.call("aten::pad", x, pad=around, mode="constant", value=0.0) if padding else x
    parts = []
    for i in range(size):
        end = i * dilation + (count - 1) * stride + 1
        part = emitter.call("aten::slice", padded, dim=axis, start=i * dilation, end=end, step=stride)
        parts.append(emitter.call("aten::reshape", part, [batch, channels, 1, *whole[2:]]))
    made = emitter.call("aten::reshape", emitter.call("aten::cat", parts, dim=2), whole)
    for reader in list(readers):
        graph.substitute(
            reader.output, made if reader is readers[0] else emitter.call("aten::reshape", made, whole)
        )


_FORMS = {
    "aten::bmm": _matmul,
    "aten::masked_fill": _fill,
    "aten::where": _choose,
    "aten::im2col": _columns,
}
