"""Reads a container into a TracedModule; weights stay mapped from the file."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from tmconvert.container.faults import newer, nonsense
from tmconvert.container.graphs import GraphDecoder, fields, listed
from tmconvert.container.quantization import decode_qparams
from tmconvert.container.values import ValueDecoder, decode_dtype, text
from tmconvert.container.vocabularies import vocabulary_called
from tmconvert.errors import GraphError, LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.mapped_file import map_file
from tmconvert.formats.tm.archive import Member, find_members
from tmconvert.formats.tm.faults import bad_json, bad_tensors, over_limit
from tmconvert.formats.tm.format import DESCRIPTION, EXAMPLE, FORMAT, MAX_DEPTH, VERSION, WEIGHTS
from tmconvert.formats.tm.json_text import parse
from tmconvert.formats.tm.safetensors import read_tensors, retyped
from tmconvert.ir import InternalGraph, TensorNode, TracedModule
from tmconvert.ir.fake_quant import with_qparams
from tmconvert.ir.ids import share_ids
from tmconvert.ir.ownership import assign_owners
from tmconvert.ir.traced_module import Example, Vocabulary

MAX_NOTE = 10_000
HEAD = {"format", "version", "writer", "vocabulary", "source", "dtypes", "qparams", "modules"}
SUBGRAPH = {"name", "inputs", "exprs", "nodes", "result"}
GRAPH = SUBGRAPH | {"structure"}
MODULE = {"name", "class", "children", "tensors", "attributes", "graphs"}
MAX_STRUCTURE = 1_000_000  # characters of a key that says how a module was called


def load_container(path: str, check: bool = True) -> TracedModule:
    """Reads the model in a container; its tensors are mapped from the file.

    ``check`` compares tensors with their checksums, which reads them once.

    Raises LoadError: TM1001 for a file that cannot be read; TM1006 and TM1010 to TM1015 for an invalid
    container.
    """
    data = map_file(path)
    try:
        return _read(data, path, check)
    except LoadError as error:
        if error.source is not None:
            raise
        raise _blamed(error, path) from error
    except GraphError as error:
        raise _blamed(nonsense(error.message), path) from error
    # The content is untrusted: whatever slips through the checks below is the file's fault.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        damage = nonsense(f"the description is damaged ({type(error).__name__}: {error})")
        raise _blamed(damage, path) from error


def _blamed(error: LoadError, path: str) -> LoadError:
    return LoadError(error.code, error.message, source=Source(path), notes=error.notes)


def _read(data: memoryview, path: str, check: bool) -> TracedModule:
    members = find_members(data)
    document = _description(data, members[DESCRIPTION])
    weights = _typed(read_tensors(data, members[WEIGHTS], "the weights"), document["dtypes"])
    weights = _quantized(weights, document["qparams"])
    modules = _Modules(path, weights, vocabulary_called(document["vocabulary"]), len(data))
    for item in listed(document["modules"], "the list of modules"):
        modules.add(item)
    if not modules.made or modules.made[-1].graph is None:
        raise nonsense("the model has no graph")
    model = modules.made[-1]
    share_ids(model)
    source = fields(document["source"], "the source", {"producer", "sha256"})
    model.producer = text(source["producer"], "the producer")
    model.source_sha256 = text(source["sha256"] or "", "a digest")
    if "dynamic_shapes" in document:
        model.dynamic_shapes = _open_sizes(document["dynamic_shapes"])
    notes = listed(document.get("notes", []), "the notes")
    model.notes = [text(note, "a note", MAX_NOTE) for note in notes]
    if EXAMPLE in members:
        model.example = _example(read_tensors(data, members[EXAMPLE], "the example"))
    for name in members.keys() - {DESCRIPTION} if check else ():
        _check_content(data, members[name], name)
    return model


def _check_content(data: memoryview, member: Member, name: str) -> None:
    """Verifies the checksums of all tensors, since a damaged weight would silently give a wrong model."""
    if zlib.crc32(data[member.start : member.start + member.size]) != member.checksum:
        raise bad_tensors(f"the content of {name} does not match its checksum")


def _description(data: memoryview, member: Member) -> dict[str, Any]:
    content = bytes(data[member.start : member.start + member.size])
    document = parse(content, DESCRIPTION)
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise bad_json(f"{DESCRIPTION} is not the description of a tmconvert model")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise bad_json(f"{DESCRIPTION} has no version")
    if version > VERSION:
        writer = document.get("writer")
        by = f" by {writer[:80]}" if isinstance(writer, str) else ""
        raise newer(
            f"the file has version {version} of the format, written{by}; this tmconvert reads {VERSION}"
        )
    if zlib.crc32(content) != member.checksum:
        raise bad_json(f"the content of {DESCRIPTION} does not match its checksum")
    return fields(document, DESCRIPTION, HEAD, frozenset({"dynamic_shapes", "notes"}))


def _open_sizes(value: object) -> dict[str, dict[int, str]]:
    """Returns the dynamic sizes of the trace, by input and axis."""
    if not isinstance(value, dict) or not all(isinstance(axes, dict) for axes in value.values()):
        raise nonsense("the dynamic sizes are not by input and axis")
    if not all(
        axis.isascii() and axis.isdecimal() and len(axis) < 3 for axes in value.values() for axis in axes
    ):
        raise nonsense("a dynamic size has an axis that is not a number")
    return {
        name: {int(axis): text(size, "the name of a size") for axis, size in axes.items()}
        for name, axes in value.items()
    }


def _typed(tensors: dict[str, np.ndarray], dtypes: object) -> dict[str, np.ndarray]:
    """Returns the tensors with element types that safetensors has no names for."""
    if not isinstance(dtypes, dict) or not set(dtypes) <= set(tensors):
        raise nonsense("an element type is declared for a tensor that does not exist")
    return tensors | {name: retyped(tensors[name], decode_dtype(value)) for name, value in dtypes.items()}


def _quantized(tensors: dict[str, np.ndarray], qparams: object) -> dict[str, np.ndarray]:
    """Returns the tensors with their quantization parameters."""
    if not isinstance(qparams, dict) or not set(qparams) <= set(tensors):
        raise nonsense("a quantization is declared for a tensor that does not exist")
    return tensors | {
        name: with_qparams(tensors[name], decode_qparams(value)) for name, value in qparams.items()
    }


def _example(tensors: dict[str, np.ndarray]) -> Example:
    kinds = []
    for kind in ("inputs", "outputs"):
        count = sum(name.startswith(f"{kind}.") for name in tensors)
        if not all(f"{kind}.{i}" in tensors for i in range(count)):
            raise bad_tensors(f"the {kind} of the example are not numbered from zero")
        kinds.append(tuple(tensors[f"{kind}.{i}"] for i in range(count)))
    if sum(map(len, kinds)) != len(tensors):
        raise bad_tensors("the example has tensors that are neither inputs nor outputs")
    return Example(*kinds)


class _Modules:
    """Decodes modules in the order of the file, in which each comes after those that it refers to."""

    def __init__(
        self, path: str, weights: dict[str, np.ndarray], vocabulary: Vocabulary, file_size: int
    ) -> None:
        self.path = path
        self.vocabulary = vocabulary
        self.made: list[TracedModule] = []
        self.depths: dict[int, int] = {}
        self.values = ValueDecoder(weights, self.made, file_size, self._subgraph)

    def add(self, value: object) -> None:
        said = fields(value, "a module", MODULE, frozenset({"buffers", "vocabulary"}))
        module = TracedModule(
            text(said["name"], "the name of a module"),
            text(said["class"], "a class"),
            vocabulary=vocabulary_called(said["vocabulary"]) if "vocabulary" in said else self.vocabulary,
        )
        module.source_file = self.path
        for kind in ("children", "tensors", "attributes"):
            if not isinstance(said[kind], dict):
                raise nonsense(f"the {kind} of a module must be an object")
            for name in said[kind]:
                text(name, "the name of an attribute")
        module.children = {name: self.values.module(item) for name, item in said["children"].items()}
        module.tensors = {name: self.values.tensor(item) for name, item in said["tensors"].items()}
        module.buffers = {
            text(name, "the name of a buffer") for name in listed(said.get("buffers", []), "buffers")
        }
        if not module.buffers <= set(module.tensors):
            raise nonsense("a buffer is not a tensor of its module")
        module.attributes = {name: self.values.decode(item) for name, item in said["attributes"].items()}
        depth = 1 + max((self.depths[id(child)] for child in module.children.values()), default=-1)
        if depth > MAX_DEPTH:
            raise over_limit(f"modules are nested more than {MAX_DEPTH} deep")
        self.depths[id(module)] = depth
        for item in listed(said["graphs"], "the list of graphs"):
            described = fields(item, "a graph", GRAPH)
            structure = text(described["structure"], "the structure of a call", MAX_STRUCTURE)
            if structure in module.graphs:
                raise nonsense("a module has two graphs for one structure of arguments")
            graph = module.graphs[structure] = GraphDecoder(self.path, self.values).graph(described)
            assign_owners(graph, module)
        self.made.append(module)

    def _subgraph(self, values: ValueDecoder, value: object) -> InternalGraph:
        """Decodes a graph among the arguments of a call, which has tensors as inputs and no modules."""
        graph = GraphDecoder(self.path, values).graph(fields(value, "a subgraph", SUBGRAPH))
        nodes = [*graph.inputs, *(node for expr in graph for node in expr.outputs)]
        if not all(isinstance(node, TensorNode) for node in nodes):
            raise nonsense("a subgraph has nodes that are not tensors")
        return graph
