"""The generator of Python code that ``TracedModule.to_torch`` calls; a higher layer registers it."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

from tmconvert.errors import InternalError

if TYPE_CHECKING:
    from tmconvert.ir.graph import InternalGraph
    from tmconvert.ir.traced_module import TracedModule


class CodeGenerator(Protocol):
    """Writes modules as Python code."""

    def module(self, module: TracedModule, dynamic_shapes: Mapping[str, Any] | None) -> Any:
        """Returns the module as one of PyTorch."""

    def text(self, module: TracedModule) -> str:
        """Returns the source text of the module's class."""
        raise NotImplementedError

    def graph_text(self, graph: InternalGraph) -> str:
        """Returns the source text for a graph."""
        raise NotImplementedError

    def write_folder(
        self,
        module: TracedModule,
        folder: str | PathLike[str],
        class_name: str | None,
        dynamic_shapes: Mapping[str, Any] | None,
    ) -> None:
        """Writes a package with the code and the weights."""


_registered: list[CodeGenerator] = []


def register_code_generator(generator: CodeGenerator) -> None:
    """Registers the generator; ``tmconvert.torch_code.graph_methods`` does so on import."""
    _registered[:] = [generator]


def code_generator() -> CodeGenerator:
    """Returns the registered generator."""
    if not _registered:
        raise InternalError("TM9001", "no generator of code is registered: import tmconvert.api first")
    return _registered[0]
