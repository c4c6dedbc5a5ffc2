"""ONNX as a target."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.ir.types import NamedArrays
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.output.atomic import temporary_folder
from tmconvert.passes.common_pipeline import (
    dropped_identities,
    final_passes,
    float_types,
    folded_scales,
    initial_passes,
)
from tmconvert.passes.decompose import Decompose
from tmconvert.passes.deferred_pass import Condition, DeferredPass, calls, has
from tmconvert.passes.eliminate_common_subexpressions import EliminateCommonSubexpressions
from tmconvert.passes.manager import Pass
from tmconvert.passes.rewriting import PassRecord
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.traits import Arithmetic, IndexedRows, IndexesAxis, IndicesBelow, View
from tmconvert.targets.onnx.external_data import MOST_INLINE, external_bytes, weights_path
from tmconvert.targets.onnx.operators import SPECS, MacsRule
from tmconvert.targets.options import (
    AUTO,
    DEFAULT_OPSET,
    OLDEST_OPSET,
    Integers,
    IntegerType,
    TargetOptions,
    WeightType,
)
from tmconvert.targets.target import Encoding, LoweredGraphs, Target

if TYPE_CHECKING:
    from tmconvert.lowering.builder import Builder
    from tmconvert.targets.written_model import TensorInfo, WrittenModel
    from tmconvert.verification.runtime import Runtime


# the opsets that have RMSNormalization and RotaryEmbedding
_RMS_NORM_SINCE = _ROTARY_SINCE = 23
_NEGATIVE_INDICES_SINCE = 11  # of Gather and GatherElements
# the passes on graphs of operators, which are their modules, too, and the operators that they replace
_LAST = (
    *(("fuse_hard_sigmoid", "Clip"), ("merge_slices", "Slice")),
    *(("fold_pads", "Pad"), ("fold_index_reshapes", "Gather")),
)
_PASSES = "tmconvert.targets.onnx.passes"


class OnnxTarget(Target):
    """Versions are opsets."""

    name, title, suffixes = "onnx", "ONNX", (".onnx",)
    runtime_package, version_label = "onnxruntime", "ONNX opset"
    oldest_version = OLDEST_OPSET
    keeps_qparams = frozenset(name for name, each in SPECS.items() if each.keeps_qparams)
    clamps_at_zero = frozenset(name for name, each in SPECS.items() if each.clamps_at_zero)
    macs: ClassVar[Mapping[str, MacsRule]] = {
        name: each.macs for name, each in SPECS.items() if each.macs is not None
    }
    spatial_operators = frozenset(name for name, each in SPECS.items() if each.is_spatial)
    weight_axes: ClassVar[Mapping[str, int]] = {
        name: each.weights.axis for name, each in SPECS.items() if each.weights is not None
    }

    random_operators: ClassVar[Mapping[str, Callable[[int], dict[str, Any]]]] = {
        name: lambda seed: {"seed": float(seed)} for name, each in SPECS.items() if each.draws_random
    }

    def version_number(self, version: int | str | None) -> int:
        """The number of an opset; of the lowest one that is tried for "auto"."""
        opset, newest = DEFAULT_OPSET if version in (None, AUTO) else version, newest_opset()
        if isinstance(opset, bool) or not isinstance(opset, int) or not OLDEST_OPSET <= opset <= newest:
            raise UsageError(
                "TM6001",
                f"opset {opset!r} is not supported",
                notes=[
                    (
                        "help",
                        f"use {OLDEST_OPSET} to {newest}, what the installed onnx package knows, or {AUTO}",
                    )
                ],
            )
        return opset

    def newer_versions(self, number: int) -> Sequence[int]:
        return range(number + 1, newest_opset() + 1)

    def default_options(self, version: int | str | None = None) -> TargetOptions:
        return super().default_options(version)._replace(takes_lowest=version == AUTO)

    def requested_options(self, given: Mapping[str, Any]) -> TargetOptions:
        """Selects uint8 weights for uint8 activations by default, which every processor accumulates exactly.

        int8 activations are for runtimes that take int8 alone.
        """
        activations: IntegerType = given["activations"] or "uint8"
        options = self.default_options(given["opset"])
        if options.takes_lowest and given["quantized"]:
            from tmconvert.targets.onnx.integer.types import lowest_opset

            options = options._replace(version=max(options.version, lowest_opset(activations)))
        options = options._replace(external_data=given["external_data"], value_info=given["value_info"])
        options = options._replace(
            float_type=given["float_type"],
            float_io=given["io_type"] == "float32",
            integer_weights=given["integer_weights"] or "float32",
            weights=given["weights"],
            weight_scales=given["weight_scales"] or "max",
        )
        if options.float_type is not None or options.float_io or options.weights is not None:
            from tmconvert.targets.onnx.precision import check_float_type, with_opset_for

            check_float_type(options, is_quantized=given["quantized"])
            if options.weights is not None:
                return with_opset_for(options, {options.weights, *(given["rules"] or {}).values()})
        if not given["quantized"]:
            return options
        weights: WeightType = given["weight_type"] or ("uint8" if activations.startswith("u") else "int8")
        reduces = bool(given["reduce_range"])
        return options._replace(
            integers=Integers(activations, "float32", weight_type=weights, reduce_range=reduces)
        )

    def passes(self, options: TargetOptions, catalogue: Mapping[str, Op]) -> list[Pass]:
        integers = options.integers
        reduces = integers is not None and integers.reduce_range
        fused_rms_norms = _deferred(
            "fuse_rms_norm:FuseRmsNorm", [has(Arithmetic), calls("aten::mean")], catalogue
        )
        gathers = has(IndexesAxis, IndexedRows)
        dropped_wraps = _deferred("drop_index_wraps:DropIndexWraps", [has(IndicesBelow), gathers], catalogue)
        return [
            *float_types(None if options.float_type is None else "float32"),
            *initial_passes(catalogue, keeps_qparams=options.keeps_qparams),
            Decompose(catalogue, self.name, options.version),
            _deferred("hoist_transposes:HoistTransposes", [has(View)], catalogue),
            _deferred("merge_reshapes:MergeReshapes", [has(View)], catalogue),
            dropped_identities(),
            *([dropped_wraps] if options.version >= _NEGATIVE_INDICES_SINCE else []),
            EliminateCommonSubexpressions(catalogue),
            folded_scales(catalogue),
            _deferred(
                "divide_by_roots:DivideByRoots", [has(Arithmetic), calls("aten::reciprocal")], catalogue
            ),
            # there are integer kernels of Slice
            *(
                [_deferred("combine_slices:CombineSlices", [calls("aten::slice")], catalogue)]
                if integers is None
                else []
            ),
            *([fused_rms_norms] if options.version >= _RMS_NORM_SINCE else []),
            *final_passes(catalogue),
            *([_deferred("reduce_weight_range:ReduceWeightRange", [])] if reduces else []),
        ]

    def builder(self) -> type[Builder]:
        from tmconvert.targets.onnx.builder import OnnxBuilder

        return OnnxBuilder

    def finish(self, graph: TargetGraph, options: TargetOptions) -> list[PassRecord]:
        records: list[PassRecord] = []
        if options.version >= _ROTARY_SINCE and options.integers is None:
            from tmconvert.targets.onnx.passes.fuse_rotary import fuse_rotary

            records.append(fuse_rotary(graph))
        if options.integers is None:
            types = {operator.type for operator in graph.operators}
            records += [_run_on(graph, name) if each in types else PassRecord(name) for name, each in _LAST]
        holds_integers = options.weights is not None or options.integer_weights != "float32"
        if options.float_type not in ("float16", "bfloat16") or holds_integers:
            return records  # such weights are stored before floats are narrow
        from tmconvert.targets.onnx.passes.narrow_floats import narrow_floats

        return [*records, narrow_floats(graph, options.float_type, options.rules, float_io=options.float_io)]

    def encode(self, graphs: LoweredGraphs, options: TargetOptions) -> Encoding:
        if options.integers is None:
            if options.weights is not None:
                from tmconvert.targets.onnx.encodings import compressed_encoding

                return compressed_encoding(graphs, options)
            if options.integer_weights != "float32" and not options.bakes_weights:
                from tmconvert.targets.onnx.encodings import integer_weights_encoding

                return integer_weights_encoding(graphs, options)
            if options.float_type in ("float16", "bfloat16"):
                from tmconvert.targets.onnx.encodings import InHalves

                return InHalves(graphs.graph, options.float_type)
            return super().encode(graphs, options)
        from tmconvert.targets.onnx.encodings import qdq_encoding

        return qdq_encoding(graphs, options.integers)

    def further_paths(self, paths: Sequence[Path]) -> tuple[Path, ...]:
        return (weights_path(paths[0]),)

    def files(self, graph: TargetGraph, paths: Sequence[Path], options: TargetOptions) -> list[Path]:
        """Returns the files: a second one for weights with ``external_data``, or where one is too small."""
        size = external_bytes(graph)
        has_second = size and (options.external_data or size > MOST_INLINE)
        return [*paths, weights_path(paths[0])] if has_second else list(paths)

    def write(
        self, graph: TargetGraph, files: Sequence[BinaryIO], names: Sequence[str], *, value_info: bool = True
    ) -> None:
        from tmconvert.targets.onnx.writer import write_onnx

        weights = files[1] if len(files) > 1 else None
        write_onnx(graph, files[0], weights, names[-1], value_info=value_info)

    def check(self, graph: TargetGraph, paths: Sequence[Path]) -> list[str]:
        from tmconvert.targets.onnx.writer import check_onnx

        check_onnx(paths[0], graph)
        return []

    def missing_kernels(self, graph: TargetGraph) -> list[str]:
        from tmconvert.targets.onnx.kernels import missing_kernels

        return missing_kernels(graph)

    def usage(
        self, language: str, paths: Sequence[str], inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> list[str]:
        from tmconvert.targets.onnx.usage import onnx_usage

        return onnx_usage(language, paths[0], inputs, outputs)

    def recognizes(self, head: bytes) -> bool:
        from tmconvert.formats.onnx.recognize import is_onnx

        return is_onnx(head)

    def stored_options(self, path: Path) -> Mapping[str, Any]:
        from tmconvert.formats.onnx.metadata import onnx_options

        stored = onnx_options(path)
        integers = stored.get("integers")
        if not integers or not isinstance(integers, Mapping):
            return stored
        return {**stored, "integers": {"weight_type": "int8", **integers}}  # which old files do not record

    def model_object(self, paths: Sequence[Path]) -> Any:
        """Returns the ModelProto, with its weights."""
        from tmconvert.formats.onnx.model import read_whole_model

        return read_whole_model(str(paths[0]))

    def written_model(self, path: Path) -> WrittenModel:
        from tmconvert.targets.onnx.written_model import written_onnx

        return written_onnx(path)

    def constants(self, paths: Sequence[Path], version: int) -> dict[str, list[np.ndarray]]:
        from tmconvert.formats.onnx.model import Initializers

        return {name: [array] for name, array in Initializers(str(paths[0])).items()}

    def runtime(self, path: Path | None = None) -> Runtime | None:
        if importlib.util.find_spec("onnxruntime") is None:
            return None
        from tmconvert.targets.onnx.runtime import OnnxRuntime

        return OnnxRuntime()

    def saturates_here(self) -> bool:
        from tmconvert.targets.onnx.verify.sessions import saturates_here

        return saturates_here()

    def prepared_run(self, path: Path, threads: int, inputs: NamedArrays) -> Callable[[], object]:
        from tmconvert.targets.onnx.prepared_run import prepared_onnx

        return prepared_onnx(path, threads, inputs)

    def values(self, path: Path, inputs: NamedArrays, names: Sequence[str]) -> list[np.ndarray]:
        from tmconvert.targets.onnx.verify.sessions import Session

        with temporary_folder() as folder:
            tapped = self.tapped(path, names, folder)
            runtime = Session(fuses=False, keeps_memory=False)
            try:
                return runtime.run([tapped], inputs, names)
            finally:
                runtime.forget()

    def tapped(self, path: Path, names: Sequence[str], folder: Path) -> Path:
        from tmconvert.formats.onnx.tap import tapped_onnx

        return tapped_onnx(path, names, folder)

    def start_runtime(self) -> None:
        from tmconvert.verification.processes import worker

        runtime = self.runtime()
        if runtime is not None:
            worker.start(runtime)


def newest_opset() -> int:
    """The newest opset that the installed ``onnx`` package knows."""
    from tmconvert.targets.onnx.writer import newest_opset as installed

    return installed()


def _deferred(place: str, conditions: list[Condition], *args: object) -> Pass:
    return DeferredPass(f"{_PASSES}.{place}", conditions, *args)


def _run_on(graph: TargetGraph, name: str) -> PassRecord:
    """Imports a pass on graphs of operators, and runs it."""
    record = getattr(import_module(f"{_PASSES}.{name}"), name)(graph)
    assert isinstance(record, PassRecord)
    return record
