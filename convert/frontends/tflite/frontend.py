"""The frontend of TFLite files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tmconvert.formats.tflite.recognize import is_tflite
from tmconvert.frontends.frontend import Frontend, LoadedModel, LoadRequest

if TYPE_CHECKING:
    from tmconvert.frontends.shared.view_graph import ViewGraph
    from tmconvert.frontends.shared.vocabulary import AdapterVocabulary


class TfliteFrontend(Frontend):
    """Reads TFLite files, which LiteRT runs."""

    name = "tflite"
    title = "TFLite"
    source_runtime = "tflite"
    has_signatures = True
    has_state = True

    def recognizes(self, head: bytes) -> bool:
        return is_tflite(head)

    def load(self, path: str, request: LoadRequest) -> LoadedModel:
        from tmconvert.frontends.tflite.loader import load_tflite

        return load_tflite(path, request.tracing.signature, request.tracing.state)

    def vocabulary(self, identifier: str) -> AdapterVocabulary | None:
        if identifier != self.name:
            return None
        from tmconvert.frontends.tflite.vocabulary import VOCABULARY

        return VOCABULARY

    def stored_graph(self, path: Path) -> ViewGraph:
        from tmconvert.frontends.tflite.stored_graph import tflite_graph

        return tflite_graph(path)
