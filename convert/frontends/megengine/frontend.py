"""The frontend of MegEngine's files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.frontends.frontend import Frontend, LoadRequest
from tmconvert.frontends.megengine.recognize import is_pickle
from tmconvert.garbage_collection import no_collections

if TYPE_CHECKING:
    from tmconvert.frontends.shared.vocabulary import AdapterVocabulary
    from tmconvert.ir import TracedModule


class MegEngineFrontend(Frontend):
    """Reads pickles of TracedModules, without running them. Each release has a vocabulary."""

    name = "megengine"
    title = "MegEngine"

    def recognizes(self, head: bytes) -> bool:
        return is_pickle(head)

    def load(self, path: str, request: LoadRequest) -> TracedModule:
        with no_collections():  # while seventy modules load
            from tmconvert.frontends.megengine.loader import load_megengine

        return load_megengine(path)

    def vocabulary(self, identifier: str) -> AdapterVocabulary | None:
        name, _, release = identifier.partition("-")
        if name != self.name:
            return None
        from tmconvert.frontends.megengine.release_differences import release_called
        from tmconvert.frontends.megengine.vocabulary import vocabulary_of

        return vocabulary_of(release_called(release))
