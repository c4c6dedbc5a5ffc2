"""Prepares the graph from which code is generated: in ops of the catalogue, with trainable parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

import numpy as np

from tmconvert.conversion.io_overrides import BoundModel, IoOverrides, bind_model
from tmconvert.errors import InternalError, UsageError
from tmconvert.ir import CallFunction, Constant, Input, InternalGraph, TensorNode, TracedModule
from tmconvert.ir.flatten import flatten_module
from tmconvert.ir.symbolic.dims import Dim
from tmconvert.ir.symbolic.journal import SizeJournal, SizesSpecialized
from tmconvert.ir.symbolic.open_sizes import not_dynamic
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.normalize import normalize
from tmconvert.passes.unsupported import unsupported_error
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.registry import Catalogue
from tmconvert.torch_code.dropout import CLASSES, DropoutVocabulary, dropout, use_dropped
from tmconvert.torch_code.training_emitter import FAKE_QUANTIZE, TrainingEmitter

if TYPE_CHECKING:
    from tmconvert.ir.traced_module import Vocabulary

MAX_ATTEMPTS = 100
DynamicShapes = Mapping[str, Mapping[int, str]]


def prepared_graph(
    module: TracedModule,
    catalogue: Mapping[str, Op],
    dynamic_shapes: DynamicShapes | None = None,
    fix: Mapping[str, int] | None = None,
) -> InternalGraph:
    """Returns the normalized graph for code. Raises UnsupportedError, UsageError.

    ``dynamic_shapes`` are names of sizes by input and axis; by default those of the trace, and the first axis
    of the inputs of a model that was not traced with any. ``fix`` has numbers of some by name. Of these names
    only those that nobody chose may become numbers.
    """
    if module.graph is None or module.vocabulary is None:
        raise UsageError("TM6004", f"{module!r} has no graph to write as code")
    own = Catalogue([dropout, *FAKE_QUANTIZE], catalogue)
    is_chosen = dynamic_shapes is not None or module.dynamic_shapes is not None
    chosen = dynamic_shapes if is_chosen else _batches(module)
    bound = bind_model(module, IoOverrides(dynamic_shapes=chosen or {}, fix=fix or {}), own)
    flat = flatten_module(module, keeps=CLASSES, marks_calls=True)
    assert flat.graph is not None
    use_dropped(flat.graph)
    flat.vocabulary = cast("Vocabulary", DropoutVocabulary(module.vocabulary))
    graph = _normalized(bound._replace(flat=flat), own, is_chosen)
    EliminateDeadCode().run(graph)
    _store_reshaped(graph, module)
    return graph


def _batches(module: TracedModule) -> DynamicShapes:
    """Returns names for the first axes of inputs, which are a batch where they are equal."""
    assert module.graph is not None
    shapes = {
        node.expr.name: node.shape
        for node in module.graph.inputs[1:]
        if isinstance(node, TensorNode) and isinstance(node.expr, Input) and node.shape
    }
    batch = next(iter(shapes.values()), (None,))[0]
    return {name: {0: "batch"} for name, shape in shapes.items() if shape[0] == batch and batch != 0}


def _normalized(bound: BoundModel, catalogue: Mapping[str, Op], is_chosen: bool) -> InternalGraph:
    for _ in range(MAX_ATTEMPTS):
        with SizeJournal(bound.symbols) as journal:
            try:
                normalized = normalize(bound.flat, catalogue, bound.shapes, emitter=TrainingEmitter)
            except SizesSpecialized:
                pass
            else:
                if normalized.unsupported:
                    raise unsupported_error(normalized.unsupported, "PyTorch", context=bound.context)
                if not journal.specialized:
                    return normalized.graph
        fixed = {name: size for name, size in journal.specialized.items() if isinstance(size, int)}
        if is_chosen and fixed:
            raise not_dynamic({name: journal.reasons[name].partition(": ")[2] for name in fixed}, fixed)
        bound = bound.specialized(journal)
    raise InternalError("TM9004", f"the sizes {', '.join(bound.symbols)} cannot be resolved")


def _store_reshaped(graph: InternalGraph, module: TracedModule) -> None:
    """Stores parameters of built-in modules in the shape in which PyTorch uses them.

    MegEngine's batch norm has weights [1, C, 1, 1], its grouped convolution [groups, O, I, H, W]; modules of
    torch.nn have them as their functions take them.
    """
    for expr in list(graph):
        if not isinstance(expr, Constant) or expr.name is None or not _is_of_leaf(module, expr.name):
            continue
        users = expr.output.users
        shapes = {user.output.shape for user in users if _is_reshape(user)}
        if len(shapes) != 1 or not all(map(_is_reshape, users)) or graph.is_output(expr.output):
            continue
        shape = shapes.pop()
        assert shape is not None
        if any(isinstance(size, Dim) for size in shape):
            continue
        array = np.asarray(expr.value).reshape(shape)
        name = graph.free_name(expr.output.name)
        stored = TensorNode(name, shape, expr.output.dtype, qparams=users[0].output.qparams)
        graph.insert(Constant(array, expr.name, result=stored, source=expr.source), before=expr)
        for user in users:
            graph.replace_uses(user.output, stored)
            graph.remove(user)
        graph.remove(expr)


def _is_reshape(expr: object) -> bool:
    return isinstance(expr, CallFunction) and expr.function == "aten::reshape"


def _is_of_leaf(module: TracedModule, path: str) -> bool:
    """Whether the module that holds a tensor has no graph of its own: an adapter knows its meaning."""
    holder, _, _ = path.rpartition(".")
    try:
        owner = module.get(holder) if holder else module
    except KeyError:
        return False
    return isinstance(owner, TracedModule) and not owner.graphs
