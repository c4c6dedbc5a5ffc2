"""megengine.functional.nn."""

from __future__ import annotations

from typing import Any

from ....errors import Refusal
from ....ir.emitter import Emitter
from .table import Table
from .values import pair, rank, reshaped, static_ints

FUNCTIONS = Table("megengine.functional.nn.")


def _cross_correlation(conv_mode: Any) -> None:
    if str(conv_mode).lower() != "cross_correlation":
        raise Refusal(f"conv_mode {conv_mode!r} is not supported")


@FUNCTIONS.add("conv2d")
def conv2d(
    g: Emitter,
    inp: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
    conv_mode: Any = "cross_correlation",
    compute_mode: Any = "default",
) -> Any:
    """Weights (O, I, kH, kW), or (groups, O / groups, I / groups, kH, kW); bias (1, O, 1, 1)."""
    _cross_correlation(conv_mode)
    shape = g.type(weight).shape
    if len(shape) == 5:
        weight = reshaped(g, weight, [shape[0] * shape[1], *shape[2:]])
    elif groups != 1:
        raise Refusal(f"a grouped weight has five axes, not {len(shape)}")
    if bias is not None:
        bias = reshaped(g, bias, [-1])
    return g.call("aten::conv2d", inp, weight, bias, pair(stride), pair(padding), pair(dilation), int(groups))


@FUNCTIONS.add("batch_norm")
def batch_norm(
    g: Emitter,
    inp: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    *,
    training: bool = False,
    momentum: float = 0.9,
    eps: float = 1e-5,
    inplace: bool = True,
    compute_mode: Any = "default",
    param_dim: Any = "dim_1c11",
) -> Any:
    """Parameters have shape (1, C, 1, 1), or (1, 1, 1, C) with param_dim dim_111c."""
    if training or running_mean is None or running_var is None:
        raise Refusal(
            "batch_norm with the statistics of the batch is not inference",
            "call model.eval() before tracing, or give running_mean and running_var",
        )
    if param_dim != "dim_1c11":
        raise Refusal(f"param_dim {param_dim!r} is not supported")
    parameters = [
        None if value is None else reshaped(g, value, [-1])
        for value in (weight, bias, running_mean, running_var)
    ]
    return g.call("aten::batch_norm", inp, *parameters, float(eps))


@FUNCTIONS.add("max_pool2d")
def max_pool2d(g: Emitter, inp: Any, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Any:
    kernel = pair(kernel_size)
    return g.call("aten::max_pool2d", inp, kernel, kernel if stride is None else pair(stride), pair(padding))


@FUNCTIONS.add("avg_pool2d")
def avg_pool2d(
    g: Emitter,
    inp: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    mode: Any = "average_count_exclude_padding",
) -> Any:
    """The default mode leaves padding out of the count."""
    modes = {"average_count_exclude_padding": False, "average": True}
    counted = modes.get(str(mode).lower())
    if counted is None:
        raise Refusal(f"the pooling mode {mode!r} is not supported")
    kernel = pair(kernel_size)
    return g.call(
        "aten::avg_pool2d",
        inp,
        kernel,
        kernel if stride is None else pair(stride),
        pair(padding),
        count_include_pad=counted,
    )


def _adaptive_window(g: Emitter, inp: Any, oshp: Any) -> tuple[list[int], list[int]]:
    """(kernel, stride): MegEngine's windows are uniform, stride in // out, kernel in - (out - 1) stride."""
    sizes = static_ints(g, oshp)
    outputs = sizes * 2 if len(sizes) == 1 else sizes
    extents = g.type(inp).shape[2:]
    if len(outputs) != 2 or any(
        out < 1 or out > extent for out, extent in zip(outputs, extents, strict=True)
    ):
        raise Refusal(f"cannot pool {list(extents)} to {outputs}")
    stride = [extent // out for extent, out in zip(extents, outputs, strict=True)]
    kernel = [extent - (out - 1) * step for extent, out, step in zip(extents, outputs, stride, strict=True)]
    return kernel, stride


@FUNCTIONS.add("adaptive_avg_pool2d")
def adaptive_avg_pool2d(g: Emitter, inp: Any, oshp: Any) -> Any:
    return g.call("aten::avg_pool2d", inp, *_adaptive_window(g, inp, oshp))


@FUNCTIONS.add("adaptive_max_pool2d")
def adaptive_max_pool2d(g: Emitter, inp: Any, oshp: Any) -> Any:
    return g.call("aten::max_pool2d", inp, *_adaptive_window(g, inp, oshp))


@FUNCTIONS.add("dropout")
def dropout(g: Emitter, inp: Any, drop_prob: float, training: bool = False) -> Any:
    """The identity: a conversion is for inference, whatever the flag recorded."""
    return inp


@FUNCTIONS.add("pad")
def pad(g: Emitter, src: Any, pad_width: Any, mode: Any = "constant", constant_value: float = 0.0) -> Any:
    names = {"constant": "constant", "reflect": "reflect", "replicate": "replicate", "edge": "replicate"}
    if str(mode).lower() not in names:
        raise Refusal(f"the padding mode {mode!r} is not supported")
    amounts = [amount for row in pad_width for amount in static_ints(g, list(row), "a padding")]
    missing = 2 * rank(g, src) - len(amounts)  # pairs count from the first axis; the others are zero
    if missing < 0 or any(len(row) != 2 for row in pad_width):
        raise Refusal(f"pad_width {pad_width!r} does not fit {g.type(src)}")
    if not any(amounts):
        return src
    return g.call(
        "aten::pad", src, amounts + [0] * missing, mode=names[str(mode).lower()], value=float(constant_value)
    )
