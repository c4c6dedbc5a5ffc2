"""The frontend of ONNX files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.formats.onnx.recognize import is_onnx
from tmconvert.frontends.frontend import Frontend, LoadedModel, LoadRequest

if TYPE_CHECKING:
    from tmconvert.frontends.shared.view_graph import ViewGraph
    from tmconvert.frontends.shared.vocabulary import AdapterVocabulary


class OnnxFrontend(Frontend):
    """Reads ONNX files, which ONNX Runtime runs. Each opset has a vocabulary."""

    name = "onnx"
    title = "ONNX"
    source_runtime = "onnx"

    def recognizes(self, head: bytes) -> bool:
        return is_onnx(head)

    def load(self, path: str, request: LoadRequest) -> LoadedModel:
        from tmconvert.frontends.onnx.loader import load_onnx

        return load_onnx(path)

    def vocabulary(self, identifier: str) -> AdapterVocabulary | None:
        name, _, opset = identifier.partition("-")
        if name != self.name or not opset.isdigit():
            return None
        from tmconvert.frontends.onnx.vocabulary import vocabulary_of

        return vocabulary_of(int(opset))

    def stored_graph(self, path: Path) -> ViewGraph:
        from tmconvert.frontends.onnx.stored_graph import onnx_graph

        return onnx_graph(path)
