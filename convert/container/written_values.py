"""Encodes Python values for containers: constants of calls, attributes of modules, trees of nodes.

Lists, text, numbers, true, false and null are written as in JSON. Every other value is an object with one
entry, whose key is the kind of value.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tmconvert.errors import WriteError
from tmconvert.formats.tm.format import MAX_NESTING, STORED_AS
from tmconvert.ir import InternalGraph, Node, QParams, TracedModule
from tmconvert.ir.inert import GlobalRef, Instance, Opaque

CANNOT_HOLD = "TM5004"
LARGEST_INTEGER = 2**63 - 1


class ValueEncoder:
    """Encodes values; ``tensor`` and ``module`` return the names of objects that are stored elsewhere in the
    file, ``graph`` the description of a subgraph.
    """

    def __init__(
        self,
        tensor: Callable[[np.ndarray, str], str],
        module: Callable[[TracedModule], int],
        graph: Callable[[InternalGraph], Any],
    ) -> None:
        self._tensor = tensor
        self._module = module
        self._graph = graph

    def encode(self, value: object, place: str, nodes: dict[Node, int] | None = None, depth: int = 0) -> Any:
        """Encodes ``value`` as JSON. ``place`` is for messages and names; ``nodes`` numbers a graph's nodes.

        Raises: WriteError TM5004 for values that a container cannot store.
        """
        if value is None or isinstance(value, (bool, str)):
            return value
        if depth > MAX_NESTING:
            raise cannot_hold(place, f"is nested more than {MAX_NESTING} deep")

        def inner(item: object) -> Any:
            return self.encode(item, place, nodes, depth + 1)

        if isinstance(value, Node) and nodes is not None:
            return {"node": nodes[value]}
        if isinstance(value, TracedModule):
            return {"module": self._module(value)}
        if isinstance(value, InternalGraph):
            return {"graph": self._graph(value)}
        if isinstance(value, np.ndarray):
            return {"tensor": self._tensor(value, place)}
        encoder = ENCODERS.get(type(value))
        if encoder is not None:
            return encoder(value, inner)
        if isinstance(value, np.dtype):
            return {"dtype": encode_dtype(value, place)}
        if isinstance(value, np.generic):
            return {"scalar": [encode_dtype(value.dtype, place), inner(value.item())]}
        raise cannot_hold(place, f"is a {type(value).__name__}")


def encode_dtype(dtype: np.dtype, place: str) -> Any:
    """Encodes an element type as a name; with MegEngine's quantization, as an object."""
    if dtype.name not in STORED_AS:
        raise cannot_hold(place, f"has the element type {dtype.name}")
    if dtype.metadata is None or "mgb_dtype" not in dtype.metadata:
        return dtype.name
    about = dtype.metadata["mgb_dtype"]
    scale, zero_point = about["scale"], about["zero_point"]
    quantization = {"name": about["name"], "scale": scale, "zero_point": zero_point}
    if scale is not None:
        quantization["scale"] = _float(scale, None)
    return {"name": dtype.name, "quantization": quantization}


def encode_qparams(qparams: QParams) -> dict[str, Any]:
    """Encodes quantization parameters as an object."""
    return {
        "dtype": qparams.dtype,
        "scale": [_float(scale, None) for scale in qparams.scale],
        "zero_point": list(qparams.zero_point),
        "quant_min": qparams.quant_min,
        "quant_max": qparams.quant_max,
        "channel_axis": qparams.channel_axis,
        "symmetric": qparams.symmetric,
        "source": qparams.source,
    }


def is_own_type(dtype: np.dtype) -> bool:
    """Whether safetensors has a name for the element type."""
    return STORED_AS[dtype.name][1] == 1 and not dtype.metadata


def cannot_hold(place: str, what: str) -> WriteError:
    return WriteError(
        CANNOT_HOLD,
        f"{place or 'the model'} {what}, which a container cannot store",
        notes=[("help", "remove it from the module, or convert from the original file")],
    )


def _float(value: float, _: object) -> Any:
    return value if math.isfinite(value) else {"float": str(value)}


def _integer(value: int, _: object) -> Any:
    return value if -LARGEST_INTEGER <= value <= LARGEST_INTEGER else {"integer": hex(value)}


def _set_of(kind: str) -> Callable[[Any, Callable[[Any], Any]], Any]:
    # Python orders a set by hashes that differ from run to run.
    return lambda value, inner: {kind: sorted(map(inner, value), key=json.dumps)}


def _record(value: Instance, inner: Callable[[Any], Any]) -> Any:
    state = {name: inner(item) for name, item in value.state.items()}
    return {"record": {"class": [value.reference.module, value.reference.name], "state": state}}


def _opaque(value: Opaque, inner: Callable[[Any], Any]) -> Any:
    name = [value.reference.module, value.reference.name]
    return {"object": {"class": name, "arguments": inner(list(value.arguments)), "number": value.number}}


ENCODERS: dict[type, Callable[[Any, Callable[[Any], Any]], Any]] = {
    int: _integer,
    float: _float,
    list: lambda value, inner: [inner(item) for item in value],
    tuple: lambda value, inner: {"tuple": [inner(item) for item in value]},
    dict: lambda value, inner: {"dict": [[inner(key), inner(item)] for key, item in value.items()]},
    slice: lambda value, inner: {"slice": [inner(value.start), inner(value.stop), inner(value.step)]},
    set: _set_of("set"),
    frozenset: _set_of("frozenset"),
    complex: lambda value, inner: {"complex": [inner(value.real), inner(value.imag)]},
    type(Ellipsis): lambda value, inner: {"constant": "Ellipsis"},
    bytes: lambda value, inner: {"bytes": base64.b64encode(value).decode("ascii")},
    GlobalRef: lambda value, inner: {"reference": [value.module, value.name]},
    Instance: _record,
    QParams: lambda value, inner: {"qparams": encode_qparams(value)},
    Opaque: _opaque,
}
