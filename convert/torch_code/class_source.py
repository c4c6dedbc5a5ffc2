"""The source text of a module's class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, Constant, Input, InternalGraph, TracedModule
from tmconvert.ir.subgraphs import nested
from tmconvert.passes.unsupported import unsupported_error
from tmconvert.symbolics.op import Op
from tmconvert.torch_code.call_expressions import Call, Scope, tensors_of
from tmconvert.torch_code.dropout import CLASS_OF_KIND, dropout
from tmconvert.torch_code.function_writer import Classes, FunctionWriter, operation
from tmconvert.torch_code.literals import number_text
from tmconvert.torch_code.module_tree import ModuleTree
from tmconvert.torch_code.names import Names
from tmconvert.torch_code.nn_modules import NN_MODULES, home, module_call
from tmconvert.torch_code.prepare import DynamicShapes, prepared_graph
from tmconvert.torch_code.regions import Region, graph_of, regions_of
from tmconvert.torch_code.runtime_functions import HELPERS, helpers_in

IMPORTS = """\
from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
"""


class Code(NamedTuple):
    """A class in Python, and its weights by path."""

    text: str
    class_name: str
    weights: Mapping[str, np.ndarray]


def generate(
    module: TracedModule,
    catalogue: Mapping[str, Op],
    class_name: str | None = None,
    dynamic_shapes: DynamicShapes | None = None,
    fix: Mapping[str, int] | None = None,
) -> Code:
    """Returns the code of a module. Raises UnsupportedError for calls that have no form in PyTorch."""
    graph = prepared_graph(module, catalogue, dynamic_shapes, fix)
    name = class_name or Names(HELPERS).new(graph.name or "Net", "Net")
    identifier = "" if module.vocabulary is None else module.vocabulary.identifier
    tree = _Tree(module, graph, catalogue, is_megengine=identifier.startswith("megengine"))
    classes = Classes(module, catalogue, tree.tree, tree.modules)
    classes.names.new(name)
    method = _forward(classes, graph, tree.items)
    lines = [f"class {name}(nn.Module):", "    def __init__(self) -> None:", "        super().__init__()"]
    lines += [f"        {line}" for line in tree.tree.definitions()]
    text = "\n".join([*lines, "", *(f"    {line}" if line else "" for line in method)])
    text = f"{classes.definitions()}\n\n{text}\n"
    helpers = "".join(f"\n{HELPERS[helper]}" for helper in helpers_in(text))
    imports = IMPORTS + ("import torchvision\n" if "torchvision.ops" in text else "")
    return Code(f"{imports}{helpers}{text}", name, tree.tree.weights())


def _forward(classes: Classes, graph: InternalGraph, items: list[CallFunction | Region]) -> list[str]:
    """Returns the lines of the method of the whole model. Raises UnsupportedError."""
    writer = FunctionWriter(classes)
    for node, path in classes.tree.paths.items():
        writer.scope.nodes[node] = classes.tree.text(path)
    names = [node.expr.name if isinstance(node.expr, Input) else node.name for node in graph.inputs]
    lines = writer.function(graph.inputs, names, items, graph.result)
    if writer.unsupported:
        raise unsupported_error(writer.unsupported, "PyTorch")
    return lines


class _Tree:
    """The tree of modules of a graph, with the modules of torch.nn that compute calls."""

    def __init__(
        self, module: TracedModule, graph: InternalGraph, catalogue: Mapping[str, Op], *, is_megengine: bool
    ) -> None:
        self.catalogue, self.is_megengine = catalogue, is_megengine
        self.tree = ModuleTree(module, graph)
        self.items = regions_of(expr for expr in graph if isinstance(expr, CallFunction))
        self.exprs = [expr for each in nested(graph) for expr in each]
        self._drop_numbers()
        regions = [region for item in self.items if isinstance(item, Region) for region in item.regions()]
        # a module whose own forward is more than one call is no module of torch.nn
        self.called = {self.tree.path_of(each.call.path): len(list(each.calls())) for each in regions}
        calls = [expr for expr in self.exprs if isinstance(expr, CallFunction)]
        self.modules = {expr: path for expr in calls if (path := self._module(expr)) is not None}
        self.tree.prune(path for path in self.called if path is not None)

    def _drop_numbers(self) -> None:
        """Removes the buffers of constants that calls take as numbers."""
        scope = Scope()
        calls = [expr for expr in self.exprs if isinstance(expr, CallFunction)]
        needed = {
            node for expr in calls for node in tensors_of(Call(expr, operation(expr, self.catalogue), scope))
        }
        for expr in self.exprs:
            is_number = isinstance(expr, Constant) and expr.output not in needed
            if is_number and not graph_of(expr).is_output(expr.output):
                self.tree.drop(expr.output)

    def _module(self, expr: CallFunction) -> tuple[str, ...] | None:
        """Returns the path of the module that computes a call, which the tree then has."""
        if expr.function == dropout.name:
            return self._dropout(expr)
        if expr.function not in NN_MODULES:
            return None
        arguments = self.catalogue[expr.function].by_name(expr.args, expr.kwargs)
        path = home(arguments, NN_MODULES[expr.function], self.tree)
        if path is None or self.called.get(path, 1) > 1:
            return None
        return module_call(expr, arguments, self.tree, self.is_megengine)

    def _dropout(self, expr: CallFunction) -> tuple[str, ...] | None:
        path = self.tree.path_of(expr.kwargs["path"]) if expr.kwargs["is_module"] else None
        holder = self.tree.holder(path) if path else None
        if holder is None or path is None or holder.slots or holder.children:
            return None
        holder.made_by = f"nn.{CLASS_OF_KIND[expr.kwargs['kind']]}(p={number_text(expr.kwargs['p'])})"
        return path
