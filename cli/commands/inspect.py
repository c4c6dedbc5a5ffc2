"""``tmconvert inspect``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import Line, write, write_json, write_message, write_table
from tmconvert.conversion.wording import quantity, size
from tmconvert.errors import UnsupportedError

if TYPE_CHECKING:
    from tmconvert.ir import Expr, InternalGraph, Node, TracedModule
    from tmconvert.qparams.survey import Quantization

KINDS = ("modules", "functions", "methods")


@click.command("inspect", cls=GroupedCommand, example="tmconvert inspect model.tm --graph")
@model_argument
@declared_options("inspect")
def command(model: str, graph: bool, tabular: bool, json: bool, **given: Any) -> None:
    """Show what is in MODEL: inputs, outputs, ops and modules.

    MODEL need not be convertible.
    """
    if graph and tabular and not json:
        raise click.UsageError("--graph and --tabular go together with --json only")
    tracing = keywords_of("inspect", given)
    from tmconvert import api

    with logging_to_stderr(False), progress(f"loading {model}"):
        module = api.load(model, check=False, **tracing)  # a look need not read all weights
    if graph and not json:
        write(*str(module.graph).split("\n"))
        return
    flat = _flat(module)
    if json:
        document = _document(model, module, flat)
        if graph:
            document["graph"] = str(module.graph)
        if tabular:
            document["exprs"] = [dict(zip(_COLUMNS, row, strict=True)) for row in _rows(module, flat)]
        write_json(document)
    elif tabular:
        write_table(_COLUMNS, list(_rows(module, flat)))
    else:
        write(*_summary(model, module, flat))


def _flat(module: TracedModule) -> InternalGraph:
    """Returns the graph with submodules inlined; the module's own graph where this is not possible."""
    assert module.graph is not None
    try:
        flat = module.flatten().graph
    except UnsupportedError as error:
        write_message(f"note: ops of submodules are not included: {error.message}")
        return module.graph
    assert flat is not None
    return flat


# ---- summary


def _summary(model: str, module: TracedModule, flat: InternalGraph) -> Iterator[Line]:
    assert module.graph is not None
    parameters, held = module.parameter_count(), _bytes(module)
    yield _field("model", model)
    yield _field("name", module.name)
    yield _field("producer", module.producer or "not recorded")
    buffers = module.buffer_count()
    more = f" and {quantity(buffers, 'element').rsplit(' ', 1)[0]} in buffers" if buffers else ""
    yield _field("parameters", f"{quantity(parameters, 'parameter').rsplit(' ', 1)[0]}{more} ({size(held)})")
    quantization = _quantization(module)
    if quantization is not None:
        found = ", ".join(f"{count} {dtype}" for dtype, count in quantization.tensors.items())
        yield _field("quantized", f"{quantization.kind}: {found or 'no'} tensors")
    yield from _section("inputs", _typed(module.graph.inputs[1:], module.dynamic_shapes or {}))
    yield from _section("outputs", _typed(module.graph.outputs))
    calls = _calls(flat)
    for kind in KINDS:
        counts = [[str(count), name] for name, count in calls[kind].items()]
        width = max((len(count) for count, _ in counts), default=0)
        yield from _section(kind, [f"{count:>{width}}  {name}" for count, name in counts])
    yield from _section("module tree", _tree(module))


def _quantization(module: TracedModule) -> Quantization | None:
    from tmconvert import api

    return api.quantization(module)


def _field(name: str, text: str) -> Line:
    return [(f"{name:<12}", "bold"), (text, "")]


def _section(title: str, lines: Iterable[str]) -> Iterator[Line]:
    lines = list(lines)
    if not lines:
        return
    yield ""
    yield [(title, "bold")]
    yield from (f"  {line}" for line in lines)


def _typed(nodes: list[Node], open_sizes: Mapping[str, Mapping[int, str]] | None = None) -> list[str]:
    width = max((len(str(node)) for node in nodes), default=0)
    return [f"{node!s:<{width}}  {_type(node)}{_open(node, open_sizes or {})}" for node in nodes]


def _open(node: Node, open_sizes: Mapping[str, Mapping[int, str]]) -> str:
    """Returns ``  (0 is batch)`` for an input with dynamic axes."""
    axes = open_sizes.get(getattr(node.expr, "name", ""), {})
    text = ", ".join(f"axis {axis} is {name}" for axis, name in axes.items())
    return f"  (dynamic: {text})" if axes else ""


def _calls(graph: InternalGraph) -> dict[str, Counter[str]]:
    """Returns the number of calls of each op, the most frequent first."""
    calls: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for expr in graph:
        kind = _call_kind(expr)
        if kind is not None:
            calls[kind][_target(expr)] += 1
    return {
        kind: Counter(dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))))
        for kind, counts in calls.items()
    }


def _call_kind(expr: Expr) -> str | None:
    from tmconvert.ir import CallFunction, CallMethod, ModuleNode

    if isinstance(expr, CallFunction):
        return "functions"
    if isinstance(expr, CallMethod):
        return "modules" if isinstance(expr.args[0], ModuleNode) else "methods"
    return None


def _tree(module: TracedModule) -> Iterator[str]:
    for path, each in module.modules():
        depth = path.count(".") + 1 if path else 0
        name = path.rpartition(".")[2]
        kind = each.class_name.rpartition(".")[2]
        own = each.own_parameters()
        about = f"  ({quantity(own, 'parameter')})" if own else ""
        yield f"{'  ' * depth}{f'{name}: ' if name else ''}{kind}{about}"


def _bytes(module: TracedModule) -> int:
    tensors = {id(tensor): tensor for _, each in module.modules() for tensor in each.tensors.values()}
    return sum(tensor.nbytes for tensor in tensors.values())


# ---- table

_COLUMNS = ("id", "kind", "target", "inputs", "output", "shape")


def _rows(module: TracedModule, flat: InternalGraph) -> Iterator[list[str]]:
    """Returns one row per input and expression."""
    assert module.graph is not None
    inputs = [node.expr for node in module.graph.inputs if node.expr is not None]
    for expr in [*inputs, *flat]:
        yield [
            f"%{expr.id}",
            type(expr).__name__,
            _target(expr),
            ", ".join(map(str, expr.inputs)),
            ", ".join(map(str, expr.outputs)),
            ", ".join(map(_type, expr.outputs)),
        ]


def _target(expr: Expr) -> str:
    """Returns the function or attribute of an expression, by the source's name."""
    from tmconvert.ir import CallFunction, CallMethod, ModuleNode

    if isinstance(expr, CallFunction):
        return expr.function
    if isinstance(expr, CallMethod):
        first = expr.args[0]
        return first.class_name if isinstance(first, ModuleNode) else f"Tensor.{expr.method}"
    return str(getattr(expr, "name", "") or "")


def _type(node: Node) -> str:
    """Returns ``f32[1,3,224,224]``; the class of a module; ``?`` for an unknown type."""
    from tmconvert.ir import ModuleNode, TensorNode

    if isinstance(node, ModuleNode):
        return node.class_name.rpartition(".")[2]
    known = isinstance(node, TensorNode) and node.shape is not None and node.dtype is not None
    return str(node.type) if known else "?"  # type: ignore[attr-defined]


# ---- JSON


def _document(model: str, module: TracedModule, flat: InternalGraph) -> dict[str, object]:
    assert module.graph is not None
    quantization = _quantization(module)
    return {
        "model": model,
        "name": module.name,
        "class": module.class_name,
        "producer": module.producer or None,
        "parameters": module.parameter_count(),
        "buffers": module.buffer_count(),
        "bytes": _bytes(module),
        "quantization": None if quantization is None else asdict(quantization),
        "inputs": [_described(node) for node in module.graph.inputs[1:]],
        "outputs": [_described(node) for node in module.graph.outputs],
        "dynamic_shapes": module.dynamic_shapes,
        "ops": {kind: dict(counts) for kind, counts in _calls(flat).items()},
        "modules": [
            {
                "path": path,
                "class": each.class_name,
                "parameters": each.own_parameters(),
            }
            for path, each in module.modules()
        ],
    }


def _described(node: Node) -> dict[str, object]:
    shape, dtype = getattr(node, "shape", None), getattr(node, "dtype", None)
    return {
        "name": str(node),
        "dtype": None if dtype is None else dtype.name,
        "shape": None if shape is None else [int(extent) for extent in shape],
    }
