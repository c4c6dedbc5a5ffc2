"""Builds a TracedModule from a Caffe net: one call for each layer."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from tmconvert.formats.caffe.layers import LAYERS
from tmconvert.formats.caffe.net import Net, NetLayer, input_shapes
from tmconvert.frontends.caffe.faults import inconsistent, place_of, unknown_part, without_weights
from tmconvert.frontends.caffe.fields import fields_of
from tmconvert.frontends.caffe.layer_calls import PREFIX
from tmconvert.frontends.caffe.vocabulary import VOCABULARY
from tmconvert.ir import CallFunction, GetAttr, InternalGraph, ModuleNode, TensorNode, TracedModule
from tmconvert.ir.expr import short_label

MAX_NAME = 200
MAX_RANK = 32
MAX_EXTENT = 1 << 31
_FLOAT32 = np.dtype(np.float32)


class GraphBuilder:
    """Builds the module of a net; all blobs are float32."""

    def __init__(self, path: str, net: Net) -> None:
        self.path, self.net = path, net
        own = re.sub(r"\W+", "_", net.name, flags=re.ASCII).strip("_")[:60] or "net"
        self.module = TracedModule(own, f"caffe.{own}", vocabulary=VOCABULARY)
        self.module.source_file = path
        self.graph = InternalGraph(own)
        self.top = ModuleNode(self.graph.free_name("self"), self.module.class_name, owner=self.module)
        self.graph.add_input(self.top, "self")
        self.values: dict[str, TensorNode] = {}
        self.unread: dict[str, None] = {}
        self.owners: dict[tuple[str, tuple[int, ...]], str] = {}
        self.inputs: list[str] = []
        self.last = {
            name: number for number, layer in enumerate(net.layers) for name in layer.tops or [layer.name]
        }
        self.blob_names: dict[str, str] = {}

    def build(self) -> TracedModule:
        """Returns the module. Raises LoadError."""
        for layer in self.net.layers:
            if layer.type == "Input":
                self._inputs(layer)
        self.blob_names = {
            name: self.graph.free_name(name[:MAX_NAME] or "blob")
            for name, number in self.last.items()
            if self.net.layers[number].type not in ("Input", "Silence") and name not in self.values
        }
        for number, layer in enumerate(self.net.layers):
            if layer.type != "Input":
                self._layer(layer, number)
        if not self.unread:
            raise inconsistent(self.path, "the net has no output")
        results = [self.values[name] for name in self.unread]
        self.graph.set_result(results[0] if len(results) == 1 else tuple(results))
        self.module.graphs[""] = self.graph
        return self.module

    def outputs(self) -> list[str]:
        """Returns the blobs that no layer reads after they are written last, in order."""
        return list(self.unread)

    # ---- blobs

    def _inputs(self, layer: NetLayer) -> None:
        shapes = list(input_shapes(layer))
        if len(shapes) != len(layer.tops):
            cause = f"{len(shapes)} shapes are given for {len(layer.tops)} inputs"
            raise inconsistent(self.path, cause, layer)
        for name, shape in zip(layer.tops, shapes, strict=True):
            if name in self.values:
                raise inconsistent(self.path, f"the input {name!r:.100} is declared twice", layer)
            if len(shape) > MAX_RANK or not all(0 < extent < MAX_EXTENT for extent in shape):
                raise inconsistent(self.path, f"an input has the shape {list(shape)}"[:200], layer)
            label = self.graph.free_name(name[:MAX_NAME] or "data")
            node = TensorNode(label, tuple(shape), _FLOAT32)
            self.graph.add_input(node, label)
            self.values[name], self.unread[name] = node, None
            self.inputs.append(name)

    def _operand(self, layer: NetLayer, name: str) -> TensorNode:
        if name not in self.values:
            raise inconsistent(self.path, f"no layer before computes the blob {name!r:.100}", layer)
        self.unread.pop(name, None)
        return self.values[name]

    def _stored(self, layer: NetLayer, number: int, array: np.ndarray) -> TensorNode:
        """Returns the node of a blob; one with a name belongs to all layers that name it."""
        shared = layer.shared[number] if number < len(layer.shared) else ""
        owner = (shared, array.shape)
        key = self.owners.get(owner) if shared else None
        if key is None:
            key = self._free_key(f"{layer.name[:MAX_NAME].replace('.', '_')}/{number}")
            self.module.tensors[key] = array
            if shared:
                self.owners[owner] = key
        node = TensorNode(self.graph.free_name(key), array.shape, array.dtype)
        self.graph.insert(GetAttr(self.top, key, result=node))
        return node

    def _free_key(self, key: str) -> str:
        while key in self.module.tensors:
            key += "_"
        return key

    # ---- layers

    def _layer(self, layer: NetLayer, number: int) -> None:
        args = tuple(self._operand(layer, name) for name in layer.bottoms)
        if layer.type == "Silence":
            return
        record = LAYERS.get(layer.type)
        if record is not None and record.trains:
            help = "pass the deploy.prototxt of the net, which has inputs in the place of data and no losses"
            what = f"the layer {layer.name!r:.100} ({layer.type}) is for training and testing"
            raise unknown_part(self.path, what, help, layer.line or None)
        kwargs: dict[str, Any] = fields_of(layer.parameters)
        blobs = [self._stored(layer, index, array) for index, array in enumerate(layer.blobs)]
        if blobs:
            kwargs["blobs"] = blobs
        tops = layer.tops or [layer.name]
        if len(tops) != 1:
            kwargs["tops"] = len(tops)
        results = tuple(self._result(name, layer, number) for name in tops)
        function = PREFIX + layer.type
        self.graph.insert(
            CallFunction(
                function,
                args,
                kwargs,
                result=results[0] if len(results) == 1 else results,
                source=place_of(self.path, layer),
                label=short_label(function),
            )
        )
        for name, node in zip(tops, results, strict=True):
            self.values[name] = node
            self.unread.pop(name, None)
            self.unread[name] = None

    def _result(self, name: str, layer: NetLayer, number: int) -> TensorNode:
        """Returns a node; the last writer of a blob has its name, since a blob is what its last writer left.

        Values that a layer in place replaces have the name of their layer, followed by its type where a blob
        has that name, too.
        """
        if self.last[name] == number and name in self.blob_names:
            return TensorNode(self.blob_names[name], None, _FLOAT32)
        label = (layer.name or name)[:MAX_NAME]
        if label in self.last:
            label += f"_{layer.type.lower()}"
        node = TensorNode(self.graph.free_name(label), None, _FLOAT32)
        if self.last[name] == number:  # it replaces an input of the net in place
            self.graph.source_names[node] = name
        return node


def share_blobs(path: str, net: Net) -> None:
    """Gives each layer the blobs that it shares by name with others. Raises LoadError TM1053.

    As in Caffe, the values of the last layer that stores a blob are those of all.
    """
    values = {
        name: blob
        for layer in net.layers
        for name, blob in zip(layer.shared, layer.blobs, strict=False)
        if name
    }
    for layer in net.layers:
        named = [values.get(name) if name else None for name in layer.shared]
        for number, value in enumerate(named):
            own = layer.blobs[number] if number < len(layer.blobs) else None
            if value is None or number > len(layer.blobs):
                continue
            if own is not None and math.prod(own.shape) != value.size:
                what = f"layers share a blob, but have {own.size} and {value.size} elements of it"
                raise without_weights(path, what, "give blobs of different shapes different names", layer)
            layer.blobs[number : number + 1] = [value if own is None else value.reshape(own.shape)]
