"""Caffe as a target: its versions are dialects."""

from __future__ import annotations

import importlib.util
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np

from tmconvert.errors import InternalError, LoadError, UnsupportedError, UsageError
from tmconvert.errors.source import Source
from tmconvert.formats.caffe.layers import LAYERS
from tmconvert.formats.caffe.layers.layer import Macs
from tmconvert.formats.caffe.recognize import is_prototxt
from tmconvert.formats.mapped_file import open_regular
from tmconvert.ir.types import NamedArrays
from tmconvert.lowering.target_graph import TargetGraph
from tmconvert.output.atomic import temporary_folder, written
from tmconvert.output.metadata import OPTIONS
from tmconvert.passes.common_pipeline import dropped_identities, final_passes, folded_scales, initial_passes
from tmconvert.passes.decompose import Decompose
from tmconvert.passes.eliminate_common_subexpressions import EliminateCommonSubexpressions
from tmconvert.passes.fuse_views import FuseViews
from tmconvert.passes.manager import Pass
from tmconvert.symbolics.dialects import DIALECTS
from tmconvert.symbolics.op import Op
from tmconvert.targets.options import TargetOptions
from tmconvert.targets.target import Target

if TYPE_CHECKING:
    from tmconvert.ir import InternalGraph
    from tmconvert.lowering.builder import Builder
    from tmconvert.lowering.lower import Lowering
    from tmconvert.targets.violation import Violation
    from tmconvert.targets.written_model import TensorInfo, WrittenModel
    from tmconvert.verification.runtime import Runtime


class CaffeTarget(Target):
    """Version numbers are positions in ``DIALECTS``."""

    name, title, suffixes = "caffe", "Caffe", (".prototxt", ".caffemodel")
    operator_word = "layer"
    version_label = "Caffe, dialect"
    has_dynamic_shapes = has_ordered_versions = False
    drops_low_ranks = True
    names_constants = False
    keeps_qparams = frozenset(name for name, each in LAYERS.items() if each.keeps_qparams)
    clamps_at_zero = frozenset(name for name, each in LAYERS.items() if each.clamps_at_zero)
    macs: ClassVar[Mapping[str, Macs]] = {
        name: each.macs for name, each in LAYERS.items() if each.macs is not None
    }
    spatial_operators = frozenset(name for name, each in LAYERS.items() if each.is_spatial)
    weight_axes: ClassVar[Mapping[str, int]] = {
        name: each.weight_axis for name, each in LAYERS.items() if each.weight_axis is not None
    }

    def version_number(self, version: int | str | None) -> int:
        name = "bvlc" if version is None else version
        if name not in DIALECTS:
            raise UsageError(
                "TM6001",
                f"unknown Caffe dialect {name!r}",
                notes=[("help", f"dialects: {', '.join(DIALECTS)}")],
            )
        return DIALECTS.index(str(name))

    def version_name(self, number: int) -> int | str:
        return DIALECTS[number]

    def requested_options(self, given: Mapping[str, Any]) -> TargetOptions:
        return self.default_options(given["dialect"])

    def passes(self, options: TargetOptions, catalogue: Mapping[str, Op]) -> list[Pass]:
        return [
            *initial_passes(catalogue, keeps_qparams=options.keeps_qparams),
            Decompose(catalogue, self.name, options.version),
            dropped_identities(),
            EliminateCommonSubexpressions(catalogue),
            folded_scales(catalogue),
            # a chain of views that was fused comes apart again into the fewest layers
            FuseViews(catalogue),
            Decompose(catalogue, self.name, options.version),
            *final_passes(catalogue),
        ]

    def lower(self, graph: InternalGraph, catalogue: Mapping[str, Op], options: TargetOptions) -> Lowering:
        from tmconvert.targets.caffe.inexact_integers import inexact_constants

        inexact = list(inexact_constants(graph))
        lowering = super().lower(graph, catalogue, options)
        known = {each.expr for each in lowering.unsupported}
        lowering.unsupported += [each for each in inexact if each.expr not in known]
        return lowering

    def builder(self) -> type[Builder]:
        from tmconvert.targets.caffe.builder import CaffeBuilder

        return CaffeBuilder

    def output_paths(self, given: Sequence[Path]) -> tuple[Path, ...]:
        """The net and its weights, which are next to each other where one of them is given."""
        if len(given) == 1 and not given[0].name:
            raise UsageError("TM6002", f"{given[0]} is a folder: pass the path of a prototxt in it")
        if len(given) > 1:
            return tuple(given)
        net = given[0].with_suffix(".prototxt") if given[0].suffix.lower() == ".caffemodel" else given[0]
        return net, net.with_suffix(".caffemodel")

    def write(
        self, graph: TargetGraph, files: Sequence[BinaryIO], names: Sequence[str], *, value_info: bool = True
    ) -> None:
        from tmconvert.targets.caffe.writer import write_caffe

        write_caffe(graph, files[0], files[1])

    def check(self, graph: TargetGraph, paths: Sequence[Path]) -> list[str]:
        """Returns the limits that no document confirms and the net exceeds.

        Raises UnsupportedError TM2019 for confirmed ones, InternalError TM9001 for an invalid net.
        """
        found = self._violations_of_file(graph, paths[0])
        broken = [violation for violation in found if violation.confirmed]
        if broken:
            raise _beyond_limits(graph, broken)
        return [f"{_dialect(graph)}: {violation}" for violation in found]

    def violations(self, graph: TargetGraph) -> list[Violation]:
        with temporary_folder() as folder, Path(os.devnull).open("wb") as weights:
            prototxt = folder / "net.prototxt"
            with written(prototxt) as text:
                self.write(graph, [text, weights], ())
            return self._violations_of_file(graph, prototxt)

    def _violations_of_file(self, graph: TargetGraph, prototxt: Path) -> list[Violation]:
        """The limits of its dialect that a net just written exceeds; see ``check``."""
        from tmconvert.formats.caffe.dialects import DIALECTS as RECORDS
        from tmconvert.targets.caffe.lint import lint

        limits = {rule.name for rule in RECORDS[_dialect(graph)].rules}
        found = lint(prototxt, _dialect(graph))
        for violation in found:
            if violation.rule not in limits:
                raise InternalError("TM9001", f"the net is not valid: {violation}")
        return found

    def usage(
        self, language: str, paths: Sequence[str], inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> list[str]:
        from tmconvert.targets.caffe.usage import caffe_usage

        return caffe_usage(language, paths, inputs, outputs)

    def recognizes(self, head: bytes) -> bool:
        return is_prototxt(head)

    def model_files(self, path: Path) -> list[Path]:
        weights = path.with_suffix(".caffemodel")
        if not weights.is_file():
            raise LoadError(
                "TM1001",
                f"the net has no weights: {weights} is missing",
                source=Source(str(path)),
                notes=[("help", "put the caffemodel next to the prototxt, under the same name")],
            )
        return [path, weights]

    def stored_options(self, path: Path) -> Mapping[str, Any]:
        """Returns the options in the comment in the first line of a prototxt."""
        with open_regular(path) as file:
            name, _, text = file.readline().decode("utf-8", "replace").removeprefix("# ").partition(": ")
        try:
            found = json.loads(text) if name == OPTIONS else {}
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def stored_input_shapes(self, path: Path) -> Mapping[str, Sequence[int]]:
        from tmconvert.formats.caffe.reader import caffe_input_sizes

        return caffe_input_sizes(path)

    def written_model(self, path: Path) -> WrittenModel:
        from tmconvert.targets.caffe.written_model import written_caffe

        return written_caffe(path)

    def constants(self, paths: Sequence[Path], version: int) -> dict[str, list[np.ndarray]]:
        from tmconvert.formats.caffe.reader import read_net

        net = read_net(paths[0], paths[1], DIALECTS[version])
        return {
            f"{layer.name}/{number}": [blob]
            for layer in net.layers
            for number, blob in enumerate(layer.blobs)
        }

    def runtime(self, path: Path | None = None) -> Runtime:
        """Returns OpenCV where it supports the net, else MNN where it does; else the layers' definitions."""
        from tmconvert.targets.caffe.runtimes import caffe_runtime

        return caffe_runtime(path)

    def source_runtime(self, path: Path) -> Runtime | None:
        from tmconvert.targets.caffe.runtimes import opencv_runtime

        return opencv_runtime(path)

    def prepared_run(self, path: Path, threads: int, inputs: NamedArrays) -> Callable[[], object]:
        from tmconvert.targets.caffe.prepared_run import prepared_caffe

        return prepared_caffe(self.model_files(path), threads, inputs)

    def values(self, path: Path, inputs: NamedArrays, names: Sequence[str]) -> list[np.ndarray]:
        return self.runtime(path).run(self.model_files(path), inputs, names)

    def start_runtime(self) -> None:
        from tmconvert.targets.caffe.opencv import OpenCvRuntime
        from tmconvert.verification.processes import worker

        if importlib.util.find_spec("cv2") is not None:
            worker.start(OpenCvRuntime())


def _dialect(graph: TargetGraph) -> str:
    assert isinstance(graph.version, int)
    return DIALECTS[graph.version]


def _beyond_limits(graph: TargetGraph, broken: Sequence[Violation]) -> UnsupportedError:
    """The first violation in full, the others in a line for each rule."""
    from tmconvert.formats.caffe.dialects import DIALECTS as RECORDS

    first, dialect = broken[0], _dialect(graph)
    sources = {operator.name: operator.source for operator in graph.operators}
    more = Counter(violation.rule for violation in broken[1:])
    return UnsupportedError(
        "TM2019",
        f"the net exceeds the limits of {RECORDS[dialect].title}: {first}",
        source=sources.get(first.layer),
        notes=[
            ("help", first.help),
            *(("also", f"{rule} ({count} more)") for rule, count in more.items()),
            ("see", f"`tmconvert check MODEL --target caffe --dialect {dialect}` lists all of them"),
        ],
    )
