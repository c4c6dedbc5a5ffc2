"""Encodings of TFLite: full-integer, and compressed weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.errors import UsageError
from tmconvert.ir import InternalGraph
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.passes.decompose import Undecomposed
from tmconvert.passes.manager import PassManager
from tmconvert.passes.unsupported import unsupported_error
from tmconvert.profiles.registry import profile_named
from tmconvert.symbolics.op import Op, SchemaError
from tmconvert.targets.options import TFLITE_RUNTIME, Integers, TargetOptions
from tmconvert.targets.registry import lower, passes_for
from tmconvert.targets.target import Encoding, LoweredGraphs, without_scales
from tmconvert.targets.tflite.runtimes import runtime_refusal, types_refusal
from tmconvert.targets.tflite.versions import model_versions

if TYPE_CHECKING:
    from tmconvert.targets.tflite.compress_weights import Compressed
    from tmconvert.targets.tflite.integer.model import IntegerGraph
    from tmconvert.verification.references import References
    from tmconvert.verification.verify import Verification


class CompressedWeights(Encoding):
    """Large weights are compressed, all other tensors stay in float."""

    def __init__(self, plain: TargetGraph, compressed: Compressed) -> None:
        super().__init__(plain)
        self.compressed, self.graph = compressed, compressed.graph

    def verify(self, paths: Sequence[Path], references: References) -> Verification | None:
        from tmconvert.targets.tflite.verify.weights import check_weights
        from tmconvert.verification.compressed_weights import verify_compressed

        made = self.compressed
        check_weights(paths[0], made.stored, self.plain.signature)
        return verify_compressed(paths, self.plain, made.restored, made.rounded, references)


class FullInteger(Encoding):
    """All tensors with QParams and an integer kernel are integers."""

    def __init__(self, graphs: LoweredGraphs, made: IntegerGraph) -> None:
        super().__init__(graphs.graph)
        self.made, self.lowered, self.graph = made, graphs.lowered, made.graph

    def verify(self, paths: Sequence[Path], references: References) -> Verification | None:
        from tmconvert.targets.tflite.verify.integers import verify_integers

        return verify_integers(paths[0], self.plain, self.made, self.lowered, references)


def compressed_encoding(graphs: LoweredGraphs, options: TargetOptions) -> Encoding:
    """Without ``options.weights``, weights that are numbers of float16 are stored in that type.

    Raises UsageError TM6002 where the runtime cannot read such weights, TM6032 for a rule that matches
    nothing.
    """
    from tmconvert.targets.tflite.compress_weights import compress_weights

    kind = options.weights or "float16"
    if options.weights is None:
        made = compress_weights(graphs.graph, kind, is_exact=True)
    else:
        rules, scales = options.rules, options.weight_scales
        made = compress_weights(graphs.graph, kind, rules, scales=scales, known=graphs.weights)
    if not made.stored and options.weights is None:
        return Encoding(graphs.graph)
    graphs.notes += made.notes(kind)
    encoding = CompressedWeights(graphs.graph, made) if options.weights else Encoding(made.graph)
    encoding.graph.complete_origins()
    _check_runtime(encoding, options.version, f"weights as {kind}")
    return encoding


def integer_encoding(graphs: LoweredGraphs, options: TargetOptions) -> Encoding:
    """Returns the graph in integers.

    Raises UsageError TM6030 for a graph without scales, TM6002 for an older runtime, UnsupportedError TM2003
    for an op without a form in integers.
    """
    from tmconvert.targets.tflite.integer.float_fallback import unsupported_calls
    from tmconvert.targets.tflite.integer.legalize import legalize
    from tmconvert.targets.tflite.integer.stages import to_integers

    integers, vocabulary = options.integers, graphs.module.vocabulary
    assert integers is not None
    infers = vocabulary is None or not vocabulary.has_all_qparams
    profile = profile_named(options.profile) if options.profile else None
    made = to_integers(
        graphs.graph,
        graphs.catalogue,
        activations=integers.activations,
        io_type=integers.io_type,
        infers=infers,
    )
    made.graph = legalize(made.graph)
    if profile is not None:
        from tmconvert.targets.tflite.alternatives.rewrite import take_alternatives

        take_alternatives(made.graph, profile)
    if not made.integers:
        _check_has_scales(graphs.graph, made)
    if not integers.allow_float and (lacking := unsupported_calls(made, graphs.source)):
        raise unsupported_error(lacking, "tflite")
    graphs.notes += made.notes()
    encoding = FullInteger(graphs, made)
    encoding.graph.complete_origins()
    _check_runtime(encoding, options.version, "in integers")
    return encoding


def has_integer_form(graph: InternalGraph, catalogue: Mapping[str, Op], table_entries: int) -> bool:
    """Whether every operator of ``graph`` has an integer kernel; see ``Target.has_integer_form``."""
    from tmconvert.targets.tflite.integer.stages import to_integers
    from tmconvert.targets.tflite.passes.fuse_activations import fuse_activations

    options = TargetOptions("tflite", TFLITE_RUNTIME, integers=Integers())
    try:
        PassManager(passes_for(options, catalogue), catalogue).run(graph)
        lowering = lower(graph, catalogue, options.target, options.version)
    except (Undecomposed, SchemaError):  # sizes from the data, which a call alone does not know
        return False
    if lowering.unsupported:
        return False
    fuse_activations(lowering.graph, keeps_qparams=True)
    made = to_integers(lowering.graph, catalogue, infers=False)
    return not made.fallbacks and made.table_entries <= table_entries


def _check_runtime(encoding: Encoding, runtime: int, what: str) -> None:
    """Raises UsageError TM6002 where ``runtime`` lacks an operator, or its kernel for the types."""
    versions = model_versions(encoding.graph.all_operators())
    refusals = [runtime_refusal(type, version, runtime) for type, version in versions.items()]
    refusals += [types_refusal(operator, runtime) for operator in encoding.graph.operators]
    for refusal in refusals:
        if refusal:
            raise UsageError("TM6002", f"{what}: {refusal[0]}", notes=[("help", refusal[1])])


def _check_has_scales(plain: TargetGraph, made: IntegerGraph) -> None:
    """Raises UsageError TM6030 if no operator can be quantized; a model of only stubs is accepted."""
    results = [value for operator in plain.all_operators() for value in operator.outputs]
    names = [value.name for value in (*plain.inputs, *results) if value.qparams is not None]
    if not names:
        raise without_scales()
    if made.fallbacks:
        some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        raise UsageError(
            "TM6030",
            f"no operator can be quantized: there are scales for {some}, but no operator has scales "
            "for all of its inputs and outputs",
            notes=[
                ("help", "quantize its inputs, too; for inputs of the model use --input-type, --input-scale")
            ],
        )
