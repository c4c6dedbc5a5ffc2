"""Compares two models: reads both as graphs, matches nodes, and collects totals, outputs and latency."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.conversion.prepared_model import loaded
from tmconvert.difference.changes import Change, changes_of, stated_defaults
from tmconvert.difference.matching import Matching
from tmconvert.difference.model_diff import ModelDiff, counts_that_differ
from tmconvert.errors import UsageError
from tmconvert.frontends.shared.view_graph import ViewGraph
from tmconvert.inspection.inspection import Inspection
from tmconvert.ir import TracedModule
from tmconvert.symbolics.op import Op
from tmconvert.targets.recognize import written_target

if TYPE_CHECKING:
    from tmconvert.conversion.request import Model

Catalogue = Mapping[str, Op]


class DiffSide:
    """One of the two models: ``kind`` is the target of a written file, or "source"."""

    def __init__(self, model: Model, catalogue: Catalogue) -> None:
        self.model, self.catalogue = model, catalogue
        self.path = Path(model) if isinstance(model, (str, PathLike)) else None
        target = None if self.path is None else written_target(self.path)
        self.kind = "source" if target is None else target.name

    @property
    def name(self) -> str:
        if self.path is not None:
            return str(self.path)
        return self.model.name if isinstance(self.model, TracedModule) else type(self.model).__name__

    def stored_graph(self) -> ViewGraph:
        """Returns the graph as the file has it, or as the source is written."""
        from tmconvert.viewer.source_graph import source_graph
        from tmconvert.viewer.written_file import written_graph

        if self.kind != "source" and self.path is not None:
            return written_graph(self.path)
        return source_graph(self._module(), self.name)

    def normal_graph(self) -> ViewGraph:
        """Returns the graph of ATen-style ops, in which models of different kinds can be compared."""
        from tmconvert.transform.normal_form import eliminate_dead_code, transformed
        from tmconvert.viewer.source_graph import source_graph

        module = transformed(self._module(), self.catalogue, eliminate_dead_code, keeps_outputs=True)
        return source_graph(module, self.name)

    def inspection(self) -> Inspection:
        from tmconvert.inspection.source_model import inspect_source
        from tmconvert.inspection.written_file import inspect_file

        if self.kind != "source" and self.path is not None:
            return inspect_file(self.path)
        return inspect_source(self.name, self._module(), self.catalogue)

    def _module(self) -> TracedModule:
        if not hasattr(self, "_loaded"):
            self._loaded = loaded(self.model)
            self._loaded.name_modules()
        return self._loaded


def diff_sides(first: DiffSide, second: DiffSide) -> tuple[ModelDiff, Matching]:
    """Returns all that differs without running the models, and the pairs of nodes. Raises LoadError."""
    is_same_kind = first.kind == second.kind
    graphs = [each.stored_graph() if is_same_kind else each.normal_graph() for each in (first, second)]
    matching = Matching(*graphs)
    inspections = first.inspection(), second.inspection()
    found = ModelDiff(first.name, second.name, changes_of(matching), _totals(*inspections))
    found.properties = _properties(*inspections)
    found.reordered, found.defaults = matching.reordered(), stated_defaults(matching)
    counts = [
        {type: count for kinds in each.operators.values() for type, count in kinds.items()}
        for each in inspections
    ]
    found.operators = counts_that_differ(*counts) if is_same_kind else {}
    return found, matching


def measure_latency(first: DiffSide, second: DiffSide, seconds: float) -> tuple[float, float]:
    """Returns the milliseconds of a run of each file, by turns. Raises UsageError TM6002 for a source."""
    from tmconvert.inspection.bench import bench_files

    paths = [each.path for each in (first, second) if each.kind != "source" and each.path is not None]
    if len(paths) != 2:
        raise UsageError("TM6002", "the latency is measured of written files: convert both models first")
    one, other = bench_files(paths, 1, seconds, 3)
    return one.median, one.median / other.ratio if other.ratio else other.median


def diff_page(matching: Matching, changes: list[Change], title: str) -> str:
    """Returns the page with both graphs side by side: corresponding nodes are linked, differences marked."""
    from tmconvert.viewer.document import document
    from tmconvert.viewer.page import page

    first, second = matching.first.graph, matching.second.graph
    changed = {each.first for each in changes if each.kind not in ("renamed", "shape", "removed", "added")}
    for number, node in enumerate(first.nodes):
        partner = matching.pairs.get(number)
        node.mark = "removed" if partner is None else ""
        if partner is not None:
            second.nodes[partner].sources = [number]
            if matching.first.name(number) in changed:
                node.mark = second.nodes[partner].mark = "changed"
            else:
                second.nodes[partner].mark = ""
    for number, node in enumerate(second.nodes):
        if number not in matching.reverse:
            node.mark = "added"
    return page(document([first, second], (), title, ("Before", "After")))


def _totals(one: Inspection, other: Inspection) -> dict[str, tuple[float | None, float | None]]:
    def pair(read: str) -> tuple[float | None, float | None]:
        return getattr(one.sizes, read), getattr(other.sizes, read)

    counts = [sum(sum(kinds.values()) for kinds in each.operators.values()) for each in (one, other)]
    return {
        "operators": (counts[0], counts[1]),
        "parameters": (one.parameters, other.parameters),
        "macs": (one.macs, other.macs),
        "size": pair("files"),
        "weights": pair("weights"),
    }


def _properties(one: Inspection, other: Inspection) -> dict[str, tuple[str, str]]:
    texts = {
        "format": (one.format, other.format),
        "version": (one.version, other.version),
        "producer": (one.producer, other.producer),
        "quantized": (one.quantization, other.quantization),
    }
    for key in dict.fromkeys([*one.metadata, *other.metadata]):
        texts[f"metadata {key}"] = one.metadata.get(key, "none"), other.metadata.get(key, "none")
    return {name: pair for name, pair in texts.items() if pair[0] != pair[1]}
