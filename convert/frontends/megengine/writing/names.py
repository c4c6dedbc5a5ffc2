"""Names of nodes and graphs as MegEngine makes them: ``Net.block.[func_relu]``."""

from __future__ import annotations

import re

from tmconvert.ir import (
    CallFunction,
    CallMethod,
    Constant,
    Expr,
    GetAttr,
    Input,
    InternalGraph,
    ModuleNode,
    Node,
)


class NameSpace:
    """Qualified names of the nodes of one graph, whose own is ``qualname``."""

    def __init__(self, graph: InternalGraph, qualname: str) -> None:
        self.graph_name = graph.name
        self.qualname = qualname
        self.qualnames: dict[Node, str] = {}
        self._counts: dict[str, int] = {}
        for node in graph.inputs:
            if isinstance(node, ModuleNode) and node is graph.inputs[0]:
                self.qualnames[node] = qualname
            else:
                assert isinstance(node.expr, Input)
                self.qualnames[node] = f"{qualname}.[{node.expr.name}]"
        for expr in graph:
            named = self._of(expr)
            for node in expr.outputs:
                self.qualnames[node] = named

    def _of(self, expr: Expr) -> str:
        if isinstance(expr, GetAttr):
            return f"{self.qualnames[expr.inputs[0]]}.{expr.name}"
        if isinstance(expr, Constant):
            return f"{self.qualname}.[{expr.name or expr.outputs[0].name}]"
        if isinstance(expr, CallMethod):
            callee = expr.args[0]
            if isinstance(callee, ModuleNode):
                return f"{self.qualnames[callee]}.[out]"
            return self._numbered(f"method_{expr.method.strip('_')}")
        assert isinstance(expr, CallFunction)
        prefix, _, name = expr.function.rpartition(".")
        return self._numbered(f"{'def' if prefix == 'opdef' else 'func'}_{name}")

    def _numbered(self, name: str) -> str:
        name = re.sub("[^0-9a-zA-Z_]+", "_", name)
        count = self._counts[name] = self._counts.get(name, -1) + 1
        return f"{self.qualname}.[{name}{f'_{count}' if count else ''}]"
