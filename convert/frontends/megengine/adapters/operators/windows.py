"""Raw operators (``Apply`` in MegEngine) with windows, converted by the adapters of their functions."""

from __future__ import annotations

from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.megengine.adapters.functions import convolutions, modes, nn, normalization, windows
from tmconvert.frontends.megengine.adapters.values import rank, static_ints
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.ir.emitter import Emitter

OPERATORS = Table("opdef.")


def _sizes(state: dict[str, Any], name: str, axes: str = "hw") -> list[int]:
    """Collects the attributes per axis of an operator: ``pad_h``, ``pad_w``."""
    return [state[f"{name}_{axis}"] for axis in axes]


def geometry(state: dict[str, Any], axes: str = "hw") -> tuple[list[int], list[int], list[int]]:
    """Returns (stride, padding, dilation) of a convolution in a supported format."""
    if str(state.get("format", "NCHW")).upper() not in ("NCHW", "NCDHW"):
        raise Refusal(f"the format {state['format']} is not supported")
    return _sizes(state, "stride", axes), _sizes(state, "pad", axes), _sizes(state, "dilate", axes)


def _oriented(g: Emitter, weight, state: dict[str, Any], axes: int) -> Any:
    """Returns ``weight`` for cross-correlation: the mode CONVOLUTION rotates the kernels."""
    if str(state.get("mode")).upper() == "CONVOLUTION":
        return g.call("aten::flip", weight, list(range(rank(g, weight) - axes, rank(g, weight))))
    return weight


def _groups(g: Emitter, weight, state: dict[str, Any]) -> int:
    return g.type(weight).shape[0] if str(state["sparse"]).upper() == "GROUP" else 1


@OPERATORS.add("Convolution")
def convolution(g, inp, weight, **state):
    """Rejects the mode CONVOLUTION: MegEngine computes cross-correlation for it on some devices."""
    convolutions.cross_correlation(state.get("mode", "CROSS_CORRELATION"))
    return _convolved(g, inp, weight, None, state)


@OPERATORS.add("ConvBias")
def conv_bias(g, inp, weight, bias, *, nonlineMode, **state):
    """A float convolution with bias and activation."""
    if g.type(inp).dtype.kind != "f":
        raise Refusal(f"ConvBias of {g.type(inp)} is not supported")
    result = _convolved(g, inp, _oriented(g, weight, state, 2), bias, state)
    mode = str(nonlineMode).upper()
    return result if mode == "IDENTITY" else modes.applied(g, mode, result)


def _convolved(g: Emitter, inp, weight, bias, state: dict[str, Any]) -> Any:
    return convolutions.FUNCTIONS["megengine.functional.nn.conv2d"](
        g, inp, weight, bias, *geometry(state), _groups(g, weight, state)
    )


@OPERATORS.add("Convolution3D")
def convolution3d(g, inp, weight, **state):
    kernel = _oriented(g, weight, state, 3)
    return convolutions.FUNCTIONS["megengine.functional.nn.conv3d"](
        g, inp, kernel, None, *geometry(state, "dhw"), _groups(g, weight, state)
    )


@OPERATORS.add("ConvolutionBackwardData")
def convolution_backward_data(g, weight, inp, **state):
    stride, padding, dilation = geometry(state)
    weight = _oriented(g, weight, state, 2)
    return convolutions.transposed(
        g, inp, weight, None, stride, padding, 0, dilation, _groups(g, weight, state)
    )


@OPERATORS.add("Convolution3DBackwardData")
def convolution3d_backward_data(g, weight, inp, **state):
    stride, padding, dilation = geometry(state, "dhw")
    weight = _oriented(g, weight, state, 3)
    return convolutions.transposed(
        g, inp, weight, None, stride, padding, 0, dilation, _groups(g, weight, state)
    )


@OPERATORS.add("DeformableConv")
def deformable_conv(g, inp, weight, offset, mask, **state):
    groups = _groups(g, weight, state)
    return convolutions.deformable_conv2d(
        g, inp, weight, offset, mask, None, *geometry(state), groups, state.get("mode", "CROSS_CORRELATION")
    )


@OPERATORS.add("GroupLocal")
def group_local(g, inp, weight, **state):
    return convolutions.local_conv2d(
        g, inp, weight, None, *geometry(state), state.get("mode", "CROSS_CORRELATION")
    )


@OPERATORS.add("RegionRestrictedConvolution")
def region_restricted(g, inp, weight, rin, rout, **state):
    groups = _groups(g, weight, state)
    return convolutions.region_restricted_conv(
        g, inp, weight, rin, rout, None, *geometry(state), groups, state.get("mode", "CROSS_CORRELATION")
    )


@OPERATORS.add("Pooling")
def pooling(g, inp, mode="MAX", **state):
    if str(state.get("format", "NCHW")).upper() != "NCHW":
        raise Refusal(f"the format {state['format']} is not supported")
    sizes = [_sizes(state, name) for name in ("window", "stride", "pad")]
    if str(mode).upper() == "MAX":
        return windows.max_pool2d(g, inp, *sizes)
    return windows.avg_pool2d(g, inp, *sizes, mode)


@OPERATORS.add("AdaptivePooling")
def adaptive_pooling(g, inp, oshp=None, mode="MAX", **state):
    """The output size is a tensor, or the attribute ``shape``."""
    sizes = state.get("shape") if oshp is None else static_ints(g, oshp)
    if str(mode).upper() == "MAX":
        return windows.adaptive_max_pool2d(g, inp, sizes)
    if str(mode).upper() != "AVERAGE":
        raise Refusal(f"the pooling mode {mode!r} is not supported")
    return windows.adaptive_avg_pool2d(g, inp, sizes)


@OPERATORS.add("Images2Neibs")
def images2neibs(g, inp, **state):
    sizes = [_sizes(state, name) for name in ("window", "pad", "stride", "dilate")]
    return windows.sliding_window(g, inp, *sizes)


@OPERATORS.add("SlidingWindowTranspose")
def sliding_window_transpose(g, inp, **state):
    sizes = [_sizes(state, name) for name in ("out", "window", "pad", "stride", "dilate")]
    return windows.sliding_window_transpose(g, inp, *sizes)


@OPERATORS.add("PixelShuffle")
def pixel_shuffle(g, inp, factor):
    return windows.pixel_shuffle(g, inp, factor)


OPERATORS.add("PixelShuffleBackward")(lambda g, inp, factor: g.call("aten::pixel_unshuffle", inp, factor))


@OPERATORS.add("LRN")
def lrn(g, inp, n, k, alpha, beta):
    return normalization.local_response_norm(g, inp, n, k, alpha, beta)


@OPERATORS.add("Padding")
def padding(g, src, padding_mode="CONSTANT", padding_val=0.0, **state):
    axes = range(len(g.type(src).shape))
    amounts = [(state.get(f"front_offset_dim{i}", 0), state.get(f"back_offset_dim{i}", 0)) for i in axes]
    return nn.pad(g, src, amounts, padding_mode, padding_val)
