"""The vocabulary of models whose calls are ops of the catalogue: each becomes itself, with its QParams."""

from __future__ import annotations

import math
from typing import Any

from tmconvert.errors import GraphError, Refusal
from tmconvert.frontends.shared.vocabulary import Adapter, AdapterVocabulary
from tmconvert.ir import Expr, TensorNode
from tmconvert.ir.emitter import Emitter

IDENTIFIER = "aten"


class AtenVocabulary(AdapterVocabulary):
    identifier = IDENTIFIER
    framework = "the program that made it"
    has_all_qparams = True

    def find(self, expr: Expr, args: tuple[object, ...]) -> tuple[str, Adapter | None]:
        return self.name(expr), None

    def help(self, name: str) -> str:
        return "save the file again with this version of tmconvert"

    def apply(self, g: Emitter, expr: Expr, args: tuple[object, ...], kwargs: dict[str, object]) -> Any:
        try:
            made = g.call(self.name(expr), *args, **_resolved_shape(self.name(expr), args, kwargs))
        except (GraphError, KeyError) as error:
            raise Refusal(f"{self.name(expr)}: {error}", self.help(self.name(expr))) from error
        results = list(made) if isinstance(made, (list, tuple)) else [made]
        for i, node in enumerate(expr.outputs):
            if isinstance(node, TensorNode) and node.qparams is not None:
                results[i] = g.quantized(results[i], node.qparams)
        return results if isinstance(made, (list, tuple)) else results[0]


def _resolved_shape(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Replaces the -1 in the shape of a reshape by a number."""
    shape = kwargs.get("shape")
    if name != "aten::reshape" or not shape or -1 not in shape:
        return kwargs
    whole, known = math.prod(args[0].shape), math.prod(extent for extent in shape if extent != -1)
    return {**kwargs, "shape": [whole // known if extent == -1 else extent for extent in shape]}


VOCABULARY = AtenVocabulary()
