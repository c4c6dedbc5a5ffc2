"""Decomposes ops without an integer kernel in TFLite before calibration, so that the tensors of the
decomposition are measured.

The graph keeps the fused op next to its decomposition (``tm::in_steps``), since ONNX has an operator for it.
Tensors of the decomposition are int16, in which variances and exponentials keep their precision; elementwise
functions become lookup tables of 4096 entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tmconvert.calibration.int16_tensors import fine_results
from tmconvert.calibration.integer_forms import IntegerForms
from tmconvert.calibration.placement import Kind, KindOf, is_clamped
from tmconvert.errors import Refusal
from tmconvert.ir import CallFunction, Constant, Expr, InternalGraph, TensorNode
from tmconvert.ir.emitter import GraphEmitter
from tmconvert.passes.eliminate_dead_code import EliminateDeadCode
from tmconvert.passes.patterns.matching import is_elementwise
from tmconvert.passes.select_decomposition import IN_STEPS
from tmconvert.symbolics.op import Op, SchemaError
from tmconvert.symbolics.registry import has_trait, trait_of
from tmconvert.symbolics.traits import Distribution, Elimination, IntegerSteps, KeepsQparams

EXPANSION = "expansion"  # made the steps, which are no other function than the whole
_ENTRIES = 4096  # of a table within steps
_DEEPEST = 16  # steps of steps


class _NoSteps(Exception):
    """The call cannot be decomposed into integer operators."""


def expand(graph: InternalGraph, catalogue: Mapping[str, Op], kind_of: KindOf) -> KindOf:
    """Adds the decompositions that some calls need to ``graph``; returns the result types of each call."""
    kinds = _Kinds(graph, kind_of)
    forms = IntegerForms(catalogue)
    fine = fine_results(graph)
    calls = [expr for expr in graph if isinstance(expr, CallFunction)]
    after = dict(zip(calls, [*calls[1:], None], strict=True))
    for call in calls:
        own = fine.get(call) if kind_of(call) == "int8" else None
        if kind_of(call) == "float" or (own is None and forms.has(call, kinds.of)):
            continue
        steps = Steps(graph, catalogue, kinds, forms, call, after[call])
        try:
            made = [steps.again(call, own)] if own else steps.of(call)
        except (_NoSteps, Refusal, SchemaError):
            continue
        for old, new in zip(list(call.outputs), made, strict=True):
            _insert_select(graph, kinds, old, new, after[call], own)
    EliminateDeadCode().run(graph)
    return kinds


def _insert_select(
    graph: InternalGraph, kinds: _Kinds, whole: Any, steps: Any, before: Expr | None, own: Kind | None
) -> None:
    """Adds a select between the fused op and its decomposition, which takes over the name and the users.

    Its QParams are those of both, but for steps that are to have their ``own``, or that a clamp is to follow,
    whose result then has it.
    """
    if not whole.users and not graph.is_output(whole):
        kinds.known[whole] = "float"  # the fused call has it, but no decomposition computes it
        return
    name, made_by = whole.name, whole.expr
    graph.rename(whole, graph.free_name(f"{name}_whole"))
    result = TensorNode(name, whole.shape, whole.dtype)
    users = TensorNode("", whole.shape, whole.dtype)
    expr = CallFunction(IN_STEPS, (whole, steps), {}, result=result, source=made_by.source)
    graph.replace_uses(whole, users)
    graph.insert(expr, before=before)
    graph.replace_uses(users, result)
    own = own or ("int16" if is_clamped(graph, result) else "float")
    kinds.known |= {result: kinds.rule(made_by), whole: "float", steps: own}


def measured_name(node: TensorNode) -> str:
    """Returns the name that a tensor has once all decompositions are selected."""
    for user in node.users:
        if isinstance(user, CallFunction) and user.function == IN_STEPS and user.args[1] is node:
            return user.output.name
    return node.name


def whole_call(expr: Expr) -> Expr:
    """Returns the fused call of a decomposed one, whose traits apply to both."""
    if isinstance(expr, CallFunction) and expr.function == IN_STEPS:
        return whole_call(expr.args[0].expr)
    return expr


class _Kinds:
    """The integer types of results: by the user's rules, and by the needs of decompositions.

    "float" stands for no QParams, "places" for int16 with 4096 steps, "narrow" for int8 with no fixed
    QParams.
    """

    def __init__(self, graph: InternalGraph, rule: KindOf) -> None:
        before: dict[Expr, Kind] = {expr: rule(expr) for expr in graph}  # names change

        def known_rule(expr: Expr) -> Kind:
            return before[expr] if expr in before else rule(expr)

        self.rule: KindOf = known_rule
        self.known: dict[TensorNode, Kind] = {}

    def __call__(self, expr: Expr) -> Kind:
        node = expr.outputs[0]
        return self.known[node] if isinstance(node, TensorNode) and node in self.known else self.rule(expr)

    def of(self, node: TensorNode) -> Kind | None:
        """Returns the integer type as ``IntegerForms`` names it."""
        assert node.expr is not None
        kind = self.known.get(node) or (self(node.expr) if isinstance(node.expr, CallFunction) else "int8")
        return {"narrow": "int8", "float": "int8" if node not in self.known else None}.get(kind, kind)


class Steps:
    """Emits calls that have integer kernels; other ops are decomposed further."""

    def __init__(
        self,
        graph: InternalGraph,
        catalogue: Mapping[str, Op],
        kinds: _Kinds,
        forms: IntegerForms,
        call: CallFunction,
        before: Expr | None,
    ) -> None:
        self.graph, self.catalogue, self.kinds, self.forms = graph, catalogue, kinds, forms
        self.plain = GraphEmitter(
            graph, catalogue, source=call.source, made_by=EXPANSION, name=call.outputs[0].name, before=before
        )
        self.depth = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def of(self, call: CallFunction) -> list[Any]:
        """Returns the results of the decomposed ``call``. Raises _NoSteps."""
        op = self.catalogue[call.function]
        steps = trait_of(call, IntegerSteps)
        say = None if steps is None else steps.function
        if say is None and (table := self._look_up(call)) is not None:
            return [table]
        say = say or op.decomposition
        if say is None or self.depth > _DEEPEST or has_trait(call, Elimination):
            raise _NoSteps
        self.depth += 1
        made = say(self, **op.by_name(call.args, call.kwargs))
        self.depth -= 1
        return [self._requantize_view(each) for each in (made if isinstance(made, (list, tuple)) else [made])]

    def _requantize_view(self, result: TensorNode) -> TensorNode:
        """A result that may have other QParams than the tensor whose elements it has."""
        if not has_trait(result.expr, KeepsQparams):
            return result
        made = self.plain.call("tm::requantize", result)
        self.kinds.known[made] = "int16"
        return made

    def call(self, op: str, *args: object, **attributes: object) -> Any:
        """Emits a call with int16 results; those of softmax are int8, as they are factors of products."""
        made = self.plain.call(op, *args, **attributes)
        nodes = list(made) if isinstance(made, (list, tuple)) else [made]
        call = nodes[0].expr
        if not isinstance(call, CallFunction):
            return made
        kind = "narrow" if has_trait(call, Distribution) else "int16"
        self.kinds.known |= dict.fromkeys(nodes, kind)
        if self.forms.has(call, self.kinds.of, _ENTRIES):
            return made
        again = self.of(call)
        self.graph.remove(call)
        return again if isinstance(made, (list, tuple)) else again[0]

    def again(self, call: CallFunction, kind: Kind) -> Any:
        """Returns the result of an equal call with another integer type."""
        op = self.catalogue[call.function]
        made = self.call(call.function, **op.by_name(call.args, call.kwargs))
        self.kinds.known[made] = kind
        return made

    def table(self, x: Any, function: Callable[[Any, Any], Any]) -> Any:
        """Emits ``function`` (of an emitter and a tensor), an elementwise function, as a lookup table."""
        if self.kinds.of(x) == "int16":
            x = self.plain.call("tm::requantize", x)
            self.kinds.known[x] = "places"
        result = function(_Unmeasured(self.plain, self.kinds), x)
        self.kinds.known[result] = "int16"
        return result

    def _look_up(self, call: CallFunction) -> Any:
        """Emits unary functions without an int16 kernel as a lookup table; None for others."""
        op = self.catalogue[call.function]
        computed: list[Any] = [x for x in call.inputs if not isinstance(x.expr, Constant)]
        if len(computed) != 1 or len(call.outputs) != 1 or self.kinds.of(computed[0]) != "int16":
            return None
        if not is_elementwise(call, self.catalogue) or computed[0].type != call.output.type:
            return None
        arguments = op.by_name(call.args, call.kwargs)

        def again(g: Any, x: Any) -> Any:
            return g.call(
                call.function, **{key: x if arg is computed[0] else arg for key, arg in arguments.items()}
            )

        return self.table(computed[0], again)


class _Unmeasured:
    """An emitter for calls that a lookup table replaces."""

    def __init__(self, plain: GraphEmitter, kinds: _Kinds) -> None:
        self.plain, self.kinds = plain, kinds

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def call(self, op: str, *args: object, **attributes: object) -> Any:
        made = self.plain.call(op, *args, **attributes)
        if isinstance(made.expr, CallFunction):
            self.kinds.known[made] = "float"
        return made
