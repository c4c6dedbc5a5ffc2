"""Integer ONNX files: QuantizeLinear/DequantizeLinear pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tmconvert.errors import Refusal, UsageError
from tmconvert.ir.types import Paths
from tmconvert.targets.onnx.integer.model import QdqGraph
from tmconvert.targets.onnx.integer.stages import to_qdq
from tmconvert.targets.onnx.precision import HALVES
from tmconvert.targets.options import Integers, TargetOptions
from tmconvert.targets.target import Encoding, LoweredGraphs, without_scales

if TYPE_CHECKING:
    from tmconvert.lowering.target_graph import TargetGraph
    from tmconvert.targets.onnx.passes.compress_weights import Compressed
    from tmconvert.verification.references import References
    from tmconvert.verification.verify import Verification


class InHalves(Encoding):
    """A graph that computes in float16 or bfloat16, also where its inputs and outputs are float32.

    Operators in bfloat16 are verified in float32 with rounded results.
    """

    def __init__(self, plain: TargetGraph, float_type: str) -> None:
        super().__init__(plain)
        self.float_type = float_type

    def verify(self, paths: Paths, references: References) -> Verification | None:
        for each in references.references:
            each.computes_in = self.float_type
        if self.float_type == "float16":
            return super().verify(paths, references)
        from tmconvert.targets.onnx.bfloat16_runtime import NOTE, Bfloat16OnnxRuntime
        from tmconvert.verification.verify import verify_written

        runtime = Bfloat16OnnxRuntime()
        verified = verify_written(self.plain.target, paths, self.graph, references, runtime=runtime)
        references.notes.extend([NOTE] * (verified is not None))
        return verified


class Qdq(Encoding):
    """A graph with QuantizeLinear/DequantizeLinear pairs."""

    def __init__(self, graphs: LoweredGraphs, made: QdqGraph) -> None:
        super().__init__(graphs.graph)
        self.made, self.lowered, self.graph = made, graphs.lowered, made.graph

    def verify(self, paths: Paths, references: References) -> Verification | None:
        from tmconvert.targets.onnx.verify.qdq import verify_qdq

        return verify_qdq(paths[0], self.plain, self.made, self.lowered, references)


def integer_weights_encoding(graphs: LoweredGraphs, options: TargetOptions) -> Encoding:
    """The float graph, with weights that the source holds as integers stored as integers."""
    from tmconvert.targets.onnx.integer.weights import store_integer_weights

    made = store_integer_weights(graphs.graph, graphs.source, options.integer_weights)
    graphs.notes += made.notes()
    graph = _narrow(made.graph, graphs, options) if options.float_type in HALVES else made.graph
    if made.stored:
        graph.complete_origins()
    return InHalves(graph, options.float_type) if options.float_type in HALVES else Encoding(graph)


def _narrow(graph: TargetGraph, graphs: LoweredGraphs, options: TargetOptions) -> TargetGraph:
    """Returns a copy that computes in float16; its weights in integers keep them."""
    from tmconvert.targets.onnx.passes.narrow_floats import narrow_floats

    assert options.float_type is not None
    made = graph.with_own_values()
    settings = {"float_io": options.float_io, "checks_rules": options.weights is None}
    graphs.notes += narrow_floats(made, options.float_type, options.rules, **settings).notes
    return made


class CompressedWeights(Encoding):
    """Large weights are compressed, all other tensors stay in float.

    ``computes_in`` is the type of floats of a file that computes in a narrower one than float32.
    """

    def __init__(
        self, plain: TargetGraph, compressed: Compressed, graph: TargetGraph, computes_in: str
    ) -> None:
        super().__init__(plain)
        self.compressed, self.graph, self.computes_in = compressed, graph, computes_in

    def verify(self, paths: Paths, references: References) -> Verification | None:
        from tmconvert.targets.onnx.verify.weights import verify_compressed_onnx

        return verify_compressed_onnx(
            paths, self.plain, self.compressed, references, self.graph, self.computes_in
        )


def compressed_encoding(graphs: LoweredGraphs, options: TargetOptions) -> Encoding:
    """The float graph with weights in fewer bits. Raises UsageError TM6032 for a rule without matches."""
    from tmconvert.lowering.type_rules import TypeRules
    from tmconvert.targets.onnx.integer.weights import FUSED, store_integer_weights
    from tmconvert.targets.onnx.passes.compress_weights import compress_weights

    assert options.weights is not None
    graph, plain = graphs.graph, graphs.graph
    if options.integer_weights != "float32":
        held = store_integer_weights(graph, graphs.source, options.integer_weights)
        graphs.notes += held.notes()
        graph = held.graph
    rules = TypeRules(options.rules, plain)
    rules.check()
    is_half = options.float_type in HALVES
    made = compress_weights(
        graph,
        options.weights,
        rules,
        form=options.integer_weights,
        scales=options.weight_scales,
        scale_type=np.dtype(np.float16 if is_half else np.float32),
    )
    graphs.notes += made.notes(options.weights)
    graphs.notes += [FUSED] * (made.is_fused and FUSED not in graphs.notes)
    made.graph.complete_origins()
    written = _narrow(made.graph, graphs, options) if is_half else made.graph
    return CompressedWeights(plain, made, written, options.float_type or "" if is_half else "")


def qdq_encoding(graphs: LoweredGraphs, integers: Integers) -> Encoding:
    """Raises UsageError TM6030 for a model without scales, TM6031 for what the opset cannot express."""
    try:
        made = to_qdq(graphs.graph, integers.activations, integers.weight_type)
    except Refusal as refusal:
        help = [("help", refusal.help)] if refusal.help else []
        raise UsageError("TM6031", f"quantized: {refusal.reason}", notes=help) from refusal
    if not made.all_qparams:
        raise without_scales()
    graphs.notes += made.notes()
    if integers.reduce_range:
        graphs.notes.append("weights are quantized to 7 bits, from -64 to 64 (--reduce-range)")
    return Qdq(graphs, made)
