"""``tmconvert inspect``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from tmconvert.cli.keywords import keywords_of
from tmconvert.cli.messages import logging_to_stderr, progress
from tmconvert.cli.options import GroupedCommand, declared_options, model_argument
from tmconvert.cli.rendering import Line, write, write_json, write_table

if TYPE_CHECKING:
    from tmconvert.inspection.inspection import Inspection
    from tmconvert.ir import InternalGraph, Node, TracedModule


@click.command("inspect", cls=GroupedCommand, example="tmconvert inspect model.tflite")
@model_argument
@declared_options("inspect")
def command(
    model: str, graph: bool, tabular: bool, json: bool, usage: str | None, profile: str | None, **given: Any
) -> None:
    """Show what is in MODEL: inputs, outputs, operators, parameters and sizes.

    MODEL is a source model, which need not be convertible, an ONNX or TFLite file, or a prototxt. With
    --profile it is an ONNX or TFLite file, and a forecast is added: which operators run on that device, how
    many bytes cross between it and the processor, and what would bring the others over.
    """
    if profile and (usage or graph or tabular):
        raise click.UsageError("--profile goes without --usage, --graph and --tabular")
    if usage and (graph or tabular):
        raise click.UsageError("--usage goes without --graph and --tabular")
    if graph and tabular and not json:
        raise click.UsageError("--graph and --tabular go together with --json only")
    tracing = keywords_of("inspect", given)
    from tmconvert import api

    with logging_to_stderr(False), progress(f"loading {model}"):
        module = api.load(model, check=False, **tracing) if graph or tabular else None
        found = None if module is not None and not json else _inspected(model, module, tracing)
    if profile:
        assert found is not None
        forecast = api.forecast(model, profile)
        if json:
            write_json({**found.to_json(), "forecast": forecast.to_json()})
        else:
            write(*_styled(found), "", *forecast.lines())
    elif module is None:
        assert found is not None
        program = found.usage(usage) if usage else ""
        if json:
            write_json({**found.to_json(), **({"usage": program} if usage else {})})
        else:
            write(*(program.splitlines() if usage else _styled(found)))
    elif json:
        assert found is not None
        write_json({**found.to_json(), **_graph_document(module, graph, tabular)})
    elif graph:
        write(*str(module.graph).split("\n"))
    else:
        write_table(_COLUMNS, list(_rows(module, _flat(module))))


def _inspected(model: str, module: TracedModule | None, tracing: dict[str, Any]) -> Inspection:
    from tmconvert import api
    from tmconvert.targets.recognize import written_target

    if module is None or written_target(model) is not None:
        return api.inspect(model, **({} if module is not None else tracing))
    found = api.inspect(module)
    found.model = model
    return found


def _graph_document(module: TracedModule, graph: bool, tabular: bool) -> dict[str, Any]:
    document: dict[str, Any] = {"graph": str(module.graph)} if graph else {}
    if tabular:
        rows = _rows(module, _flat(module))
        document["exprs"] = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
    return document


def _styled(found: Inspection) -> Iterator[Line]:
    """Returns the lines of the text, with names of fields and headings in bold."""
    for line in found.lines():
        name, gap, rest = line.partition(" ")
        if not line or line.startswith(" "):
            yield line
        elif line.startswith("module tree"):
            yield [(line, "bold")]
        else:
            yield [(name, "bold"), (gap + rest, "")]


# ---- table

_COLUMNS = ("id", "kind", "target", "inputs", "output", "shape")


def _flat(module: TracedModule) -> InternalGraph:
    from tmconvert.inspection.source_model import flat_graph

    return flat_graph(module)


def _rows(module: TracedModule, flat: InternalGraph) -> Iterator[list[str]]:
    """Returns one row per input and expression."""
    from tmconvert.inspection.source_model import called

    assert module.graph is not None
    inputs = [node.expr for node in module.graph.inputs if node.expr is not None]
    for expr in [*inputs, *flat]:
        yield [
            f"%{expr.id}",
            type(expr).__name__,
            called(expr),
            ", ".join(map(str, expr.inputs)),
            ", ".join(map(str, expr.outputs)),
            ", ".join(map(_type, expr.outputs)),
        ]


def _type(node: Node) -> str:
    """Returns ``f32[1,3,224,224]``; the class of a module; ``?`` for an unknown type."""
    from tmconvert.ir import ModuleNode, TensorNode

    if isinstance(node, ModuleNode):
        return node.class_name.rpartition(".")[2]
    known = isinstance(node, TensorNode) and node.shape is not None and node.dtype is not None
    return str(node.type) if known else "?"  # type: ignore[attr-defined]
