"""Attention of a written decoder by GroupQueryAttention of ONNX Runtime, whose caches are updated in place.

A file whose layers join their caches with new keys and values copies them in each step. GroupQueryAttention
appends to a buffer that is as long as the longest text. Such a buffer does not state how many positions it
has: that follows from the attention mask. Source: ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, MutableSequence, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from tmconvert.formats.onnx.messages import messages
from tmconvert.formats.onnx.model import read_whole_model

if TYPE_CHECKING:
    from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

DOMAIN = "com.microsoft"
_PAST, _MASK = "past_key_values.", "attention_mask"
_TOKENS = ("inputs_embeds", "input_ids")  # the first one that a model has tells how many tokens are new
_SWAPPED = [0, 2, 1, 3]  # heads and positions
_UNIT = 8  # ONNX Runtime requires multiples of it for the size of a head
_LOWEST = {1: np.float32(-1e30), 10: np.float16(-6e4)}  # of masks, by the type of floats
_LEAST = 23  # the opset with Attention
# batch, positions in the caches, new tokens: ONNX Runtime takes several only after none, or in a batch of one
_TRIED = ((2, 0, 5), (2, 7, 1), (1, 3, 4))
_TOLERANCE = {"float32": 1e-4, "float16": 2e-2}  # of the largest value
T = TypeVar("T")


class Layer(NamedTuple):
    """The attention of a layer: its operator, and those that join its caches with new keys and values."""

    attention: NodeProto
    key: NodeProto
    value: NodeProto


class Cut(NamedTuple):
    """The attention of a model without its weights; ``heads`` are those of new inputs, with their sizes."""

    model: ModelProto
    heads: dict[str, tuple[int, int]]


class _Unknown(Exception):
    """The file does not have the operators that are replaced, or they compute something else: the text."""


def share_caches(path: Path) -> str:
    """Rewrites the file of a decoder for caches that are updated in place.

    Returns why the file is left as it is, and an empty text for one that was changed. All its caches must be
    joined with new ones along the positions, and be read by Attention alone. Both files compute attention for
    random queries, keys and values, and must agree. Raises LoadError TM1031 to TM1033.
    """
    model = read_whole_model(str(path), keeps_links=True)
    try:
        layers = _layers(model)
        before = _cut(model, layers)
        _rewrite(model, layers)
        _refuse_difference(before, _cut(model, layers))
    except _Unknown as reason:
        return str(reason)
    path.write_bytes(model.SerializeToString(deterministic=True))
    return ""


def _layers(model: ModelProto) -> list[Layer]:
    """Returns the attention of all layers. Raises _Unknown."""
    graph = model.graph
    opsets = {each.domain: each.version for each in model.opset_import}
    inputs = {each.name for each in graph.input}
    if opsets.get("", 0) < _LEAST:
        raise _Unknown(f"its opset is lower than {_LEAST}")
    if not inputs & set(_TOKENS) or _MASK not in inputs:
        raise _Unknown(f"it has no input {_MASK}")
    producers = {name: node for node in graph.node for name in node.output}
    found = [
        Layer(node, *(_joined(name, producers) for name in node.input[1:3]))
        for node in graph.node
        if node.op_type == "Attention"
    ]
    joined = {id(each) for layer in found for each in layer[1:]}
    caches = {name for name in inputs if name.startswith("past_")}
    known = {each.input[0] for layer in found for each in layer[1:]}
    users = [node for node in graph.node if caches & set(node.input)]
    is_other = any(id(each) not in joined and each.op_type != "Shape" for each in users)
    if not found or known != caches or is_other or len(joined) != len(caches):
        raise _Unknown("not all of its caches are read by one operator Attention alone")
    return found


def _joined(name: str, producers: Mapping[str, NodeProto]) -> NodeProto:
    """Returns the operator that joins a cache with new positions, before its heads are repeated."""
    node = producers.get(name)
    while node is not None and node.op_type in ("Reshape", "Expand", "Unsqueeze"):
        node = producers.get(node.input[0])
    is_known = node is not None and node.op_type == "Concat" and len(node.input) == 2
    if node is None or not is_known or _attribute(node, "axis") not in (2, -2):
        raise _Unknown("its keys and values are not caches joined with new ones")
    if not node.input[0].startswith(_PAST):
        raise _Unknown("its keys and values are not caches joined with new ones")
    return node


def _attribute(node: NodeProto, name: str) -> float | None:
    for each in node.attribute:
        if each.name == name:
            return each.f if each.type == each.FLOAT else each.i
    return None


def _rewrite(model: ModelProto, layers: Sequence[Layer]) -> None:
    """Puts GroupQueryAttention into the model. Raises _Unknown."""
    graph = model.graph
    writer = _Writer({each.name: each for each in (*graph.input, *graph.value_info)})
    writer.write_sizes(next(name for name in _TOKENS if name in writer.types))
    for layer in layers:
        writer.replaced |= {layer.attention.output[0]: layer, layer.key.output[0]: None}
        writer.replaced[layer.value.output[0]] = None
    for node in graph.node:
        writer.write(node)
    nodes = _used(writer.nodes, [each.name for each in graph.output])
    caches = {each.output[0] for layer in layers for each in layer[1:]}
    if any(caches & set(node.input) and node.op_type != "Identity" for node in nodes):
        raise _Unknown("it computes with the lengths of the new caches")
    known = {name for node in nodes for name in (*node.input, *node.output)}
    _replace(graph.node, nodes)
    _keep(graph.initializer, known)
    graph.initializer.extend(writer.constants.values())
    _keep(graph.value_info, known)
    model.opset_import.add(domain=DOMAIN, version=1)


def _replace(field: MutableSequence[T], values: Sequence[T]) -> None:
    del field[:]
    field.extend(values)


def _keep(field: MutableSequence[Any], names: Collection[str]) -> None:
    """Deletes what has none of the names, in place: a copy of weights may not fit into memory."""
    for number in reversed(range(len(field))):
        if field[number].name not in names:
            del field[number]


def _used(nodes: Sequence[NodeProto], outputs: Sequence[str]) -> list[NodeProto]:
    """Returns the operators that results depend on."""
    wanted = set(outputs)
    found: list[NodeProto] = []
    for node in reversed(nodes):
        if wanted & set(node.output):
            wanted |= set(node.input)
            found.append(node)
    return found[::-1]


class _Writer:
    """Writes the operators of a graph, with others in the place of those that are replaced.

    ``replaced`` has the layer by the result of its attention, and None by those of its caches.
    """

    def __init__(self, types: Mapping[str, ValueInfoProto]) -> None:
        self.types = types
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, TensorProto] = {}
        self.replaced: dict[str, Layer | None] = {}
        self.biases: dict[str, str] = {}

    def write(self, node: NodeProto) -> None:
        layer = self.replaced.get(node.output[0])
        if layer is not None:
            self._write_attention(layer)
        elif node.op_type == "Shape" and node.input[0].startswith(_PAST):
            self._write_shape(node)
        elif node.output[0] not in self.replaced:
            self.nodes.append(node)

    def write_sizes(self, tokens: str) -> None:
        """Writes the numbers of texts, of all positions, and of those in the caches: int64[1]."""
        self._op("Shape", "cache/batch", [tokens], start=0, end=1)
        self._op("Shape", "cache/new", [tokens], start=1, end=2)
        self._op("Shape", "cache/total", [_MASK], start=1, end=2)
        self._op("Sub", "cache/past", ["cache/total", "cache/new"])
        last = self._op("Sub", "cache/last", ["cache/total", self._integers("cache/one", 1)])
        self._op("Cast", "cache/last_of_one", [last], to=6)
        self._op("Expand", "cache/last_of_each", ["cache/last_of_one", "cache/batch"])
        scalar = self._op("Squeeze", "cache/total_scalar", ["cache/total"])
        self._op("Cast", "cache/total_int32", [scalar], to=6)

    def _write_shape(self, node: NodeProto) -> None:
        """Writes the shape that a cache without free positions has."""
        name = node.output[0]
        heads, size = (self._size(node.input[0], axis) for axis in (1, 3))
        parts = ["cache/batch", self._integers(f"{name}/heads", heads), "cache/past"]
        parts.append(self._integers(f"{name}/size", size))
        begin, end = (_attribute(node, each) for each in ("start", "end"))
        chosen = parts[slice(*(None if each is None else int(each) for each in (begin, end)))]
        self._op("Concat", name, chosen, axis=0)

    def _write_attention(self, layer: Layer) -> None:
        """Writes GroupQueryAttention, of tensors [batch, tokens, heads * size]. Raises _Unknown."""
        node, name = layer.attention, layer.attention.output[0]
        past = [layer.key.input[0], layer.value.input[0]]
        (heads, size), (value_heads, value_size) = (
            (self._size(each, 1), self._size(each, 3)) for each in past
        )
        queries, query_size = self._size(node.input[0], 1), self._size(node.input[0], 3)
        given = {each.name for each in node.attribute}
        if (value_heads, value_size, query_size) != (heads, size, size) or queries % heads:
            raise _Unknown("its keys and values have different sizes")
        if size % _UNIT:
            raise _Unknown(f"the size of a head, {size}, is not a multiple of {_UNIT}")
        if given - {"scale", "is_causal"} or len(node.output) > 1 or len(node.input) > 4:
            raise _Unknown("its attention has settings that GroupQueryAttention lacks")
        mask = node.input[3] if len(node.input) > 3 else ""
        if not mask and not _attribute(node, "is_causal"):
            raise _Unknown("its attention is not causal")
        new = [node.input[0], layer.key.input[1], layer.value.input[1]]
        rows = [self._rows(each, f"{name}/{part}") for each, part in zip(new, ("q", "k", "v"), strict=True)]
        bias = self._bias(mask, self.types[past[0]].type.tensor_type.elem_type) if mask else ""
        inputs = [*rows, *past, "cache/last_of_each", "cache/total_int32", "", "", "", bias]
        scale = _attribute(node, "scale")
        settings = {"num_heads": queries, "kv_num_heads": heads, **({"scale": float(scale)} if scale else {})}
        caches = [layer.key.output[0], layer.value.output[0]]
        made = self._op("GroupQueryAttention", f"{name}/rows", inputs, *caches, domain=DOMAIN, **settings)
        shape = self._integers(f"{name}/shape", 0, 0, queries, size)
        heads_last = self._op("Reshape", f"{name}/heads_last", [made, shape])
        self._op("Transpose", name, [heads_last], perm=_SWAPPED)

    def _rows(self, value: str, name: str) -> str:
        """Returns a tensor [batch, heads, tokens, size] as [batch, tokens, heads * size]."""
        heads, size = self._size(value, 1), self._size(value, 3)
        value = self._op("Transpose", f"{name}_heads_last", [value], perm=_SWAPPED)
        return self._op("Reshape", name, [value, self._integers(f"{name}_shape", 0, 0, heads * size)])

    def _bias(self, mask: str, kind: int) -> str:
        """Returns what is added to scores for a mask of bool, which allows as many as ``mask`` does."""
        if mask not in self.biases:
            if len(self._shape(mask)) != 4 or kind not in _LOWEST:
                raise _Unknown("its mask is of another kind")
            lowest = _LOWEST[kind]
            values = [np.array(each, lowest.dtype) for each in (0, lowest)]
            names = [
                self._constant(f"{mask}/{n}", each)
                for n, each in zip(("open", "hidden"), values, strict=True)
            ]
            self.biases[mask] = self._op("Where", f"{mask}/bias", [mask, *names])
        return self.biases[mask]

    def _shape(self, name: str) -> list[int]:
        """Returns the known sizes of a tensor, 0 for others. Raises _Unknown."""
        if name not in self.types:
            raise _Unknown("the shapes of its attention are not known")
        return [each.dim_value for each in self.types[name].type.tensor_type.shape.dim]

    def _size(self, name: str, axis: int) -> int:
        shape = self._shape(name)
        if len(shape) != 4 or shape[axis] < 1:
            raise _Unknown("the shapes of its attention are not known")
        return shape[axis]

    def _op(
        self, type_: str, name: str, inputs: Sequence[str], *more: str, domain: str = "", **attributes: object
    ) -> str:
        """Returns the name of the first result, which is that of the operator; ``more`` are the others."""
        node = messages().NodeProto(op_type=type_, domain=domain, name=name, input=inputs)
        node.output.extend([name, *more])
        node.attribute.extend(_attributes(attributes))
        self.nodes.append(node)
        return name

    def _constant(self, name: str, array: np.ndarray) -> str:
        kind = {"float32": 1, "int64": 7, "float16": 10}[str(array.dtype)]
        self.constants[name] = messages().TensorProto(
            name=name, data_type=kind, dims=array.shape, raw_data=array.tobytes()
        )
        return name

    def _integers(self, name: str, *values: int) -> str:
        return self._constant(name, np.array(values, np.int64))


def _attributes(given: Mapping[str, object]) -> Iterator[AttributeProto]:
    kinds = messages().AttributeProto
    for name, value in given.items():
        if isinstance(value, float):
            yield kinds(name=name, type=kinds.FLOAT, f=value)
        elif isinstance(value, int):
            yield kinds(name=name, type=kinds.INT, i=value)
        elif isinstance(value, list):
            yield kinds(name=name, type=kinds.INTS, ints=value)


def _cut(model: ModelProto, layers: Sequence[Layer]) -> Cut:
    """Returns the attention of a model without its weights, with new inputs.

    These are queries and new keys and values; results are those of attention, and the longer caches. Raises
    _Unknown for a mask that depends on tokens: GroupQueryAttention is causal within an image, too.
    """
    types = {each.name: each for each in (*model.graph.input, *model.graph.value_info)}
    new = [
        name
        for layer in layers
        for name in (layer.attention.input[0], layer.key.input[1], layer.value.input[1])
    ]
    outputs = [each.output[0] for layer in layers for each in layer]
    nodes = _used([node for node in model.graph.node if not set(node.output) & set(new)], outputs)
    known = {name for node in nodes for name in node.input}
    if any(set(_TOKENS) & set(node.input) and node.op_type != "Shape" for node in nodes):
        raise _Unknown("its mask depends on tokens, and GroupQueryAttention is causal")
    cut = messages().ModelProto(
        ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions
    )
    graph = cut.graph
    graph.name = model.graph.name
    graph.node.extend(nodes)
    graph.initializer.extend(each for each in model.graph.initializer if each.name in known)
    graph.input.extend(each for each in model.graph.input if each.name in known)
    graph.input.extend(types[name] for name in dict.fromkeys(new))
    graph.output.extend(messages().ValueInfoProto(name=name) for name in outputs)
    sizes = {name: types[name].type.tensor_type.shape.dim for name in new}
    return Cut(cut, {name: (dims[1].dim_value, dims[3].dim_value) for name, dims in sizes.items()})


def _refuse_difference(before: Cut, after: Cut) -> None:
    """Raises _Unknown for attention that differs in ONNX Runtime, or without it."""
    try:
        import onnxruntime
    except ImportError:
        raise _Unknown(
            "the attention of both files is compared in onnxruntime, which is not installed"
        ) from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    sessions = [
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        for model, _ in (before, after)
    ]
    for sizes in _TRIED:
        feeds = _feeds([*before.model.graph.input, *after.model.graph.input], before.heads, sizes)
        try:
            wanted, found = (
                each.run(None, {name: feeds[name] for name in (given.name for given in each.get_inputs())})
                for each in sessions
            )
        except Exception as error:  # of many kinds
            raise _Unknown(f"ONNX Runtime refuses GroupQueryAttention: {error!s:.100}") from None
        for array, other in zip(found, wanted, strict=True):
            most = _TOLERANCE[str(array.dtype)] * np.abs(other).max(initial=0.0)
            if array.shape != other.shape or not np.abs(array - other).max(initial=0.0) <= most:
                raise _Unknown("GroupQueryAttention computes something else")


def _feeds(
    inputs: Sequence[ValueInfoProto], heads: Mapping[str, tuple[int, int]], sizes: tuple[int, int, int]
) -> dict[str, np.ndarray]:
    """Returns random inputs; the first text of several in a step of one token begins with padding."""
    (batch, past, new), random = sizes, np.random.default_rng(0)
    feeds: dict[str, np.ndarray] = {}
    for each in inputs:
        dims = [dim.dim_value for dim in each.type.tensor_type.shape.dim]
        dtype = np.dtype({1: "float32", 10: "float16"}.get(each.type.tensor_type.elem_type, "int64"))
        if each.name in heads:
            shape = (batch, heads[each.name][0], new, heads[each.name][1])
        elif each.name.startswith(_PAST):
            shape = (batch, dims[1], past, dims[3])
        elif each.name in _TOKENS:  # only its shape is read
            feeds[each.name] = np.zeros((batch, new, *dims[2:]), dtype)
            continue
        else:
            feeds[each.name] = np.tile(np.arange(past, past + new), (batch, 1))
            continue
        feeds[each.name] = random.standard_normal(shape).astype(dtype)
    feeds[_MASK] = np.ones((batch, past + new), np.int64)
    if past and batch > 1:
        feeds[_MASK][0, :3] = 0
    return feeds
