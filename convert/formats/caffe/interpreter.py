"""Runs a Caffe net by the definition of its layers, in NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tmconvert.formats.caffe.layers import LAYERS
from tmconvert.formats.caffe.net import Net, NetLayer, input_shapes


def run_net(net: Net, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> list[np.ndarray]:
    """Returns the blobs ``outputs`` after the last layer, as float32.

    Raises: ValueError for an invalid net, KeyError for an unknown blob.
    """
    blobs: dict[str, np.ndarray] = {}
    for layer in net.layers:
        if layer.type == "Input":
            for name, shape in zip(layer.tops, input_shapes(layer), strict=True):
                blobs[name] = np.asarray(inputs[name], np.float32).reshape(shape)
            continue
        made = _run(layer, [blobs[name] for name in layer.bottoms])
        blobs.update(zip(layer.tops, made, strict=True))
    return [blobs[name] for name in outputs]


def shapes_of(net: Net, inputs: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of blobs after the last layer, of those that the definitions of the layers tell.

    Raises ValueError for an invalid net.
    """
    known = dict(inputs)
    for layer in net.layers:
        record = LAYERS.get(layer.type)
        bottoms = [known[name] for name in layer.bottoms if name in known]
        if layer.type == "Input":
            continue
        for name in layer.tops:
            known.pop(name, None)
        if record is not None and record.shapes is not None and len(bottoms) == len(layer.bottoms):
            known.update(zip(layer.tops, map(tuple, record.shapes(layer, bottoms)), strict=False))
    return known


def _run(layer: NetLayer, bottoms: list[np.ndarray]) -> list[np.ndarray]:
    known = LAYERS.get(layer.type)
    if known is None or known.shapes is None or known.run is None:
        raise ValueError(f"the layer type {layer.type} is not implemented (layer {layer.name})")
    with np.errstate(all="ignore"):
        try:
            expected = known.shapes(layer, [bottom.shape for bottom in bottoms])
            made = known.run(layer, bottoms)
        except (ValueError, IndexError) as error:
            raise ValueError(f"layer {layer.name} ({layer.type}): {error}") from error
    made = [np.asarray(array, np.float32) for array in made]
    if [array.shape for array in made] != [tuple(shape) for shape in expected]:
        raise ValueError(f"layer {layer.name} ({layer.type}) made {[array.shape for array in made]}")
    return made
