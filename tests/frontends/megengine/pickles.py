"""A small writer of ``.tm`` pickles for files that MegEngine would not write.

``dump`` takes plain values, ``Obj`` for objects and ``Ref`` for names; a value that is met twice is
written once and referred to.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

EXPR = "megengine.traced_module.expr"
NODE = "megengine.traced_module.node"
TREE = "megengine.traced_module.pytree"
MODULE = "megengine.traced_module.traced_module"


@dataclass(eq=False)
class Ref:
    module: str
    name: str


@dataclass(eq=False)
class Obj:
    module: str
    name: str
    state: dict[str, Any] = field(default_factory=dict)


TENSOR = Ref("megengine.tensor", "Tensor")
MODULE_TYPE = Ref("megengine.module.module", "Module")


def dump(root: Any) -> bytes:
    return b"\x80\x04" + _Writer().write(root) + b"."


class _Writer:
    def __init__(self) -> None:
        self.memo: dict[int, int] = {}
        self.alive: list[Any] = []

    def write(self, value: Any) -> bytes:
        if value is None or isinstance(value, bool):
            return {None: b"N", True: b"\x88", False: b"\x89"}[value]
        if isinstance(value, int):
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            return b"\x8b" + struct.pack("<I", len(data)) + data
        if isinstance(value, float):
            return b"G" + struct.pack(">d", value)
        if isinstance(value, str):
            data = value.encode()
            return b"X" + struct.pack("<I", len(data)) + data
        if id(value) in self.memo:
            return b"j" + struct.pack("<I", self.memo[id(value)])
        return self._compound(value)

    def _remember(self, value: Any) -> bytes:
        self.memo[id(value)] = len(self.memo)
        self.alive.append(value)
        return b"\x94"

    def _compound(self, value: Any) -> bytes:
        if isinstance(value, Ref):
            return f"c{value.module}\n{value.name}\n".encode() + self._remember(value)
        if isinstance(value, tuple):
            parts = b"".join(map(self.write, value))
            return b"(" + parts + b"t" + self._remember(value)
        if isinstance(value, list):
            head = b"]" + self._remember(value)
            return head + b"(" + b"".join(map(self.write, value)) + b"e"
        if isinstance(value, dict):
            head = b"}" + self._remember(value)
            return (
                head
                + b"("
                + b"".join(self.write(key) + self.write(item) for key, item in value.items())
                + b"u"
            )
        assert isinstance(value, Obj), value
        head = f"c{value.module}\n{value.name}\n".encode() + b")\x81" + self._remember(value)
        return head + self.write(value.state) + b"b"


def leaf(kind: Ref = TENSOR, constant: Any = None) -> Obj:
    return Obj(TREE, "LeafDef", {"num": 1, "num_leaves": 1, "type": (kind,), "const_val": constant})


def tree(kind: str, children: list[Any], aux: Any = None) -> Obj:
    count = len(children)
    state = {"type": Ref("builtins", kind), "aux_data": aux, "children_defs": children, "num_leaves": count}
    return Obj(TREE, "TreeDef", state)


def call(*leaves: Any, keywords: dict[str, Any] | None = None) -> Obj:
    """The TreeDef of a call."""
    keywords = keywords or {}
    named = tree("dict", list(keywords.values()), list(keywords))
    return tree("tuple", [tree("tuple", list(leaves)), named])


def tensor_node(name: str, shape: Any = (1, 2, 4, 4)) -> Obj:
    dtype = Ref("numpy", "float32")
    return Obj(NODE, "TensorNode", {"_id": 1, "_name": name, "_shape": shape, "_dtype": dtype})


def module_node(name: str, kind: Any = ("user", "Net")) -> Obj:
    return Obj(NODE, "ModuleNode", {"_id": 0, "_name": name, "module_type": kind})


def expression(kind: str, inputs: list[Any], outputs: list[Any], **state: Any) -> Obj:
    return Obj(EXPR, kind, {"_id": 3, "inputs": inputs, "outputs": outputs, "const_val": [], **state})


def function(name: str, inputs: list[Any], outputs: list[Any], constants: list[Any] | None = None) -> Obj:
    """A call of ``megengine.functional.<name>`` with tensors first and constants behind."""
    constants = constants or []
    kinds = [leaf() for _ in inputs] + [leaf(Ref("builtins", "int"), value) for value in constants]
    module, _, short = f"megengine.functional.{name}".rpartition(".")
    return expression(
        "CallFunction",
        inputs,
        outputs,
        func=(module, short),
        const_val=[(len(inputs) + i, value) for i, value in enumerate(constants)],
        arg_def=call(*kinds),
    )


def traced_module(
    exprs: list[Any], outputs: list[Any], *, inputs: list[Any] | None = None, **attributes: Any
) -> Obj:
    """A TracedModule of one graph; ``inputs`` are self and x unless given."""
    nodes = inputs if inputs is not None else [module_node("self"), tensor_node("x")]
    for node in nodes:
        if isinstance(node, Obj):
            node.state["expr"] = Obj(EXPR, "Input", {"_id": 0, "name": node.state.get("_name")})
    graph = Obj(
        MODULE, "InternalGraph", {"_name": "Net", "_inputs": nodes, "_exprs": exprs, "_outputs": outputs}
    )
    key = call(*[leaf(MODULE_TYPE if i == 0 else TENSOR) for i in range(len(nodes))])
    state = {"argdef_graph_map": {key: graph}, "argdef_outdef_map": {key: leaf()}, **attributes}
    return Obj(MODULE, "TracedModule", state)
