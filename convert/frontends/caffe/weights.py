"""Which blobs a layer has, and where they are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from tmconvert.formats.caffe.caffemodel import blobs_of
from tmconvert.formats.caffe.net import Net, NetLayer
from tmconvert.formats.mapped_file import map_file
from tmconvert.frontends.caffe.faults import unreadable, without_weights

SUFFIX = ".caffemodel"
_MOST_NAMES = 5  # in a message


def _with_bias(layer: NetLayer) -> int:
    return 2 if layer.parameters.bias_term else 1


def _of_operand(layer: NetLayer) -> int:
    """A second bottom replaces the first blob."""
    bias = layer.type == "Scale" and layer.parameters.bias_term
    return (len(layer.bottoms) == 1) + bool(bias)


def _recurrent(count: int, states: int) -> Callable[[NetLayer], int]:
    def number(layer: NetLayer) -> int:
        given = len(layer.bottoms) - (states if layer.parameters.expose_hidden else 0)
        return count + (given == 3)

    return number


def _statistics(layer: NetLayer) -> int:
    is_of_batch = layer.parameters.HasField("use_global_stats") and not layer.parameters.use_global_stats
    return 0 if is_of_batch else 3


_COUNTS: Mapping[str, Callable[[NetLayer], int]] = {
    "BatchNorm": _statistics,
    "Bias": _of_operand,
    "Convolution": _with_bias,
    "ConvolutionDepthwise": _with_bias,
    "Deconvolution": _with_bias,
    "DepthwiseConv": _with_bias,
    "DepthwiseConvolution": _with_bias,
    "Embed": _with_bias,
    "InnerProduct": _with_bias,
    "LSTM": _recurrent(3, 2),
    "Normalize": lambda layer: 1,
    "PReLU": lambda layer: 1,
    "Parameter": lambda layer: 1,
    "RNN": _recurrent(5, 1),
    "Scale": _of_operand,
}


def blob_count(layer: NetLayer) -> int:
    """Returns how many blobs a layer of a known type has."""
    return _COUNTS[layer.type](layer) if layer.type in _COUNTS else 0


def read_weights(path: str) -> dict[str, list[np.ndarray]]:
    """Returns the blobs of the layers of the net at ``path``, by their names.

    That has the name of the text, or is the only one of its folder. Raises LoadError TM1016, TM1053.
    """
    found = caffemodel_of(path)
    if found is None:
        return {}
    return blobs_of(map_file(str(found)), lambda cause: unreadable(str(found), cause))


def caffemodel_of(path: str) -> Path | None:
    """Returns the caffemodel of a text; None where there is none, or several have other names."""
    own = Path(path).with_suffix(SUFFIX)
    if own.is_file():
        return own
    others = _caffemodels(path)
    return others[0] if len(others) == 1 else None


def _caffemodels(path: str) -> list[Path]:
    try:
        return sorted(each for each in Path(path).parent.glob(f"*{SUFFIX}") if each.is_file())
    except OSError:
        return []


def check_weights(path: str, net: Net) -> None:
    """Raises LoadError TM1053 for layers without their blobs."""
    owned = {name for layer in net.layers for name in layer.shared[: len(layer.blobs)] if name}
    lacking = [layer for layer in net.layers if _lacks(layer, owned)]
    if not lacking:
        return
    first, count = lacking[0], len(lacking)
    more = f", and {count - 1} more layers have none" if count > 1 else ""
    what = f"the layer {first.name!r:.100} needs {blob_count(first)} blobs, not {len(first.blobs)}{more}"
    raise without_weights(path, f"weights are missing: {what}", _help(path), first)


def _lacks(layer: NetLayer, owned: set[str]) -> bool:
    count = blob_count(layer)
    there = range(len(layer.blobs))
    names = layer.shared + [""] * count
    return any(number not in there and names[number] not in owned for number in range(count))


def _help(path: str) -> str:
    wanted = Path(path).with_suffix(SUFFIX)
    used = caffemodel_of(path)
    if used is not None:
        return f"{used} is read: pass the text to which this file belongs"
    names = [each.name for each in _caffemodels(path)[:_MOST_NAMES]]
    there = f"; the folder has {', '.join(names)}" if names else ""
    return f"put the weights next to the text, as {wanted.name}{there}"
