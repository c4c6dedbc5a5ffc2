"""The vocabulary of ONNX: maps calls of operators to adapters, for each opset."""

from __future__ import annotations

from functools import cache
from typing import Any

from tmconvert.errors import Refusal
from tmconvert.frontends.onnx.adapters import OPERATORS
from tmconvert.frontends.shared.vocabulary import Adapter, AdapterVocabulary
from tmconvert.ir import CallFunction, Expr
from tmconvert.ir.emitter import Emitter


class OnnxVocabulary(AdapterVocabulary):
    """Converts operators of one opset of ai.onnx; those of other domains have one version.

    The functions are ``onnx.Conv``, and ``com.microsoft.FusedConv``.
    """

    framework = "ONNX Runtime"
    may_open = frozenset(("onnx.Reshape", "onnx.Concat", "onnx.Expand", "onnx.Resize"))

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.identifier = f"onnx-{opset}"

    def find(self, expr: Expr, args: tuple[object, ...]) -> tuple[str, Adapter | None]:
        name = self.name(expr)
        return name, self._adapter(name) if isinstance(expr, CallFunction) else None

    def knows(self, name: str, is_method: bool) -> bool:
        return not is_method and self._adapter(name) is not None

    def _adapter(self, name: str) -> Adapter | None:
        versions = OPERATORS.get(name, {})
        since = max((each for each in versions if each <= self.opset), default=None)
        return None if since is None else versions[since]

    def help(self, name: str) -> str:
        return "register a conversion with register_symbolic, or export the model without this operator"

    def reason(self, name: str) -> str | None:
        from tmconvert.frontends.onnx.refused import reason_of

        return reason_of(name)

    def resolved(self, g: Emitter, expr: Expr, args: tuple[object, ...], result: Any) -> Any:
        """Returns as many results as the node has: trailing ones are optional in ONNX.

        An adapter may return a function of this number, and functions in place of results that are computed
        only where they are used.
        """
        nodes = expr.result if isinstance(expr.result, tuple) else (expr.result,)
        made = result(len(nodes)) if callable(result) else result
        values = list(made) if isinstance(made, (list, tuple)) else [made]
        values += [None] * (len(nodes) - len(values))
        found = []
        for number, (value, node) in enumerate(zip(values, nodes, strict=False)):
            is_needed = expr.graph is None or expr.graph.is_used(node)
            value = value() if callable(value) and is_needed else value
            if value is None and is_needed:
                raise Refusal(f"output {number} of {self.name(expr)} is not supported")
            found.append(None if callable(value) else value)
        return tuple(found) if isinstance(expr.result, tuple) else found[0]


@cache
def vocabulary_of(opset: int) -> OnnxVocabulary:
    """Returns the vocabulary of an opset of ai.onnx."""
    return OnnxVocabulary(opset)
