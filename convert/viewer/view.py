"""Makes the page of a model, a written file, or a written file with its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tmconvert.frontends.shared.view_graph import ViewGraph
from tmconvert.ir import InternalGraph, TracedModule
from tmconvert.viewer.correspondence import correspond
from tmconvert.viewer.document import document
from tmconvert.viewer.inferred_modules import infer_modules
from tmconvert.viewer.page import page
from tmconvert.viewer.source_graph import source_graph
from tmconvert.viewer.written_file import written_graph


def view_text(
    source: TracedModule | InternalGraph | None,
    written: Path | None,
    reports: Sequence[Mapping[str, Any]] = (),
    title: str = "",
    source_title: str = "",
) -> str:
    """Returns the HTML text for a source, a written file, or both, with reports of quantization noise.

    ``title`` is that of the page, ``source_title`` that of the source.
    """
    graphs: list[ViewGraph] = []
    if source is not None:
        graphs.append(source_graph(source, source_title))
    if written is not None:
        graphs.append(written_graph(written))
    if len(graphs) == 2:
        correspond(*graphs)
    for graph in graphs:
        infer_modules(graph, reports)
    return page(document(graphs, reports, title))
