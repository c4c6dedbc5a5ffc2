"""Adds preprocessing and postprocessing to a model, as ops of its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tmconvert.conversion.preprocessing import ImageInput, Preprocessing
from tmconvert.conversion.scaled_images import Step, folded_scale
from tmconvert.errors import UsageError
from tmconvert.ir import Input, InternalGraph, TensorNode, TracedModule
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.extract import matching_name
from tmconvert.ir.traced_module import Example
from tmconvert.ir.tree import replaced
from tmconvert.symbolics.op import Ops
from tmconvert.transform.normal_form import transformed

_MADE_BY = "preprocess"
_TO_NCHW, _TO_NHWC = [0, 3, 1, 2], [0, 2, 3, 1]


def preprocessed(
    module: TracedModule, wanted: Preprocessing, catalogue: Ops, *, takes_floats: bool = False
) -> tuple[TracedModule, dict[str, ImageInput]]:
    """Returns a model in ATen-style ops that takes the images of ``wanted``, and the images by input.

    With ``takes_floats`` inputs of uint8 are float32 with the same values, for files that store them as
    quantized integers, or have no integers. Raises UsageError TM6002 for inputs and outputs that are not
    images or classes.
    """
    is_last = module.vocabulary is not None and module.vocabulary.is_channels_last
    work = _Work(wanted, catalogue, "nhwc" if is_last else "nchw", takes_floats)
    made = transformed(module, catalogue, work.run, keeps_outputs=False)
    if wanted.images:
        made.example = Example(tuple(work.example(made, module.example)), None)
        made.dynamic_shapes = work.open_axes(made.dynamic_shapes or {})
    return made, work.images


class _Work:
    def __init__(self, wanted: Preprocessing, catalogue: Ops, layout: str, takes_floats: bool) -> None:
        self.wanted = wanted
        self.catalogue = catalogue
        self.layout = layout  # of the model's own images
        self.takes_floats = takes_floats
        self.images: dict[str, ImageInput] = {}

    def run(self, graph: InternalGraph) -> None:
        inputs = {_name(node): node for node in graph.inputs if isinstance(node, TensorNode)}
        for each in self.wanted.images:
            name = _named(each, list(inputs))
            self.images[name] = each
            self._prepend(graph, inputs[name], each)
        if self.wanted.softmax or self.wanted.argmax:
            self._append(graph)

    def _prepend(self, graph: InternalGraph, node: TensorNode, image: ImageInput) -> None:
        """Puts the ops of ``image`` between a new input, named as ``node``, and the users of ``node``."""
        assert isinstance(node.expr, Input)
        name, position, source = node.name, graph.inputs.index(node), node.expr.source
        shape, channels = _shapes(node, image, self.layout)
        dtype = np.dtype(np.float32 if self.takes_floats else image.dtype)
        taken = TensorNode(graph.free_name(f"{name}_image"), shape, dtype)
        graph.add_input(taken, node.expr.name, source=source)
        graph.inputs.insert(position, graph.inputs.pop())
        g = GraphEmitter(
            graph,
            self.catalogue,
            source=source,
            made_by=_MADE_BY,
            name=f"{name}_{_MADE_BY}",
            before=graph.first,
        )
        graph.replace_uses(node, self._converted(g, taken, node, image, channels))
        graph.remove_input(node)
        graph.rename(taken, name)

    def _converted(self, g: GraphEmitter, x: Any, node: TensorNode, image: ImageInput, channels: int) -> Any:
        """Returns the images as the model takes them."""
        if x.dtype != node.dtype:
            x = g.call("aten::to", x, dtype=node.type.dtype.name)
        if image.layout == "nhwc":
            x = g.call("aten::permute", x, _TO_NCHW)
        if image.size is not None:
            size = node.type.shape[2:] if self.layout == "nchw" else node.type.shape[1:3]
            x = g.call("aten::upsample_bilinear2d", x, list(size), False, None)
        if image.colours != image.model_colours:
            x = g.call("aten::flip", x, [1])
        if image.scales:  # (pixel - 255 mean) / (255 std)
            mean = _per_channel("mean", image.mean or (0.0,), channels)
            std = _per_channel("std", image.std or (1.0,), channels)
            added: Step | None = ("aten::add", (-255 * mean).astype(np.float32)) if np.any(mean) else None
            factor: Step | None = ("aten::mul", (1 / (255 * std)).astype(np.float32))
            if self.layout == "nchw":
                added, factor = folded_scale(node, self.catalogue, added, factor)
            for step in filter(None, (added, factor)):
                x = g.call(step[0], x, g.constant(step[1]))
        return g.call("aten::permute", x, _TO_NHWC) if self.layout == "nhwc" else x

    def open_axes(self, axes: Mapping[str, Mapping[int, str]]) -> dict[str, dict[int, str]]:
        """Returns the open sizes by the axes of the images that the file takes."""
        found = {name: dict(each) for name, each in axes.items()}
        for name, image in self.images.items():
            if image.layout != self.layout and name in found:
                order = _TO_NHWC if image.layout == "nhwc" else _TO_NCHW
                found[name] = {order.index(axis): size for axis, size in found[name].items()}
        return found

    def _append(self, graph: InternalGraph) -> None:
        outputs = list(dict.fromkeys(graph.outputs))
        node = outputs[0] if len(outputs) == 1 else None
        if not isinstance(node, TensorNode) or node.type.rank < 2 or node.type.dtype.kind != "f":
            shown = ", ".join(f"{each} {getattr(each, 'type', '')}" for each in outputs)
            raise UsageError(
                "TM6002",
                f"softmax and argmax apply to one output of float classes, but the model has {shown}",
            )
        axis = -1 if node.type.rank != 4 or self.layout == "nhwc" else 1
        g = GraphEmitter(graph, self.catalogue, made_by=_MADE_BY, name=node.name)
        made: Any = node
        if self.wanted.softmax:
            made = g.call("aten::softmax", made, axis)
        if self.wanted.argmax:
            made = g.call("aten::argmax", made, axis % node.type.rank)
        graph.set_result(replaced(graph.result, node, made))
        graph.output_names = ()

    def example(self, made: TracedModule, source: Example | None) -> list[np.ndarray]:
        """Returns inputs of the new model: random pixels for images, the model's own example for others."""
        random = np.random.default_rng(0)
        found = []
        assert made.graph is not None
        for number, node in enumerate(made.graph.inputs[1:]):
            assert isinstance(node, TensorNode)
            if _name(node) in self.images:
                found.append(random.integers(0, 256, node.type.shape).astype(node.type.dtype))
            elif source is not None:
                found.append(source.inputs[number])
            else:
                found.append(random.standard_normal(node.type.shape).astype(node.type.dtype))
        return found


def _name(node: TensorNode) -> str:
    return str(getattr(node.expr, "name", "") or node.name)


def _named(image: ImageInput, names: Sequence[str]) -> str:
    if not image.name and len(names) == 1:
        return names[0]
    found = matching_name(image.name, names)
    if found in names:
        return found
    message = f"the model has no input {image.name!r}" if image.name else "preprocess does not name its input"
    raise UsageError("TM6002", message, notes=[("help", f"inputs of the model: {', '.join(names)}")])


def _shapes(node: TensorNode, image: ImageInput, layout: str) -> tuple[tuple[Any, ...], int]:
    """Returns the shape of the images that the file takes, and the number of channels."""
    type_ = node.type
    channels = type_.shape[1 if layout == "nchw" else 3] if type_.rank == 4 else 0
    if type_.rank != 4 or type_.dtype != np.float32:
        raise UsageError("TM6002", f"preprocess applies to images of float32, but {_name(node)} is {type_}")
    if image.colours != image.model_colours and channels != 3:
        raise UsageError("TM6002", f"{_name(node)} has {channels} channels: rgb and bgr apply to three")
    batch = type_.shape[0]
    height, width = type_.shape[2:] if layout == "nchw" else type_.shape[1:3]
    height, width = image.size or (height, width)
    return (
        (batch, height, width, channels) if image.layout == "nhwc" else (batch, channels, height, width)
    ), channels


def _per_channel(key: str, numbers: Sequence[float], channels: int) -> np.ndarray:
    if len(numbers) not in (1, channels):
        raise UsageError(
            "TM6002",
            f"{key} of preprocess has {len(numbers)} values, but the input has {channels} channels",
            notes=[("help", "pass one value, or one per channel")],
        )
    return np.array(numbers, np.float64).reshape(1, -1, 1, 1)
