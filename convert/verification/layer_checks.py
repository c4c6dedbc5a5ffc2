"""Verifies an integer file layer by layer against the graph that it was written from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tmconvert.errors import VerificationError
from tmconvert.ir import CallFunction, Constant, InternalGraph, Node, TensorNode
from tmconvert.ir.fake_quant import round_half_away
from tmconvert.ir.symbolic.data_dependent import bound
from tmconvert.ir.symbolic.dims import is_symbolic, substituted
from tmconvert.ir.tree import leaves, map_leaves
from tmconvert.lowering.origins import Role
from tmconvert.passes.patterns.matching import integer_weights
from tmconvert.symbolics.layouts import NHWC_TO_NCHW
from tmconvert.symbolics.op import Ops
from tmconvert.symbolics.registry import has_trait
from tmconvert.symbolics.traits import BoundedByOther, Clamp
from tmconvert.verification.integer_rules import IntegerRules
from tmconvert.verification.noise import LARGEST, Energies, energies_of
from tmconvert.verification.observed import Observed
from tmconvert.verification.tensors import OPERANDS, Tensors


@dataclass(frozen=True)
class Layer:
    """A tensor of the file, and the float result of its call for the file's operands.

    ``local`` is computed from the operands that the file itself has, within the range of its integers,
    ``whole`` from those of the float model. ``step`` is that of its integers, 0 in float; ``slack`` how far
    the kernel, or a rounding within the layer with QParams of the runtime, may move it, all elements or each.
    All arrays are in the order of the source.
    """

    name: str
    function: str
    actual: np.ndarray
    local: np.ndarray
    whole: np.ndarray
    step: float
    slack: Any
    energies: Energies

    def steps_off(self) -> np.ndarray:
        """Returns how many steps each element differs from ``local``; without QParams, the difference.

        Where that is no number, integers cannot say so: they are what they are. LiteRT's kernels of float32
        give the largest number for infinity.
        """
        actual, local = (
            np.clip(each.astype(np.float64), -LARGEST, LARGEST) for each in (self.actual, self.local)
        )
        no_number = np.isnan(local)
        if not self.step:
            no_number &= np.isnan(actual)
        off = np.where(no_number, 0, np.abs(actual - local))
        return off / self.step if self.step else off


def layers(
    graph: InternalGraph, catalogue: Ops, tensors: Tensors, inputs: list[np.ndarray], rules: IntegerRules
) -> Iterator[Layer]:
    """Yields the results of calls that are tensors of the file, in the order of the graph.

    ``inputs`` are the model's, in the source's order. ``rules`` are those of the target of the file.
    """
    local: dict[Any, Any] = {}
    whole: dict[Any, Any] = {}
    sizes: tuple[dict[str, int], dict[str, int]] = {}, {}  # that the data decide, in both ways
    in_integers: set[Any] = {node for node in graph.inputs if _step(node, tensors)}
    for node, array in zip(graph.inputs, inputs, strict=True):
        whole[node] = array
        local[node] = _in_file(node, tensors, array)
    for expr in graph:
        if isinstance(expr, Constant):
            local[expr.output] = whole[expr.output] = np.asarray(expr.value)
            continue
        assert isinstance(expr, CallFunction)
        given = [map_leaves(lambda leaf: None if leaf is None else whole[leaf], list(expr.args))]
        is_float = any(_is_float(node, tensors) for node in expr.outputs)
        is_whole = not is_float and any(node in in_integers for node in expr.inputs)
        is_rounded = is_whole or not rules.depends_on_kernel
        kind = _kind(expr, tensors) if rules.depends_on_kernel else None
        operands = _operands(expr, local, rules.constant if is_rounded else _as_it_is, kind, tensors)
        if is_rounded:
            _round_bias(expr, operands, local, tensors, rules)
        given.append(operands)
        made = list[Any]()
        for arguments, found in zip(given, sizes, strict=True):
            try:
                made.append(_computed_at(expr, catalogue, arguments, found))
            except (ValueError, IndexError):  # rounding changed how many elements a condition selects
                if not made or not found:
                    raise
                made.append(made[0])
        far, near = (result if isinstance(result, list) else [result] for result in made)
        for node, one, other in zip(expr.outputs, near, far, strict=True):
            assert isinstance(node, TensorNode)
            local[node], whole[node] = one, other
            if _step(node, tensors) or (is_whole and node not in tensors):
                in_integers.add(node)
            if node in tensors and one.dtype.kind == "f":
                local[node] = _in_file(node, tensors, one)
                if is_symbolic(node.shape):  # rounding may have changed how many elements there are
                    if one.shape != local[node].shape:
                        continue
                    other = other if other.shape == one.shape else one
                slack = _slack(expr, operands, one, node, tensors, rules) if is_whole else 0.0
                yield _layer(node, expr, tensors, one, other, slack)


def _computed_at(expr: CallFunction, catalogue: Ops, arguments: list[Any], sizes: dict[str, int]) -> Any:
    """Returns the results of a call at sizes that the data decide, and records those of its results."""
    op = catalogue[expr.function]
    result = op.evaluate(arguments, substituted(expr.kwargs, sizes) if sizes else expr.kwargs)
    sizes.update(bound(expr, list(leaves(result))))
    return result


def _result(node: Any, tensors: Tensors) -> Observed | None:
    """Applies the fused activation of an operator, if any, to a result."""
    while node not in tensors:
        users = list(node.users)
        if len(users) != 1 or not _is_clamp(users[0]):
            return None
        (node,) = users[0].outputs
    return _computed(node, tensors)


def _is_float(node: object, tensors: Tensors) -> bool:
    found = _result(node, tensors)
    return found is not None and not found.step


def _kind(expr: CallFunction, tensors: Tensors) -> str | None:
    """Returns the integer type of a call's kernel, which is that of its result; "" for float.

    None for what is not in the file.
    """
    found = _result(expr.outputs[0], tensors)
    return None if found is None else found.kind


def _operands(
    expr: CallFunction, local: Mapping[Any, Any], round_to: Rounding, kind: str | None, tensors: Tensors
) -> list[Any]:
    """Returns the operands of a call as in the file: those that its operator takes, else those of the type
    ``kind``; quantized weights for integer kernels.
    """

    def operand(leaf: Any) -> Any:
        if leaf is None:
            return None
        if _is_constant(leaf):
            return round_to(leaf, local[leaf], expr)
        taken = tensors.taken.get((expr.outputs[0], leaf))
        forms = [*([taken] if taken is not None else []), *tensors.forms(leaf, OPERANDS)]
        forms = [form for form in forms if kind is not None and form.kind == kind]
        if forms and forms[0].array.size == local[leaf].size:
            return _in_order(forms[0].array, leaf).reshape(local[leaf].shape)
        return local[leaf]

    made = map_leaves(operand, list(expr.args))
    assert isinstance(made, list)
    return made


def _step(node: Node, tensors: Tensors) -> float:
    found = tensors.form(node, Role.QUANTIZED, Role.TENSOR)
    return 0.0 if found is None else found.step


Rounding = Callable[[TensorNode, np.ndarray, CallFunction], np.ndarray]


def _as_it_is(node: TensorNode, value: np.ndarray, expr: CallFunction) -> np.ndarray:
    return value


def _is_constant(node: Any) -> bool:
    """Whether a tensor is constant, or computed from constants only, which a file folds."""
    if isinstance(node.expr, CallFunction):
        return bool(node.expr.inputs) and all(map(_is_constant, node.expr.inputs))
    return isinstance(node.expr, Constant)


def _round_bias(
    expr: CallFunction, operands: list[Any], local: Mapping[Any, Any], tensors: Tensors, rules: IntegerRules
) -> None:
    """Returns the bias among ``operands`` as quantized, by the product of the input and weight scales."""
    weights = integer_weights(expr)
    if weights is None or expr.args[2] is None:
        return
    x, weight, bias = expr.args[:3]
    step = _operand_step(x, expr.outputs[0], tensors, rules)
    if not _is_constant(bias) or not _is_constant(weight) or not step:
        return
    scales = rules.weight_scales(weight, np.asarray(local[weight]), weights.output_axis)
    if len(scales) in (1, operands[2].size):
        products = np.array(scales) * step
        operands[2] = (round_half_away(operands[2] / products) * products).astype(np.float32)


def _operand_step(x: Node, result: Node, tensors: Tensors, rules: IntegerRules) -> float:
    """The step of the form of ``x`` that a kernel takes."""
    forms, wanted = tensors.forms(x, OPERANDS), _result(result, tensors)
    if rules.depends_on_kernel and wanted is not None:
        forms = [form for form in forms if form.kind == wanted.kind]
    return forms[0].step if forms else 0.0


def _slack(
    expr: CallFunction,
    operands: list[object],
    result: np.ndarray,
    node: Node,
    tensors: Tensors,
    rules: IntegerRules,
) -> Any:
    """Returns the tolerance of a layer's kernel in addition to rounding."""
    computed = _computed(node, tensors)
    found = rules.slack(expr, computed.kind)
    if found is None:
        return 0.0
    step = _operand_step(expr.args[0], node, tensors, rules) or computed.step
    return found(expr, operands, result, step)


def _layer(
    node: TensorNode, expr: CallFunction, tensors: Tensors, near: np.ndarray, far: np.ndarray, slack: Any
) -> Layer:
    found, inner = _quantized(node, tensors), tensors.form(node, Role.COMPUTED)
    slack = slack + (0.0 if inner is None else inner.step / 2)
    ends, actual = _range(node, found), _in_order(found.array, node)
    if actual.size != near.size:
        about = f"{node.name} differs from the float result of {expr.function} for the same operands"
        shapes = f"its shape is {list(actual.shape)}, expected {list(near.shape)}"
        raise VerificationError("TM4001", f"{about}: {shapes}")
    cut = np.clip(near, *ends)
    # what a clamp behind it takes anyway is no loss
    one, other = (cut, np.clip(far, *ends)) if _is_clamped(node) else (near, far)
    energies = energies_of(node.name, expr.function, actual, one, other, found.step, ends, expr.source)
    return Layer(node.name, expr.function, actual, cut, far, found.step, slack, energies)


def _is_clamped(node: TensorNode) -> bool:
    users = [user for user in node.users if isinstance(user, CallFunction)]
    return bool(users) and all(map(_is_clamp, users))


def _is_clamp(user: object) -> bool:
    """Whether the op before may fuse the clamp, or include it in its QParams."""
    if not isinstance(user, CallFunction):
        return False
    is_bound = has_trait(user, BoundedByOther) and isinstance(user.args[1].expr, Constant)
    return is_bound or has_trait(user, Clamp)


def _quantized(node: Node, tensors: Tensors) -> Observed:
    """Returns a quantized tensor, where the file also has it in another form, such as a float output."""
    found = tensors.form(node, Role.INTERNAL, Role.TENSOR)
    assert found is not None
    return found


def _computed(node: Node, tensors: Tensors) -> Observed:
    """Returns a tensor before requantization."""
    return tensors.form(node, Role.COMPUTED) or _quantized(node, tensors)


def _range(node: TensorNode, found: Observed) -> tuple[float, float]:
    """Returns the real range of a tensor's integers, within the source's range."""
    given = node.qparams
    if given is None or given.inferred or given.scale != (found.step,):
        return found.low, found.high
    low, high = ((end - given.zero_point[0]) * given.scale[0] for end in (given.quant_min, given.quant_max))
    return max(low, found.low), min(high, found.high)


def _in_file(node: Any, tensors: Tensors, otherwise: np.ndarray) -> np.ndarray:
    """Returns the tensor that operators after ``node`` read."""
    for form in tensors.forms(node, (Role.QUANTIZED, Role.TENSOR)):
        if form.array.size == otherwise.size:
            return _in_order(form.array, node).reshape(otherwise.shape)
    return otherwise


def _in_order(array: np.ndarray, node: TensorNode) -> np.ndarray:
    return array.transpose(NHWC_TO_NCHW) if node.layout == "nhwc" and array.ndim == 4 else array
