"""The frontend of graphs in ops of the catalogue, which passes make and containers hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmconvert.frontends.frontend import Frontend

if TYPE_CHECKING:
    from tmconvert.frontends.shared.vocabulary import AdapterVocabulary


class AtenFrontend(Frontend):
    """Has a vocabulary alone: no file is read by it."""

    name = "aten"
    title = "ops"

    def vocabulary(self, identifier: str) -> AdapterVocabulary | None:
        if identifier != self.name:
            return None
        from tmconvert.frontends.aten.vocabulary import VOCABULARY

        return VOCABULARY
