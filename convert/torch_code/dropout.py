"""Restores dropout, which conversions omit, in generated code, for training."""

from __future__ import annotations

from typing import Any

from tmconvert.ir import CallFunction, CallMethod, Expr, GetAttr, InternalGraph, ModuleNode, TracedModule
from tmconvert.ir.emitter import Emitter
from tmconvert.ir.traced_module import Vocabulary
from tmconvert.ir.tree import replaced
from tmconvert.symbolics.op import Attribute, Op, Tensor, boolean, number
from tmconvert.symbolics.results import same_as

_KINDS = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
_HOMES = ("torch.nn.functional.", "torch.", "megengine.functional.nn.", "megengine.functional.")
# class -> function and class in torch.nn
CLASSES = {
    "torch.nn.modules.dropout.Dropout": ("dropout", "Dropout"),
    "torch.nn.modules.dropout.Dropout1d": ("dropout1d", "Dropout1d"),
    "torch.nn.modules.dropout.Dropout2d": ("dropout2d", "Dropout2d"),
    "torch.nn.modules.dropout.Dropout3d": ("dropout3d", "Dropout3d"),
    "torch.nn.modules.dropout.AlphaDropout": ("alpha_dropout", "AlphaDropout"),
    "torch.nn.modules.dropout.FeatureAlphaDropout": ("feature_alpha_dropout", "FeatureAlphaDropout"),
    "megengine.module.dropout.Dropout": ("dropout", "Dropout"),
}
CLASS_OF_KIND = dict(CLASSES.values())
FUNCTIONS = {home + kind: kind for home in _HOMES for kind in _KINDS}


def _text(value: object) -> str:
    return str(value)


# ``path`` is that of the module that was called, empty for a function
dropout = Op(
    "tm::dropout",
    args=[
        Tensor("x"),
        number("p"),
        Attribute("kind", _text, "dropout"),
        Attribute("path", _text, ""),
        boolean("is_module", False),
    ],
    result=same_as("x"),
)


def use_dropped(graph: InternalGraph) -> None:
    """Makes the calls after a dropout module use its result.

    In evaluation mode PyTorch's dropout returns its operand itself, so that a trace does not show which of
    the two later calls use. Calls after the dropout that use its operand are assumed to use its result.
    """
    order = {expr: place for place, expr in enumerate(graph)}
    for expr, place in order.items():
        if not isinstance(expr, CallMethod) or not _is_dropout(expr) or graph.is_used(expr.outputs[0]):
            continue
        old, new = expr.args[1], expr.outputs[0]
        for user in [user for user in old.users if order[user] > place]:
            graph.set_arguments(user, replaced(user.args, old, new), replaced(user.kwargs, old, new))
        graph.set_result(replaced(graph.result, old, new))


def _is_dropout(expr: CallMethod) -> bool:
    return isinstance(expr.args[0], ModuleNode) and expr.args[0].class_name in CLASSES


class DropoutVocabulary:
    """A vocabulary in which dropout is an op; all else is as in ``inner``."""

    def __init__(self, inner: Vocabulary) -> None:
        self.inner = inner

    def apply(self, g: Emitter, expr: Expr, args: tuple[object, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(expr, CallMethod) and args and isinstance(args[0], TracedModule):
            known = CLASSES.get(args[0].class_name)
            if known is not None and isinstance(expr.args[0], ModuleNode):
                settings = args[0].attributes
                p = settings.get("p", settings.get("drop_prob", 0.5))
                getter = expr.args[0].expr
                path = getter.name if isinstance(getter, GetAttr) else ""
                return g.call("tm::dropout", args[1], p=p, kind=known[0], path=path, is_module=bool(path))
        if isinstance(expr, CallFunction) and expr.function in FUNCTIONS:
            p = args[1] if len(args) > 1 else kwargs.get("p", kwargs.get("drop_prob", 0.5))
            return g.call(
                "tm::dropout", args[0] if args else kwargs["input"], p=p, kind=FUNCTIONS[expr.function]
            )
        return self.inner.apply(g, expr, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
