"""Factors and summands around layers and products of matrices become part of their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.lazy_constants import Array, scaled
from tmconvert.ir.symbolic.dims import is_symbolic
from tmconvert.ir.tree import leaves
from tmconvert.passes.view_groups import keeps_features, result_groups
from tmconvert.symbolics.op import Op
from tmconvert.symbolics.ops.view import KEPT, groups_of

FACTORS = {"aten::mul": 1, "aten::div": -1}
SUMMANDS = {"aten::add": 1, "aten::sub": -1}
RECTIFIERS = ("aten::relu", "aten::leaky_relu")  # f(a x) is a f(x) for every a above 0
PRODUCTS = ("aten::matmul", "tm::matmul_nt")
LAYERS = {"aten::linear": -1, "aten::conv2d": 1}  # with the axis of their results that weights have in front


class FoldScaleBias:
    """Five rules, each exact up to rounding:

    - What is scaled or shifted by constants, one for each feature, on its way to linear layers alone, as by
      the weights of a layer norm, is so in their weights. Rows may be moved in between.
    - The result of a linear layer or a convolution that is scaled or shifted so, has it in its weights.
    - A product of matrices that is scaled by one number has it in a constant that is a factor of it.
    - Factors and summands in a row are one factor and one summand.
    - Division by a root is multiplication by its reciprocal, where the roots are fewer (with ``roots``, for
      targets that have an operator for it).

    A factor above 0 passes a ReLU. Constants are computed in float64.
    """

    name = "fold_scales"

    def __init__(self, catalogue: Mapping[str, Op], *, roots: bool = True) -> None:
        self.catalogue = catalogue
        self.roots = roots

    def run(self, graph: InternalGraph) -> bool:
        changed = False
        for rule, exprs in (
            (
                self._take_reciprocal,
                iter(list(graph.exprs())),
            ),  # while it is seen that roots are of more than 0
            (self._into_layers_behind, reversed(list(graph.exprs()))),
            (self._into_layer_before, iter(list(graph.exprs()))),
            (self._merge, iter(list(graph.exprs()))),
        ):
            for expr in exprs:
                if not isinstance(expr, CallFunction) or expr.function not in (*FACTORS, *SUMMANDS):
                    continue
                if expr.graph is graph and not _is_open(expr):
                    changed |= rule(graph, expr)
        return changed

    def _into_layers_behind(self, graph: InternalGraph, expr: CallFunction) -> bool:
        affine = _Affine.of(expr)
        vector = None if affine is None else affine.along(affine.x.type.rank - 1)
        if affine is None or vector is None:
            return False
        layers = _linear_layers_behind(graph, expr.output)
        for layer in layers:
            x, weight, bias = layer.args
            g = self._emitter(graph, layer)
            if affine.is_factor:
                weight = _scaled(g, weight, vector)
            else:
                shift = np.einsum("oi,i->o", _array(weight), vector)
                shift = shift if bias is None else _array(bias) + shift
                bias = _changed(g, shift, weight if bias is None else bias)
            graph.set_arguments(layer, (x, weight, bias), layer.kwargs)
        if layers:
            graph.replace_uses(expr.output, affine.x)
            graph.remove(expr)
        return bool(layers)

    def _into_layer_before(self, graph: InternalGraph, expr: CallFunction) -> bool:
        affine = _Affine.of(expr)
        if affine is None:
            return False
        g = self._emitter(graph, expr)
        made = _Folding(graph, g, affine.is_factor).folded(affine.x, affine.constant)
        if made is None:
            return False
        graph.substitute(expr.output, made)
        _remove_unused(graph, affine.x.expr)
        return True

    def _merge(self, graph: InternalGraph, expr: CallFunction) -> bool:
        """a (x b) is x (a b), a + (x + b) is x + (a + b), and a (x b + c) is x (a b) + a c."""
        outer = _Affine.of(expr)
        inner = None if outer is None else _inner(graph, outer)
        if outer is None or inner is None:
            return False
        g = self._emitter(graph, expr)
        if inner.is_factor == outer.is_factor:
            made = inner.again(g, outer)
        else:
            first = _inner(graph, inner) if outer.is_factor else None
            if first is None or not first.is_factor:
                return False
            made = g.call(
                "aten::add", first.again(g, outer), _small(g, inner.constant * outer.constant, outer)
            )
        graph.substitute(expr.output, made)
        _remove_unused(graph, outer.x.expr)
        return True

    def _take_reciprocal(self, graph: InternalGraph, expr: CallFunction) -> bool:
        if expr.function != "aten::div" or not self.roots:
            return False
        x, root = expr.args
        if not _is_call(root.expr, "aten::sqrt") or graph.use_count(root) != 1 or root.qparams is not None:
            return False
        if x.type.size <= root.type.size or not _is_positive(root.expr.args[0]):
            return False
        g = self._emitter(graph, expr)
        reciprocal = g.call("aten::rsqrt", root.expr.args[0])
        graph.substitute(expr.output, g.call("aten::mul", x, reciprocal))
        graph.remove(root.expr)
        return True

    def _emitter(self, graph: InternalGraph, expr: CallFunction) -> GraphEmitter:
        return GraphEmitter(
            graph,
            self.catalogue,
            source=expr.source,
            made_by=self.name,
            name=expr.output.name,
            before=expr,
        )


class _Affine(NamedTuple):
    """``x`` times or plus a constant, which has the rank of ``x``."""

    x: TensorNode
    constant: np.ndarray  # float64
    is_factor: bool

    @staticmethod
    def of(expr: CallFunction) -> _Affine | None:
        if expr.function not in FACTORS and expr.function not in SUMMANDS:
            return None
        x, other = expr.args
        if expr.function in ("aten::mul", "aten::add") and _array(x) is not None:
            x, other = other, x
        constant = _array(other)
        if constant is None or _array(x) is not None or x.type.shape != expr.output.type.shape:
            return None
        if x.type.dtype.kind != "f" or constant.ndim > x.type.rank or x.qparams or expr.output.qparams:
            return None
        constant = constant.reshape([1] * (x.type.rank - constant.ndim) + list(constant.shape))
        constant = constant.astype(np.float64)
        is_factor = expr.function in FACTORS
        sign = FACTORS[expr.function] if is_factor else SUMMANDS[expr.function]
        with np.errstate(all="ignore"):
            constant = constant if sign == 1 else (1 / constant if is_factor else -constant)
        return _Affine(x, constant, is_factor) if np.isfinite(constant).all() else None

    def again(self, g: GraphEmitter, outer: _Affine) -> TensorNode:
        """``x`` with the constant of ``outer``, which is of the same kind, too."""
        both = self.constant * outer.constant if self.is_factor else self.constant + outer.constant
        made: TensorNode = g.call(
            "aten::mul" if self.is_factor else "aten::add", self.x, _small(g, both, self)
        )
        return made

    def along(self, axis: int) -> np.ndarray | None:
        return _along(self.constant, self.x.type.shape, axis)


class _Folding(NamedTuple):
    """Makes what computes a node times, or plus, a constant; None where nothing can take that in."""

    graph: InternalGraph
    g: GraphEmitter
    is_factor: bool

    def folded(self, node: TensorNode, constant: np.ndarray) -> TensorNode | None:
        if self.graph.use_count(node) != 1 or node.qparams is not None:
            return None
        expr = node.expr
        if not isinstance(expr, CallFunction) or len(expr.outputs) != 1:
            return None
        if expr.function in LAYERS:
            vector = _along(constant, node.type.shape, LAYERS[expr.function] % node.type.rank)
            return None if vector is None or not _has_constants(expr) else self._layer(expr, vector)
        if expr.function in RECTIFIERS and self.is_factor and (constant > 0).all():
            x = self.folded(expr.args[0], constant)
            return None if x is None else self.g.call(expr.function, x, **expr.kwargs)
        if expr.function == "tm::view":
            given = _before_view(expr, constant)
            x = None if given is None else self.folded(expr.args[0], given)
            return None if x is None else self.g.call("tm::view", x, **expr.kwargs)
        return self._scaled(expr, constant) if self.is_factor and constant.size == 1 else None

    def _layer(self, expr: CallFunction, vector: np.ndarray) -> TensorNode:
        x, weight, bias = expr.args
        shift = _array(bias)
        if self.is_factor:
            weight = _scaled(self.g, weight, vector.reshape(-1, *[1] * (weight.type.rank - 1)))
            bias = None if bias is None else _scaled(self.g, bias, vector)
        else:
            shift = vector if shift is None else shift + vector
            bias = _changed(self.g, shift, weight if bias is None else bias)
        made: TensorNode = self.g.call(expr.function, x, weight, bias, **expr.kwargs)
        return made

    def _scaled(self, expr: CallFunction, number: np.ndarray) -> TensorNode | None:
        """A product, or such a product plus a constant, times one number."""
        if expr.function == "aten::add":
            x, other = expr.args
            if not _is_plain(other):
                return None
            made = self.folded(x, number)
            if made is None:
                return None
            return self.g.call("aten::add", made, _scaled(self.g, other, number.item()))
        for place, node in enumerate(expr.args if expr.function in PRODUCTS else ()):
            if _is_plain(node):
                made = _scaled(self.g, node, number.item())
            else:
                made = self.folded(node, number.reshape([1] * node.type.rank))
            if made is not None:
                operands = [made if i == place else each for i, each in enumerate(expr.args)]
                return self.g.call(expr.function, *operands)
        return None


def _inner(graph: InternalGraph, outer: _Affine) -> _Affine | None:
    """How what is scaled or shifted was so before, for this alone; where one constant is as large as both."""
    expr = outer.x.expr
    if not isinstance(expr, CallFunction) or graph.use_count(outer.x) != 1:
        return None
    inner = _Affine.of(expr)
    shapes = [] if inner is None else [inner.constant.shape, outer.constant.shape]
    return inner if np.broadcast_shapes(*shapes) in shapes else None


def _small(g: GraphEmitter, value: np.ndarray, like: _Affine) -> TensorNode:
    made: TensorNode = g.constant(value.astype(like.x.type.dtype))
    return made


def _before_view(view: CallFunction, constant: np.ndarray) -> np.ndarray | None:
    """The constant that does to what is viewed what ``constant`` does to the view."""
    shape = view.args[0].type.shape
    if constant.size == 1:
        return constant.reshape([1] * len(shape))
    axis = int(np.argmax(constant.shape))
    if constant.size != constant.shape[axis] or any(chosen != KEPT for chosen in view.kwargs["index"]):
        return None
    split = view.kwargs["split"]
    try:
        of_result, of_x = result_groups(view.kwargs), groups_of(split, shape)
    except ValueError:
        return None
    factors = [place for place in of_result[axis] if split[place] != 1]
    for before, places in enumerate(of_x):
        if [place for place in places if split[place] != 1] == factors:
            return constant.reshape([-1 if i == before else 1 for i in range(len(shape))])
    return None


def _linear_layers_behind(graph: InternalGraph, node: TensorNode) -> list[Any]:
    """The linear layers that are all that take the rows of ``node``; none where there is something else."""
    layers: list[Any] = []
    joints: list[Any] = []
    reached, ahead = {node}, [node]
    while ahead:
        rows = ahead.pop()
        if graph.is_output(rows) or rows.qparams is not None:
            return []
        for user in rows.users:
            if _is_call(user, "aten::linear") and user.args[0] is rows and _has_constants(user):
                layers.append(user)
            elif _moves_rows(user, rows):
                joints.append(user)
                moved = joints[-1].output
                ahead += {moved} - reached
                reached.add(moved)
            else:
                return []
    if any(each not in reached for joint in joints for each in leaves(joint.args)):
        return []
    return layers if all(graph.use_count(layer.args[1]) == 1 for layer in layers) else []


def _moves_rows(expr: Any, node: TensorNode) -> bool:
    if not isinstance(expr, CallFunction) or _is_open(expr):
        return False
    if expr.function in ("aten::slice", "aten::cat"):
        return expr.kwargs["dim"] % node.type.rank != node.type.rank - 1
    return expr.function == "tm::view" and keeps_features(expr.kwargs, node.type.shape[-1])


def _along(constant: np.ndarray, shape: Sequence[int], axis: int) -> np.ndarray | None:
    """``constant`` as one number for each index of ``axis``; None where it is more than that."""
    if not shape or constant.size not in (1, constant.shape[axis]):
        return None
    return np.broadcast_to(constant.reshape(-1), shape[axis])


def _changed(g: GraphEmitter, value: np.ndarray, like: TensorNode) -> TensorNode:
    """A constant called as ``like`` is, of its type."""
    return _called(g, value.astype(like.type.dtype, copy=False), like)


def _scaled(g: GraphEmitter, constant: TensorNode, factor: Any) -> TensorNode:
    """The constant times a factor, as if in float64."""
    assert isinstance(constant.expr, Constant)
    return _called(g, scaled(constant.expr.stored, factor), constant)


def _called(g: GraphEmitter, value: Array, like: TensorNode) -> TensorNode:
    assert isinstance(like.expr, Constant)
    return g.parameter(value, like.expr.name or like.name)


def _has_constants(layer: Any) -> bool:
    return layer.output.qparams is None and all(
        _is_plain(node) for node in layer.args[1:] if node is not None
    )


def _is_plain(node: TensorNode) -> bool:
    return isinstance(node.expr, Constant) and node.qparams is None


def _array(node: Any) -> Any:
    """What a constant holds; None for what is none, or not there."""
    if node is None or not _is_plain(node):
        return None
    return np.asarray(node.expr.value)


def _remove_unused(graph: InternalGraph, expr: Expr | None) -> None:
    """Removes what nothing uses any more: rules count users."""
    while isinstance(expr, CallFunction) and not any(map(graph.use_count, expr.outputs)):
        graph.remove(expr)
        left = [node.expr for node in expr.inputs if isinstance(node.expr, CallFunction)]
        for each in left[1:]:
            _remove_unused(graph, each)
        expr = left[0] if left else None


def _is_positive(node: TensorNode) -> bool:
    """Whether something was added to it that keeps it from 0: there runtimes know no reciprocal root."""
    expr: Any = node.expr
    return _is_call(expr, "aten::add") and any(
        array is not None and (array > 0).all() for array in map(_array, expr.args)
    )


def _is_call(expr: Any, function: str) -> bool:
    return isinstance(expr, CallFunction) and expr.function == function


def _is_open(expr: CallFunction) -> bool:
    nodes = [*expr.inputs, *expr.outputs]
    return is_symbolic((expr.kwargs, [node.shape for node in nodes if isinstance(node, TensorNode)]))
