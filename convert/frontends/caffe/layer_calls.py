"""Calls of layers as adapters see them, and the table of adapters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.formats.caffe.layers import LAYERS
from tmconvert.formats.caffe.layers.layer import Layer, Shape
from tmconvert.formats.caffe.net import NetLayer
from tmconvert.frontends.caffe.fields import parameters_of
from tmconvert.frontends.shared.adapter_table import Table
from tmconvert.frontends.shared.arguments import reshaped
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.symbolic.dims import is_symbolic

PREFIX = "caffe."  # of the names of calls


@dataclass(frozen=True)
class LayerCall:
    """A layer: ``bottoms`` and ``blobs`` are tensors of ``g``, ``shapes`` those of the bottoms.

    ``results`` are the shapes of the tops by Caffe's definition; None for layers without a definition here.
    """

    g: Emitter
    net_layer: NetLayer
    bottoms: tuple[Any, ...]
    blobs: tuple[Any, ...]
    shapes: list[Shape]
    results: list[Shape] | None

    @property
    def parameters(self) -> Any:
        return self.net_layer.parameters

    @property
    def x(self) -> Any:
        return self.bottoms[0]

    def call(self, op: str, *args: Any, **attributes: Any) -> Any:
        """Emits an op of aten."""
        return self.g.call(f"aten::{op}", *args, **attributes)

    def number(self, value: float) -> Any:
        """Returns a constant float32."""
        return self.g.constant(float(value), np.float32)

    def reshaped(self, value: Any, shape: Sequence[int]) -> Any:
        return reshaped(self.g, value, shape)

    def blob(self, index: int, shape: Sequence[int]) -> Any:
        """Returns a blob in the shape of its meaning: old files have others. Raises Refusal."""
        if index >= len(self.blobs):
            raise Refusal(f"the layer has {len(self.blobs)} blobs, and needs another one")
        found = self.g.type(self.blobs[index])
        if is_symbolic(found.shape) or math.prod(shape) != found.size:
            raise Refusal(f"blob {index} has the shape {list(found.shape)}, and needs {list(shape)}")
        return reshaped(self.g, self.blobs[index], shape)


Function = Callable[[LayerCall], Any]


class LayerTable(Table):
    """Adapters of layers by type; the functions receive a LayerCall.

    They return one value, or a list where the layer has several tops. What they return has to have the
    shapes of Caffe's definition.
    """

    def __init__(self) -> None:
        super().__init__(PREFIX)

    def layer(self, *kinds: str) -> Callable[[Function], Function]:
        """Declares the decorated function as the adapter of these types."""

        def register(function: Function) -> Function:
            for kind in kinds:
                self.add(kind)(_adapter(kind, function))
            return function

        return register


def _adapter(kind: str, function: Function) -> Callable[..., Any]:
    def adapter(
        g: Emitter, *bottoms: object, blobs: Sequence[object] = (), tops: int = 1, **fields: Any
    ) -> Any:
        call = _call(g, kind, bottoms, blobs, tops, fields)
        made = function(call)
        results = list(made) if isinstance(made, list | tuple) else [made]
        if len(results) != tops:
            raise Refusal(f"a layer {kind} has {len(results)} tops, not {tops}")
        _check(g, call, results)
        return results if tops > 1 else results[0]

    return adapter


def _call(
    g: Emitter,
    kind: str,
    bottoms: tuple[Any, ...],
    blobs: Sequence[Any],
    tops: int,
    fields: Mapping[str, Any],
) -> LayerCall:
    record = LAYERS[kind]
    for what, count, (least, most) in (
        ("bottoms", len(bottoms), record.bottoms),
        ("tops", tops, record.tops),
    ):
        if count < least or (most is not None and count > most):
            raise Refusal(f"a layer {kind} with {count} {what}")
    layer = NetLayer("", kind, [""] * len(bottoms), [""] * tops, parameters_of(kind, fields))
    shapes = [g.type(bottom).shape for bottom in bottoms]
    return LayerCall(g, layer, bottoms, tuple(blobs), shapes, _defined(record, layer, shapes))


def _defined(record: Layer, layer: NetLayer, shapes: list[Shape]) -> list[Shape] | None:
    if record.shapes is None or any(is_symbolic(shape) for shape in shapes):
        return None
    try:
        return [tuple(shape) for shape in record.shapes(layer, shapes)]
    except (ValueError, LookupError, ArithmeticError) as error:
        raise Refusal(f"the layer is not valid: {error}") from error


def _check(g: Emitter, call: LayerCall, results: Sequence[Any]) -> None:
    """Raises Refusal where the results have other shapes than Caffe's."""
    if call.results is None:
        return
    for found, expected in zip(results, call.results, strict=True):
        if g.type(found).shape != expected:
            raise Refusal(f"the result has the shape {list(g.type(found).shape)}, in Caffe {list(expected)}")
