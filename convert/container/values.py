"""Decodes Python values of ``tm.json``, the inverse of ``container/written_values.py``."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tmconvert.container.faults import nonsense
from tmconvert.container.quantization import decode_qparams
from tmconvert.formats.tm.faults import over_limit
from tmconvert.formats.tm.format import MAX_NESTING, MAX_SUBGRAPHS, STORED_AS
from tmconvert.formats.tm.safetensors import dtype_called
from tmconvert.ir import InternalGraph, Node, TracedModule
from tmconvert.ir.inert import GlobalRef, Instance, Opaque

MAX_TEXT = 1 << 16
MAX_INTEGER_DIGITS = 2500
SHOWN_ELEMENTS = 1000  # of an array, before NumPy abbreviates


class ValueDecoder:
    """Decodes values; ``modules`` are the earlier ones of the file, ``graph`` decodes a subgraph."""

    def __init__(
        self,
        tensors: Mapping[str, np.ndarray],
        modules: Sequence[TracedModule],
        file_size: int,
        graph: Callable[[ValueDecoder, object], InternalGraph],
    ) -> None:
        self.tensors = tensors
        self.modules = modules
        self._graph = graph
        self._subgraphs = 0  # inside each other, at this point
        # A reference of a few bytes makes a print of a thousand numbers; no real model has many.
        self._shown_left = 1_000_000 + file_size

    def decode(self, value: object, nodes: Sequence[Node] | None = None, depth: int = 0) -> Any:
        """Decodes a value; ``nodes`` are those of the graph, if any. Raises LoadError TM1015, TM1006."""
        if value is None or isinstance(value, (bool, str, float)):
            return value
        if type(value) is int:
            if not -(2**63) < value < 2**63:
                raise nonsense("an integer has more than 64 bits")
            return value
        if depth > MAX_NESTING:
            raise over_limit(f"values are nested more than {MAX_NESTING} deep")

        def inner(item: object) -> Any:
            return self.decode(item, nodes, depth + 1)

        if isinstance(value, list):
            return [inner(item) for item in value]
        if not isinstance(value, dict) or len(value) != 1:
            raise nonsense("a value is an object with more than one entry")
        ((kind, content),) = value.items()
        if kind == "node":
            return self._node(content, nodes)
        if kind == "tensor":
            return self.shown_tensor(content)
        if kind == "module":
            return self.module(content)
        if kind == "graph":
            return self._subgraph(content)
        decoder = DECODERS.get(kind)
        if decoder is None:
            raise nonsense(f"a value has the unknown kind {kind[:40]!r}")
        return decoder(content, inner)

    def module(self, number: object) -> TracedModule:
        """Returns an earlier module of the file."""
        if type(number) is not int or not 0 <= number < len(self.modules):
            raise nonsense("a module refers to one that does not precede it")
        return self.modules[number]

    def _subgraph(self, described: object) -> InternalGraph:
        if self._subgraphs >= MAX_SUBGRAPHS:
            raise over_limit(f"graphs are nested more than {MAX_SUBGRAPHS} deep")
        self._subgraphs += 1
        graph = self._graph(self, described)
        self._subgraphs -= 1
        return graph

    def tensor(self, name: object) -> np.ndarray:
        """Returns a tensor of the weights."""
        if not isinstance(name, str) or name not in self.tensors:
            raise nonsense("a tensor does not exist among the weights")
        return self.tensors[name]

    def shown_tensor(self, name: object) -> np.ndarray:
        """Returns a tensor among the values that a printed graph shows."""
        array = self.tensor(name)
        self._shown_left -= min(array.size, SHOWN_ELEMENTS)
        if self._shown_left < 0:
            raise over_limit("the file repeats the same tensors again and again")
        return array

    def _node(self, number: object, nodes: Sequence[Node] | None) -> Node:
        if nodes is None:
            raise nonsense("a node is used outside of a graph")
        if type(number) is not int or not 0 <= number < len(nodes):
            raise nonsense("a node is used before it is defined")
        return nodes[number]


def text(value: object, what: str, longest: int = MAX_TEXT) -> str:
    """Returns a name of limited length. Raises LoadError TM1015."""
    if not isinstance(value, str) or len(value) > longest:
        raise nonsense(f"{what} must be a text of limited length")
    return value


def decode_dtype(value: Any) -> np.dtype:
    """Decodes an element type, with MegEngine's quantization as its metadata. Raises LoadError TM1015."""
    about = None
    if isinstance(value, dict):
        if set(value) != {"name", "quantization"}:
            raise nonsense("an element type must be a name and a quantization")
        value, about = value["name"], _quantization(value["quantization"])
    if not isinstance(value, str) or value not in STORED_AS:
        raise nonsense("an element type is unknown")
    dtype = dtype_called(value)
    return dtype if about is None else np.dtype(dtype, metadata={"mgb_dtype": about})


def _quantization(value: object) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != {"name", "scale", "zero_point"}:
        raise nonsense("a quantization must be a name, a scale and a zero point")
    scale = _float(value["scale"]["float"], None) if isinstance(value["scale"], dict) else value["scale"]
    if not (scale is None or isinstance(scale, float)) or not (
        value["zero_point"] is None or type(value["zero_point"]) is int
    ):
        raise nonsense("the scale or the zero point of a quantization must be a number")
    return {"name": text(value["name"], "a quantization"), "scale": scale, "zero_point": value["zero_point"]}


Inner = Callable[[Any], Any]


def _float(content: object, _: object) -> float:
    if content not in ("nan", "inf", "-inf"):
        raise nonsense("a float must be nan, inf or -inf")
    return float(content)


def _integer(content: object, _: Inner) -> int:
    if not isinstance(content, str) or len(content) > MAX_INTEGER_DIGITS:
        raise nonsense("a large integer must be a text of limited length")
    return int(content, 16)


def _parts(content: object, inner: Inner, kind: type, count: int) -> list[Any]:
    parts = inner(content) if isinstance(content, list) else None
    if parts is None or len(parts) != count or not all(isinstance(part, kind) for part in parts):
        raise nonsense("a value has not the elements of its kind")
    return parts


def _items(content: object, inner: Inner) -> list[Any]:
    if not isinstance(content, list):
        raise nonsense("the elements of a value must be a list")
    return [inner(item) for item in content]


def _dict(content: object, inner: Inner) -> dict[Any, Any]:
    pairs = [_parts(pair, inner, object, 2) for pair in _items(content, lambda item: item)]
    result = {}
    for key, item in pairs:
        if not (key is None or isinstance(key, (str, int, float, GlobalRef))) or key in result:
            raise nonsense("a key of a dict has an unsupported type, or is duplicate")
        result[key] = item
    return result


def _set(content: object, inner: Inner) -> set[Any]:
    return set(_items(content, inner))


def _constant(content: object, _: Inner) -> Any:
    if content != "Ellipsis":
        raise nonsense("a constant is unknown")
    return Ellipsis


def _bytes(content: object, _: Inner) -> bytes:
    if not isinstance(content, str):
        raise nonsense("bytes must be a text")
    return base64.b64decode(content, validate=True)


def _reference(content: object, _: object = None) -> GlobalRef:
    if not isinstance(content, list) or len(content) != 2:
        raise nonsense("a name must be a module and a name in it")
    return GlobalRef(text(content[0], "a module"), text(content[1], "a name"))


def _record(content: object, inner: Inner) -> Instance:
    if not isinstance(content, dict) or set(content) != {"class", "state"}:
        raise nonsense("a record must be a class and its state")
    if not isinstance(content["state"], dict):
        raise nonsense("the state of a record must be an object")
    state = {text(name, "an attribute"): inner(item) for name, item in content["state"].items()}
    return Instance(_reference(content["class"]), state)


def _opaque(content: object, inner: Inner) -> Opaque:
    if not isinstance(content, dict) or set(content) != {"class", "arguments", "number"}:
        raise nonsense("an object must be a class, arguments and a number")
    arguments = inner(content["arguments"])
    plain = isinstance(arguments, list) and all(
        isinstance(item, (bool, int, float, str)) for item in arguments
    )
    if not plain or type(content["number"]) is not int:
        raise nonsense("the arguments of an object are not plain, or its number is not an integer")
    return Opaque(_reference(content["class"]), tuple(arguments), content["number"])


def _scalar(content: object, inner: Inner) -> Any:
    dtype, value = content if isinstance(content, list) and len(content) == 2 else (None, None)
    number = inner(value)
    if not isinstance(number, (bool, int, float, complex)):
        raise nonsense("a scalar must be a number")
    made = np.array(number).astype(decode_dtype(dtype))[()]
    if made.item() != number and number == number:
        raise nonsense("a scalar is out of range")
    return made


DECODERS: dict[str, Callable[[Any, Inner], Any]] = {
    "bytes": _bytes,
    "complex": lambda content, inner: complex(*_parts(content, inner, float, 2)),
    "constant": _constant,
    "dict": _dict,
    "dtype": lambda content, inner: decode_dtype(content),
    "float": _float,
    "frozenset": lambda content, inner: frozenset(_set(content, inner)),
    "integer": _integer,
    "qparams": lambda content, inner: decode_qparams(content),
    "object": _opaque,
    "record": _record,
    "reference": _reference,
    "scalar": _scalar,
    "set": _set,
    "slice": lambda content, inner: slice(*_parts(content, inner, object, 3)),
    "tuple": lambda content, inner: tuple(_items(content, inner)),
}
