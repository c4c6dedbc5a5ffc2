"""The frontend of containers, the files of ``tmconvert save``."""

from __future__ import annotations

from tmconvert.formats.tm.recognize import is_container
from tmconvert.frontends.frontend import Frontend, LoadRequest
from tmconvert.ir import TracedModule


class ContainerFrontend(Frontend):
    """Reads containers, whose models have the vocabularies of other frontends."""

    name = "container"
    title = "tmconvert"

    def recognizes(self, head: bytes) -> bool:
        return is_container(head)

    def load(self, path: str, request: LoadRequest) -> TracedModule:
        from tmconvert.container.reader import load_container

        return load_container(path, request.check)
