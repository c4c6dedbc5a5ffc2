"""The frontend of Caffe nets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.formats.caffe.recognize import is_prototxt
from tmconvert.frontends.frontend import Frontend, LoadedModel, LoadRequest

if TYPE_CHECKING:
    from tmconvert.frontends.shared.view_graph import ViewGraph
    from tmconvert.frontends.shared.vocabulary import AdapterVocabulary


class CaffeFrontend(Frontend):
    """Reads a prototxt with the caffemodel next to it, which OpenCV runs where it supports all layers."""

    name = "caffe"
    title = "Caffe"
    source_runtime = "caffe"

    def recognizes(self, head: bytes) -> bool:
        return is_prototxt(head)

    def part_of_model(self, path: Path, head: bytes) -> tuple[str, str] | None:
        if path.suffix != ".caffemodel":
            return None
        net = path.with_suffix(".prototxt")
        return "the weights of a Caffe net", f"pass its prototxt{f': {net}' if net.is_file() else ''}"

    def load(self, path: str, request: LoadRequest) -> LoadedModel:
        from tmconvert.frontends.caffe.loader import load_caffe

        return load_caffe(path)

    def vocabulary(self, identifier: str) -> AdapterVocabulary | None:
        if identifier != self.name:
            return None
        from tmconvert.frontends.caffe.vocabulary import VOCABULARY

        return VOCABULARY

    def stored_graph(self, path: Path) -> ViewGraph:
        from tmconvert.frontends.caffe.stored_graph import caffe_graph

        return caffe_graph(path)
