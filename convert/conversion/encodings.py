"""What a lowered graph is written as: as it is, with weights in fewer bits, or in integers.

Each form has a verification that fits what it rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.errors import Refusal, UsageError
from tmconvert.ir import InternalGraph, TracedModule
from tmconvert.ir.unsupported import unsupported_error
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.targets.options import Integers, TargetOptions
from tmconvert.targets.tflite.runtimes import runtime_refusal, types_refusal
from tmconvert.targets.tflite.versions import model_versions

if TYPE_CHECKING:
    from tmconvert.symbolics.op import Op
    from tmconvert.targets.onnx.qdq import QdqGraph
    from tmconvert.targets.tflite.compress_weights import Compressed
    from tmconvert.targets.tflite.integer.model import IntegerGraph
    from tmconvert.verification.references import References
    from tmconvert.verification.report import Verification


class Encoding:
    """A lowered graph as it is. ``graph`` is what is written, ``plain`` the float graph."""

    def __init__(self, plain: TargetGraph) -> None:
        self.plain = self.graph = plain

    def verify(self, paths: Sequence[Path], truth: References) -> Verification | None:
        """The comparison of the files at ``paths`` with the source; None, with a note, where there is none.

        Raises VerificationError.
        """
        from tmconvert.verification.report import verify_written

        return verify_written(
            self.plain.target, paths, self.graph, truth.references, truth.inputs, truth.notes
        )


class FakeQuantFloat(Encoding):
    """With weights that are rounded to their grids."""

    def verify(self, paths: Sequence[Path], truth: References) -> Verification | None:
        from tmconvert.verification.baked import verify_baked

        return verify_baked(paths, self.graph, truth)


class CompressedWeights(Encoding):
    """Large weights in fewer bits."""

    def __init__(self, plain: TargetGraph, compressed: Compressed) -> None:
        super().__init__(plain)
        self.compressed, self.graph = compressed, compressed.graph

    def verify(self, paths: Sequence[Path], truth: References) -> Verification | None:
        from tmconvert.verification.weights import verify_compressed

        return verify_compressed(paths[0], self.plain, self.compressed, truth)


class FullInteger(Encoding):
    """All that has a grid and a kernel for it in integers. ``lowered`` is the graph that was lowered."""

    def __init__(self, plain: TargetGraph, made: IntegerGraph, lowered: InternalGraph) -> None:
        super().__init__(plain)
        self.made, self.lowered, self.graph = made, lowered, made.graph

    def verify(self, paths: Sequence[Path], truth: References) -> Verification | None:
        from tmconvert.targets.tflite.verify.integers import verify_integers

        return verify_integers(paths[0], self.plain, self.made, self.lowered, truth)


class Qdq(Encoding):
    """ONNX with QuantizeLinear and DequantizeLinear. ``lowered`` is the graph that was lowered."""

    def __init__(self, plain: TargetGraph, made: QdqGraph, lowered: InternalGraph) -> None:
        super().__init__(plain)
        self.made, self.lowered, self.graph = made, lowered, made.graph

    def verify(self, paths: Sequence[Path], truth: References) -> Verification | None:
        from tmconvert.targets.onnx.verify_qdq import verify_qdq

        return verify_qdq(paths[0], self.plain, self.made, self.lowered, truth)


def encoding_of(
    plain: TargetGraph,
    lowered: InternalGraph,
    source: InternalGraph,
    goal: TargetOptions,
    weights: str | None,
    notes: list[str],
    catalogue: Mapping[str, Op],
    module: TracedModule,
) -> Encoding:
    """The form of ``module`` that was asked for, with what there is to tell of it in ``notes``.

    ``lowered`` is the graph that ``plain`` was made of, ``source`` the one that the passes began with.
    Raises UsageError TM6002 where the runtime cannot read it, UnsupportedError TM2003 for a quantized
    operator that has no integer kernel.
    """
    if goal.integers is not None and goal.target == "onnx":
        return _with_pairs(plain, lowered, goal.integers, notes)
    if goal.integers is not None:
        form: Encoding = _in_integers(plain, lowered, source, goal, notes, catalogue, module)
    elif weights is not None:
        form = _with_stored_weights(plain, weights, notes)
    else:
        return FakeQuantFloat(plain) if goal.bakes_weights else Encoding(plain)
    form.graph.complete_origins()
    versions = model_versions(form.graph.all_operators())
    refusals = [runtime_refusal(type, version, goal.version) for type, version in versions.items()]
    refusals += [types_refusal(operator, goal.version) for operator in form.graph.operators]
    for refusal in refusals:
        if refusal:
            asked = "in integers" if weights is None else f"weights as {weights}"
            raise UsageError("TM6002", f"{asked}: {refusal[0]}", notes=[("help", refusal[1])])
    return form


def _with_stored_weights(plain: TargetGraph, weights: str, notes: list[str]) -> Encoding:
    from tmconvert.targets.tflite.compress_weights import compress_weights

    made = compress_weights(plain, weights)
    before, after = made.before / 1e6, made.after / 1e6
    of = "1 tensor" if len(made.stored) == 1 else f"{len(made.stored)} tensors"
    notes.append(f"weights as {weights}: {after:.2f} MB instead of {before:.2f} MB, in {of}")
    return CompressedWeights(plain, made)


def _in_integers(
    plain: TargetGraph,
    lowered: InternalGraph,
    source: InternalGraph,
    goal: TargetOptions,
    notes: list[str],
    catalogue: Mapping[str, Op],
    module: TracedModule,
) -> Encoding:
    from tmconvert.targets.tflite.integer.float_fallback import without_form
    from tmconvert.targets.tflite.integer.graph import in_integers
    from tmconvert.targets.tflite.integer.lookup_tables import tabulated
    from tmconvert.targets.tflite.integer.older_runtimes import for_runtime

    asked = goal.integers
    assert asked is not None
    infers = module.vocabulary is None or not module.vocabulary.names_all_grids
    graph = tabulated(plain, catalogue, asked.activations, infers=infers)
    made = in_integers(graph, activations=asked.activations, io_type=asked.io_type, infers=infers)
    made.graph = for_runtime(made.graph)
    if not made.integers:
        _check_grids(plain, made)
    if not asked.allow_float and (lacking := without_form(made, source)):
        raise unsupported_error(lacking, "tflite")
    notes += made.notes()
    return FullInteger(plain, made, lowered)


def _with_pairs(plain: TargetGraph, lowered: InternalGraph, asked: Integers, notes: list[str]) -> Encoding:
    from tmconvert.targets.onnx.qdq import with_qdq

    try:
        made = with_qdq(plain, asked.activations, asked.weight_type)
    except Refusal as refusal:
        help = [("help", refusal.help)] if refusal.help else []
        raise UsageError("TM6031", f"quantized: {refusal.reason}", notes=help) from refusal
    if not made.grids:
        raise _without_scales()
    notes += made.notes()
    if asked.reduce_range:
        notes.append("weights are in seven bits, from -64 to 64 (--reduce-range)")
    return Qdq(plain, made, lowered)


def _check_grids(plain: TargetGraph, made: IntegerGraph) -> None:
    """Raises UsageError TM6030 where nothing can be in integers; a model of only stubs may be written."""
    results = [value for operator in plain.all_operators() for value in operator.outputs]
    names = [value.name for value in (*plain.inputs, *results) if value.qparams is not None]
    if not names:
        raise _without_scales()
    if made.islands:
        some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        raise UsageError(
            "TM6030",
            f"nothing can be in integers: there are scales for {some}, and no operator has them for all that "
            "it takes and gives",
            notes=[
                ("help", "quantize its inputs, too; of inputs of the model --input-type, --input-scale tell")
            ],
        )


def _without_scales() -> UsageError:
    return UsageError(
        "TM6030",
        "the model says nothing of quantization: there are no scales to write integers with",
        notes=[("help", "measure them on data: --calibration DATA, or `tmconvert calibrate`")],
    )
