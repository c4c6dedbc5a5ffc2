"""TFLite as a target."""

from __future__ import annotations

import importlib.util
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from tmconvert.errors import UsageError
from tmconvert.formats.tflite.recognize import is_tflite
from tmconvert.ir import Constant, InternalGraph
from tmconvert.ir.types import NamedArrays
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.output.atomic import temporary_folder
from tmconvert.passes.common_pipeline import final_passes, float_types, initial_passes
from tmconvert.passes.decompose import Decompose
from tmconvert.passes.drop_identities import DropIdentities
from tmconvert.passes.eliminate_common_subexpressions import EliminateCommonSubexpressions
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.fold_scale_bias import FoldScaleBias
from tmconvert.passes.fuse_views import FuseViews
from tmconvert.passes.manager import Pass
from tmconvert.passes.rewriting import PassRecord
from tmconvert.profiles.registry import profile_named
from tmconvert.symbolics.op import Op
from tmconvert.targets.options import (
    DEFAULT_TFLITE_RUNTIME,
    TFLITE_RUNTIME,
    Integers,
    IntegerType,
    IoLayout,
    IoType,
    TargetOptions,
    check_choice,
)
from tmconvert.targets.target import Encoding, LoweredGraphs, Target
from tmconvert.targets.tflite.operators import SPECS
from tmconvert.targets.tflite.operators.record import MacsRule
from tmconvert.targets.tflite.passes.align_ranks import AlignRanks
from tmconvert.targets.tflite.passes.assign_layout import AssignLayout
from tmconvert.targets.tflite.passes.drop_reshapes import drop_reshapes
from tmconvert.targets.tflite.passes.fold_channel_shuffles import FoldChannelShuffles
from tmconvert.targets.tflite.passes.fold_transposes import FoldTransposes
from tmconvert.targets.tflite.passes.forms_for_gpus import choose_forms_for_gpus
from tmconvert.targets.tflite.passes.fuse_activations import fuse_activations
from tmconvert.targets.tflite.passes.fuse_scales import fuse_scales
from tmconvert.targets.tflite.passes.group_statistics import GroupStatistics
from tmconvert.targets.tflite.passes.merge_slices import merge_slices
from tmconvert.targets.tflite.passes.narrow_integers import narrow_integers
from tmconvert.targets.tflite.passes.narrow_weights import NarrowWeights
from tmconvert.targets.tflite.passes.own_biases import own_biases
from tmconvert.targets.tflite.passes.sink_reshapes import SinkReshapes
from tmconvert.targets.tflite.passes.split_slices import split_slices

if TYPE_CHECKING:
    from tmconvert.lowering.builder import Builder
    from tmconvert.targets.written_model import TensorInfo, WrittenModel
    from tmconvert.verification.runtime import Runtime


class TfliteTarget(Target):
    """Versions are the minor numbers N of runtimes 2.N, in TensorFlow's numbering."""

    name, title, suffixes = "tflite", "TFLite", (".tflite", ".lite")
    runtime_package, version_label = "ai-edge-litert", "TFLite"
    default_io_layout = "nhwc"
    widespread_profile = "litert-gpu"
    quantizes_inputs = has_signatures = True
    keeps_qparams = frozenset(name for name, each in SPECS.items() if each.keeps_qparams)
    clamps_at_zero = frozenset(name for name, each in SPECS.items() if each.activation == (0, math.inf))
    macs: ClassVar[Mapping[str, MacsRule]] = {
        name: each.macs for name, each in SPECS.items() if each.macs is not None
    }
    spatial_operators = frozenset(name for name, each in SPECS.items() if each.is_spatial)
    weight_axes: ClassVar[Mapping[str, int]] = {
        name: 0 if each.weights is None else each.weights.axis
        for name, each in SPECS.items()
        if each.weights is not None or each.dynamic_range is not None
    }

    random_operators: ClassVar[Mapping[str, Callable[[int], dict[str, Any]]]] = {
        name: lambda seed: {"seed": seed, "seed2": 1} for name, each in SPECS.items() if each.draws_random
    }

    def version_number(self, version: int | str | None) -> int:
        """Returns the N of the text "2.N"; a float would be ambiguous, as 2.1 equals 2.10."""
        if version is None:
            return DEFAULT_TFLITE_RUNTIME
        match = re.fullmatch(r"2\.(\d{1,2})(\.\d+)?", version) if isinstance(version, str) else None
        if match is None or int(match[1]) > TFLITE_RUNTIME:
            raise UsageError(
                "TM6001",
                f"unknown TFLite runtime {version!r}",
                notes=[("help", f'use "2.0" to "2.{TFLITE_RUNTIME}", in TensorFlow\'s numbering')],
            )
        return int(match[1])

    def version_name(self, number: int) -> int | str:
        return f"2.{number}"

    def requested_options(self, given: Mapping[str, Any]) -> TargetOptions:
        layouts = _io_layouts(given["io_layout"])
        options = self.default_options(given["runtime"])._replace(
            io_layout=layouts.pop("*", self.default_io_layout),
            io_layouts=tuple(layouts.items()),
            integers=_integers(given) if given["quantized"] else None,
            keep_int64=given["keep_int64"],
            weights=given["weights"],
            weight_scales=given["weight_scales"] or "max",
            float_type=given["float_type"],
            own={"state_as": "variables"} if given["state_as"] == "variables" else {},
        )
        if options.weights is None:
            return options
        from tmconvert.targets.tflite.quantize_weights import with_runtime_for

        types = {options.weights, *(given["rules"] or {}).values()}
        return with_runtime_for(options, types, is_open=given["runtime"] is None)

    def passes(self, options: TargetOptions, catalogue: Mapping[str, Op]) -> list[Pass]:
        integers = options.integers
        narrow: list[Pass] = [NarrowWeights()] if integers is not None and integers.narrows_weights else []
        return [
            *float_types(None if options.float_type == "source" else "float32"),
            *initial_passes(
                catalogue, keeps_qparams=options.keeps_qparams, takes_decompositions=integers is not None
            ),
            GroupStatistics(catalogue, options.version),
            Decompose(catalogue, self.name, options.version, _decomposed_ops(options)),
            AlignRanks(catalogue),
            *_fold_layout_changes(catalogue),
            AlignRanks(catalogue),  # of operands that passes since then, or a user's, have put in
            *final_passes(catalogue),
            AssignLayout(catalogue, options.io_layout, dict(options.io_layouts)),
            EliminateDeadCode(),
            *narrow,
        ]

    def builder(self) -> type[Builder]:
        from tmconvert.targets.tflite.builder import TfliteBuilder

        return TfliteBuilder

    def finish(self, graph: TargetGraph, options: TargetOptions) -> list[PassRecord]:
        steps: list[Callable[[TargetGraph], PassRecord]] = [
            partial(fuse_activations, keeps_qparams=options.keeps_qparams),
            *([] if options.keeps_qparams else [fuse_scales]),  # a requantize between the two would be lost
            *(drop_reshapes, split_slices, merge_slices),
        ]
        choose_forms = partial(choose_forms_for_gpus, splits_matrices=options.weights is None)
        forms: list[Callable[[TargetGraph], PassRecord]] = [choose_forms] if options.integers is None else []
        last = [*forms, own_biases]
        records: dict[str, PassRecord] = {}

        def take(each: Callable[[TargetGraph], PassRecord]) -> None:
            for inner in graph.nested():
                made = each(inner)
                records.setdefault(made.name, PassRecord(made.name)).add(made)

        for step in steps:
            take(step)
        narrowed = [] if options.keep_int64 else [narrow_integers(graph)]
        for step in last:
            take(step)
        if options.profile and options.integers is None:
            from tmconvert.targets.tflite.alternatives.rewrite import take_alternatives

            narrowed.append(take_alternatives(graph, profile_named(options.profile)))
        return [*records.values(), *narrowed]

    def encode(self, graphs: LoweredGraphs, options: TargetOptions) -> Encoding:
        if options.own.get("state_as") != "variables":
            return self._encoded(graphs, options)
        from tmconvert.targets.tflite.state_variables import StateVariables

        return StateVariables(self._encoded(graphs, options), graphs.module)

    def _encoded(self, graphs: LoweredGraphs, options: TargetOptions) -> Encoding:
        is_half = options.float_type != "source" and _has_half_weights(graphs.source)
        if options.integers is None and options.weights is None and not is_half:
            return super().encode(graphs, options)
        from tmconvert.targets.tflite.encodings import compressed_encoding, integer_encoding

        if options.integers is not None:
            return integer_encoding(graphs, options)
        return compressed_encoding(graphs, options)

    def has_integer_form(self, graph: InternalGraph, catalogue: Mapping[str, Op], table_entries: int) -> bool:
        from tmconvert.targets.tflite.encodings import has_integer_form

        return has_integer_form(graph, catalogue, table_entries)

    def write(
        self, graph: TargetGraph, files: Sequence[BinaryIO], names: Sequence[str], *, value_info: bool = True
    ) -> None:
        self.write_signatures([graph], files[0])

    def write_signatures(self, graphs: Sequence[TargetGraph], file: BinaryIO) -> None:
        from tmconvert.targets.tflite.writer import write_signatures

        write_signatures(graphs, file)

    def usage(
        self, language: str, paths: Sequence[str], inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> list[str]:
        from tmconvert.targets.tflite.usage import tflite_usage

        return tflite_usage(language, paths[0], inputs, outputs)

    def recognizes(self, head: bytes) -> bool:
        return is_tflite(head)

    def stored_options(self, path: Path) -> Mapping[str, Any]:
        from tmconvert.formats.tflite.metadata import tflite_options

        return tflite_options(path)

    def stored_layouts(self, path: Path) -> tuple[Sequence[bool], Sequence[bool]] | None:
        from tmconvert.formats.tflite.metadata import tflite_layouts

        return tflite_layouts(path)

    def written_model(self, path: Path) -> WrittenModel:
        return self.signature_model(path, "")

    def signature_model(self, path: Path, signature: str) -> WrittenModel:
        from tmconvert.targets.tflite.written_model import written_tflite

        return written_tflite(path, signature)

    def signature_names(self, path: Path) -> Sequence[str]:
        from tmconvert.targets.tflite.written_model import signature_names

        return signature_names(path)

    def constants(self, paths: Sequence[Path], version: int) -> dict[str, list[np.ndarray]]:
        from tmconvert.targets.tflite.reader import tflite_constants

        found = tflite_constants(paths[0]).items()
        return {name: [each.data for each in values if each.data is not None] for name, values in found}

    def runtime(self, path: Path | None = None) -> Runtime | None:
        return self._runtime("")

    def signature_runtime(self, path: Path, signature: str) -> Runtime | None:
        return self._runtime(signature)

    def _runtime(self, signature: str) -> Runtime | None:
        if importlib.util.find_spec("ai_edge_litert") is None:
            return None
        from tmconvert.targets.tflite.runtime import LiteRtRuntime

        return LiteRtRuntime(signature=signature)

    def steps(self, path: Path) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
        from tmconvert.targets.tflite.state_variables import steps

        return steps(path)

    def prepared_run(self, path: Path, threads: int, inputs: NamedArrays) -> Callable[[], object]:
        return self.signature_run(path, "", threads, inputs)

    def signature_run(
        self, path: Path, signature: str, threads: int, inputs: NamedArrays
    ) -> Callable[[], object]:
        from tmconvert.targets.tflite.prepared_run import prepared_tflite

        return prepared_tflite(path, threads, inputs, signature)

    def values(self, path: Path, inputs: NamedArrays, names: Sequence[str]) -> list[np.ndarray]:
        return self.signature_values(path, "", inputs, names)

    def signature_values(
        self, path: Path, signature: str, inputs: NamedArrays, names: Sequence[str]
    ) -> list[np.ndarray]:
        from tmconvert.targets.tflite.runtime import LiteRtRuntime

        with temporary_folder() as folder:
            tapped = _tapped(path, names, folder, signature)
            return LiteRtRuntime(delegates=False).run([tapped], inputs, names)

    def tapped(self, path: Path, names: Sequence[str], folder: Path) -> Path:
        return _tapped(path, names, folder)

    def start_runtime(self) -> None:
        from tmconvert.verification.processes import worker

        runtime = self.runtime()
        if runtime is not None:
            worker.start(runtime)


def _tapped(path: Path, names: Sequence[str], folder: Path, signature: str = "") -> Path:
    from tmconvert.formats.tflite.tap import tapped_tflite

    tapped = folder / "tapped.tflite"
    tapped.write_bytes(tapped_tflite(path, names, signature))
    return tapped


# ops with an operator of their own, and a decomposition for profiles without it
_OPERATORS = {
    "aten::gelu": "GELU",
    "aten::atan": "ATAN2",
    "aten::atan2": "ATAN2",
    "aten::log_softmax": "LOG_SOFTMAX",
    "aten::elu": "ELU",
    "aten::hardswish": "HARD_SWISH",
    "aten::sin": "SIN",
    "aten::cos": "COS",
    "aten::round": "ROUND",
    "aten::cumsum": "CUMSUM",
}


def _decomposed_ops(options: TargetOptions) -> frozenset[str]:
    """Returns the ops to decompose, as the profile lacks them; none for integer files (tables)."""
    if not options.profile or options.integers is not None:
        return frozenset()
    profile = profile_named(options.profile)
    return frozenset(op for op, type in _OPERATORS.items() if not profile.has(type))


def _has_half_weights(source: InternalGraph) -> bool:
    return any(isinstance(expr, Constant) and expr.stored.dtype == np.float16 for expr in source)


def _io_layouts(given: IoLayout | Mapping[str, IoLayout] | None) -> dict[str, IoLayout]:
    """Layouts by name; ``*`` stands for all other inputs and outputs. Raises UsageError TM6002."""
    layouts: dict[str, IoLayout] = dict(given) if isinstance(given, Mapping) else {"*": given or "nhwc"}
    for name, layout in layouts.items():
        check_choice("io_layout" if name == "*" else f"io_layout of {name!r}", layout, ("nhwc", "source"))
    return layouts


def _integers(given: Mapping[str, Any]) -> Integers:
    if given["weights"] is not None:
        raise UsageError("TM6002", "compressed weights are part of quantized: omit weights")
    activations: IntegerType = given["activations"] or "int8"
    io_type: IoType = given["io_type"] or activations
    of_int8 = ("uint8",) if activations == "int8" else ()
    check_choice("io_type", io_type, (activations, *of_int8, "float32"))
    return Integers(activations, io_type, bool(given["allow_float"]), bool(given["wide_weights"]))


def _fold_layout_changes(catalogue: Mapping[str, Op]) -> list[Pass]:
    """Passes that merge reshapes and transposes, move them to where others are, and fold the rest."""
    fuse: list[Pass] = [FuseViews(catalogue), DropIdentities(), EliminateDeadCode()]
    move: list[Pass] = [FoldTransposes(catalogue), SinkReshapes(catalogue), EliminateDeadCode()]
    scales = FoldScaleBias(catalogue, roots=True)
    return [
        *fuse,
        EliminateCommonSubexpressions(catalogue),
        scales,
        *move,
        *fuse,
        SinkReshapes(catalogue),
        *fuse,  # views that met are one now
        scales,
        FoldChannelShuffles(catalogue),
        DropIdentities(),
    ]
