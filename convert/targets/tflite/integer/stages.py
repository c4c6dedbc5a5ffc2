"""From a float TFLite graph with QParams to one in integers: the order of the stages.

``prepare`` rewrites the float graph, ``tables`` adds lookup tables, ``resolve`` gives each tensor its
QParams, and ``encode`` writes the integer graph.
"""

from __future__ import annotations

from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.symbolics.op import Ops
from tmconvert.targets.options import IntegerType, IoType
from tmconvert.targets.tflite.integer.encode import encode
from tmconvert.targets.tflite.integer.kernel_choice import used_qparams
from tmconvert.targets.tflite.integer.model import IntegerGraph
from tmconvert.targets.tflite.integer.prepare import prepare
from tmconvert.targets.tflite.integer.resolve import ResolvedGraph
from tmconvert.targets.tflite.integer.tables import add_tables


def to_integers(
    graph: TargetGraph,
    catalogue: Ops,
    *,
    activations: IntegerType = "int8",
    io_type: IoType = "int8",
    infers: bool = True,
) -> IntegerGraph:
    """Returns a copy of ``graph`` with int8 weights and activations of the type ``activations``.

    ``io_type`` is that of its inputs and outputs: "int8", "uint8", "int16" or "float32". Without ``infers``
    only tensors with QParams in the source, or with fixed QParams of a kernel, are integers.

    The QParams are resolved once, and handed on with the graph. They are resolved again only where a rewrite
    changed the graph: its tensors have other neighbours, from which QParams are propagated and inferred.
    """
    prepared = prepare(ResolvedGraph(graph, activations, infers=infers))
    resolved = add_tables(prepared, catalogue)
    if (
        resolved is not prepared
    ):  # results of tables have QParams, by which averages and resizes are rewritten
        resolved = prepare(resolved)
    return encode(resolved.graph, used_qparams(resolved), activations, io_type)
