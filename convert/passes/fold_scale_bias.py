"""Fold scales and biases around layers and matrix products into their weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tmconvert.ir import CallFunction, Expr, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.ir.tree import leaves
from tmconvert.passes.fuse_rsqrt import is_above_zero
from tmconvert.passes.patterns.affine import (
    Affine,
    along_axis,
    changed_constant,
    has_constants,
    scaled_constant,
    small_constant,
)
from tmconvert.passes.patterns.matching import (
    array_of,
    has_symbolic_sizes,
    is_call,
    is_elementwise,
    is_float_constant,
    is_linear,
    is_quotient,
    is_sum,
    is_view,
)
from tmconvert.passes.rewriting import Emits, M, PassRecord, PassRule, apply_rules
from tmconvert.symbolics.op import Ops
from tmconvert.symbolics.registry import has_trait, op_has, trait_of
from tmconvert.symbolics.traits import Arithmetic, Concatenates, Homogeneous, MatrixProduct, Slices, Weights

Plan = Callable[[GraphEmitter], TensorNode]  # emits what takes the place of a node


class FoldScaleBias(Emits):
    """Fold scales and biases into the weights of layers and matrix products; merge chains of them.

    Six rules, each exact up to rounding:

    - What is scaled or shifted by constants, one for each feature, on its way to linear layers alone, as by
      the weights of a layer norm, is so in their weights. Rows may be moved in between.
    - The result of a linear layer or a convolution that is scaled or shifted so, has it in its weights.
    - What else is scaled so on its way to convolutions alone, or shifted where they do not pad it with zeros,
      is so in their weights.
    - A product of matrices that is scaled by one number has it in a constant that is a factor of it.
    - Factors and summands in a row are one factor and one summand.
    - Division by a root is multiplication by its reciprocal, where the roots are fewer (with ``roots``, for
      targets that have an operator for it).

    A factor above 0 passes a ReLU. Constants are computed in float64.
    """

    name = "fold_scale_bias"

    def __init__(self, catalogue: Ops, *, roots: bool = True) -> None:
        super().__init__(catalogue)
        self.roots = roots

    def run(self, graph: InternalGraph) -> PassRecord:
        record = PassRecord(self.name)
        if self.roots:  # while it is seen that roots are of more than 0
            apply_rules(record, graph, (_TakeReciprocal(self),))
        apply_rules(record, graph, (_IntoLayersAfter(self),), backwards=True)
        apply_rules(record, graph, (IntoLayerBefore(self),))
        apply_rules(record, graph, (MergeConstants(self),))
        apply_rules(record, graph, (_IntoConvolutionsAfter(self),), backwards=True)
        return record


class _ScaleRule(PassRule[M | str, "FoldScaleBias"]):
    """A rule for factors and summands; a match that is a str is the reason of a refusal."""

    def takes(self, function: str) -> bool:
        return op_has(function, Arithmetic)

    def match(self, graph: InternalGraph, call: CallFunction) -> M | str | None:
        return self.find(graph, call)

    @abstractmethod
    def find(self, graph: InternalGraph, call: CallFunction) -> M | str | None:
        """The match at a factor or summand, whose sizes may be symbolic."""

    def check(self, graph: InternalGraph, call: CallFunction, match: M | str) -> str | None:
        return match if isinstance(match, str) else None


class _Layers(NamedTuple):
    """Linear layers whose input is scaled or shifted by ``vector``."""

    affine: Affine
    vector: np.ndarray
    layers: list[Any]


class _IntoLayersAfter(_ScaleRule[_Layers]):
    """Folds a factor or summand for each feature into all linear layers that take it."""

    def find(self, graph: InternalGraph, call: CallFunction) -> _Layers | str | None:
        affine = Affine.of(call)
        vector = None if affine is None else affine.along(affine.x.type.rank - 1)
        if affine is None or vector is None:
            return None
        layers, reason = _linear_layers_after(graph, call.output)
        if not layers:
            return None
        return reason or _Layers(affine, vector, layers)

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Any) -> str:
        for layer in match.layers:
            x, weight, bias = layer.args
            g = self.owner.emitter(layer)
            if match.affine.is_factor:
                weight = scaled_constant(g, weight, match.vector)
            else:
                shift = np.einsum("oi,i->o", np.asarray(weight.expr.value), match.vector)
                shift = shift if bias is None else array_of(bias) + shift
                bias = changed_constant(g, shift, weight if bias is None else bias)
            graph.set_arguments(layer, (x, weight, bias), layer.kwargs)
        graph.replace_uses(call.output, match.affine.x)
        graph.remove(call)
        return f"was folded into {_listed([layer.output.name for layer in match.layers])}"


class _IntoConvolutionsAfter(_ScaleRule[_Layers]):
    """Folds a factor or summand for each channel into all convolutions that take it."""

    def find(self, graph: InternalGraph, call: CallFunction) -> _Layers | str | None:
        affine = Affine.of(call)
        vector = None if affine is None or affine.x.type.rank < 3 else affine.along(1)
        users = list(dict.fromkeys(call.output.users))
        layers = [user for user in users if _is_convolution_of(user, call.output)]
        if affine is None or vector is None or not layers:
            return None
        reason = _why_not_into(graph, call.output, users, layers, affine.is_factor)
        return reason or _Layers(affine, vector, layers)

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Any) -> str:
        for layer in match.layers:
            x, weight, bias = layer.args
            g, groups = self.owner.emitter(layer), layer.kwargs["groups"]
            outputs, channels, *window = weight.type.shape
            vector = np.repeat(match.vector.reshape(groups, channels), outputs // groups, axis=0)
            if match.affine.is_factor:
                weight = scaled_constant(g, weight, vector.reshape(outputs, channels, *[1] * len(window)))
            else:
                sums = np.asarray(weight.expr.value, np.float64).reshape(outputs, channels, -1).sum(2)
                shift = (sums * vector).sum(1) + (0 if bias is None else array_of(bias))
                bias = changed_constant(g, shift, weight if bias is None else bias)
            graph.set_arguments(layer, (x, weight, bias), layer.kwargs)
        graph.replace_uses(call.output, match.affine.x)
        graph.remove(call)
        return f"was folded into {_listed([layer.output.name for layer in match.layers])}"


def _is_convolution_of(user: Any, x: TensorNode) -> bool:
    weights = trait_of(user, Weights)
    is_plain = weights is not None and weights.spatial > 0 and not weights.is_transposed
    return is_plain and user.args[0] is x and has_constants(user)


def _why_not_into(
    graph: InternalGraph, node: TensorNode, users: list[Any], layers: list[Any], is_factor: bool
) -> str | None:
    """Returns why the convolutions ``layers`` cannot scale or shift ``node`` in their weights."""
    if graph.is_output(node):
        return "it is an output of the model"
    others = [user for user in users if user not in layers]
    if others:
        return f"`{others[0].outputs[0].name}` takes it, too, besides convolutions"
    padding = [layer.output.name for layer in layers if not is_factor and any(layer.kwargs["padding"])]
    if padding:
        return f"`{padding[0]}` pads it with zeros"
    shared = [layer.output.name for layer in layers if graph.use_count(layer.args[1]) != 1]
    return f"the weight of `{shared[0]}` has other users" if shared else None


class IntoLayerBefore(_ScaleRule[Any]):
    """Folds a factor or summand into the layer or product that it is applied to. The match is a plan."""

    def find(self, graph: InternalGraph, call: CallFunction) -> Any:
        affine = Affine.of(call)
        if affine is None:
            return None
        return _Folding(graph, self.owner.catalogue, affine.is_factor).planned(affine.x, affine.constant)

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Any) -> str:
        affine = Affine.of(call)
        assert affine is not None
        was = affine.x
        graph.substitute(call.output, match(self.owner.emitter(call)))
        _remove_unused(graph, was.expr)
        return f"was folded into the weights before it, with `{was.name}`"


class MergeConstants(_ScaleRule[tuple["Affine", "Affine"]]):
    """a (x b) is x (a b), a + (x + b) is x + (a + b), and a (x b + c) is x (a b) + a c."""

    def find(self, graph: InternalGraph, call: CallFunction) -> Any:
        outer = Affine.of(call)
        inner = None if outer is None else _inner(graph, outer)
        if outer is None or inner is None:
            return None
        if isinstance(inner, str) or inner.is_factor == outer.is_factor:
            return inner if isinstance(inner, str) else (outer, inner, None)
        first = _inner(graph, inner) if outer.is_factor else None
        if isinstance(first, str) or first is None or not first.is_factor:
            return first if isinstance(first, str) else None
        return outer, inner, first

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Any) -> str:
        outer, inner, first = match
        g = self.owner.emitter(call)
        if first is None:
            made = inner.combined(g, outer)
        else:
            made = first.combined(g, outer)
            made = g.call("aten::add", made, small_constant(g, inner.constant * outer.constant, outer))
        graph.substitute(call.output, made)
        _remove_unused(graph, outer.x.expr)
        return f"was merged with `{outer.x.name}`"


class _TakeReciprocal(_ScaleRule[CallFunction]):
    """Replaces a division by a root by a product with its reciprocal; the match is the root."""

    def find(self, graph: InternalGraph, call: CallFunction) -> CallFunction | str | None:
        x, root = call.args
        if not is_quotient(call) or not is_call(root.expr, "aten::sqrt"):
            return None
        if graph.use_count(root) != 1:
            return f"`{root.name}`, by which it divides, has other users"
        if root.qparams is not None:
            return f"`{root.name}`, by which it divides, has quantization parameters"
        if has_symbolic_sizes(call):
            return "one of its sizes is symbolic"
        if x.type.size <= root.type.size:
            return "it divides by as many roots as it has elements"
        if not is_above_zero(root.expr.args[0]):
            return f"`{root.name}`, by which it divides, may be 0"
        return root.expr

    def rewrite(self, graph: InternalGraph, call: CallFunction, match: Any) -> str:
        g = self.owner.emitter(call)
        reciprocal = g.call("aten::rsqrt", match.args[0])
        graph.substitute(call.output, g.call("aten::mul", call.args[0], reciprocal))
        graph.remove(match)
        return f"multiplies by the reciprocal of `{match.output.name}` now"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


class _Folding(NamedTuple):
    """Plans how a node times, or plus, a constant is computed by the layers that make the node."""

    graph: InternalGraph
    catalogue: Ops
    is_factor: bool

    def planned(self, node: TensorNode, constant: np.ndarray) -> Plan | str | None:
        """Plans to fold ``constant`` into the layers that compute ``node``.

        Returns the function that emits them; the reason if the constant cannot be folded into a layer; None
        if no layer computes the node.
        """
        expr = node.expr
        if not isinstance(expr, CallFunction) or len(expr.outputs) != 1:
            return None
        reason = self._shared(node, expr)
        if reason or self.graph.use_count(node) != 1 or node.qparams is not None:
            return reason
        weights = _output_weights(expr)
        if weights is not None:
            axis = weights.channel_axis(node.type.rank)
            return self._layer(expr, along_axis(constant, node.type.shape, axis))
        if self.is_factor and self._is_rectifier(expr):
            return self._rectified(expr, constant)
        if is_view(expr):
            return self._viewed(expr, constant)
        return self._scaled(expr, constant) if self.is_factor and constant.size == 1 else None

    def _shared(self, node: TensorNode, expr: CallFunction) -> str | None:
        """Returns why the result of a layer or product cannot be changed."""
        if _output_weights(expr) is None and not (self.is_factor and _is_matrix_product(expr)):
            return None
        if node.qparams is not None:
            return f"`{node.name}` has quantization parameters"
        return f"`{node.name}` has other users" if self.graph.use_count(node) != 1 else None

    def _is_rectifier(self, expr: CallFunction) -> bool:
        """Whether f(a x) is a f(x) for each element of its one operand, for every a above 0."""
        is_homogeneous = has_trait(expr, Homogeneous) and len(expr.inputs) == 1
        return is_homogeneous and is_elementwise(expr, self.catalogue)

    def _rectified(self, expr: CallFunction, constant: np.ndarray) -> Plan | str | None:
        x = self.planned(expr.args[0], constant)
        if x is None or isinstance(x, str):
            return x
        if not (constant > 0).all():
            return f"`{expr.output.name}` passes on no factor that is 0 or less"
        return lambda g: g.call(expr.function, x(g), **expr.kwargs)

    def _viewed(self, expr: CallFunction, constant: np.ndarray) -> Plan | str | None:
        given = _before_view(expr, constant)
        if given is None:
            is_layer = _output_weights(expr.args[0].expr) is not None
            return f"`{expr.output.name}` does not keep its channels on one axis" if is_layer else None
        x = self.planned(expr.args[0], given)
        if x is None or isinstance(x, str):
            return x
        return lambda g: g.call("tm::view", x(g), **expr.kwargs)

    def _layer(self, expr: CallFunction, vector: np.ndarray | None) -> Plan | str:
        if vector is None:
            return f"it has no single number for each channel of `{expr.output.name}`"
        if not has_constants(expr):
            return f"the parameters of `{expr.output.name}` are computed or quantized"

        def made(g: GraphEmitter) -> TensorNode:
            x, weight, bias = expr.args
            if self.is_factor:
                weight = scaled_constant(g, weight, vector.reshape(-1, *[1] * (weight.type.rank - 1)))
                bias = None if bias is None else scaled_constant(g, bias, vector)
            else:
                shift = vector if bias is None else array_of(bias) + vector
                bias = changed_constant(g, shift, weight if bias is None else bias)
            return g.call(expr.function, x, weight, bias, **expr.kwargs)

        return made

    def _scaled(self, expr: CallFunction, number: np.ndarray) -> Plan | str | None:
        """A product, or such a product plus a constant, times one number."""
        if is_sum(expr):
            x, other = expr.args
            product = self.planned(x, number) if is_float_constant(other) else None
            if product is None or isinstance(product, str):
                return product
            return lambda g: g.call("aten::add", product(g), scaled_constant(g, other, number.item()))
        reason = None
        for place, node in enumerate(expr.args if _is_matrix_product(expr) else ()):
            plan = self._factor(node, number)
            if callable(plan):
                return _product_with(expr, place, plan)
            reason = reason or plan
        return reason

    def _factor(self, node: TensorNode, number: np.ndarray) -> Plan | str | None:
        if is_float_constant(node):
            return lambda g: scaled_constant(g, node, number.item())
        return self.planned(node, number.reshape([1] * node.type.rank))


def _output_weights(expr: object) -> Weights | None:
    """The weights of a layer whose first axis are the channels of its result."""
    weights = trait_of(expr, Weights)
    return None if weights is None or weights.is_transposed else weights


def _is_matrix_product(expr: CallFunction) -> bool:
    return has_trait(expr, MatrixProduct) and not expr.kwargs


def _product_with(expr: CallFunction, place: int, factor: Plan) -> Plan:
    def made(g: GraphEmitter) -> TensorNode:
        node = factor(g)
        operands = [node if i == place else each for i, each in enumerate(expr.args)]
        return g.call(expr.function, *operands)

    return made


def _inner(graph: InternalGraph, outer: Affine) -> Affine | str | None:
    """Returns how the operand is itself scaled or shifted, or why the two cannot be merged."""
    expr = outer.x.expr
    inner = Affine.of(expr) if isinstance(expr, CallFunction) else None
    if inner is None:
        return None
    if graph.use_count(outer.x) != 1:
        return f"`{outer.x.name}` has other users"
    shapes = [inner.constant.shape, outer.constant.shape]
    if np.broadcast_shapes(*shapes) not in shapes:
        return f"one constant would be larger than its own and that of `{outer.x.name}`"
    return inner


def _before_view(view: CallFunction, constant: np.ndarray) -> np.ndarray | None:
    """The constant that does to what is viewed what ``constant`` does to the view."""
    shape = view.args[0].type.shape
    if constant.size == 1:
        return constant.reshape([1] * len(shape))
    axis = int(np.argmax(constant.shape))
    if has_symbolic_sizes(view):
        return None
    from tmconvert.passes.patterns.view_groups import result_groups
    from tmconvert.symbolics.ops.shapes.view import KEPT, groups_of

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


def _linear_layers_after(graph: InternalGraph, node: TensorNode) -> tuple[list[Any], str]:
    """The linear layers that take the rows of ``node``, and what else does, as a reason."""
    layers: list[Any] = []
    joints: list[Any] = []
    reasons: list[str] = []
    reached, ahead = {node}, [node]
    while ahead:
        rows = ahead.pop()
        if graph.is_output(rows) or rows.qparams is not None:
            what = "an output of the model" if graph.is_output(rows) else "quantized by itself"
            subject = "it" if rows is node else f"`{rows.name}`, which linear layers take,"
            reasons.append(f"{subject} is {what}")
        for user in rows.users:
            if is_linear(user) and user.args[0] is rows and has_constants(user):
                layers.append(user)
            elif _moves_rows(user, rows):
                joints.append(user)
                moved = joints[-1].output
                ahead += {moved} - reached
                reached.add(moved)
            else:
                reasons.append(f"`{user.outputs[0].name}` takes it, too, besides linear layers")
    for joint in joints:
        if any(each not in reached for each in leaves(joint.args)):
            reasons.append(f"`{joint.output.name}` joins it with other rows")
    reasons += [
        f"the weight of `{layer.output.name}` has other users"
        for layer in layers
        if graph.use_count(layer.args[1]) != 1
    ]
    return layers, reasons[0] if reasons else ""


def _moves_rows(expr: object, node: TensorNode) -> bool:
    if not isinstance(expr, CallFunction) or has_symbolic_sizes(expr):
        return False
    if has_trait(expr, Slices, Concatenates):
        return expr.kwargs["dim"] % node.type.rank != node.type.rank - 1
    if not is_view(expr):
        return False
    from tmconvert.passes.patterns.view_groups import keeps_features

    return keeps_features(expr.kwargs, node.type.shape[-1])


def _remove_unused(graph: InternalGraph, expr: Expr | None) -> None:
    """Removes what nothing uses any more: rules count users."""
    while isinstance(expr, CallFunction) and not any(map(graph.use_count, expr.outputs)):
        graph.remove(expr)
        left = [node.expr for node in expr.inputs if isinstance(node.expr, CallFunction)]
        for each in left[1:]:
            _remove_unused(graph, each)
        expr = left[0] if left else None
