"""Registers the methods of TracedModule and InternalGraph that write code.

The generator is imported when one of them is called: conversions do not need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

from tmconvert.errors import UsageError
from tmconvert.ir import InternalGraph, ModuleNode, TracedModule
from tmconvert.ir.code_generator import register_code_generator
from tmconvert.symbolics.registry import catalogue


class TorchCode:
    """Generates code of PyTorch; see ``ir.code_generator.CodeGenerator``."""

    def module(self, module: TracedModule, dynamic_shapes: Mapping[str, Any] | None) -> Any:
        from tmconvert.torch_code.build import torch_module

        return torch_module(module, catalogue(), dynamic_shapes)

    def text(self, module: TracedModule) -> str:
        from tmconvert.torch_code.class_source import generate

        return generate(module, catalogue()).text

    def graph_text(self, graph: InternalGraph) -> str:
        owner = graph.inputs[0] if graph.inputs else None
        if isinstance(owner, ModuleNode) and owner.owner is not None:
            module = TracedModule("", owner.owner.class_name, vocabulary=owner.owner.vocabulary)
            module.children, module.tensors = owner.owner.children, owner.owner.tensors
            module.buffers, module.attributes = owner.owner.buffers, owner.owner.attributes
            module.graphs = {"": graph}
            return self.text(module)
        raise UsageError("TM6004", f"graph {graph.name!r} has no module whose code could be written")

    def write_folder(
        self,
        module: TracedModule,
        folder: str | PathLike[str],
        class_name: str | None,
        dynamic_shapes: Mapping[str, Any] | None,
    ) -> None:
        from tmconvert.torch_code.folder import write_folder

        write_folder(module, folder, class_name, catalogue(), dynamic_shapes)


register_code_generator(TorchCode())
