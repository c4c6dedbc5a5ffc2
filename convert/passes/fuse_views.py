"""Fuse chains of reshapes, selections and transposes into one ``tm::view`` each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tmconvert.ir import CallFunction, Expr, InternalGraph, TensorNode
from tmconvert.ir.symbolic.data_dependent import data_symbols
from tmconvert.ir.symbolic.dims import Dim, Size, example
from tmconvert.passes.patterns.matching import is_view
from tmconvert.passes.rewriting import Emits, PassRecord
from tmconvert.symbolics.ops.shapes.view import KEPT
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import Reshaped, Selected, View, ViewStep


def _divides(part: Size, whole: Size) -> bool:
    """Whether ``whole`` is a multiple of ``part``; False where the example has 0 elements of it."""
    if example(part) == 0:
        return False
    return bool(whole % part == 0)


@dataclass(eq=False)
class _Factor:
    """A factor of the root's extent; ``index`` is the selected index, or KEPT."""

    size: int
    index: int = KEPT


@dataclass
class _View:
    """A view of ``root``: factors in the root's order, and by axes of the node."""

    root: TensorNode
    factors: list[_Factor]
    axes: list[list[_Factor]] = field(default_factory=list)

    def copied(self) -> _View:
        counterparts = {id(factor): _Factor(factor.size, factor.index) for factor in self.factors}
        return _View(
            self.root,
            [counterparts[id(factor)] for factor in self.factors],
            [[counterparts[id(factor)] for factor in axis] for axis in self.axes],
        )

    @property
    def is_permuted(self) -> bool:
        places = {id(factor): place for place, factor in enumerate(self.factors)}
        seen = [places[id(factor)] for axis in self.axes for factor in axis if factor.size != 1]
        return seen != sorted(seen)

    def apply(self, step: ViewStep) -> bool:
        """False where the step regroups or selects what are not whole factors."""
        if isinstance(step, Reshaped):
            return self.reshape(step.shape)
        if isinstance(step, Selected):
            return self.select(step.axis, step.position)
        self.permute(step.order)
        return True

    def select(self, axis: int, index: int) -> bool:
        """Selects an index of an axis; False where it depends on a symbolic size."""
        factors = self.axes[axis]
        extent = math.prod(factor.size for factor in factors)
        if isinstance(index, Dim) or (isinstance(extent, Dim) and (len(factors) > 1 or index < 0)):
            return False
        index = index % extent if index < 0 else index
        del self.axes[axis]
        for factor in reversed(factors[1:]):
            index, factor.index = divmod(index, factor.size)
        for factor in factors[:1]:  # an axis of extent 1 may have none
            factor.index = index
        return True

    def permute(self, order: Sequence[int]) -> None:
        self.axes = [self.axes[axis] for axis in order]

    def reshape(self, shape: Sequence[int]) -> bool:
        """Regroups the factors, splitting where needed; False when an axis cuts across a factor."""
        remaining = [factor for axis in self.axes for factor in axis]
        if any(factor.size == 0 for factor in remaining):
            return False
        regrouped: list[list[_Factor]] = []
        for extent in shape:
            group: list[_Factor] = []
            missing = extent
            while isinstance(missing, Dim) or missing > 1:  # a size that may be more than 1 is split off, too
                factor = remaining.pop(0) if remaining else _Factor(0)
                if factor.size and _divides(factor.size, missing):
                    missing //= factor.size
                elif factor.size and _divides(missing, factor.size):
                    factor, rest = self._split(factor, missing)
                    remaining.insert(0, rest)
                    missing = 1
                else:
                    return False
                group.append(factor)
            regrouped.append(group)
        if any(factor.size != 1 for factor in remaining):
            return False
        if remaining and regrouped:
            regrouped[-1].extend(remaining)
        elif remaining:
            for factor in remaining:  # a result of rank 0 has no axis to hold factors of extent 1
                factor.index = 0
        self.axes = regrouped
        return True

    def _split(self, factor: _Factor, size: int) -> tuple[_Factor, _Factor]:
        place = next(i for i, known in enumerate(self.factors) if known is factor)
        parts = _Factor(size), _Factor(factor.size // size)
        self.factors[place : place + 1] = parts
        return parts


class FuseViews(Emits):
    """Fuse chains of reshape, permute and select into one ``tm::view`` of the first tensor."""

    name = "fuse_views"
    after = ("fold_constants",)

    def run(self, graph: InternalGraph) -> PassRecord:
        record, reasons = PassRecord(self.name), dict[CallFunction, str]()
        views: dict[TensorNode, _View] = {}
        for expr in graph:
            if not isinstance(expr, CallFunction) or not has_trait(expr, View):
                continue
            view, reason = _extended(graph, expr, views)
            if view is not None:
                views[expr.output] = view
            if reason:
                reasons[expr] = reason
        roots = {view.root for view in views.values()}
        made: dict[TensorNode, TensorNode] = {}
        for node, view in views.items():
            if node in roots or graph.is_output(node) or any(_keeps(user, views) for user in node.users):
                view.root = made.get(view.root, view.root)
                if not _is_one_already(node, view):
                    assert isinstance(node.expr, CallFunction)
                    made[node] = self._emit(graph, node.expr, view)
                    record.did(node.expr, f"is a view of `{view.root.name}` now")
        for expr, reason in reasons.items():
            record.refuse(expr, reason)
        return record

    def _emit(self, graph: InternalGraph, expr: CallFunction, view: _View) -> TensorNode:
        emitter = self.emitter(expr)
        kept = [factor for factor in view.factors if factor.index == KEPT]
        places = {id(factor): place for place, factor in enumerate(kept)}
        made = emitter.call(
            "tm::view",
            view.root,
            [factor.size for factor in view.factors],
            [factor.index for factor in view.factors],
            [places[id(factor)] for axis in view.axes for factor in axis],
            list(expr.output.type.shape),
        )
        graph.substitute(expr.output, made)
        return made


def _is_open(expr: CallFunction) -> bool:
    """Whether a data-dependent size is among its types: factors of it may have no elements."""
    return bool(data_symbols([expr.args[0].type.shape, expr.output.type.shape]))


def _is_one_already(node: TensorNode, view: _View) -> bool:
    expr = node.expr
    return is_view(expr) and expr.args[0] is view.root


def _keeps(user: Expr, views: dict[TensorNode, _View]) -> bool:
    """Whether this user needs the node itself, as it is not a view or could not be composed."""
    return not any(node in views for node in user.outputs)


def _extended(
    graph: InternalGraph, expr: CallFunction, views: dict[TensorNode, _View]
) -> tuple[_View | None, str]:
    """Returns the view of the operand's root, or of the operand, with the reason; None without either."""
    operand, trait, reason = expr.args[0], trait_of(expr, View), ""
    if trait is None or _is_open(expr):
        return None, "its shape depends on data"
    steps, earlier = trait.of(expr), views.get(operand)
    selects = any(isinstance(step, Selected) for step in steps)
    # a transpose with several users is done once, unless a selection makes it smaller
    is_shared = graph.use_count(operand) != 1 and not selects
    if earlier is not None and earlier.is_permuted and is_shared:
        reason = f"it is not fused with `{operand.name}`, which is transposed and has other users"
    elif earlier is not None:
        view = earlier.copied()
        if all(map(view.apply, steps)):
            return view, ""
        reason = f"it is not fused with `{operand.name}`, whose axes it does not regroup as wholes"
    factors = [_Factor(extent) for extent in operand.type.shape]
    view = _View(operand, factors, [[factor] for factor in factors])
    if all(map(view.apply, steps)):
        return view, reason
    return None, "its axes are not products of factors of its operand's axes"
