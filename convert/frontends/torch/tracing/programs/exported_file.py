"""Reads files of ``torch.export.save`` without executing code from them.

``torch.export.load`` unpickles objects of the file, and evaluates its texts. Here a file is only data: JSON,
the bytes of tensors, and example inputs that torch reads with ``weights_only``. Its program is a list of
calls of operators that PyTorch or the running program has registered; others are errors.
"""

from __future__ import annotations

import ast
import io
import json
import math
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.formats.mapped_file import check_expanded, open_regular
from tmconvert.frontends.torch.tracing.programs.exported_program import DTYPES, Program
from tmconvert.ir.symbolic.text import is_size_expression, size_of

Document = dict[str, Any]

MAJOR = 8
_OPERATORS = {"Add": "+", "Mul": "*"}


@dataclass
class Exported:
    """A program, its example inputs, and its dynamic sizes by input number and axis."""

    program: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    open_sizes: dict[int, dict[int, str]]


def read_exported(path: str) -> Exported:
    """Reads the program in the file. Raises LoadError TM1026."""
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            return _Reader(path, archive).exported()
    except LoadError:
        raise
    except Exception as error:  # whatever a malformed file leads to
        raise unreadable(path, f"it is damaged ({type(error).__name__}: {error})") from error


def exported_object(program: torch.export.ExportedProgram) -> Exported:
    """Reads a program in memory like one in a file."""
    args, kwargs = program.example_inputs or ((), {})
    inputs = set(program.graph_signature.user_inputs)
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    values = [node.meta.get("val") for node in placeholders if node.name in inputs]
    found = {
        number: {
            axis: str(size_of(str(extent), {}))
            for axis, extent in enumerate(getattr(value, "shape", ()))
            if isinstance(extent, torch.SymInt) and is_size_expression(str(extent))
        }
        for number, value in enumerate(values)
    }
    module = program.module(check_guards=False)
    module._forward_pre_hooks.clear()  # they compare the sizes with those that were allowed
    stacks = [node.meta.get("nn_module_stack") or {} for node in program.graph.nodes]
    top = next((str(kind) for stack in stacks for path, kind in stack.values() if not path), "")
    _call_it(type(module), top)  # a class of its own
    return Exported(module, args, kwargs, {number: axes for number, axes in found.items() if axes})


def _call_it(kind: type, name: str) -> None:
    """Names the class after the one that was exported."""
    home, _, own = name.rpartition(".")
    if own:
        kind.__module__, kind.__qualname__, kind.__name__ = home, own, own


def _top_class(graph: Document) -> str:
    for node in graph["nodes"]:
        entries = (node.get("metadata") or {}).get("nn_module_stack", "").split(";")
        for entry in entries:
            _, comma, rest = entry.partition(",")
            path, _, name = rest.partition(",")
            if comma and not path:
                return name
    return ""


def unreadable(path: str, reason: str) -> LoadError:
    return LoadError("TM1026", f"the file cannot be used: {reason}", source=Source(path))


def _size(text: str) -> str | None:
    """Returns a size in the form of ``dynamic_shapes`` from an expression of SymPy, if it has such a form.

    >>> _size("Add(Symbol('s27', positive=True, integer=True), Integer(1))")
    's27+1'
    """
    try:
        size = _expression(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return str(size_of(size, {})) if is_size_expression(size) else None


def _expression(tree: ast.expr) -> str:
    """Returns the expression as text. Raises ValueError for other forms."""
    match tree:
        case ast.Name(name):
            return name
        case ast.Call(ast.Name("Symbol"), [ast.Constant(str(name))]):
            return name
        case ast.Call(ast.Name("Integer"), [number]):
            return f"({int(ast.literal_eval(number))})"
        case ast.Call(ast.Name(function), parts) if function in _OPERATORS:
            return f"({_OPERATORS[function].join(map(_expression, parts))})"
    raise ValueError(f"no size is read from {ast.unparse(tree)}")


class _Reader:
    def __init__(self, path: str, archive: zipfile.ZipFile) -> None:
        self.path = path
        self.archive = archive
        self.stored = sum(each.compress_size for each in archive.infolist())
        check_expanded(path, self.stored, sum(each.file_size for each in archive.infolist()))
        self.names = {name.partition("/")[2]: name for name in archive.namelist()}
        models = [name for name in self.names if re.fullmatch(r"models/[^/]+\.json", name)]
        if len(models) != 1:
            raise unreadable(path, "the file contains no program of PyTorch 2.8 or later, or several")
        self.model = models[0].removeprefix("models/").removesuffix(".json")

    def exported(self) -> Exported:
        document = self._json(f"models/{self.model}.json")
        version = document["schema_version"]["major"]
        if version != MAJOR:
            raise unreadable(
                self.path, f"it has version {version} of the format; tmconvert reads version {MAJOR}"
            )
        module = document["graph_module"]
        signature = next(entry["signature"] for entry in module["module_call_graph"] if entry["fqn"] == "")
        tensors = {**self._tensors("weights"), **self._tensors("constants")}
        kind = type("Program", (Program,), {})
        _call_it(kind, _top_class(module["graph"]))
        program = kind(self.path, module["graph"], module["signature"], signature, tensors)
        args, kwargs = self._example()
        return Exported(program, args, kwargs, dict(self._open_sizes(module["graph"], program.user_inputs)))

    def _json(self, name: str) -> Document:
        return json.loads(self.archive.read(self.names[name]))

    def _tensors(self, kind: str) -> dict[str, torch.Tensor]:
        """Returns the tensors of one folder by their names in the module."""
        folder = f"data/{kind}/"
        config = self._json(f"{folder}{self.model}_{kind}_config.json")["config"]
        memories: dict[str, bytearray] = {}
        tensors = {}
        for name, entry in config.items():
            meta, file = entry["tensor_meta"], entry["path_name"]
            if entry["use_pickle"] or meta is None:
                raise unreadable(self.path, f"{name} is a pickled object, and loading it would run code")
            if file not in memories:
                memories[file] = bytearray(self.archive.read(self.names[folder + file]))
            tensors[name] = self._tensor(name, meta, memories[file])
        # a tensor may have the same element at many places
        check_expanded(self.path, self.stored, sum(each.numel() * each.itemsize for each in tensors.values()))
        return tensors

    def _tensor(self, name: str, meta: Document, memory: bytearray) -> torch.Tensor:
        dtype = DTYPES.get(meta["dtype"])
        if dtype is None:
            raise unreadable(self.path, f"{name} has an element type that tmconvert does not read")
        sizes, strides = ([extent["as_int"] for extent in meta[key]] for key in ("sizes", "strides"))
        if math.prod(sizes) == 0:
            return torch.empty(sizes, dtype=dtype)
        flat = torch.frombuffer(memory, dtype=dtype)
        return torch.as_strided(flat, sizes, strides, meta["storage_offset"]["as_int"])

    def _example(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        name = self.names.get(f"data/sample_inputs/{self.model}.pt")
        data = b"" if name is None else self.archive.read(name)
        if not data:
            return (), {}
        try:
            args, kwargs = torch.load(io.BytesIO(data), weights_only=True, map_location="cpu")
        except Exception:  # objects of other classes; inputs must be given then
            return (), {}
        return tuple(args), dict(kwargs)

    def _open_sizes(self, graph: Document, inputs: list[str]) -> Iterator[tuple[int, dict[int, str]]]:
        for number, name in enumerate(inputs):
            sizes = graph["tensor_values"].get(name, {}).get("sizes", [])
            found = {}
            for axis, extent in enumerate(sizes):
                size = _size(extent.get("as_expr", {}).get("expr_str", ""))
                if size is not None:
                    found[axis] = size
            if found:
                yield number, found
