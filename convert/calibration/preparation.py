"""Prepares a float model for its calibration: ATen ops, the sizes of the data, and types by rules."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tmconvert.calibration.data import Samples
from tmconvert.calibration.data_sizes import at_sizes, sizes_of_data
from tmconvert.calibration.expansion import expand
from tmconvert.calibration.open_sizes import OpenSizes, open_sizes
from tmconvert.calibration.placement import (
    Kind,
    KindOf,
    kinds,
    names_of_call,
    observed_nodes,
    patterns_without_effect,
    unused_patterns,
)
from tmconvert.calibration.ranges import Histogram
from tmconvert.calibration.settings import Settings
from tmconvert.conversion.io_overrides import BoundModel, IoOverrides, bind_model
from tmconvert.errors import UsageError
from tmconvert.ir import Expr, Input, InternalGraph, TensorNode, TensorType, TracedModule
from tmconvert.ir.symbolic.dims import example
from tmconvert.ir.symbolic.journal import SizeJournal
from tmconvert.passes.common_pipeline import fused_idioms
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fold_constants import FoldConstants
from tmconvert.passes.fold_scale_bias import FoldScaleBias
from tmconvert.passes.fuse_conv_bn import FuseConvBn
from tmconvert.passes.manager import Pass, PassManager
from tmconvert.passes.unsupported import unsupported_error
from tmconvert.symbolics.op import Op


@dataclass
class Calibration:
    """A model in ATen ops to calibrate: the types of its calls, and the tensors to measure, in order.

    ``float_graph`` is the model before anything is changed; ``open`` are its dynamic sizes, and ``sizes``
    those that the data has, if these differ from the example's. ``seen`` has what was measured, by the names
    of tensors.
    """

    graph: InternalGraph
    float_graph: InternalGraph
    kind_of: KindOf
    nodes: list[TensorNode]
    open: OpenSizes
    sizes: Mapping[str, int]
    seen: dict[str, Histogram] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def prepare(
    module: TracedModule, data: Any, catalogue: Mapping[str, Op], settings: Settings, overrides: IoOverrides
) -> Calibration:
    """Returns the model in ATen ops at the sizes of the data, and the tensors to measure.

    Inputs and outputs have the names of the model, by which data and rules refer to them; ``rename`` is for
    the conversion. Raises UnsupportedError, UsageError TM6032 for rules that match no tensor.
    """
    opened, sizes = _at_data(bind_model(module, overrides._replace(rename={}), catalogue), data, settings)
    with SizeJournal():
        normalized = opened.normalized(catalogue, opened.example())
        if normalized.unsupported:
            raise unsupported_error(normalized.unsupported, "tflite")
        graph, float_graph = normalized.graph, normalized.graph.copy()
        _simplify(graph, catalogue)
    if any(isinstance(node, TensorNode) and node.qparams for expr in graph for node in expr.outputs):
        raise UsageError(
            "TM6032",
            "the model was trained with fake quantization: it has scales already",
            notes=[("help", "convert it with --quantized, without calibration")],
        )
    kind_of = _kinds_by_rules(graph, settings)

    def simplify_and_expand(other: InternalGraph) -> None:
        _simplify(other, catalogue)
        expand(other, catalogue, kind_of)

    open = open_sizes(opened, catalogue, simplify_and_expand)
    return Calibration(graph, float_graph, kind_of, observed_nodes(graph, kind_of), open, sizes)


def _at_data(opened: BoundModel, data: Any, settings: Settings) -> tuple[BoundModel, Mapping[str, int]]:
    """Returns the model with the open sizes that the first sample has, and these where they are others."""
    if not opened.symbols:
        return opened, {}
    inputs = [
        (name, TensorType(np.dtype(np.float32), tuple(map(example, shape))))
        for name, shape in opened.shapes.items()
    ]
    sizes = sizes_of_data(opened, Samples(data, inputs, settings).first_shapes())
    return at_sizes(opened, sizes), sizes


def _kinds_by_rules(graph: InternalGraph, settings: Settings) -> KindOf:
    """Returns the types of the calls.

    Raises UsageError TM6032 for a rule without effect, and where no tensor is left to measure.
    """
    rules: list[tuple[str, Kind]] = [
        (pattern, "int16" if kind == "int16x8" else kind) for pattern, kind in settings.rules.items()
    ]
    for pattern in unused_patterns(graph, rules):
        raise UsageError(
            "TM6032",
            f"the rule {pattern} matches no module and no tensor",
            notes=[("help", _near(pattern, graph) or "`tmconvert inspect MODEL` lists the modules")],
        )
    for pattern, expr in patterns_without_effect(graph, rules):
        raise _no_effect(pattern, expr)
    kind_of = kinds(graph, rules)
    if not observed_nodes(graph, kind_of):
        why = "the rules keep all of it in float" if rules else "it has no float32 computations"
        raise UsageError("TM6032", f"the model has no tensor to measure: {why}")
    return kind_of


def _no_effect(pattern: str, expr: Expr) -> UsageError:
    (name, *_) = (node.name for node in expr.outputs)
    message = f"the rule {pattern} has no effect: {name}"
    if isinstance(expr, Input):
        help = [("help", "use int16x8, or --io-type float32 for the type in a TFLite file")]
        return UsageError("TM6032", f"{message} is an input, which integer layers use", notes=help)
    help = [("help", "name the layer before it")]
    return UsageError("TM6032", f"{message} has the same scale as its operand", notes=help)


def _near(pattern: str, graph: InternalGraph) -> str:
    """Returns suggestions for a pattern that matches nothing."""
    names = dict.fromkeys(name for expr in graph for name in names_of_call(expr))
    near = difflib.get_close_matches(pattern, names, 3)
    return f"similar names: {', '.join(near)}" if near else ""


def _simplify(graph: InternalGraph, catalogue: Mapping[str, Op]) -> None:
    passes: list[Pass] = [EliminateDeadCode(), FoldConstants(catalogue), FuseConvBn()]
    folded = FoldScaleBias(catalogue, roots=False)
    PassManager([*passes, *fused_idioms(catalogue), folded], catalogue).run(graph)
