"""Writes a TracedModule as a container; ``docs/container.md`` describes the file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from tmconvert._version import __version__
from tmconvert.container.written_values import (
    ValueEncoder,
    cannot_hold,
    encode_dtype,
    encode_qparams,
    is_own_type,
)
from tmconvert.errors import TmconvertError
from tmconvert.errors.source import Source
from tmconvert.formats.tm.format import (
    DESCRIPTION,
    EXAMPLE,
    FORMAT,
    MAX_DEPTH,
    MAX_PATH,
    MAX_SUBGRAPHS,
    ONE_VOCABULARY,
    SEVERAL_VOCABULARIES,
    STORED_AS,
    WEIGHTS,
    WITH_SUBGRAPHS,
)
from tmconvert.formats.tm.safetensors import Safetensors
from tmconvert.formats.tm.stored_zip import StoredZip
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    Expr,
    GetAttr,
    Input,
    InternalGraph,
    ModuleNode,
    Node,
    TensorNode,
    TracedModule,
)
from tmconvert.ir.interpreter import run_module
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.traced_module import Example, Vocabulary
from tmconvert.ir.tree import leaves
from tmconvert.output.atomic import atomic_output
from tmconvert.output.metadata import source_sha256


def save_container(module: TracedModule, path: str | os.PathLike[str]) -> None:
    """Writes ``module`` to ``path``, atomically; the same module gives the same bytes.

    Raises: WriteError TM5001; TM5004 for values that a container cannot store.
    """
    weights = _Weights()
    text = _text(_ModuleEncoder(module, weights).document())
    members = {DESCRIPTION: (len(text), lambda file: file.write(text))}
    recorded = module.example
    if recorded is not None and recorded.outputs is None:
        recorded = _computed(module, recorded)
    if recorded is not None:
        example = Safetensors(_example_tensors(recorded.inputs, recorded.outputs or ()))
        members[EXAMPLE] = (example.size, example.write)
    data = Safetensors(weights.tensors)
    members[WEIGHTS] = (data.size, data.write)
    with atomic_output(path) as file:
        archive = StoredZip(file)
        for name, (size, write) in members.items():
            archive.add(name, size, write)
        archive.finish()


def _computed(module: TracedModule, example: Example) -> Example | None:
    """Returns the example of an edited model with recomputed outputs; None if the model cannot be run."""
    try:
        made = leaves(run_module(module, example.inputs))
    except (TmconvertError, ValueError, IndexError):
        return None
    return example._replace(outputs=tuple(leaf for leaf in made if isinstance(leaf, np.ndarray)))


def _text(document: dict[str, Any]) -> bytes:
    try:
        return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError as error:
        raise cannot_hold(repr(error.object[error.start : error.end]), "is half a character") from error


def _example_tensors(inputs: Iterable[np.ndarray], outputs: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
    named = {f"inputs.{i}": array for i, array in enumerate(inputs)}
    named |= {f"outputs.{i}": array for i, array in enumerate(outputs)}
    for name, array in named.items():
        if array.dtype.name not in STORED_AS or not is_own_type(array.dtype):
            raise cannot_hold(f"the example {name}", f"has the element type {array.dtype}")
    return named


class _Weights:
    """The tensors of a model by name, each stored once however often it is used."""

    def __init__(self) -> None:
        self.tensors: dict[str, np.ndarray] = {}
        self.dtypes: dict[str, Any] = {}
        self.qparams: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._suffixes: dict[str, int] = {}

    def name(self, array: np.ndarray, wanted: str) -> str:
        """Returns the name of ``array`` in the file: ``wanted``, if no other tensor has that name."""
        if id(array) in self._names:
            return self._names[id(array)]
        dtype = encode_dtype(array.dtype, wanted)
        name = wanted = wanted or "constant"
        while name in self.tensors:
            self._suffixes[wanted] = self._suffixes.get(wanted, 0) + 1
            name = f"{wanted}.{self._suffixes[wanted]}"
        self._names[id(array)] = name
        self.tensors[name] = array
        if not is_own_type(array.dtype):
            self.dtypes[name] = dtype
        if getattr(array, "qparams", None) is not None:
            self.qparams[name] = encode_qparams(array.qparams)  # type: ignore[attr-defined]
        return name

    def sha256(self) -> str:
        """Returns the digest of the file of all tensors."""
        digest = _Digest()
        Safetensors(self.tensors).write(digest)
        return digest.sha256.hexdigest()


class _Digest:
    """Computes the digest of the bytes written to it."""

    def __init__(self) -> None:
        self.sha256 = hashlib.sha256()

    def write(self, piece: Any, /) -> None:
        self.sha256.update(piece)


class _ModuleEncoder:
    """Numbers modules so that each refers to earlier ones only; the model itself is the last."""

    def __init__(self, root: TracedModule, weights: _Weights) -> None:
        self.weights = weights
        self.values = ValueEncoder(weights.name, self.number, self.subgraph)
        self.modules: list[dict[str, Any]] = []
        self.numbers: dict[int, int] = {}
        self.open: set[int] = set()
        self.root = root
        self.file = root.source_file
        self.version = ONE_VOCABULARY  # the lowest that describes the model
        self.subgraphs = 0  # inside each other, at this point

    def document(self) -> dict[str, Any]:
        module = self.root
        if module.vocabulary is None:
            raise cannot_hold(module.name, "has calls of an unknown vocabulary")
        self.number(module)
        dynamic = module.dynamic_shapes
        open_sizes = {
            name: {str(axis): size for axis, size in axes.items()} for name, axes in (dynamic or {}).items()
        }
        return {
            "format": FORMAT,
            "version": self.version,
            "writer": f"tmconvert {__version__}",
            "vocabulary": module.vocabulary.identifier,
            "source": {"producer": module.producer, "sha256": source_sha256(module) or self.weights.sha256()},
            "dtypes": self.weights.dtypes,
            "qparams": self.weights.qparams,
            "modules": self.modules,
            **({} if dynamic is None else {"dynamic_shapes": open_sizes}),
            **({"notes": module.notes} if module.notes else {}),
        }

    def number(self, module: TracedModule) -> int:
        """Returns the index of ``module`` in the list; adds it after all modules that it refers to."""
        if id(module) in self.numbers:
            return self.numbers[id(module)]
        if id(module) in self.open:
            raise cannot_hold(module.name, "is a module that contains itself")
        if len(self.open) >= MAX_DEPTH:
            raise cannot_hold(module.name, f"is a module nested more than {MAX_DEPTH} deep")
        longest = max(map(len, (module.name, module.class_name, *module.attributes, *module.tensors)))
        if longest > MAX_PATH:
            raise cannot_hold(
                f"{module.name:.60}...", f"has a name of {longest} characters, above {MAX_PATH}"
            )
        self.open.add(id(module))
        described = self._describe(module)
        self.open.discard(id(module))
        self.numbers[id(module)] = len(self.modules)
        self.modules.append(described)
        return self.numbers[id(module)]

    def other_vocabulary(self, vocabulary: Vocabulary | None) -> dict[str, str]:
        """Encodes a vocabulary that is not that of the model."""
        own = self.root.vocabulary
        if vocabulary is None or own is None or vocabulary.identifier == own.identifier:
            return {}
        self.version = max(self.version, SEVERAL_VOCABULARIES)
        return {"vocabulary": vocabulary.identifier}

    def subgraph(self, graph: InternalGraph) -> dict[str, Any]:
        """Encodes a graph that is an argument of a call."""
        if self.subgraphs >= MAX_SUBGRAPHS:
            raise cannot_hold(graph.name, f"is a graph nested more than {MAX_SUBGRAPHS} deep")
        self.version = WITH_SUBGRAPHS
        self.subgraphs += 1
        described = _GraphEncoder(graph, self, lambda name: name).described()
        self.subgraphs -= 1
        return described

    def _describe(self, module: TracedModule) -> dict[str, Any]:
        prefix = "" if module is self.root or not module.name else f"{module.name}."

        def path(name: str) -> str:
            return prefix + name

        return {
            "name": module.name,
            "class": module.class_name,
            **self.other_vocabulary(module.vocabulary),
            "children": {name: self.number(child) for name, child in module.children.items()},
            "tensors": {name: self.weights.name(array, path(name)) for name, array in module.tensors.items()},
            **({"buffers": buffers} if (buffers := sorted(module.buffers & set(module.tensors))) else {}),
            "attributes": {
                name: self.values.encode(value, path(name)) for name, value in module.attributes.items()
            },
            "graphs": [
                {"structure": structure, **_GraphEncoder(graph, self, path).described()}
                for structure, graph in module.graphs.items()
            ],
        }


class _GraphEncoder:
    """Encodes one graph; its nodes are numbered in the order of definition."""

    def __init__(self, graph: InternalGraph, modules: _ModuleEncoder, path: Any) -> None:
        self.graph = graph
        self.values = modules.values
        self.modules = modules
        self.file = modules.file
        self.path = path
        self.nodes: dict[Node, int] = {}

    def described(self) -> dict[str, Any]:
        inputs = [self._input(node) for node in self.graph.inputs]
        exprs = [self._expr(expr) for expr in self.graph]
        return {
            "name": self.graph.name,
            "inputs": inputs,
            "exprs": exprs,
            "nodes": [self._node(node) for node in self.nodes],
            "result": self._tree(self.graph.result),
        }

    def _tree(self, value: Any) -> Any:
        return self.values.encode(value, self.path("constant"), self.nodes)

    def _input(self, node: Node) -> dict[str, Any]:
        self.nodes[node] = len(self.nodes)
        assert isinstance(node.expr, Input)
        return {"node": self.nodes[node], "name": node.expr.name, **self._common(node.expr, None)}

    def _expr(self, expr: Expr) -> dict[str, Any]:
        said: dict[str, Any] = {"kind": KINDS[type(expr).__name__]}
        if isinstance(expr, GetAttr):
            said |= {"owner": self._tree(expr.args[0]), "name": expr.name}
        elif isinstance(expr, Constant):
            value = self.values.encode(expr.value, expr.name or self.path("constant"))
            said |= {"value": value, "name": expr.name}
        else:
            if isinstance(expr, CallMethod):
                said["method"] = expr.method
            elif isinstance(expr, CallFunction):
                said |= {"function": expr.function, "label": expr.label}
            said["args"] = [self._tree(argument) for argument in expr.args]
            said["kwargs"] = {name: self._tree(argument) for name, argument in expr.kwargs.items()}
        for node in expr.outputs:
            self.nodes[node] = len(self.nodes)
        said["result"] = self._tree(expr.result)
        said |= self.modules.other_vocabulary(expr.vocabulary)
        return said | self._common(expr, Source(self.file, expr.id))

    def _common(self, expr: Expr, usual: Source | None) -> dict[str, Any]:
        """Encodes the id, source location and pass of an expression, where they are not the default."""
        said: dict[str, Any] = {"id": expr.id}
        source = expr.source
        if source != usual:
            said["source"] = None if source is None else self._source(source)
        if expr.made_by is not None:
            said["made_by"] = expr.made_by
        return said

    def _source(self, source: Source) -> dict[str, Any]:
        file = None if source.file == self.file else source.file
        return {"file": file, "line": source.line, "scope": source.scope, "class": source.class_name}

    def _node(self, node: Node) -> dict[str, Any]:
        said: dict[str, Any] = {"name": node.name, "id": node.id}
        if isinstance(node, ModuleNode):
            return said | {"class": node.class_name}
        assert isinstance(node, TensorNode)
        if is_symbolic(node.shape):
            raise cannot_hold(node.name, "has an unknown size")
        said["shape"] = None if node.shape is None else list(node.shape)
        said["dtype"] = None if node.dtype is None else encode_dtype(node.dtype, node.name)
        if node.qparams is not None:
            said["qparams"] = encode_qparams(node.qparams)
        if node.layout is not None:
            said["layout"] = node.layout
        return said


# by the name of the class, which is also that of its extension
KINDS = {"GetAttr": "getattr", "Constant": "constant", "CallMethod": "method", "CallFunction": "function"}
