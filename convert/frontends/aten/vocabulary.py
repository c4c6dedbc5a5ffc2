"""The meaning of calls that are ops of the catalogue: themselves, on the grids of their results."""

from __future__ import annotations

from typing import Any

from ...errors import GraphError, Refusal
from ...ir import Expr, TensorNode
from ...ir.emitter import Emitter
from ..vocabulary import Adapter, AdapterVocabulary

IDENTIFIER = "aten"


class AtenVocabulary(AdapterVocabulary):
    identifier = IDENTIFIER
    framework = "the program that made it"

    def find(self, expr: Expr, args: tuple[Any, ...]) -> tuple[str, Adapter | None]:
        return self.name(expr), None

    def help(self, name: str) -> str:
        return "make the file again with this version of tmconvert"

    def apply(self, g: Emitter, expr: Expr, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            made = g.call(self.name(expr), *args, **kwargs)
        except (GraphError, KeyError) as error:
            raise Refusal(f"{self.name(expr)}: {error}", self.help(self.name(expr))) from error
        results = list(made) if isinstance(made, (list, tuple)) else [made]
        for i, node in enumerate(expr.outputs):
            if isinstance(node, TensorNode) and node.qparams is not None:
                results[i] = g.quantized(results[i], node.qparams)
        return results if isinstance(made, (list, tuple)) else results[0]


VOCABULARY = AtenVocabulary()
