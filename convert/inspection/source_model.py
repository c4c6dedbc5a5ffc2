"""Describes a source model, as it was loaded or traced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from tmconvert.errors import TmconvertError, UsageError
from tmconvert.inspection.inspection import Inspection, ModuleLine, Sizes
from tmconvert.inspection.liveness import Step, activation_sizes
from tmconvert.inspection.source_macs import macs_of
from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    Expr,
    GetAttr,
    InternalGraph,
    ModuleNode,
    Node,
    TensorNode,
    TracedModule,
)
from tmconvert.ir.flatten import flatten_module
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.passes.image_edges import images_of
from tmconvert.qparams.survey import quantization_of
from tmconvert.symbolics.op import Op
from tmconvert.targets.written_model import TensorInfo
from tmconvert.transform.normal_form import normal_form

KINDS = ("modules", "functions", "methods")


def inspect_source(model: str, module: TracedModule, catalogue: Mapping[str, Op]) -> Inspection:
    """Returns what is in a source model, which need not be convertible."""
    if module.graph is None:
        raise UsageError("TM6004", f"{module!r} has no graph to inspect")
    flat = flat_graph(module)
    quantization = quantization_of(module, catalogue)
    graph = _normal_form(module, catalogue)
    images = {} if graph is None else _images(graph)
    counts = {} if quantization is None else quantization.tensors
    tensors = ", ".join(f"{count} {dtype}" for dtype, count in counts.items()) or "no"
    modules = [ModuleLine(path, each.class_name, each.own_parameters()) for path, each in module.modules()]
    return Inspection(
        model=model,
        format="source",
        version="",
        producer=module.producer,
        inputs=[_described(node, images) for node in module.graph.inputs[1:]],
        outputs=_outputs(module.graph, graph),
        operators=calls_of(flat),
        parameters=module.parameter_count(),
        sizes=_sizes(module, graph),
        macs=None if graph is None else macs_of(graph),
        buffers=module.buffer_count(),
        name=module.name,
        quantization=f"{quantization.kind}: {tensors} tensors" if quantization else "",
        dynamic_shapes=module.dynamic_shapes,
        modules=modules,
        details={
            "class": module.class_name,
            "quantization": None if quantization is None else asdict(quantization),
            "dynamic_shapes": module.dynamic_shapes,
            "modules": [
                {"path": each.path, "class": each.class_name, "parameters": each.parameters}
                for each in modules
            ],
        },
    )


def flat_graph(module: TracedModule) -> InternalGraph:
    """Returns the graph with submodules inlined; the module's own graph where this is not possible."""
    assert module.graph is not None
    try:
        flat = flatten_module(module).graph
    except TmconvertError:
        return module.graph
    assert flat is not None
    return flat


def calls_of(graph: InternalGraph) -> dict[str, Counter[str]]:
    """Returns the number of calls of each op, by kind."""
    calls: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for expr in graph:
        if isinstance(expr, CallFunction):
            calls["functions"][expr.function] += 1
        elif isinstance(expr, CallMethod):
            calls["modules" if isinstance(expr.args[0], ModuleNode) else "methods"][called(expr)] += 1
    return calls


def called(expr: Expr) -> str:
    """Returns the function or attribute of an expression, by the source's name."""
    if isinstance(expr, CallFunction):
        return expr.function
    if isinstance(expr, CallMethod):
        first = expr.args[0]
        return first.class_name if isinstance(first, ModuleNode) else f"Tensor.{expr.method}"
    return str(getattr(expr, "name", "") or "")


def _normal_form(module: TracedModule, catalogue: Mapping[str, Op]) -> InternalGraph | None:
    """Returns the model in ATen-style ops; None where it has unsupported calls."""
    try:
        return normal_form(module, catalogue)
    except TmconvertError:
        return None


def _described(node: Node, images: Mapping[str, str], inferred: Node | None = None) -> TensorInfo:
    """Describes an input or output; what it has not recorded is that of ``inferred``."""
    shape, dtype = (
        getattr(inferred, field, None) if getattr(node, field, None) is None else getattr(node, field)
        for field in ("shape", "dtype")
    )
    name = str(node)
    label = getattr(node.expr, "name", "") or name
    return TensorInfo(
        name,
        "" if dtype is None else dtype.name,
        None if shape is None else tuple(map(_size, shape)),
        images.get(label, ""),
    )


def _size(extent: object) -> int | str:
    return str(extent) if isinstance(extent, Dim) else int(extent)  # type: ignore[call-overload]


def _outputs(source: InternalGraph, graph: InternalGraph | None) -> list[TensorInfo]:
    """Describes the outputs; those of the normalized graph are the same, in order."""
    if graph is None or len(graph.outputs) != len(source.outputs):
        return [_described(node, {}) for node in source.outputs]
    images = images_of(graph)
    return [
        _described(node, {}, known)._replace(layout=images.get(known.name, ""))
        for node, known in zip(source.outputs, graph.outputs, strict=True)
    ]


def _images(graph: InternalGraph) -> dict[str, str]:
    """Returns the layouts of the arguments that are images, by name."""
    images = images_of(graph)
    labels = {node.name: str(getattr(node.expr, "name", "") or node.name) for node in graph.inputs}
    return {label: images[name] for name, label in labels.items() if name in images}


def _sizes(module: TracedModule, graph: InternalGraph | None) -> Sizes:
    held = {id(tensor): tensor for _, each in module.modules() for tensor in each.tensors.values()}
    weights = sum(tensor.nbytes for tensor in held.values())
    if graph is None:
        return Sizes(None, weights)
    sizes: dict[str, int] = {}
    steps = []
    for node in graph.inputs:
        sizes[node.name] = _bytes(node)
    for expr in graph:
        if isinstance(expr, (Constant, GetAttr)):
            continue
        sizes.update((node.name, _bytes(node)) for node in expr.outputs)
        steps.append(Step([node.name for node in expr.inputs], [node.name for node in expr.outputs]))
    inputs, outputs = ([node.name for node in nodes] for nodes in (graph.inputs, graph.outputs))
    return Sizes(None, weights, *activation_sizes(steps, sizes, inputs, outputs))


def _bytes(node: Node) -> int:
    if not isinstance(node, TensorNode) or node.shape is None or node.dtype is None:
        return 0
    return int(np.prod([int(extent) for extent in node.shape], dtype=np.int64)) * node.dtype.itemsize
