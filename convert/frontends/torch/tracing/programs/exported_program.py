"""A module that runs a program of ``torch.export``, read from its file, call by call."""

from __future__ import annotations

import inspect
import json
import math
import operator
import re
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch
from torch import Tensor

from tmconvert.errors import LoadError
from tmconvert.errors.source import Source
from tmconvert.frontends.torch.tracing.recording.source_lines import STAND_INS, is_users

Document = dict[str, Any]

_PYTHON = """add sub mul floordiv truediv mod neg pow eq ne lt le gt ge and_ or_ not_ getitem pos abs
    lshift rshift"""
PYTHON = {f"_operator.{name}": getattr(operator, name) for name in _PYTHON.split()}
PYTHON |= {f"math.{name}": getattr(math, name) for name in ("ceil", "floor", "trunc", "sqrt")}
_SIZES = "sym_int sym_float sym_max sym_min sym_not sym_ite sym_sqrt"
PYTHON |= {f"torch.{name}": getattr(torch, name) for name in _SIZES.split() if hasattr(torch, name)}
OPERATOR = re.compile(r"torch\.ops\.(?P<home>\w+)\.(?P<op>\w+)(\.(?P<overload>\w+))?")
HOMES = ("aten", "prims", "torchvision", "quantized_decomposed", "higher_order")
REFUSED = ("from_file", "_cuda_getCurrentRawStream")  # which reach beyond the program
_LINE = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')

# by their numbers in files
DTYPES = {
    1: torch.uint8,
    2: torch.int8,
    3: torch.int16,
    4: torch.int32,
    5: torch.int64,
    6: torch.float16,
    7: torch.float32,
    8: torch.float64,
    10: torch.complex64,
    11: torch.complex128,
    12: torch.bool,
    13: torch.bfloat16,
    28: torch.uint16,
    29: torch.float8_e4m3fn,
    30: torch.float8_e5m2,
    31: torch.float8_e4m3fnuz,
    32: torch.float8_e5m2fnuz,
    34: torch.uint32,
    35: torch.uint64,
    **({33: torch.float8_e8m0fnu} if hasattr(torch, "float8_e8m0fnu") else {}),  # since 2.7
}
FORMATS = {
    1: torch.contiguous_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
    4: torch.preserve_format,
}
LAYOUTS = {7: torch.strided}


class Program(torch.nn.Module):
    """A module with the parameters of the exported module, under their names.

    ``user_inputs`` are the names of the inputs in the graph, in order.
    """

    def __init__(
        self, path: str, graph: Document, signature: Document, call: Document, tensors: dict[str, Tensor]
    ) -> None:
        super().__init__()
        self._path, self._graph = path, graph
        self._in_spec, self._out_spec = json.loads(call["in_spec"])[1], json.loads(call["out_spec"])[1]
        self._held: dict[str, str] = {}
        self.user_inputs: list[str] = []
        for spec in signature["input_specs"]:
            ((kind, entry),) = spec.items()
            if kind == "user_input":
                ((_, argument),) = entry["arg"].items()
                self.user_inputs.append(argument["name"] if isinstance(argument, dict) else "")
            elif kind == "constant_input":
                self.user_inputs.append(entry["name"])
            elif kind in ("parameter", "buffer", "tensor_constant"):
                name = entry[f"{kind}_name"]
                self._held[entry["arg"]["name"]] = name
                _hold(self, name, tensors[name])
            else:
                raise self._refused(f"it has an input of the unsupported kind {kind}")
        self._outputs = [next(iter(spec)) for spec in signature["output_specs"]]
        for node in _nodes(graph):
            self._function(node["target"])
        self.forward = self._forward(call.get("forward_arg_names"))

    def _forward(self, names: list[str] | None) -> Callable[..., Any]:
        def forward(*args: object, **kwargs: object) -> Any:
            return self._run(args, kwargs)

        positional = len(self._in_spec["children_spec"][0]["children_spec"])
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = names if names and len(names) >= positional else [f"input_{i}" for i in range(positional)]
        signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
        forward.__signature__ = signature  # type: ignore[attr-defined]
        return forward

    def _run(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        given = list(_flat((args, kwargs), self._in_spec))
        values: dict[str, Any] = dict(zip(self.user_inputs, given, strict=True))
        values |= {name: _held(self, path) for name, path in self._held.items()}
        results = self._results(self._graph, values)
        wanted = [value for value, kind in zip(results, self._outputs, strict=True) if kind == "user_output"]
        return _tree(iter(wanted), self._out_spec)

    def _results(self, graph: Document, values: dict[str, object]) -> list[Any]:
        for node in graph["nodes"]:
            self._call(node, values)
        return [self._argument(output, values) for output in graph["outputs"]]

    def _call(self, node: Document, values: dict[str, object]) -> None:
        """Runs one call; ``source_lines`` recognizes this function and gets the user's line from it."""
        args, kwargs = [], {}
        for argument in node["inputs"]:
            value = self._argument(argument["arg"], values)
            if argument.get("kind") == 2:  # by name
                kwargs[argument["name"]] = value
            else:
                args.append(value)
        result = self._function(node["target"])(*args, **kwargs)
        outputs = node["outputs"]
        if len(outputs) == 1 and node.get("is_hop_single_tensor_return") is not False:
            result = (result,)
        for output, value in zip(outputs, result if outputs else (), strict=True):
            _assign(output, value, values)

    def _argument(self, argument: Document, values: dict[str, object]) -> Any:
        ((kind, value),) = argument.items()
        if kind == "as_none":
            return None
        if kind in (
            "as_bool",
            "as_int",
            "as_float",
            "as_string",
            "as_bools",
            "as_ints",
            "as_floats",
            "as_strings",
        ):
            return value
        if kind in ("as_tensor", "as_name"):
            return values[value["name"] if isinstance(value, dict) else value]
        if kind in ("as_sym_int", "as_sym_bool", "as_sym_float"):
            return self._argument(value, values)
        if kind in ("as_tensors", "as_nested_tensors"):
            return [self._argument({"as_tensor": each}, values) for each in value]
        if kind in ("as_sym_ints", "as_sym_bools", "as_sym_floats", "as_optional_tensors"):
            return [self._argument(each, values) for each in value]
        if kind == "as_int_lists":
            return value
        if kind == "as_complex":
            return complex(value["real"], value["imag"])
        if kind == "as_device":
            return torch.device("cpu")
        if kind == "as_graph":
            return self._subgraph(value["graph"], values)
        tables: dict[str, dict[int, Any]] = {
            "as_memory_format": FORMATS,
            "as_layout": LAYOUTS,
            "as_scalar_type": DTYPES,
        }
        table = tables.get(kind)
        if table is None or value not in table:
            raise self._refused(f"a call has an argument of the unsupported kind {kind.removeprefix('as_')}")
        return table[value]

    def _subgraph(self, graph: Document, values: dict[str, object]) -> Callable[..., Any]:
        def run(*args: object) -> Any:
            inner = dict(values)
            for name, value in zip(graph["inputs"], args, strict=True):
                _assign(name, value, inner)
            results = self._results(graph, inner)
            return results[0] if graph.get("is_single_tensor_return") else tuple(results)

        return run

    def _function(self, target: str) -> Callable[..., Any]:
        """Returns the operator that a call refers to. Raises LoadError TM1026 for anything but operators."""
        if target in PYTHON:
            return PYTHON[target]
        match = OPERATOR.fullmatch(target)
        if match is not None and match["op"] not in REFUSED and _is_known(match["home"], match["op"]):
            found = getattr(getattr(torch.ops, match["home"]), match["op"], None)
            if match["overload"] is not None:
                found = getattr(found, match["overload"], None)
            if isinstance(found, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):
                return found
        raise self._refused(f"it calls {target}, which is not an operator of PyTorch or a registered one")

    def _refused(self, reason: str) -> LoadError:
        return LoadError("TM1026", f"the file cannot be used: {reason}", source=Source(self._path))


def _is_known(home: str, op: str) -> bool:
    """Whether an operator is a pure built-in one, or was registered by the calling program."""
    from torch._library.custom_ops import OPDEFS

    return home in HOMES or f"{home}::{op}" in OPDEFS


def _nodes(graph: Document) -> Iterator[Document]:
    """Yields the calls of a graph and of its subgraphs."""
    for node in graph["nodes"]:
        yield node
        for argument in node["inputs"]:
            inner = argument["arg"].get("as_graph")
            if inner is not None:
                yield from _nodes(inner["graph"])


def _assign(output: Document, value: Any, values: dict[str, object]) -> None:
    """Assigns the values of an output to its names."""
    ((kind, name),) = output.items()
    if kind in ("as_tensor", "as_name"):
        values[name["name"] if isinstance(name, dict) else name] = value
    elif kind in ("as_sym_int", "as_sym_bool", "as_sym_float"):
        _assign(name, value, values)
    elif kind in ("as_tensors", "as_sym_ints", "as_optional_tensors"):
        for each, part in zip(name, value, strict=True):
            _assign(each if kind != "as_tensors" else {"as_tensor": each}, part, values)


def _hold(module: torch.nn.Module, path: str, tensor: Tensor) -> None:
    """Registers a buffer at a dotted path below a module."""
    *holders, name = path.split(".")
    for holder in holders:
        if holder not in module._modules:
            module.add_module(holder, torch.nn.Module())
        module = module._modules[holder]  # type: ignore[assignment]
    module._buffers[name] = tensor


def _held(module: torch.nn.Module, path: str) -> Tensor:
    *holders, name = path.split(".")
    for holder in holders:
        module = module._modules[holder]  # type: ignore[assignment]
    return module._buffers[name]  # type: ignore[return-value]


# ---- nested inputs and outputs


def _flat(tree: Any, spec: Document) -> Iterator[Any]:
    """Returns the leaves of a tree, in the order of its spec."""
    children = spec["children_spec"]
    if spec["type"] is None:
        yield tree
    elif isinstance(tree, dict):
        for key, child in zip(json.loads(spec["context"]), children, strict=True):
            yield from _flat(tree[key], child)
    else:
        for part, child in zip(tree, children, strict=True):
            yield from _flat(part, child)


def _tree(leaves: Iterator[object], spec: Document) -> Any:
    """Returns leaves as a tree; nodes that are neither lists nor dicts become tuples."""
    if spec["type"] is None:
        return next(leaves)
    children = [_tree(leaves, child) for child in spec["children_spec"]]
    kind = spec["type"].rpartition(".")[2]
    if kind in ("dict", "OrderedDict"):
        return dict(zip(json.loads(spec["context"]), children, strict=True))
    return children if kind == "list" else tuple(children)


def _users_line(frame: FrameType) -> Source:
    """Returns the user's innermost line in the stack trace that the file has for the current call."""
    trace = frame.f_locals["node"].get("metadata", {}).get("stack_trace") or ""
    found = [match for match in _LINE.finditer(trace) if is_users(match["file"])]
    lines = [
        match for match in found if "site-packages" not in match["file"] and match["file"][:6] != "torch/"
    ]
    return Source(lines[-1]["file"], int(lines[-1]["line"])) if lines else Source("")


STAND_INS[Program._call.__code__] = _users_line
