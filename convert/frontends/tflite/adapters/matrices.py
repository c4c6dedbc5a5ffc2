"""Products of matrices."""

from __future__ import annotations

from tmconvert.errors import Refusal
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import rank, reshaped
from tmconvert.frontends.tflite.adapters.values import PREFIX, activated, check_rank

OPERATORS = Table(PREFIX)


@OPERATORS.add("FULLY_CONNECTED")
def fully_connected(
    g, x, weights, bias=None,
    *, keep_num_dims=False, weights_format="DEFAULT", fused_activation_function="NONE",
):  # fmt: skip
    check_rank(g, weights, 2)
    if weights_format != "DEFAULT":
        raise Refusal(f"weights in the format {weights_format} are not supported")
    features = g.type(weights).shape[1]
    shape = list(g.type(x).shape)
    is_plain = shape and shape[-1] == features and (keep_num_dims or len(shape) == 2)
    rows = x if is_plain else reshaped(g, x, [-1, features])
    return activated(g, g.call("aten::linear", rows, weights, bias), fused_activation_function)


@OPERATORS.add("BATCH_MATMUL")
def batch_matmul(g, x, y, *, adj_x=False, adj_y=False):
    left, right = _transposed(g, x) if adj_x else x, _transposed(g, y) if adj_y else y
    return g.call("aten::matmul", left, right)


def _transposed(g, x):
    last = rank(g, x) - 1
    made = g.call("aten::permute", x, [*range(last - 1), last, last - 1])
    qparams = getattr(x, "qparams", None)
    return (
        made if qparams is None else g.quantized(made, qparams.permuted([*range(last - 1), last, last - 1]))
    )
