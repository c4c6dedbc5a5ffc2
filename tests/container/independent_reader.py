"""A second reader of containers, written from ``docs/container.md`` alone.

It imports nothing of tmconvert: ``zipfile``, ``json`` and NumPy only. It trusts the file.
"""

from __future__ import annotations

import base64
import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

TYPES = {"BOOL": "?", "F16": "<f2", "F32": "<f4", "F64": "<f8"} | {
    f"{kind}{8 * size}": f"<{kind.lower()}{size}" for kind in "IU" for size in (1, 2, 4, 8)
}


def tensors(data: bytes) -> dict[str, np.ndarray]:
    """The tensors of a safetensors member."""
    (length,) = struct.unpack_from("<Q", data)
    header, body = json.loads(data[8 : 8 + length]), data[8 + length :]
    return {
        name: np.frombuffer(body[slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(
            entry["shape"]
        )
        for name, entry in header.items()
        if name != "__metadata__"
    }


class Container:
    """``modules`` as the file has them, with values decoded by ``value``; nodes stay their numbers."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
            assert archive.testzip() is None
            self.document = json.loads(archive.read("tm.json"))
            self.tensors = tensors(archive.read("weights.safetensors"))
        assert (self.document["format"], self.document["version"]) == ("tmconvert", 1)
        self.modules = self.document["modules"]

    def value(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        if kind == "tuple":
            return tuple(self.value(item) for item in content)
        if kind == "dict":
            return {self.value(key): self.value(item) for key, item in content}
        if kind == "slice":
            return slice(*content)
        if kind == "constant":
            return Ellipsis
        if kind == "float":
            return float(content)
        if kind == "integer":
            return int(content, 16)
        if kind == "bytes":
            return base64.b64decode(content)
        if kind == "tensor":
            return self.tensors[content]
        return {kind: content}  # nodes, modules, references, records, types: as the file says them

    def printed(self, module: dict[str, Any]) -> str:
        """The first graph of a module, as MegEngine prints it."""
        graph = module["graphs"][0]
        nodes = [node["name"] or str(node["id"]) for node in graph["nodes"]]

        def leaf(value: Any) -> str:
            if isinstance(value, dict) and "node" in value:
                return nodes[value["node"]]
            return _shown(self.value(value), nodes)

        inputs = ", ".join(nodes[item["node"]] for item in graph["inputs"])
        lines = [f"\t%{expr['id']}:\t{self._expr(expr, graph, leaf)}\n" for expr in graph["exprs"]]
        results = ", ".join(nodes[number] for number in _nodes(graph["result"]))
        return f"{graph['name']}.Graph ({inputs}) {{\n{''.join(lines)}\treturn {results}\n}}"

    def _expr(self, expr: dict[str, Any], graph: dict[str, Any], leaf: Any) -> str:
        result = leaf(expr["result"])
        if expr["kind"] == "getattr":
            kind = graph["nodes"][expr["result"]["node"]].get("class", "Tensor").rpartition(".")[2]
            return f'{result} = getattr({leaf(expr["owner"])}, "{expr["name"]}") -> ({kind})'
        if expr["kind"] == "constant":
            kind = "Module" if "class" in graph["nodes"][expr["result"]["node"]] else "Tensor"
            return f"{result} = Constant({expr['name'] or ''}) -> ({kind})"
        args = [leaf(item) for item in expr["args"]]
        if expr["kind"] == "function" and "." not in expr["label"]:
            names = [graph["nodes"][number]["name"] for number in _nodes(expr["result"])]
            return f"{', '.join(names)} = {expr['label']}({', '.join(args)})"
        keywords = ", ".join(f"{name}={leaf(item)}" for name, item in expr["kwargs"].items())
        if expr["kind"] == "function":
            return f"{result} = {expr['label']}({', '.join(args)}, {keywords})"
        method = "" if expr["method"] == "__call__" else f".{expr['method']}"
        return f"{result} = {args[0]}{method}({', '.join(args[1:])}, {keywords})"


def _shown(value: Any, nodes: list[str]) -> str:
    """A constant or a tree as Python prints it, nodes by their names."""

    class Name(str):
        __repr__ = str.__str__

    def named(item: Any) -> Any:
        if isinstance(item, dict) and set(item) == {"node"}:
            return Name(nodes[item["node"]])
        if isinstance(item, tuple):
            return tuple(map(named, item))
        if isinstance(item, list):
            return list(map(named, item))
        if isinstance(item, dict):
            return {key: named(part) for key, part in item.items()}
        return item

    return str(named(value))


def _nodes(value: Any) -> list[int]:
    """The numbers of the nodes in a value, in order."""
    if isinstance(value, list):
        return [number for item in value for number in _nodes(item)]
    if not isinstance(value, dict):
        return []
    ((kind, content),) = value.items()
    if kind == "node":
        return [content]
    return [number for item in content for number in _nodes(item[1] if kind == "dict" else item)]
