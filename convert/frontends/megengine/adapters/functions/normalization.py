"""Normalization layers of megengine.functional.nn."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.values import axis_of, rank, reshaped, static_int, static_ints
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter
from tmconvert.symbolics.idioms.normalizing import scaled, standardized

FUNCTIONS = Table("megengine.functional.nn.")


@FUNCTIONS.add("batch_norm")
def batch_norm(
    g, inp, running_mean=None, running_var=None, weight=None, bias=None,
    *, training=False, momentum=0.9, eps=1e-5, inplace=True, compute_mode="default", param_dim="dim_1c11",
):  # fmt: skip
    """Parameters have shape (1, C, 1, 1), or (1, 1, 1, C) with param_dim dim_111c, for channels last."""
    name = str(param_dim).lower()
    if name == "dim_111c":
        first = g.call("aten::permute", inp, [0, 3, 1, 2])
        statistics = (running_mean, running_var, weight, bias)
        result = batch_norm(g, first, *statistics, training=training, eps=eps)
        return g.call("aten::permute", result, [0, 2, 3, 1])
    if name != "dim_1c11":
        raise Refusal(f"param_dim {param_dim!r} is not supported", "use dim_1c11")
    if training and running_mean is None and running_var is None:
        return _by_batch(g, inp, weight, bias, eps)
    if training or running_mean is None or running_var is None:
        raise Refusal(
            "batch_norm with the statistics of the batch is not inference",
            "call model.eval() before tracing, or give running_mean and running_var",
        )
    parameters = [
        None if value is None else reshaped(g, value, [-1])
        for value in (weight, bias, running_mean, running_var)
    ]
    return g.call("aten::batch_norm", inp, *parameters, float(eps))


def _by_batch(g: Emitter, inp, weight, bias, eps: float) -> Any:
    """Batch norm without running statistics uses those of the batch, also in inference."""
    axes = rank(g, inp)
    column = [1, g.type(inp).shape[1], *[1] * (axes - 2)]
    weight, bias = (None if value is None else reshaped(g, value, column) for value in (weight, bias))
    result = standardized(g, inp, [0, *range(2, axes)], float(eps))
    return scaled(g, result, weight, bias, g.type(inp).dtype)


@FUNCTIONS.add("sync_batch_norm")
def sync_batch_norm(
    g, inp, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.9, eps=1e-5,
    eps_mode="additive", group=None,
):  # fmt: skip
    """``eps_mode`` "max" uses max(variance, eps) instead of variance + eps."""
    mode = str(eps_mode).lower()
    if mode not in ("additive", "max"):
        raise Refusal(f"eps_mode {eps_mode!r} is not supported")
    if mode == "max" and running_var is not None:
        running_var = g.call("aten::maximum", running_var, g.constant(eps, g.type(running_var).dtype))
        eps = 0.0
    return batch_norm(g, inp, running_mean, running_var, weight, bias, training=training, eps=eps)


@FUNCTIONS.add("layer_norm")
def layer_norm(g, inp, normalized_shape, affine, weight=None, bias=None, eps=1e-5):
    """Layer norm of the last axes, as many as ``normalized_shape`` has."""
    shape = static_ints(g, normalized_shape)
    parameters = (weight, bias) if affine else (None, None)
    return g.call("aten::layer_norm", inp, shape, *parameters, float(eps))


@FUNCTIONS.add("general_norm")
def general_norm(g, inp, normalized_axis, affine=True, weight=None, bias=None, eps=1e-5):
    """Layer norm of any axes, which are moved to the end."""
    axes = [axis_of(g, inp, axis) for axis in static_ints(g, normalized_axis, "the axes")]
    if not axes or axes != sorted(set(axes)):
        raise Refusal(f"normalized_axis {normalized_axis!r} must name axes in ascending order")
    order = [*(axis for axis in range(rank(g, inp)) if axis not in axes), *axes]
    in_order = order == sorted(order)
    moved = inp if in_order else g.call("aten::permute", inp, order)
    shape = [g.type(inp).shape[axis] for axis in axes]
    result = layer_norm(g, moved, shape, affine, weight, bias, eps)
    back = [order.index(axis) for axis in range(len(order))]
    return result if in_order else g.call("aten::permute", result, back)


@FUNCTIONS.add("group_norm")
def group_norm(g, inp, num_groups, affine, weight=None, bias=None, eps=1e-5):
    parameters = (weight, bias) if affine else (None, None)
    return g.call("aten::group_norm", inp, static_int(g, num_groups), *parameters, float(eps))


@FUNCTIONS.add("instance_norm")
def instance_norm(g, inp, affine, weight=None, bias=None, eps=1e-5):
    parameters = (weight, bias) if affine else (None, None)
    return g.call("aten::instance_norm", inp, *parameters, float(eps))


@FUNCTIONS.add("local_response_norm")
def local_response_norm(g, inp, kernel_size=5, k=2.0, alpha=1e-4, beta=0.75):
    """MegEngine's alpha multiplies the sum of the squares, ATen's their mean."""
    size = static_int(g, kernel_size)
    return g.call("aten::local_response_norm", inp, size, float(alpha) * size, float(beta), float(k))
