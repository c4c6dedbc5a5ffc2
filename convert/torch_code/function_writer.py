"""Writes one function ``forward`` for each module that has calls of its own."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tmconvert.errors import Refusal
from tmconvert.ir import CallFunction, Expr, InternalGraph, Node, TensorNode, TracedModule
from tmconvert.passes.unsupported import Unsupported
from tmconvert.symbolics.op import Op
from tmconvert.torch_code.call_expressions import Call, Scope, expression
from tmconvert.torch_code.control_flow import STATEMENTS
from tmconvert.torch_code.dropout import dropout
from tmconvert.torch_code.literals import number_text
from tmconvert.torch_code.module_tree import EMPTY, Holder, ModuleTree
from tmconvert.torch_code.names import Names, is_plain, name_in
from tmconvert.torch_code.nn_modules import NN_MODULES
from tmconvert.torch_code.op_expressions import GIVE_INT64
from tmconvert.torch_code.regions import Region, graph_of
from tmconvert.torch_code.runtime_functions import HELPERS
from tmconvert.torch_code.training_emitter import FAKE_QUANTIZE

OWN_OPS = {op.name: op for op in (dropout, *FAKE_QUANTIZE)}
BUILT_IN = ("torch.nn.modules.", "megengine.module.")
Path = tuple[str, ...]


def operation(expr: CallFunction, catalogue: Mapping[str, Op]) -> Op:
    """Returns the op that an expression calls."""
    return OWN_OPS.get(expr.function) or catalogue[expr.function]


@dataclass
class Classes:
    """The classes of a model: what all functions share.

    ``modules`` has, by call, the module of torch.nn that computes it; ``texts`` the names of the classes by
    base and methods; ``refused`` the calls of modules that cannot be functions of their own.
    """

    source: TracedModule
    catalogue: Mapping[str, Op]
    tree: ModuleTree
    modules: Mapping[CallFunction, Path]
    names: Names = field(default_factory=lambda: Names(HELPERS))
    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    refused: set[Region] = field(default_factory=set)

    def method(self, region: Region, path: Path) -> tuple[list[Node], list[Node]]:
        """Makes ``forward`` of the module at ``path``, and returns its inputs and outputs. Raises Refusal."""
        writer = FunctionWriter(self, path, region)
        constants = {node: self.tree.within(place, path) for node, place in self.tree.paths.items()}
        inputs = [node for node in region.inputs() if writer.is_argument(node, constants)]
        outputs = region.outputs()
        if not outputs:
            raise Refusal("the module returns nothing that is used")
        for node, place in constants.items():
            if place is not None:
                writer.scope.nodes[node] = self.tree.text(place, path)
        result = outputs[0] if len(outputs) == 1 else tuple(outputs)
        names = [region.call.inputs.get(node.name, "x") for node in inputs]
        self._define(region, path, writer.function(inputs, names, region.items, result))
        return inputs, outputs

    def _define(self, region: Region, path: Path, method: list[str]) -> None:
        holder = self.tree.holder(path)
        assert holder is not None
        key = (holder.base.removesuffix("()"), "\n".join(method))
        if holder.class_name:
            if self.texts.get(key) != holder.class_name:
                raise Refusal("two calls of the module compute different functions")
            return
        if key not in self.texts:
            wanted = self.source.get(region.call.path).class_name.rpartition(".")[2]
            self.texts[key] = self.names.new(wanted, "Module")
        holder.class_name = self.texts[key]

    def definitions(self) -> str:
        """Returns the text of the classes."""
        return "".join(
            f"\n\nclass {name}({base}):\n{textwrap.indent(method, '    ')}\n"
            for (base, method), name in self.texts.items()
        )


class FunctionWriter:
    """Writes one function, of the module at ``base`` that ``region`` is a call of.

    At the top, calls without a form are collected as ``unsupported``; elsewhere they are raised.
    """

    def __init__(self, classes: Classes, base: Path = (), region: Region | None = None) -> None:
        self.classes, self.base = classes, base
        self.own, self.prefix = ("", "") if region is None else (region.call.path, region.call.prefix)
        self.section = self.own
        self.scope = Scope()
        self.names = Names(HELPERS)
        self.lines: list[str] = []
        self.indentation = 0
        self.unsupported: list[Unsupported] = []

    def is_argument(self, node: Node, constants: Mapping[Node, Path | None]) -> bool:
        """Whether the function gets a node from its caller; ``constants`` are the paths of its own."""
        if node in constants:
            return constants[node] is None
        return node.expr is None or not hasattr(node.expr, "value")  # a constant that is written as a number

    def function(
        self,
        inputs: Sequence[Node],
        names: Sequence[str],
        items: Iterable[CallFunction | Region],
        result: object,
    ) -> list[str]:
        """Returns the lines of the method ``forward``."""
        parameters = [self.names.new(name) for name in names]
        for node, name in zip(inputs, parameters, strict=True):
            self.scope.define(node, name)
        self.items(items)
        typed = "".join(f", {name}: Tensor" for name in parameters)
        returned = self.returned(result)
        head = f"def forward(self{typed}){' -> Tensor' if isinstance(result, Node) else ''}:"
        return [head, *(f"    {line}" if line else "" for line in (*self.lines, f"return {returned}"))]

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indentation + text if text else "")

    def items(self, items: Iterable[CallFunction | Region]) -> None:
        for item in items:
            if isinstance(item, Region):
                self._region(item)
            else:
                self._attempt(item)

    def _attempt(self, expr: CallFunction) -> None:
        try:
            self.write(expr)
        except Refusal as refusal:
            if self.base:
                raise
            self.unsupported.append(Unsupported(expr, refusal.reason, refusal.help))
            for node in expr.outputs:
                self.scope.define(node, node.name)

    def _region(self, region: Region) -> None:
        """Calls the module, or writes what it does where it cannot be a function of its own."""
        tree = self.classes.tree
        path = tree.path_of(region.call.path)
        holder = tree.holder(path) if path else None
        place = None if not path else tree.within(path, self.base)
        if place is None or path is None or holder is None or holder.made_by != EMPTY:
            return self.items(region.items)
        if region in self.classes.refused or _is_function(holder):
            return self.items(region.items)
        try:
            inputs, outputs = self.classes.method(region, path)
            arguments = ", ".join(map(self.scope.node, inputs))
        except Refusal:
            self.classes.refused.add(region)
            return self.items(region.items)
        self._begin_section(self.own)
        names = ", ".join(map(self.name, outputs))
        return self.line(f"{names} = {tree.text(place, self.base)}({arguments})")

    def write(self, expr: CallFunction) -> None:
        """Writes one call. Raises Refusal."""
        call = Call(expr, operation(expr, self.classes.catalogue), self.scope)
        if self._is_same_integers(expr):
            self.scope.define(expr.output, self.scope.node(expr.args[0]))
            return
        called = self._module_call(expr, call)
        self._begin_section(self.own if called or expr.source is None else expr.source.scope)
        statements = STATEMENTS.get(expr.function)
        if statements is not None:
            statements(self, call)
            return
        text = called or expression(call)
        names = [self.name(node) for node in expr.outputs]
        self.line(f"{', '.join(names)} = {text}")
        for node, name in zip(expr.outputs, names, strict=True):
            if _needs_int32(expr, node):
                self.line(f"{name} = {name}.to(torch.int32)")

    def _module_call(self, expr: CallFunction, call: Call) -> str:
        path = self.classes.modules.get(expr)
        if path is None:
            return ""
        place = self.classes.tree.within(path, self.base)
        if place is None:
            raise Refusal("the module is not a part of the one that calls it")
        operand = NN_MODULES[expr.function].operand if expr.function in NN_MODULES else "x"
        return f"{self.classes.tree.text(place, self.base)}({call.text(operand)})"

    def body(self, graph: InternalGraph, arguments: Sequence[str]) -> list[str]:
        """Writes the calls of a subgraph one step further in, and returns the texts of its results."""
        for node, text in zip(graph.inputs, arguments, strict=True):
            self.scope.define(node, text)
        self.indentation += 1
        for expr in graph:
            if isinstance(expr, CallFunction):
                self.write(expr)
        self.indentation -= 1
        return [self.scope.node(node) for node in graph.outputs]

    def name(self, node: Node) -> str:
        """Returns a new name for a node."""
        if not graph_of(node.expr).is_used(node) and not getattr(node, "shape", None):
            return "_"
        name = self.names.new(name_in(node.name, self.prefix, "out"))
        self.scope.define(node, name)
        return name

    def _is_same_integers(self, expr: CallFunction) -> bool:
        """Whether a conversion to int64 has no effect in PyTorch, where the operand is int64 already."""
        if expr.function != "aten::to" or expr.kwargs["dtype"] != "int64":
            return False
        source = expr.args[0].expr
        is_wide = isinstance(source, CallFunction) and source.function in GIVE_INT64
        return is_wide and expr.args[0].dtype == np.int32 and not _needs_int32(source, expr.args[0])

    def _begin_section(self, scope: str) -> None:
        """Writes the path of the module of the source that the next lines are of."""
        if scope == self.section or self.indentation:
            return
        self.section = scope
        shown = scope.removeprefix(f"{self.own}." if self.own else "")
        is_shown = scope != self.own and all(is_plain(part) or part.isdecimal() for part in shown.split("."))
        self.lines += ([""] if self.lines else []) + ([f"# {shown}"] if is_shown else [])

    def returned(self, tree: object) -> str:
        """Returns the expression of a tree of results."""
        if isinstance(tree, Node):
            return self.scope.node(tree)
        if isinstance(tree, dict):
            return f"{{{', '.join(f'{_key(key)}: {self.returned(item)}' for key, item in tree.items())}}}"
        if isinstance(tree, (tuple, list)):
            items = [self.returned(item) for item in tree]
            if isinstance(tree, list):
                return f"[{', '.join(items)}]"
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        return _key(tree)


def _is_function(holder: Holder) -> bool:
    """Whether a module is one of a framework that holds nothing, such as an activation."""
    cls = "" if holder.settings is None else holder.settings.class_name
    return cls.startswith(BUILT_IN) and not (holder.slots or holder.children)


def _key(value: object) -> str:
    if value is None or type(value) in (bool, int, str, float):
        return ascii(value) if isinstance(value, str) else number_text(value) if value is not None else "None"
    return ascii(str(value))


def _needs_int32(expr: Expr, node: Node) -> bool:
    """Whether a result that PyTorch gives as int64 is used as int32."""
    if not isinstance(expr, CallFunction) or expr.function not in GIVE_INT64:
        return False
    if not isinstance(node, TensorNode) or node.dtype != np.int32:
        return False
    wide = all(
        isinstance(user, CallFunction) and user.function == "aten::to" and user.kwargs["dtype"] == "int64"
        for user in node.users
    )
    graph = graph_of(expr)
    return graph.is_used(node) and (graph.is_output(node) or not wide)
