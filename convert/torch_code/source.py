"""The source text of a module's class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir import CallFunction, Constant, Expr, Input, InternalGraph, Node, TensorNode, TracedModule
from tmconvert.ir.unsupported import Unsupported, unsupported_error
from tmconvert.symbolics.op import Op
from tmconvert.torch_code.calls import Call, Scope, expression, tensors_of
from tmconvert.torch_code.dropout import CLASS_OF_KIND, dropout
from tmconvert.torch_code.forms import GIVE_INT64
from tmconvert.torch_code.literals import number_text
from tmconvert.torch_code.module_forms import FORMS, module_call
from tmconvert.torch_code.modules import ModuleTree
from tmconvert.torch_code.names import Names, is_plain
from tmconvert.torch_code.prepare import DynamicShapes, prepared_graph
from tmconvert.torch_code.runtime_functions import HELPERS, helpers_in
from tmconvert.torch_code.training_emitter import FAKE_QUANTIZE

OWN_OPS = {op.name: op for op in (dropout, *FAKE_QUANTIZE)}
IMPORTS = """\
from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
"""


@dataclass(frozen=True)
class Code:
    """A class in Python, and its weights by path."""

    text: str
    class_name: str
    weights: Mapping[str, np.ndarray]


def generate(
    module: TracedModule,
    catalogue: Mapping[str, Op],
    class_name: str | None = None,
    dynamic_shapes: DynamicShapes | None = None,
) -> Code:
    """Returns the code of a module. Raises UnsupportedError for calls that have no form in PyTorch."""
    graph = prepared_graph(module, catalogue, dynamic_shapes)
    name = class_name or Names(HELPERS).new(graph.name or "Net", "Net")
    writer = _Writer(module, graph, catalogue)
    body = writer.forward()
    lines = [f"class {name}(nn.Module):", "    def __init__(self) -> None:", "        super().__init__()"]
    lines += [f"        {line}" for line in writer.tree.definitions()]
    text = "\n".join([*lines, "", *(f"    {line}" if line else "" for line in body)])
    helpers = "".join(f"\n{HELPERS[helper]}" for helper in helpers_in(text))
    imports = IMPORTS + ("import torchvision\n" if "torchvision.ops" in text else "")
    return Code(f"{imports}{helpers}\n\n{text}\n", name, writer.tree.weights())


class _Writer:
    def __init__(self, module: TracedModule, graph: InternalGraph, catalogue: Mapping[str, Op]) -> None:
        self.graph, self.catalogue = graph, catalogue
        identifier = "" if module.vocabulary is None else module.vocabulary.identifier
        self.is_megengine = identifier.startswith("megengine")
        self.tree = ModuleTree(module, graph)
        self.scope = Scope()
        self.names = Names(HELPERS)
        self.lines: list[str] = []
        self.section = ""
        self.unsupported: list[Unsupported] = []

    def forward(self) -> list[str]:
        """Returns the lines of the method."""
        parameters = []
        for node in self.graph.inputs:
            wanted = node.expr.name if isinstance(node.expr, Input) else node.name
            parameters.append(self.names.new(wanted))
            self.scope.define(node, parameters[-1])
        calls = [expr for expr in self.graph if isinstance(expr, CallFunction)]
        self._drop_numbers(calls)
        modules = {expr: path for expr in calls if (path := self._module(expr)) is not None}
        self.tree.prune()
        for node, path in self.tree.paths.items():
            self.scope.nodes[node] = self.tree.text(path)
        for expr in calls:
            try:
                self._write(expr, modules.get(expr))
            except Refusal as refusal:
                self.unsupported.append(Unsupported(expr, refusal.reason, refusal.help))
                for node in expr.outputs:
                    self.scope.define(node, node.name)
        if self.unsupported:
            raise unsupported_error(self.unsupported, "PyTorch")
        result = self._result(self.graph.result)
        typed = "".join(f", {name}: Tensor" for name in parameters)
        returns = " -> Tensor" if isinstance(self.graph.result, Node) else ""
        head = f"def forward(self{typed}){returns}:"
        return [head, *(f"    {line}" if line else "" for line in (*self.lines, f"return {result}"))]

    def _call(self, expr: CallFunction) -> Call:
        op = OWN_OPS.get(expr.function) or self.catalogue[expr.function]
        return Call(expr, op, self.scope)

    def _drop_numbers(self, calls: list[CallFunction]) -> None:
        """Removes the buffers of constants that calls take as numbers."""
        needed = {node for expr in calls for node in tensors_of(self._call(expr))}
        for expr in list(self.graph):
            is_number = isinstance(expr, Constant) and expr.output not in needed
            if is_number and not self.graph.is_output(expr.output):
                self.tree.drop(expr.output)

    def _module(self, expr: CallFunction) -> tuple[str, ...] | None:
        """Returns the path of the module that computes a call, which the tree then has."""
        if expr.function == dropout.name:
            return self._dropout(expr)
        if expr.function not in FORMS:
            return None
        arguments = self.catalogue[expr.function].by_name(expr.args, expr.kwargs)
        return module_call(expr, arguments, self.tree, self.is_megengine)

    def _dropout(self, expr: CallFunction) -> tuple[str, ...] | None:
        path = self.tree.path_of(expr.kwargs["path"]) if expr.kwargs["is_module"] else None
        holder = self.tree.holder(path) if path else None
        if holder is None or path is None or holder.slots or holder.children:
            return None
        holder.made_by = f"nn.{CLASS_OF_KIND[expr.kwargs['kind']]}(p={number_text(expr.kwargs['p'])})"
        return path

    def _write(self, expr: CallFunction, module: tuple[str, ...] | None) -> None:
        call = self._call(expr)
        if self._is_same_integers(expr):
            self.scope.define(expr.output, self.scope.node(expr.args[0]))
            return
        if module is not None:
            operand = FORMS[expr.function].operand if expr.function in FORMS else "x"
            text = f"{self.tree.text(module)}({call.text(operand)})"
        else:
            text = expression(call)
        self._begin_section(expr)
        names = [self._name(node) for node in expr.outputs]
        self.lines.append(f"{', '.join(names)} = {text}")
        for node, name in zip(expr.outputs, names, strict=True):
            if _needs_int32(expr, node, self.graph):
                self.lines.append(f"{name} = {name}.to(torch.int32)")

    def _name(self, node: Node) -> str:
        if not self.graph.is_used(node) and not getattr(node, "shape", None):
            return "_"
        name = self.names.new(node.name)
        self.scope.define(node, name)
        return name

    def _is_same_integers(self, expr: CallFunction) -> bool:
        """Whether a conversion to int64 is of what PyTorch gives as int64."""
        if expr.function != "aten::to" or expr.kwargs["dtype"] != "int64":
            return False
        source = expr.args[0].expr
        is_wide = isinstance(source, CallFunction) and source.function in GIVE_INT64
        return (
            is_wide and expr.args[0].dtype == np.int32 and not _needs_int32(source, expr.args[0], self.graph)
        )

    def _begin_section(self, expr: Expr) -> None:
        """Writes the path of the module of the source that the next lines are of."""
        scope = expr.source.scope if expr.source is not None else ""
        if scope == self.section:
            return
        self.section = scope
        parts = scope.split(".")
        if all(is_plain(part) or part.isdecimal() for part in parts):
            self.lines += ([""] if self.lines else []) + [f"# {scope}"]
        elif self.lines:
            self.lines.append("")

    def _result(self, tree: object) -> str:
        if isinstance(tree, Node):
            return self.scope.node(tree)
        if isinstance(tree, dict):
            return f"{{{', '.join(f'{_key(key)}: {self._result(item)}' for key, item in tree.items())}}}"
        if isinstance(tree, (tuple, list)):
            items = [self._result(item) for item in tree]
            if isinstance(tree, list):
                return f"[{', '.join(items)}]"
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        return _key(tree)


def _key(value: object) -> str:
    if value is None or type(value) in (bool, int, str, float):
        return ascii(value) if isinstance(value, str) else number_text(value) if value is not None else "None"
    return ascii(str(value))


def _needs_int32(expr: CallFunction, node: Node, graph: InternalGraph) -> bool:
    """Whether a result that PyTorch gives as int64 is used as int32."""
    if expr.function not in GIVE_INT64 or not isinstance(node, TensorNode) or node.dtype != np.int32:
        return False
    wide = all(
        isinstance(user, CallFunction) and user.function == "aten::to" and user.kwargs["dtype"] == "int64"
        for user in node.users
    )
    return graph.is_used(node) and (graph.is_output(node) or not wide)
